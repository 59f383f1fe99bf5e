//! The cost of each waiting access from the arm's position, for order policies.

use super::disk::DiskArm;
use super::job::Job;
use super::media::Arm;
use headstack_model::{Angle, Lbn, Nanos, Op, Request, TrackPlace};
use headstack_policy::{AccessCost, Slot};
use std::ops::{Index, Range};

/// Something that waits for the arm.
pub(super) trait Target {
    /// Track and angle of its first block.
    fn home(&self) -> (TrackPlace, Angle);
    /// Whether the head must settle for a write, as for all data that wait to be written to the media.
    fn is_write(&self) -> bool {
        true
    }
}

impl Target for Job {
    fn home(&self) -> (TrackPlace, Angle) {
        (self.place, self.angle)
    }

    fn is_write(&self) -> bool {
        self.command.request.op == Op::Write
    }
}

/// What can answer a read without the media.
pub(super) trait ReadBuffer {
    fn holds(&self, request: &Request) -> bool;
}

/// Dirty runs are not read.
impl ReadBuffer for () {
    fn holds(&self, _request: &Request) -> bool {
        false
    }
}

/// Positioning time that is added for a command of the run that is avoided: longer than any access, so that every other one is cheaper.
const AVOIDED: Nanos = Nanos(10_000_000_000);

/// The costs without a run of blocks that has had its time on the arm.
pub(super) struct Avoiding<'a> {
    pub(super) cost: &'a dyn AccessCost,
    pub(super) run: Range<Lbn>,
}

impl AccessCost for Avoiding<'_> {
    fn arm_cylinder(&self) -> u32 {
        self.cost.arm_cylinder()
    }

    fn cylinders(&self) -> u32 {
        self.cost.cylinders()
    }

    fn last_lbn(&self) -> Lbn {
        self.cost.last_lbn()
    }

    fn swept_to(&self) -> Lbn {
        self.cost.swept_to()
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.cost.seek_at_least(cylinder)
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        let avoided = if self.run.contains(&slot.request.lbn) { AVOIDED } else { Nanos::ZERO };
        self.cost.positioning(slot) + avoided
    }

    fn is_cached(&self, slot: &Slot) -> bool {
        self.cost.is_cached(slot)
    }
}

/// The cost of each target, which the queue's slots name by index.
pub(super) struct Cost<'a, T: ?Sized, B> {
    pub(super) disk: &'a DiskArm,
    pub(super) buffer: B,
    pub(super) targets: &'a T,
    /// The arm as it is free for the access.
    pub(super) arm: Arm,
}

impl<T: Index<usize, Output: Target> + ?Sized, B: ReadBuffer> AccessCost for Cost<'_, T, B> {
    fn arm_cylinder(&self) -> u32 {
        self.arm.place.cylinder
    }

    fn cylinders(&self) -> u32 {
        self.disk.cylinders
    }

    fn last_lbn(&self) -> Lbn {
        self.disk.last_lbn
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.disk.drive.mechanics.reposition_at_least(self.arm.place.cylinder.abs_diff(cylinder))
    }

    // Many orders call it, which keeps the compiler from putting it in place where it matters.
    #[inline(always)]
    fn positioning(&self, slot: &Slot) -> Nanos {
        let target = &self.targets[slot.id.0 as usize];
        let (place, angle) = target.home();
        self.disk.drive.positioning(self.arm, place, angle, target.is_write())
    }

    fn is_cached(&self, slot: &Slot) -> bool {
        self.buffer.holds(&slot.request)
    }
}
