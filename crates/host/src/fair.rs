//! Shares a disk fairly among the requests of several clients.
//!
//! Each client has a queue. Clients take turns (deficit round robin: Shreedhar and Varghese, SIGCOMM 1995): a turn adds
//! [`QUANTUM`] to a client's credit, and a request is dispatched when the credit covers its cost. So a client with a thousand
//! large requests waits for its own credit, and a client with a small one waits for one round at most. A limit on the cost at the
//! disk keeps the queue there short for new clients.

use std::collections::VecDeque;

/// Credit that a client gets per turn, in bytes of cost.
const QUANTUM: u64 = 1 << 20;

/// Cost dispatched between two polls of the sockets: at most some tens of milliseconds of copying.
const ROUND: u64 = 64 << 20;

/// Requests above this cost are large: few of them are at the disk at a time, even if each is its client's only one.
const LARGE: u64 = 8 << 20;

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<(u64, T)>,
    credit: u64,
    in_flight: u64,
    is_in_ring: bool,
}

/// Requests of clients, which are identified by small numbers.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lanes: Vec<Lane<T>>,
    /// Clients with waiting requests, in the order of their turns.
    ring: VecDeque<usize>,
    waiting: usize,
    /// The cost at the disk, the limit of it, and the part of it that large requests cause.
    in_flight: u64,
    most: u64,
    large: u64,
    /// Cost that may still be dispatched in this round.
    round: u64,
}

impl<T> FairQueue<T> {
    /// Limits the cost at the disk to `most`, except for one request of each client.
    pub(crate) fn new(most: u64) -> FairQueue<T> {
        let (lanes, ring) = (Vec::new(), VecDeque::new());
        FairQueue { lanes, ring, waiting: 0, in_flight: 0, most, large: 0, round: ROUND }
    }

    /// Removes all requests, those at the disk too.
    pub(crate) fn clear(&mut self) {
        *self = FairQueue::new(self.most);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether the next round can dispatch a request.
    pub(crate) fn is_ready(&self) -> bool {
        self.ring.iter().any(|client| {
            let lane = &self.lanes[*client];
            lane.waiting.front().is_some_and(|(cost, _)| self.may_dispatch(lane, *cost))
        })
    }

    pub(crate) fn push(&mut self, client: usize, cost: u64, request: T) {
        while self.lanes.len() <= client {
            self.lanes.push(Lane { waiting: VecDeque::new(), credit: 0, in_flight: 0, is_in_ring: false });
        }
        let lane = &mut self.lanes[client];
        lane.waiting.push_back((cost, request));
        self.waiting += 1;
        if !lane.is_in_ring {
            (lane.is_in_ring, lane.credit) = (true, QUANTUM);
            self.ring.push_back(client);
        }
    }

    /// Begins a round, after the sockets were polled.
    pub(crate) fn begin_round(&mut self) {
        self.round = ROUND;
    }

    /// The next request for the disk; none if the round is over, or the disk has reached its limit.
    pub(crate) fn next(&mut self) -> Option<T> {
        let mut held = 0;
        while self.round > 0 && held < self.ring.len() {
            let client = *self.ring.front()?;
            let lane = &self.lanes[client];
            let Some(&(cost, _)) = lane.waiting.front() else {
                self.ring.pop_front();
                self.lanes[client].is_in_ring = false;
                continue;
            };
            if !self.may_dispatch(lane, cost) {
                held += 1;
                self.ring.rotate_left(1);
            } else if lane.credit < cost {
                held = 0;
                self.lanes[client].credit += QUANTUM;
                self.ring.rotate_left(1);
            } else {
                return self.dispatch(client);
            }
        }
        None
    }

    fn may_dispatch(&self, lane: &Lane<T>, cost: u64) -> bool {
        let is_only_one = lane.in_flight == 0 && (cost <= LARGE || self.large == 0);
        is_only_one || self.in_flight.saturating_add(cost) <= self.most
    }

    fn dispatch(&mut self, client: usize) -> Option<T> {
        let lane = &mut self.lanes[client];
        let (cost, request) = lane.waiting.pop_front()?;
        lane.credit -= cost;
        lane.in_flight += cost;
        self.waiting -= 1;
        self.in_flight += cost;
        self.large += large(cost);
        self.round = self.round.saturating_sub(cost);
        Some(request)
    }

    /// Completes a client's dispatched request of this cost.
    pub(crate) fn end(&mut self, client: usize, cost: u64) {
        self.lanes[client].in_flight -= cost;
        self.in_flight -= cost;
        self.large -= large(cost);
    }

    /// Removes a client's waiting requests that `choose` selects.
    pub(crate) fn withdraw(&mut self, client: usize, choose: impl Fn(&T) -> bool) -> Vec<T> {
        let Some(lane) = self.lanes.get_mut(client) else { return Vec::new() };
        let (chosen, kept) = lane.waiting.drain(..).partition(|(_, request)| choose(request));
        let chosen: VecDeque<(u64, T)> = chosen;
        lane.waiting = kept;
        self.waiting -= chosen.len();
        chosen.into_iter().map(|(_, request)| request).collect()
    }

    pub(crate) fn withdraw_all(&mut self) -> Vec<T> {
        (0..self.lanes.len()).flat_map(|client| self.withdraw(client, |_| true)).collect()
    }
}

fn large(cost: u64) -> u64 {
    if cost > LARGE { cost } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// The requests of one round, by client and cost.
    fn round(queue: &mut FairQueue<(usize, u64)>) -> Vec<(usize, u64)> {
        queue.begin_round();
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn small_request_waits_for_one_turn_of_each_other_client() {
        let mut queue = FairQueue::new(u64::MAX);
        for hog in 0..10 {
            (0..1000).for_each(|_| queue.push(hog, 33 * MIB, (hog, 33 * MIB)));
        }
        queue.push(10, 4096, (10, 4096));
        let first = round(&mut queue);
        assert_eq!(first[0], (10, 4096), "no other client has the credit for its request yet");
        (0..5).for_each(|_| drop(round(&mut queue)));
        queue.push(10, 4096, (10, 4096));
        let mut order = (0..20).flat_map(|_| round(&mut queue)).map(|(client, _)| client);
        let before = order.position(|client| client == 10);
        assert!(before.is_some_and(|before| before <= 10), "{before:?}");
    }

    #[test]
    fn disk_queue_holds_the_bound_plus_one_request_per_client() {
        let mut queue = FairQueue::new(64 * MIB);
        for client in 0..100 {
            (0..100).for_each(|_| queue.push(client, MIB, (client, MIB)));
        }
        let mut at_the_disk = Vec::new();
        while queue.is_ready() {
            at_the_disk.extend(round(&mut queue));
        }
        assert_eq!(at_the_disk.len(), 100, "64 within the bound, and one of each of the others");
        assert!((0..100).all(|client| at_the_disk.contains(&(client, MIB))));
        queue.end(7, MIB);
        assert_eq!(round(&mut queue), [(7, MIB)], "who has nothing there is next");
        (100..110).for_each(|client| queue.push(client, 33 * MIB, (client, 33 * MIB)));
        assert_eq!(round(&mut queue).len(), 1, "and of large ones a single one");
    }

    #[test]
    fn withdrawn_requests_are_not_dispatched() {
        let mut queue = FairQueue::new(u64::MAX);
        (0..6).for_each(|cost| queue.push(3, cost, (3, cost)));
        let withdrawn = queue.withdraw(3, |(_, cost)| cost % 2 == 0);
        assert_eq!(withdrawn, [(3, 0), (3, 2), (3, 4)]);
        assert_eq!(round(&mut queue), [(3, 1), (3, 3), (3, 5)]);
        assert!(queue.is_empty() && !queue.is_ready());
        assert_eq!(queue.withdraw(9, |_| true), [], "a client that never asked");
    }

    proptest! {
        /// Clients that always have waiting requests get the same cost, within a turn and two requests.
        #[test]
        fn backlogged_clients_get_equal_shares(costs in prop::collection::vec(MIB / 2..40 * MIB, 2..12)) {
            let mut queue = FairQueue::new(u64::MAX);
            let mut served = vec![0; costs.len()];
            for (client, &cost) in costs.iter().enumerate() {
                (0..=ROUND / cost).for_each(|_| queue.push(client, cost, (client, cost)));
            }
            for _ in 0..40 {
                for (client, cost) in round(&mut queue) {
                    served[client] += cost;
                    queue.push(client, cost, (client, cost));
                    queue.end(client, cost);
                }
            }
            let most = costs.iter().max().copied().unwrap_or_default();
            let (least, greatest) = (served.iter().min(), served.iter().max());
            let apart = greatest.zip(least).map_or(0, |(greatest, least)| greatest - least);
            prop_assert!(apart <= 2 * (most + QUANTUM), "{served:?} of {costs:?}");
        }
    }
}
