//! The cost of each waiting access from the arm's position, for order policies.

use super::destage::Destage;
use super::drive::Drive;
use super::media::Arm;
use headstack_model::cache::{Cache, Hit};
use headstack_model::{Angle, Lbn, Nanos, Op, Request, TrackPlace};
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

/// Data that wait to be written to the media.
pub(super) trait Unwritten {
    /// Track and angle of their first block.
    fn home(&self) -> (TrackPlace, Angle);
}

impl<T: Unwritten> Target for T {
    fn place(&self) -> TrackPlace {
        self.home().0
    }

    fn angle(&self) -> Angle {
        self.home().1
    }

    fn is_write(&self) -> bool {
        true
    }
}

/// The buffers from which a read can be answered without the media.
pub(super) struct Buffer<'a> {
    pub(super) cache: &'a Cache,
    pub(super) destage: &'a Destage,
}

impl Buffer<'_> {
    fn holds(&self, request: &Request) -> bool {
        request.op == Op::Read
            && !request.fua
            && (matches!(self.cache.find(request.lbn, request.end()), Hit::Whole(_))
                || self.destage.holds(request.lbn, request.end()))
    }
}

/// The cost of each target, which the queue's slots name by index.
pub(super) struct Cost<'a, T> {
    pub(super) drive: &'a Drive,
    pub(super) cylinders: u32,
    /// The buffer that could answer a command; `None` for a dirty run.
    pub(super) buffer: Option<Buffer<'a>>,
    pub(super) targets: &'a [T],
    pub(super) arm: Arm,
    pub(super) last_lbn: Lbn,
}

impl<T: Target> AccessCost for Cost<'_, T> {
    fn arm_cylinder(&self) -> u32 {
        self.arm.place.cylinder
    }

    fn cylinders(&self) -> u32 {
        self.cylinders
    }

    fn last_lbn(&self) -> Lbn {
        self.last_lbn
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.drive.mechanics.reposition_at_least(self.arm.place.cylinder.abs_diff(cylinder))
    }

    // Many orders call it, which keeps the compiler from putting it in place where it matters.
    #[inline(always)]
    fn positioning(&self, slot: &Slot) -> Nanos {
        let target = &self.targets[slot.id.0 as usize];
        self.drive.positioning(self.arm, target.place(), target.angle(), target.is_write())
    }

    fn is_cached(&self, slot: &Slot) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.holds(&slot.request))
    }
}
