//! What is allowed in a drive file and yet seldom meant.

use super::error::Fault;
use super::{DriveSpec, ReadAhead, SpecError, WriteCache};
use crate::{Geometry, Lbn};

/// Share of the cylinders that a drive should use at least; below it, capacity or geometry is likely to be miscounted.
const USED_LEAST: f64 = 0.5;

impl DriveSpec {
    /// What is allowed in this file and yet seldom meant, each with its key. `text` is the file, and `origin` its name.
    pub fn notes(&self, geometry: &Geometry, text: &str, origin: &str) -> Vec<SpecError> {
        let notes = [self.without_interface(), self.without_cache(), self.mostly_unused(geometry)];
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
        let is_bare =
            cache.enabled && cache.read_ahead == ReadAhead::None && cache.write_cache == WriteCache::None;
        is_bare.then(|| {
            let message = "neither read_ahead nor write_cache is on, so that each sequential read loses a turn and each \
                           write waits for the media";
            Fault::new("cache", message)
        })
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
