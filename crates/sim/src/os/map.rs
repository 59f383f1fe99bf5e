//! What a host knows of a drive whose tracks it has mapped: the very geometry and mechanics that the drive has.
//!
//! It is an oracle: no map is measured, and none is wrong. A real one would be, by where defects were moved to and by how
//! well the arm's times are known. What the drive's cache holds or reads ahead it does not know.

use crate::device::{Arm, Device, Drive};
use headstack_model::{Lbn, Nanos, Op};
use headstack_policy::Slot;
use headstack_policy::elevator::DiskMap;
use std::sync::Arc;

/// The map of one drive.
#[derive(Debug)]
pub(super) struct TrackMap {
    drive: Arc<Drive>,
    cylinders: u32,
    /// Time from a command's submission to when the arm sets out for it.
    read_overhead: Nanos,
    write_overhead: Nanos,
}

impl TrackMap {
    pub(super) fn of(device: &Device) -> TrackMap {
        let (read_overhead, write_overhead) = device.usual_overheads();
        let drive = Arc::clone(device.drive());
        TrackMap { drive, cylinders: device.cylinders(), read_overhead, write_overhead }
    }
}

impl DiskMap for TrackMap {
    fn cylinders(&self) -> u32 {
        self.cylinders
    }

    fn track(&self, lbn: Lbn) -> (u32, u32) {
        let (place, _) = self.drive.target(lbn);
        (place.cylinder, place.head)
    }

    fn seek_at_least(&self, cylinders: u32) -> Nanos {
        self.drive.mechanics.reposition_at_least(cylinders)
    }

    fn positioning(&self, now: Nanos, last: Lbn, slot: &Slot) -> Nanos {
        let is_write = slot.request.op == Op::Write;
        let overhead = if is_write { self.write_overhead } else { self.read_overhead };
        let arm = Arm { place: self.drive.target(last).0, at: now + overhead };
        let (place, angle) = self.drive.target(slot.request.lbn);
        self.drive.positioning(arm, place, angle, is_write)
    }
}
