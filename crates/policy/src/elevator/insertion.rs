//! insertion: one queue, sorted as requests arrive. A request is inserted in ascending block order that begins at the request in service
//! and then continues from the lowest block. It overtakes no request that has been overtaken as often as its kind may be.
//!
//! Modelled: the request in service stays at the head of the queue, as before an IDE drive; requests that are inserted or merged
//! before a waiting one use up its latency, which Linux counts in requests. A waiting request without latency, and all before it,
//! are merged at their back alone or not at all. Not modelled: the last third of the requests, which Linux kept free for reads.
//!
//! *Source:* Linux 2.0 and 2.2 `drivers/block/ll_rw_blk.c` (the behaviour and the names); 2.2.12 sorts without the bound, later 2.2 with
//! it. Defaults: what `elvtune` printed on Linux 2.4 (linux-kernel list, 2001-12-01); those of 2.2 were not found.

use headstack_model::{Instant, Op};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pool::{Entry, Pool};
use super::{ElevatorRequest, Listed, Scheduler, Tuning};

pub(super) const LISTED: Listed = Listed {
    name: "insertion",
    alias: None,
    summary: "Sorts requests upward as they come, each overtaken a limited number of times (Linux 2.0, 2.2)",
    build: |tuning: &Tuning| Box::new(Insertion::new(&tuning.insertion)),
};

/// `insertion`: parameters of the elevator of Linux 2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InsertionSpec {
    /// Whether the number of requests that overtake a waiting one is limited. Linux 2.0 and 2.2.12 have no limit.
    pub bounded: bool,
    /// Number of requests that may be inserted or merged before a waiting read.
    pub read_latency: u32,
    /// Number of requests that may be inserted or merged before a waiting write.
    pub write_latency: u32,
}

impl Default for InsertionSpec {
    fn default() -> InsertionSpec {
        InsertionSpec { bounded: true, read_latency: 8192, write_latency: 16_384 }
    }
}

/// A waiting request.
#[derive(Clone, Copy, Debug)]
struct Item {
    id: u32,
    lbn: u64,
    /// Its place in the order of arrival, by which it is found.
    turn: u64,
    /// Number of requests that may still overtake it; `None` without a limit.
    latency: Option<u32>,
}

impl Item {
    fn is_starving(&self) -> bool {
        self.latency == Some(0)
    }

    fn is_overtaken(&mut self) {
        self.latency = self.latency.map(|left| left.saturating_sub(1));
    }
}

#[derive(Debug)]
pub(super) struct Insertion {
    spec: InsertionSpec,
    /// In the order in which they go.
    queue: Vec<Item>,
    /// The request that went last, and its block, while it is in service.
    head: Option<(u32, u64)>,
}

impl Insertion {
    fn new(spec: &InsertionSpec) -> Insertion {
        Insertion { spec: *spec, queue: Vec::new(), head: None }
    }

    fn latency(&self, op: Op) -> Option<u32> {
        let latency = if op == Op::Read { self.spec.read_latency } else { self.spec.write_latency };
        self.spec.bounded.then_some(latency)
    }

    fn index_of(&self, id: u32) -> usize {
        self.queue.iter().position(|item| item.id == id).expect("a request that waits is in the queue")
    }

    /// The last waiting request that may not be overtaken.
    fn last_starving(&self) -> Option<usize> {
        self.queue.iter().rposition(Item::is_starving)
    }

    /// Index at which a request for `lbn` is inserted: its place in ascending block order, searched from the last starving request on.
    fn insertion_index(&self, lbn: u64) -> usize {
        let first = self.last_starving();
        let (mut before, mut index) = match (first, self.head) {
            (Some(starving), _) => (self.queue[starving].lbn, starving + 1),
            (None, Some((_, head))) => (head, 0),
            (None, None) => match self.queue.first() {
                Some(first) => (first.lbn, 1),
                None => return 0,
            },
        };
        while let Some(next) = self.queue.get(index) {
            let (is_after, is_before) = (before <= lbn, lbn < next.lbn);
            let falls = before > next.lbn;
            if is_after && is_before || falls && (is_after || is_before) {
                break;
            }
            (before, index) = (next.lbn, index + 1);
        }
        index
    }

    /// Counts one more overtaking of all requests from `index` on.
    fn overtake(&mut self, index: usize) {
        self.queue[index..].iter_mut().for_each(Item::is_overtaken);
    }
}

impl Scheduler for Insertion {
    fn add(&mut self, _now: Instant, id: u32, pool: &Pool) {
        let entry = pool.get(id);
        let index = self.insertion_index(entry.lbn());
        let latency = self.latency(entry.request.op);
        self.queue.insert(index, Item { id, lbn: entry.lbn(), turn: entry.turn, latency });
        self.overtake(index + 1);
    }

    fn change(&mut self, id: u32, _before: &Entry, pool: &Pool) {
        let (index, entry) = (self.index_of(id), pool.get(id));
        (self.queue[index].lbn, self.queue[index].turn) = (entry.lbn(), entry.turn);
    }

    fn remove(&mut self, id: u32, _pool: &Pool) {
        let index = self.index_of(id);
        self.queue.remove(index);
    }

    fn merged(&mut self, id: u32, at_front: bool) {
        let index = self.index_of(id);
        // At the front the new blocks go before the request's own.
        self.overtake(if at_front { index } else { index + 1 });
    }

    fn absorbed(&mut self, into: u32, gone: u32) {
        let latency = self.queue[self.index_of(into)].latency.min(self.queue[self.index_of(gone)].latency);
        let index = self.index_of(into);
        self.queue[index].latency = latency;
    }

    fn dispatch(&mut self, _now: Instant, _pool: &Pool) -> Option<u32> {
        if self.queue.is_empty() {
            return None;
        }
        let item = self.queue.remove(0);
        self.head = Some((item.id, item.lbn));
        Some(item.id)
    }

    fn completed(&mut self, _now: Instant, id: u32, _pool: &Pool) {
        self.head = self.head.filter(|(head, _)| *head != id);
    }

    fn may_merge(&self, entry: &Entry, ask: &ElevatorRequest) -> bool {
        let Some(starving) = self.last_starving() else { return true };
        let index = self.queue.iter().position(|item| item.turn == entry.turn);
        let is_at_front = ask.request.lbn < entry.request.lbn;
        index.is_some_and(|index| index > starving || index == starving && !is_at_front)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Added, Elevator, MergeRule};
    use super::*;
    use headstack_model::{Lbn, Request};
    use proptest::prelude::*;

    fn elevator(spec: InsertionSpec, rule: MergeRule) -> Elevator {
        let tuning = Tuning { insertion: spec, ..Tuning::default() };
        Elevator::by_name("insertion", &tuning, rule).expect("it is listed")
    }

    fn elevator_request(op: Op, lbn: u64) -> ElevatorRequest {
        let request = Request { op, ..Request::read(Lbn(lbn), 8) };
        ElevatorRequest { request, source: 0, urgent: false, idle: false, limit: 0, sync: true }
    }

    /// The blocks in the order in which they go.
    fn drain(elevator: &mut Elevator) -> Vec<u64> {
        std::iter::from_fn(|| elevator.dispatch(Instant::ZERO))
            .map(|dispatch| dispatch.request.lbn.0)
            .collect()
    }

    fn add_all(elevator: &mut Elevator, blocks: &[u64]) {
        blocks.iter().for_each(|lbn| {
            elevator.add(Instant::ZERO, elevator_request(Op::Read, *lbn));
        });
    }

    #[test]
    fn requests_go_upward_from_the_one_in_service_and_then_from_the_lowest() {
        let mut elevator = elevator(InsertionSpec::default(), MergeRule::NONE);
        add_all(&mut elevator, &[500]);
        elevator.dispatch(Instant::ZERO).expect("it waits");
        add_all(&mut elevator, &[100, 900, 600, 300, 700]);
        assert_eq!(drain(&mut elevator), [600, 700, 900, 100, 300]);
    }

    #[test]
    fn request_without_latency_is_not_overtaken() {
        let spec = InsertionSpec { read_latency: 2, ..InsertionSpec::default() };
        let mut elevator = elevator(spec, MergeRule::NONE);
        add_all(&mut elevator, &[0]);
        elevator.dispatch(Instant::ZERO).expect("it waits");
        // Two lower blocks overtake 900; the third and fourth are sorted behind it.
        add_all(&mut elevator, &[900, 100, 200, 300, 50]);
        assert_eq!(drain(&mut elevator), [100, 200, 900, 50, 300]);
    }

    #[test]
    fn merged_blocks_use_up_the_latency_of_those_behind_them() {
        let rule = MergeRule { adjacent: true, overlapping: false, sectors_max: 64 };
        let spec = InsertionSpec { read_latency: 3, ..InsertionSpec::default() };
        let mut elevator = elevator(spec, rule);
        add_all(&mut elevator, &[0]);
        elevator.dispatch(Instant::ZERO).expect("it waits");
        // 100 overtakes 900, 108 is merged behind it, 92 before it; then nothing may.
        add_all(&mut elevator, &[900, 100, 108, 92]);
        assert_eq!(elevator.waiting(), 2);
        assert!(matches!(elevator.add(Instant::ZERO, elevator_request(Op::Read, 84)), Added::Queued(_)));
        // The starving request itself grows at its back alone.
        assert!(matches!(elevator.add(Instant::ZERO, elevator_request(Op::Read, 908)), Added::Merged { .. }));
        assert!(matches!(elevator.add(Instant::ZERO, elevator_request(Op::Read, 892)), Added::Queued(_)));
        assert_eq!(drain(&mut elevator), [92, 900, 84, 892]);
    }

    /// A second implementation: every place from the last starving request on is tried, from the front.
    #[derive(Default)]
    struct Plain {
        head: Option<u64>,
        waiting: Vec<(u64, u64)>,
    }

    impl Plain {
        fn add(&mut self, lbn: u64, latency: u64) {
            let mut ring: Vec<u64> = self.head.into_iter().collect();
            ring.extend(self.waiting.iter().map(|(lbn, _)| *lbn));
            let heads = ring.len() - self.waiting.len();
            let least =
                self.waiting.iter().rposition(|(_, left)| *left == 0).map_or(1, |index| index + 1 + heads);
            let fits = |at: &usize| {
                let (before, after) = (ring[*at - 1], ring[*at]);
                // On a circle of blocks, going upward from `before`, `lbn` comes no later than `after`.
                if before <= after { before <= lbn && lbn < after } else { before <= lbn || lbn < after }
            };
            let at = (least..ring.len()).find(fits).unwrap_or(ring.len());
            let index = at - heads;
            self.waiting.insert(index, (lbn, latency));
            self.waiting[index + 1..].iter_mut().for_each(|(_, left)| *left = left.saturating_sub(1));
        }

        fn dispatch(&mut self) -> Option<u64> {
            let lbn = (!self.waiting.is_empty()).then(|| self.waiting.remove(0).0);
            self.head = lbn.or(self.head);
            lbn
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn insertion_equals_a_plain_second_implementation(
            steps in prop::collection::vec(prop::option::weighted(0.6, (any::<bool>(), 0u64..400)), 1..120),
            (reads, writes) in (0u32..12, 0u32..12),
            bounded in any::<bool>(),
        ) {
            let spec = InsertionSpec { bounded, read_latency: reads, write_latency: writes };
            let (mut elevator, mut plain) = (elevator(spec, MergeRule::NONE), Plain::default());
            let (mut numbers, mut in_service) = (0u64, None);
            for step in steps {
                let Some((is_read, lbn)) = step else {
                    let gone = elevator.dispatch(Instant::ZERO);
                    if let (Some(gone), Some(entry)) = (gone, in_service) {
                        assert_ne!(gone.entry, entry);
                        elevator.completed(Instant::ZERO, entry);
                    }
                    in_service = gone.map(|gone| gone.entry).or(in_service);
                    prop_assert_eq!(gone.map(|gone| gone.request.lbn.0), plain.dispatch());
                    continue;
                };
                let (op, latency) = if is_read { (Op::Read, reads) } else { (Op::Write, writes) };
                numbers += 1;
                // Blocks of their own, so that no two requests are the same.
                let block = lbn * 1000 + numbers;
                elevator.add(Instant::ZERO, elevator_request(op, block));
                plain.add(block, if bounded { u64::from(latency) } else { u64::MAX });
            }
        }

        #[test]
        fn no_request_is_overtaken_more_often_than_its_latency(
            blocks in prop::collection::vec(0u64..100_000, 1..100),
            latency in 0u32..10,
        ) {
            let spec = InsertionSpec { bounded: true, read_latency: latency, write_latency: latency };
            let mut elevator = elevator(spec, MergeRule::NONE);
            let mut came = Vec::new();
            for (number, block) in blocks.iter().enumerate() {
                let block = block * 1000 + number as u64;
                came.push(block);
                elevator.add(Instant::ZERO, elevator_request(Op::Read, block));
            }
            let went = drain(&mut elevator);
            for (index, block) in went.iter().enumerate() {
                let place = |block: &u64| came.iter().position(|one| one == block).expect("it came");
                let younger = went[..index].iter().filter(|other| place(other) > place(block)).count();
                prop_assert!(younger <= latency as usize, "{} overtook {}", younger, block);
            }
        }
    }
}
