//! Notes on values that a drive file may have but its author seldom means.

use super::error::Fault;
use super::{DriveSpec, ReadAhead, SpecError, WriteCache};
use crate::{Geometry, Lbn, SeekCurve};

/// Share of the cylinders that a drive should use at least; below it, capacity or geometry is likely to be miscounted.
const USED_LEAST: f64 = 0.5;
/// Largest relative difference of a mean seek from the data sheet's: sheets round to a tenth of a millisecond.
const SEEK_OFF_MOST: f64 = 0.05;

impl DriveSpec {
    /// Notes on values of this file that are allowed but seldom meant, each with its key. `text` is the file, `origin` its name.
    pub fn notes(&self, geometry: &Geometry, text: &str, origin: &str) -> Vec<SpecError> {
        let [reads, writes] = self.off_the_sheet();
        let notes =
            [self.without_interface(), self.without_cache(), self.mostly_unused(geometry), reads, writes];
        notes.into_iter().flatten().map(|note| note.locate(text, origin)).collect()
    }

    fn without_interface(&self) -> Option<Fault> {
        let is_assumed = self.bus.interface.is_none() && self.queue.tagging.is_none() && self.queue.depth > 1;
        is_assumed.then(|| {
            let message = "absent, so that the drive's tags are taken for SCSI's; a drive on serial ATA has \
                           interface = \"sata\"";
            Fault::new("bus.interface", message)
        })
    }

    fn without_cache(&self) -> Option<Fault> {
        let cache = &self.cache;
        let is_bare = cache.buffered
            && cache.enabled
            && cache.read_ahead == ReadAhead::None
            && cache.write_cache == WriteCache::None;
        is_bare.then(|| {
            let message = "neither read_ahead nor write_cache is on, so that each sequential read loses a turn and each \
                           write waits for the media";
            Fault::new("cache", message)
        })
    }

    /// Faults where the curve's mean seek, for reads and for writes, is far from the data sheet's.
    fn off_the_sheet(&self) -> [Option<Fault>; 2] {
        let (seek, cylinders) = (&self.mechanics.seek, self.geometry.cylinders);
        let Some(sheet) = seek.sheet else { return [None, None] };
        let reads = SeekCurve::for_reads(seek, cylinders).mean_ms();
        let writes = SeekCurve::for_writes(seek, cylinders)
            .map_or(reads + self.mechanics.write_settle_ms, |curve| curve.mean_ms());
        let off = |name: &str, mean: f64, stated: f64| {
            ((mean / stated - 1.0).abs() > SEEK_OFF_MOST).then(|| {
                let message = format!(
                    "{stated} ms, but the curve's mean over two cylinders drawn at random is {mean:.2} ms; correct the \
                     curve, or leave it out to have it made of the sheet's figures"
                );
                Fault::new(format!("mechanics.seek.sheet.{name}"), message)
            })
        };
        [
            off("average_ms", reads, sheet.average_ms),
            sheet.write_average_ms.and_then(|stated| off("write_average_ms", writes, stated)),
        ]
    }

    fn mostly_unused(&self, geometry: &Geometry) -> Option<Fault> {
        let cylinders = self.geometry.cylinders;
        let used = 1 + geometry.locate(Lbn(self.capacity_sectors - 1)).cylinder;
        if f64::from(used) >= USED_LEAST * f64::from(cylinders) {
            return None;
        }
        let mut message =
            format!("the last of {} sectors lies on cylinder {used} of {cylinders}", self.capacity_sectors);
        let ratio = self.physical_sector_bytes / self.sector_bytes;
        if ratio > 1 {
            message.push_str(&format!(
                "; capacity_sectors counts sectors of {} bytes (sector_bytes), of which a physical one holds {ratio}",
                self.sector_bytes
            ));
        }
        Some(Fault::new("capacity_sectors", message))
    }
}
