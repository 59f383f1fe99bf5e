//! The seek curve `a + b·√d + c·d` through three figures: to the next track, average, over all tracks.
//!
//! *Source:* E. K. Lee, R. H. Katz, An analytic performance model of disk arrays (SIGMETRICS 1993), for the form.

use super::text::Text;
use super::{DataSheet, Figure, SheetError, significant, within};

/// The times that a sheet gives, or those assumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeks {
    average_ms: f64,
    pub(super) next_ms: Figure<f64>,
    full_ms: Figure<f64>,
    pub(super) write_settle_ms: Figure<f64>,
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
        let full = Figure::new(sheet.full_stroke_ms, 2.0 * average, "twice the average seek");
        within("track to track", next.value, [0.01, average], "ms", || " (the average seek)".to_string())?;
        within("full stroke", full.value, [average, 1000.0], "ms", || {
            " (from the average seek on)".to_string()
        })?;
        let settle = sheet.write_seek_ms.map(|write| significant(write - average, 6));
        within("write seek", average + settle.unwrap_or(0.0), [average, average + 50.0], "ms", || {
            " (from the average seek on)".to_string()
        })?;
        let write_settle_ms =
            Figure::new(settle, significant(next.value / 4.0, 2), "a quarter of a seek to the next track");
        Ok(Seeks { average_ms: average, next_ms: next, full_ms: full, write_settle_ms })
    }

    /// The curve of a disk with so many cylinders.
    ///
    /// *Errors:* an average that no such curve between the other two times has.
    pub(super) fn curve(&self, cylinders: u32) -> Result<Curve, SheetError> {
        let (next, full) = (self.next_ms.value, self.full_ms.value);
        let stroke = f64::from(cylinders - 1);
        let [mean_root, mean] = means(cylinders);
        // How much of the way from the shortest to the longest seek the average is, if all were root or all linear.
        let (as_root, as_line) = ((mean_root - 1.0) / (stroke.sqrt() - 1.0), (mean - 1.0) / (stroke - 1.0));
        let limits = [as_line, as_root].map(|share| next + share * (full - next));
        within("average seek", self.average_ms, limits, "ms", || {
            format!(" (with {next} ms to the next track and {full} ms over all; give one of these)")
        })?;
        let part = (self.average_ms - limits[0]) / (limits[1] - limits[0]);
        let part = if part.is_finite() { part } else { 0.5 };
        let sqrt_ms = significant(part * (full - next) / (stroke.sqrt() - 1.0), 7);
        let linear_ms = significant((1.0 - part) * (full - next) / (stroke - 1.0), 7);
        let constant_ms = significant(next - sqrt_ms - linear_ms, 7);
        Ok(Curve { constant_ms, sqrt_ms, linear_ms })
    }

    pub(super) fn write(&self, text: &mut Text, curve: &Curve) {
        text.line("head_switch_ms", self.next_ms.value, "assumption: as a seek to the next track");
        let source = match self.write_settle_ms.assumed {
            None => "derived: write seek less read seek (given)".to_string(),
            Some(_) => self.write_settle_ms.source(),
        };
        text.line("write_settle_ms", self.write_settle_ms.value, &source);
        text.word("zero_latency_read", "none", "assumption");
        text.word("zero_latency_write", "none", "assumption");
        let how = |figure: &Figure<f64>| {
            figure.assumed.map_or("given".to_string(), |why| format!("assumption: {why}"))
        };
        text.push("");
        text.comment(&format!(
            "derived: the curve through {} ms to the next track ({}), {} ms on average (given) and {} ms over all ({})",
            self.next_ms.value,
            how(&self.next_ms),
            self.average_ms,
            self.full_ms.value,
            how(&self.full_ms)
        ));
        text.push("[[mechanics.seek.pieces]]");
        text.line("constant_ms", curve.constant_ms, "derived");
        text.line("sqrt_ms", curve.sqrt_ms, "derived");
        text.line("linear_ms", curve.linear_ms, "derived");
    }
}

/// The curve: `constant + sqrt · √d + linear · d`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    constant_ms: f64,
    sqrt_ms: f64,
    linear_ms: f64,
}

impl Curve {
    /// Time of a seek over a distance.
    pub(super) fn ms(&self, cylinders: u32) -> f64 {
        let d = f64::from(cylinders);
        self.constant_ms + self.sqrt_ms * d.sqrt() + self.linear_ms * d
    }
}

/// Mean of √d and of d over the distances between two cylinders drawn at random, which differ.
fn means(cylinders: u32) -> [f64; 2] {
    let (mut roots, mut lengths, mut weights) = (0.0, 0.0, 0.0);
    for distance in 1..cylinders {
        let (weight, d) = (f64::from(cylinders - distance), f64::from(distance));
        roots += weight * d.sqrt();
        lengths += weight * d;
        weights += weight;
    }
    [roots / weights, lengths / weights]
}
