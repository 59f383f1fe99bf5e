//! Properties of every order and of the queue, with random queues, arm positions and costs.

mod drive;
mod knowledge;
mod plain;

use drive::{Coming, Cost, costs, filled, requests, slot};
use headstack_model::{Instant, Nanos};
use headstack_policy::order::{self, Edge, Entry, OrderError};
use headstack_policy::{Order, Queue, QueueFull, QueueView, Slot};
use plain::Plain;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Adds the requests at their times while `choose` empties the queue. `choose` gets the queue, the time and the cost, which has the arm.
fn play(
    requests: &[Coming],
    start: &Cost,
    mut choose: impl FnMut(&Queue, Instant, &Cost) -> usize,
) -> Vec<Slot> {
    let (mut queue, mut cost, mut now) = (Queue::new(requests.len()), start.clone(), Instant::ZERO);
    let (mut coming, mut served) = (requests.iter().enumerate().peekable(), Vec::new());
    let mut next = Instant(requests[0].gap);
    while coming.peek().is_some() || !queue.is_empty() {
        if queue.is_empty() {
            now = now.max(next);
        }
        while next <= now
            && let Some((id, one)) = coming.next()
        {
            queue.insert(slot(id, one, next)).expect("there is room");
            next += coming.peek().map_or(Nanos::ZERO, |(_, after)| Nanos(after.gap));
        }
        let slot = queue.remove(choose(&queue, now, &cost));
        cost.serve(&slot);
        served.push(slot);
        now += Nanos(60_000_000);
    }
    served
}

/// Like [`play`], with an order of the list.
fn served(entry: &Entry, requests: &[Coming], start: &Cost) -> Vec<Slot> {
    let mut order = entry.order();
    play(requests, start, |queue, now, cost| order.pick(&queue.view(now), cost).expect("something waits"))
}

proptest! {
    #[test]
    fn every_order_matches_its_plain_definition(requests in requests(), start in costs()) {
        for entry in order::all() {
            let (mut order, mut plain) = (entry.order(), Plain::new(entry.name));
            play(&requests, &start, |queue, now, cost| {
                let chosen = order.pick(&queue.view(now), cost);
                assert_eq!(chosen, plain.choose(now, queue.slots(), cost), "{}", entry.name);
                chosen.expect("something waits")
            });
        }
    }

    #[test]
    fn dynamic_dispatch_chooses_the_same_requests(requests in requests(), start in costs()) {
        for entry in order::all() {
            let mut order = order::by_name(entry.name).expect("it is in the list");
            let other = play(&requests, &start, |queue, now, cost| {
                order.choose(&queue.view(now), cost).expect("something waits")
            });
            prop_assert_eq!(served(entry, &requests, &start), other);
        }
    }

    #[test]
    fn every_request_is_served_once(requests in requests(), start in costs()) {
        for entry in order::all() {
            let mut ids = plain::ids(&served(entry, &requests, &start));
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), requests.len(), "{}", entry.name);
        }
    }

    #[test]
    fn vr_equals_sstf_at_0_and_look_at_1(requests in requests(), start in costs()) {
        for (vr, other) in [("vr(0)", "sstf"), ("vr(1)", "look")] {
            let run = |name: &str| {
                let mut order = order::by_name(name).expect("there is such an order");
                play(&requests, &start, |queue, now, cost| {
                    order.choose(&queue.view(now), cost).expect("something waits")
                })
            };
            prop_assert_eq!(run(vr), run(other), "{}", vr);
        }
    }

    #[test]
    fn extreme_parameters_reduce_orders_to_simpler_ones(requests in requests(), start in costs()) {
        let run = |name: &str| {
            let mut order = order::built_in(name).expect("there is such an order");
            play(&requests, &start, |queue, now, cost| {
                order.pick(&queue.view(now), cost).expect("something waits")
            })
        };
        let sptf = run("sptf");
        prop_assert_eq!(&run("asptf(0)"), &sptf);
        prop_assert_eq!(&run("gstf(10000000)"), &sptf);
        prop_assert_eq!(&run("n-step(1)"), &run("fcfs"));
        prop_assert_eq!(&run("bounded-sptf(0)"), &run("fcfs"));
        prop_assert_eq!(&run("c-look-zoned(1)"), &run("c-look-cylinder"));
        // With the greatest weight, only the age counts.
        prop_assert_eq!(run("asptf(1000000)").len(), requests.len());
    }

    #[test]
    fn n_step_overtakes_a_request_by_at_most_its_batch(requests in requests(), start in costs()) {
        let mut order = order::built_in("n-step(5)").expect("there is such an order");
        let mut overtaken = vec![0; requests.len()];
        play(&requests, &start, |queue, now, cost| {
            let index = order.pick(&queue.view(now), cost).expect("something waits");
            for older in &queue.slots()[..index] {
                overtaken[older.id.0 as usize] += 1;
            }
            index
        });
        prop_assert!(overtaken.iter().all(|count| *count <= 4), "{:?}", overtaken);
    }

    #[test]
    fn batch_orders_serve_a_whole_batch_before_later_requests(requests in requests(), start in costs()) {
        for name in ["fscan", "c-look-batched"] {
            let mut order = order::built_in(name).expect("there is such an order");
            let mut batch = BTreeSet::new();
            play(&requests, &start, |queue, now, cost| {
                if batch.is_empty() {
                    batch.extend(queue.slots().iter().map(|slot| slot.id.0));
                }
                let index = order.pick(&queue.view(now), cost).expect("something waits");
                let served = queue.slots()[index].id.0;
                assert!(batch.remove(&served), "{name} served {served}, which came after its batch began");
                index
            });
        }
    }

    #[test]
    fn bounded_sptf_overtakes_no_request_beyond_its_bound(
        requests in requests(),
        start in costs(),
        more in 0..300u64,
    ) {
        let (linear, root) = (format!("bounded-sptf({})", more as f64 / 100.0), format!("bounded-sptf({more}, 0.5)"));
        for name in [linear.as_str(), root.as_str()] {
            let mut order = order::built_in(name).expect("there is such an order");
            play(&requests, &start, |queue, now, cost| {
                let index = order.pick(&queue.view(now), cost).expect("something waits");
                let (slots, others) = (queue.slots(), queue.len() as f64 - 1.0);
                let bound = others
                    + if name == root { more as f64 * others.sqrt() } else { more as f64 / 100.0 * others };
                for older in &slots[..index] {
                    let later = slots[slots.len() - 1].number - older.number;
                    assert!((later as f64) < bound + 1e-5, "{name}: {later} came after one passed over, {bound} may");
                }
                index
            });
        }
    }

    #[test]
    fn scan_visits_the_edge_when_it_turns(requests in requests(), start in costs()) {
        for (name, cyclic) in [("scan", false), ("c-scan", true)] {
            let mut order = order::built_in(name).expect("there is such an order");
            let mut falls = false;
            play(&requests, &start, |queue, now, cost| {
                let index = order.pick(&queue.view(now), cost).expect("something waits");
                let to = queue.slots()[index].cylinder;
                let backwards = if falls { to > cost.arm } else { to < cost.arm };
                let expected: &[Edge] = match (backwards, falls) {
                    (false, _) => &[],
                    (true, _) if cyclic => &[Edge::Last, Edge::First],
                    (true, false) => &[Edge::Last],
                    (true, true) => &[Edge::First],
                };
                assert_eq!(order.edges_visited(), expected, "{name}");
                falls ^= backwards && !cyclic;
                index
            });
        }
    }

    #[test]
    fn queue_keeps_arrival_and_cylinder_order(steps in prop::collection::vec((any::<bool>(), 0..64usize, 0..20u32), 1..400)) {
        let mut queue = Queue::new(16);
        let (mut model, mut taken): (Vec<Slot>, u64) = (Vec::new(), 0);
        for (id, (insert, index, cylinder)) in steps.into_iter().enumerate() {
            if insert {
                let at = headstack_model::Request::read(headstack_model::Lbn(id as u64), 8);
                let slot = Slot::new(headstack_policy::SlotId(id as u32), at, Instant(id as u64), cylinder, 0);
                let expected = if model.len() < 16 { Ok(()) } else { Err(QueueFull { capacity: 16 }) };
                prop_assert_eq!(queue.insert(slot), expected);
                if expected.is_ok() {
                    model.push(Slot { number: taken, ..slot });
                    taken += 1;
                }
            } else if !model.is_empty() {
                prop_assert_eq!(queue.remove(index % model.len()), model.remove(index % model.len()));
            }
            prop_assert_eq!(queue.slots(), &model[..]);
            let mut places: Vec<(u32, u32)> = (0u32..).zip(&model).map(|(at, slot)| (slot.cylinder, at)).collect();
            places.sort_unstable();
            let QueueView { by_cylinder, cylinders, .. } = queue.view(Instant::ZERO);
            let kept: Vec<(u32, u32)> =
                cylinders.iter().copied().zip(by_cylinder.iter().copied().map(u32::from)).collect();
            prop_assert_eq!(kept, places);
        }
    }
}

#[test]
fn lone_request_is_chosen_and_empty_queue_gives_none() {
    let cost = Cost { arm: 7, last: 3, nanos_a_cylinder: 10, step: 1, cached: 5 };
    let one =
        Coming { gap: 0, lbn: 1, cylinder: 59, head: 0, is_write: false, urgent: false, deadline: None };
    for entry in order::all() {
        let mut order = entry.order();
        assert_eq!(order.choose(&Queue::new(1).view(Instant::ZERO), &cost), None, "{}", entry.name);
        let (queue, now) = filled(std::slice::from_ref(&one));
        assert_eq!(order.choose(&queue.view(now), &cost), Some(0), "{}", entry.name);
    }
}

#[test]
fn unknown_order_is_rejected_with_the_nearest_name() {
    for (wrong, nearest) in
        [("SSTF", "sstf"), ("clook", "c-look"), ("sst", "sstf"), ("fifo", "fcfs"), ("", "fcfs")]
    {
        let error = order::by_name(wrong).expect_err("there is no such order");
        assert!(error.to_string().contains(wrong), "{error}");
        let OrderError::Unknown { nearest: found, .. } = error else { panic!("{error}") };
        assert!(order::all().iter().any(|entry| entry.name == found), "{found}");
        if !wrong.is_empty() {
            assert_eq!(found, nearest);
        }
    }
}

#[test]
fn order_list_names_each_order_once() {
    let mut names: Vec<&str> = order::all().iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), order::all().len());
    for entry in order::all() {
        assert!(!entry.summary.is_empty() && !entry.summary.ends_with('.'), "{}", entry.name);
        assert!(!entry.source.is_empty(), "{}", entry.name);
        // With its default parameters written out, the order is the same.
        let values: Vec<String> = entry.parameters.iter().map(|one| one.default.to_string()).collect();
        let text = format!("{}({})", entry.name, values.join(","));
        if !values.is_empty() {
            assert_eq!(order::built_in(&text), Ok(entry.order()), "{text}");
        }
    }
}
