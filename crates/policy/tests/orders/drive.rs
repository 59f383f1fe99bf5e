//! An invented drive, and random requests.

use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_policy::order::AccessCost;
use headstack_policy::{Queue, Slot, SlotId};
use proptest::prelude::*;

/// Number of cylinders of the invented drive.
pub(crate) const CYLINDERS: u32 = 60;

/// A seek cost that rises in steps, and a rotational cost that depends only on the slot.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) arm: u32,
    pub(crate) last: u64,
    pub(crate) nanos_a_cylinder: u64,
    pub(crate) step: u32,
    /// Requests whose block number is a multiple of this number are in the cache.
    pub(crate) cached: u64,
}

impl AccessCost for Cost {
    fn arm_cylinder(&self) -> u32 {
        self.arm
    }

    fn cylinders(&self) -> u32 {
        CYLINDERS
    }

    fn last_lbn(&self) -> Lbn {
        Lbn(self.last)
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        Nanos(u64::from(self.arm.abs_diff(cylinder) / self.step) * self.nanos_a_cylinder)
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        // The costs are coarse, so that equal ones are common.
        self.seek_at_least(slot.cylinder) + Nanos(slot.request.lbn.0 % 7 * 100 + u64::from(slot.head) * 100)
    }

    fn is_cached(&self, slot: &Slot) -> bool {
        slot.request.lbn.0.is_multiple_of(self.cached)
    }
}

impl Cost {
    /// Moves the arm to where the access to a slot leaves it.
    pub(crate) fn serve(&mut self, slot: &Slot) {
        (self.arm, self.last) = (slot.cylinder, slot.request.end().0);
    }
}

pub(crate) fn costs() -> impl Strategy<Value = Cost> {
    (0..CYLINDERS, 0..600u64, 0..90u64, 1..8u32, 1..50u64).prop_map(
        |(arm, last, nanos_a_cylinder, step, cached)| Cost { arm, last, nanos_a_cylinder, step, cached },
    )
}

/// A request that arrives: the gap before it, and its place.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) gap: u64,
    pub(crate) lbn: u64,
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    pub(crate) is_write: bool,
    pub(crate) urgent: bool,
    pub(crate) deadline: Option<u64>,
}

pub(crate) fn requests() -> impl Strategy<Value = Vec<Coming>> {
    let deadline = prop::option::weighted(0.3, 0..2_000_000_000u64);
    let coming =
        (0..200_000_000u64, 0..600u64, 0..CYLINDERS, 0..4u32, any::<bool>(), any::<bool>(), deadline)
            .prop_map(|(gap, lbn, cylinder, head, is_write, urgent, deadline)| Coming {
                // Half of the requests arrive at the same time as the previous one.
                gap: gap.saturating_sub(100_000_000),
                lbn,
                cylinder,
                head,
                is_write,
                urgent,
                deadline,
            });
    prop::collection::vec(coming, 1..80)
}

pub(crate) fn slot(id: usize, coming: &Coming, now: Instant) -> Slot {
    let request = Request::read(Lbn(coming.lbn), 8);
    let op = if coming.is_write { Op::Write } else { Op::Read };
    let place = Slot::new(SlotId(id as u32), Request { op, ..request }, now, coming.cylinder, coming.head);
    let deadline = coming.deadline.map_or(Instant::MAX, |after| now + Nanos(after));
    Slot { urgent: coming.urgent, deadline, ..place }
}

/// A queue with all requests, and the arrival time of the last one.
pub(crate) fn filled(requests: &[Coming]) -> (Queue, Instant) {
    let (mut queue, mut now) = (Queue::new(requests.len()), Instant::ZERO);
    for (id, coming) in requests.iter().enumerate() {
        now += Nanos(coming.gap);
        queue.insert(slot(id, coming, now)).expect("the queue is as long as the list");
    }
    (queue, now)
}
