//! A host's map of a drive's tracks: the drive's own geometry and mechanics.
//!
//! It is an oracle: it is not measured and has no errors. A real map would have errors from relocated defects and from the
//! measured times of the arm. It does not know what the drive caches or reads ahead.

use crate::device::{Arm, Device, Drive};
use headstack_model::{Instant, Lbn, Nanos, Op};
use headstack_policy::Slot;
use headstack_policy::elevator::DiskMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct TrackMap {
    drive: Arc<Drive>,
    cylinders: u32,
    /// Time from a command's submission until the arm starts to move for it.
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

    fn positioning(&self, now: Instant, last: Lbn, slot: &Slot) -> Nanos {
        let is_write = slot.request.op == Op::Write;
        let overhead = if is_write { self.write_overhead } else { self.read_overhead };
        let arm = Arm { place: self.drive.target(last).0, at: now + overhead };
        let (place, angle) = self.drive.target(slot.request.lbn);
        self.drive.positioning(arm, place, angle, is_write)
    }
}
