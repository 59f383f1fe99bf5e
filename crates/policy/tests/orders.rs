//! Properties that every order and the queue keep, over random queues, arms and costs.

use headstack_model::{Lbn, Nanos, Request};
use headstack_policy::order::{self, AccessCost};
use headstack_policy::{Order, Queue, QueueFull, QueueView, Slot, SlotId};
use proptest::prelude::*;

/// A made-up drive: a seek that rises in steps, and a rotational part that follows from the slot alone.
#[derive(Clone, Debug)]
struct Cost {
    arm: u32,
    last: u64,
    nanos_a_cylinder: u64,
    step: u32,
}

impl AccessCost for Cost {
    fn arm_cylinder(&self) -> u32 {
        self.arm
    }

    fn last_lbn(&self) -> Lbn {
        Lbn(self.last)
    }

    fn seek_at_least(&self, cylinder: u32) -> Nanos {
        Nanos(u64::from(self.arm.abs_diff(cylinder) / self.step) * self.nanos_a_cylinder)
    }

    fn positioning(&self, slot: &Slot) -> Nanos {
        // Coarse, so that equal costs are common.
        self.seek_at_least(slot.cylinder) + Nanos(slot.request.lbn.0 % 7 * 100 + u64::from(slot.head) * 100)
    }
}

fn costs() -> impl Strategy<Value = Cost> {
    (0..60u32, 0..600u64, 0..90u64, 1..8u32).prop_map(|(arm, last, nanos_a_cylinder, step)| Cost {
        arm,
        last,
        nanos_a_cylinder,
        step,
    })
}

fn requests() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    prop::collection::vec((0..600u64, 0..60u32, 0..4u32), 1..80)
}

fn slot(id: usize, (lbn, cylinder, head): (u64, u32, u32)) -> Slot {
    let request = Request::read(Lbn(lbn), 8);
    Slot { id: SlotId(id as u32), request, arrived: Nanos(id as u64), cylinder, head }
}

fn filled(requests: &[(u64, u32, u32)]) -> Queue {
    let mut queue = Queue::new(requests.len());
    for (id, request) in requests.iter().enumerate() {
        queue.insert(slot(id, *request)).expect("the queue is as long as the list");
    }
    queue
}

/// The index that an order must choose, from a look at every slot.
fn brute_force(name: &str, slots: &[Slot], cost: &Cost) -> usize {
    let key = |slot: &Slot| match name {
        "fcfs" => 0,
        "sstf" => u64::from(slot.cylinder.abs_diff(cost.arm)),
        "sptf" => cost.positioning(slot).0,
        "c-look" if slot.request.lbn.0 >= cost.last => slot.request.lbn.0 - cost.last,
        "c-look" => (1 << 32) + slot.request.lbn.0,
        other => panic!("a new order, {other}, has no brute force yet"),
    };
    let (mut best, mut at) = (u64::MAX, 0);
    for (index, slot) in slots.iter().enumerate() {
        if key(slot) < best {
            (best, at) = (key(slot), index);
        }
    }
    at
}

proptest! {
    #[test]
    fn does_every_order_equal_brute_force(requests in requests(), cost in costs()) {
        let queue = filled(&requests);
        for entry in order::all() {
            let mut order = order::by_name(entry.name).expect("it is in the list");
            let chosen = order.choose(&queue.view(), &cost);
            prop_assert_eq!(chosen, Some(brute_force(entry.name, queue.slots(), &cost)), "{}", entry.name);
        }
    }

    #[test]
    fn does_static_dispatch_choose_the_same(requests in requests(), cost in costs()) {
        let queue = filled(&requests);
        for entry in order::all() {
            let (mut one, mut other) = (entry.order, entry.order);
            prop_assert_eq!(one.pick(&queue.view(), &cost), other.choose(&queue.view(), &cost));
        }
    }

    #[test]
    fn is_everything_served_once(requests in requests(), start in costs()) {
        for entry in order::all() {
            let (mut queue, mut cost, mut order) = (filled(&requests), start.clone(), entry.order);
            let mut served = vec![false; requests.len()];
            while let Some(index) = order.choose(&queue.view(), &cost) {
                let slot = queue.remove(index);
                prop_assert!(!std::mem::replace(&mut served[slot.id.0 as usize], true), "{}", entry.name);
                (cost.arm, cost.last) = (slot.cylinder, slot.request.end().0);
            }
            prop_assert!(served.iter().all(|served| *served), "{}", entry.name);
        }
    }

    #[test]
    fn does_the_queue_keep_both_orders(steps in prop::collection::vec((any::<bool>(), 0..64usize, 0..20u32), 1..400)) {
        let mut queue = Queue::new(16);
        let mut model: Vec<Slot> = Vec::new();
        for (id, (insert, index, cylinder)) in steps.into_iter().enumerate() {
            if insert {
                let slot = slot(id, (id as u64, cylinder, 0));
                let expected = if model.len() < 16 { Ok(()) } else { Err(QueueFull { capacity: 16 }) };
                prop_assert_eq!(queue.insert(slot), expected);
                if expected.is_ok() {
                    model.push(slot);
                }
            } else if !model.is_empty() {
                prop_assert_eq!(queue.remove(index % model.len()), model.remove(index % model.len()));
            }
            prop_assert_eq!(queue.slots(), &model[..]);
            let mut places: Vec<(u32, u32)> = (0u32..).zip(&model).map(|(at, slot)| (slot.cylinder, at)).collect();
            places.sort_unstable();
            let QueueView { by_cylinder, cylinders, .. } = queue.view();
            let kept: Vec<(u32, u32)> =
                cylinders.iter().copied().zip(by_cylinder.iter().copied().map(u32::from)).collect();
            prop_assert_eq!(kept, places);
        }
    }
}

#[test]
fn does_a_lone_request_get_chosen_and_an_empty_queue_nothing() {
    let cost = Cost { arm: 7, last: 3, nanos_a_cylinder: 10, step: 1 };
    for entry in order::all() {
        let mut order = entry.order;
        assert_eq!(order.choose(&filled(&[(1, 59, 0)]).view(), &cost), Some(0), "{}", entry.name);
        assert_eq!(order.choose(&Queue::new(1).view(), &cost), None, "{}", entry.name);
    }
}

#[test]
fn does_a_wrong_name_bring_the_nearest() {
    for (wrong, nearest) in
        [("SSTF", "sstf"), ("clook", "c-look"), ("sst", "sstf"), ("fifo", "fcfs"), ("", "sptf")]
    {
        let error = order::by_name(wrong).expect_err("there is no such order");
        assert!(order::all().iter().any(|entry| entry.name == error.nearest), "{error}");
        if !wrong.is_empty() {
            assert_eq!(error.nearest, nearest);
        }
        assert!(error.to_string().contains(error.nearest) && error.to_string().contains(wrong));
    }
}

#[test]
fn does_the_list_name_each_order_once() {
    let mut names: Vec<&str> = order::all().iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), order::all().len());
    assert!(order::all().iter().all(|entry| !entry.summary.is_empty() && !entry.summary.ends_with('.')));
}
