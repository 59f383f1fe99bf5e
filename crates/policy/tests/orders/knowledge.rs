//! No order uses more knowledge than it declares.

use crate::drive::{Cost, costs, requests};
use crate::play;
use headstack_model::{Lbn, Nanos};
use headstack_policy::order::{self, AccessCost, Knowledge};
use headstack_policy::{Queue, Slot};
use proptest::prelude::*;

/// A cost that panics if an order uses more than its declared knowledge.
struct Guarded<'a> {
    cost: &'a Cost,
    known: Knowledge,
}

impl Guarded<'_> {
    fn allow(&self, what: &str, allowed: &[Knowledge]) {
        assert!(allowed.contains(&self.known), "one that knows {:?} asked for {what}", self.known);
    }
}

const ARM: [Knowledge; 3] = [Knowledge::Cylinder, Knowledge::Position, Knowledge::Cache];

impl AccessCost for Guarded<'_> {
    fn arm_cylinder(&self) -> u32 {
        self.allow("the arm's cylinder", &ARM);
        self.cost.arm_cylinder()
    }

    fn cylinders(&self) -> u32 {
        self.allow("the number of cylinders", &ARM);
        self.cost.cylinders()
    }

    fn last_lbn(&self) -> Lbn {
        self.allow("the last block", &[Knowledge::Lbn]);
        self.cost.last_lbn()
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        self.allow("a seek time", &ARM[1..]);
        self.cost.seek_at_least(cylinder)
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        self.allow("a positioning time", &ARM[1..]);
        self.cost.positioning(slot)
    }

    fn is_cached(&self, slot: &Slot) -> bool {
        self.allow("what the cache holds", &ARM[2..]);
        self.cost.is_cached(slot)
    }
}

/// The same requests, with all properties changed that an order with this knowledge must not use.
fn disguised(slots: &[Slot], known: Knowledge) -> Queue {
    let mut queue = Queue::new(slots.len());
    for slot in slots {
        let mut other = *slot;
        if matches!(known, Knowledge::Arrival | Knowledge::Lbn) {
            (other.cylinder, other.head) = (slot.cylinder * 7 % 60, 3 - slot.head);
        }
        if matches!(known, Knowledge::Arrival | Knowledge::Cylinder) {
            (other.request.lbn, other.head) = (Lbn(slot.request.lbn.0 * 7 % 600), 3 - slot.head);
        }
        queue.insert(other).expect("it is as long as the other");
    }
    queue
}

proptest! {
    #[test]
    fn no_order_requests_costs_beyond_its_knowledge(requests in requests(), start in costs()) {
        for entry in order::all() {
            let mut order = entry.order();
            play(&requests, &start, |queue, now, cost| {
                let guarded = Guarded { cost, known: entry.knowledge };
                order.pick(&queue.view(now), &guarded).expect("something waits")
            });
        }
    }

    #[test]
    fn no_choice_depends_on_fields_beyond_the_orders_knowledge(requests in requests(), start in costs()) {
        for entry in order::all() {
            let mut order = entry.order();
            play(&requests, &start, |queue, now, cost| {
                let mut other = order;
                let chosen = order.pick(&queue.view(now), cost);
                if !goes_by_numbers(entry.name) {
                    let disguised = disguised(queue.slots(), entry.knowledge);
                    assert_eq!(other.pick(&disguised.view(now), cost), chosen, "{}", entry.name);
                }
                chosen.expect("something waits")
            });
        }
    }

    #[test]
    fn spctf_serves_cache_hits_first(requests in requests(), start in costs()) {
        for entry in order::all().iter().filter(|entry| entry.knowledge == Knowledge::Cache) {
            let mut order = entry.order();
            let hits = |cost: &Cost, slots: &[Slot]| slots.iter().any(|slot| cost.is_cached(slot));
            play(&requests, &start, |queue, now, cost| {
                let index = order.pick(&queue.view(now), cost).expect("something waits");
                let chosen = &queue.slots()[index];
                let hit = cost.is_cached(chosen) || cost.positioning(chosen) == Nanos::ZERO;
                assert!(hit || !hits(cost, queue.slots()) || entry.name != "spctf", "a hit goes first");
                index
            });
        }
    }
}

/// Whether an order uses the queue's numbers of requests, which start from zero in a copy of the queue.
fn goes_by_numbers(name: &str) -> bool {
    matches!(name, "c-look-batched" | "n-step" | "fscan" | "gstf-frozen" | "bounded-sptf")
}
