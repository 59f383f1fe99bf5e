//! The seek times that a sheet gives, or those assumed. The curve between them is [`SheetCurve`]'s.

use super::text::Text;
use super::{DataSheet, Figure, SheetError, significant, within};
use crate::SheetCurve;
use crate::spec::SheetSeek;

/// Extra time of a write's average seek where the sheet gives none. *Source:* HGST OEM specification of the Ultrastar DC HC310.
const WRITE_EXTRA_MS: f64 = 0.8;
/// That extra time as a share of the average, for drives whose average seek is short.
const WRITE_EXTRA_SHARE: f64 = 0.1;

/// The times that a sheet gives, or those assumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeks {
    average_ms: f64,
    pub(super) next_ms: Figure<f64>,
    full_ms: Option<f64>,
    write_average_ms: Figure<f64>,
}

impl Seeks {
    pub(super) fn new(sheet: &DataSheet) -> Result<Seeks, SheetError> {
        let average = sheet.seek_ms;
        within("average seek", average, [0.5, 500.0], "ms", String::new)?;
        let next = Figure::new(
            sheet.track_to_track_ms,
            significant(average / 15.0, 2),
            "a fifteenth of the average seek",
        );
        within("track to track", next.value, [0.01, average], "ms", || " (the average seek)".to_string())?;
        if let Some(full) = sheet.full_stroke_ms {
            within("full stroke", full, [average, 1000.0], "ms", || {
                " (from the average seek on)".to_string()
            })?;
        }
        let write = Figure::new(
            sheet.write_seek_ms,
            significant(average + WRITE_EXTRA_MS.min(WRITE_EXTRA_SHARE * average), 4),
            "a tenth longer than a read's, 0.8 ms at most",
        );
        within("write seek", write.value, [average, average + 50.0], "ms", || {
            " (from the average seek on)".to_string()
        })?;
        Ok(Seeks {
            average_ms: average,
            next_ms: next,
            full_ms: sheet.full_stroke_ms,
            write_average_ms: write,
        })
    }

    /// Time of a seek to the next track before a write: no shorter than before a read, even after rounding.
    pub(super) fn write_next_ms(&self) -> f64 {
        let extra = 0.1 * (self.write_average_ms.value - self.average_ms);
        significant(self.next_ms.value + extra, 4).max(self.next_ms.value)
    }

    fn spec(&self) -> SheetSeek {
        SheetSeek {
            single_track_ms: self.next_ms.value,
            average_ms: self.average_ms,
            full_stroke_ms: self.full_ms,
            settle_ms: None,
            write_single_track_ms: Some(self.write_next_ms()),
            write_average_ms: Some(self.write_average_ms.value),
        }
    }

    /// The curve of a disk with this number of cylinders.
    ///
    /// *Errors:* an average that no curve with the other two times can have.
    pub(super) fn curve(&self, cylinders: u32) -> Result<SheetCurve, SheetError> {
        let spec = self.spec();
        let limits = SheetCurve::average_limits(&spec, cylinders);
        within("average seek", self.average_ms, limits, "ms", || {
            let full = self.full_ms.unwrap_or(f64::INFINITY);
            format!(
                " (with {} ms to the next track and {full} ms over all; give one of these)",
                self.next_ms.value
            )
        })?;
        Ok(SheetCurve::new(&spec, cylinders))
    }

    pub(super) fn write(&self, text: &mut Text) {
        text.line("head_switch_ms", self.next_ms.value, "assumption: as a seek to the next track");
        let settle = significant(self.write_next_ms() - self.next_ms.value, 4);
        text.line(
            "write_settle_ms",
            settle,
            "derived: after a head switch, as after a seek to the next track",
        );
        text.word("zero_latency_read", "none", "assumption");
        text.word("zero_latency_write", "none", "assumption");
        text.table("mechanics.seek.sheet");
        text.line("single_track_ms", self.next_ms.value, &self.next_ms.source());
        text.line("average_ms", self.average_ms, "given");
        if let Some(full) = self.full_ms {
            text.line("full_stroke_ms", full, "given");
        }
        text.line(
            "write_single_track_ms",
            self.write_next_ms(),
            "assumption: a tenth of the average's extra over a read",
        );
        text.line("write_average_ms", self.write_average_ms.value, &self.write_average_ms.source());
    }
}
