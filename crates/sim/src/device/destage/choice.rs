//! Which run of dirty blocks is written next.

use super::{Destage, Run};
use crate::device::cost::{Cost, Unwritten};
use crate::device::drive::Drive;
use crate::device::media::Arm;
use headstack_model::{Angle, Lbn, TrackPlace};

impl Unwritten for Run {
    fn home(&self) -> (TrackPlace, Angle) {
        (self.place, self.angle)
    }
}

impl Destage {
    /// Index in the queue of the run that the destage order chooses.
    pub(super) fn choose(&mut self, drive: &Drive, cylinders: u32, arm: Arm, last_lbn: Lbn) -> usize {
        let cost = Cost { drive, cylinders, buffer: None, targets: &self.runs, arm, last_lbn };
        self.order.pick(&self.queue.view(arm.at), &cost).unwrap_or(0)
    }
}
