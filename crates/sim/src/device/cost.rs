//! What each waiting access would cost, seen from the arm: what order policies are told.

use super::media::{Arm, Drive};
use headstack_model::{Angle, Lbn, Nanos, TrackPlace};
use headstack_policy::{AccessCost, Slot};

/// Something that waits for the arm.
pub(super) trait Target {
    /// Track of its first block.
    fn place(&self) -> TrackPlace;
    /// Angle of its first block.
    fn angle(&self) -> Angle;
    /// Whether the head must settle for a write.
    fn is_write(&self) -> bool;
}

/// The cost of each target, which the queue's slots name by index.
pub(super) struct Cost<'a, T> {
    pub(super) drive: &'a Drive,
    pub(super) targets: &'a [T],
    pub(super) arm: Arm,
    pub(super) last_lbn: Lbn,
}

impl<T: Target> AccessCost for Cost<'_, T> {
    fn arm_cylinder(&self) -> u32 {
        self.arm.place.cylinder
    }

    fn last_lbn(&self) -> Lbn {
        self.last_lbn
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.drive.mechanics.reposition_at_least(self.arm.place.cylinder.abs_diff(cylinder))
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        let target = &self.targets[slot.id.0 as usize];
        self.drive.positioning(self.arm, target.place(), target.angle(), target.is_write())
    }
}
