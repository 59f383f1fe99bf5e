//! Turns: which streams use the disk, and for how long.

use super::arms::{Arms, StreamArm};
use super::classifier::Direction;
use super::config::{Config, Turns};
use super::guarantees::Guarantees;
use super::stream::{Queue, Stream, mirrored};
use super::table::StreamTable;
use headstack_model::Instant;
use std::ops::{Index, IndexMut};

/// The streams, their turns, and the guarantees and measurements that turns depend on.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) table: StreamTable,
    pub(super) arms: Arms,
    pub(super) guarantees: Guarantees,
    order: Turns,
    dispatch_set: Option<u32>,
    requests_per_turn: Option<u32>,
    read_bytes: u64,
    /// Whether streams have turns only for requests that wait already.
    is_bypassed: bool,
    /// Turns since the start.
    pub(super) turns: u64,
}

impl Schedule {
    pub(super) fn new(config: &Config, disk_bytes: u64, read_bytes: u64) -> Schedule {
        Schedule {
            table: StreamTable::new(config, disk_bytes),
            arms: Arms::new(config, &config.arm_firsts(disk_bytes)),
            guarantees: Guarantees::default(),
            order: config.turns,
            dispatch_set: config.dispatch_set,
            requests_per_turn: config.requests_per_turn,
            read_bytes,
            is_bypassed: false,
            turns: 0,
        }
    }

    /// R.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// N of an arm.
    pub(super) fn turn_requests(&self, arm: usize) -> u32 {
        self.requests_per_turn.unwrap_or_else(|| {
            let StreamArm { dispatch, tuning, .. } = &self.arms[arm];
            let bytes = tuning.turn_bytes(dispatch.blocked() + dispatch.len());
            bytes.div_ceil(self.read_bytes).clamp(1, 1 << 20) as u32
        })
    }

    pub(super) fn wants_disk(&self) -> bool {
        self.arms.iter().any(|StreamArm { dispatch, .. }| dispatch.blocked() > 0 || dispatch.len() > 0)
    }

    pub(super) fn revoke_guarantee(&mut self, client: u64) {
        for id in self.guarantees.revoke(client) {
            self.table[id].escalated_for = None;
        }
    }

    /// Registers a waiting stream for its client's guarantee, if there is one.
    pub(super) fn escalate(&mut self, now: Instant, id: u32) {
        let stream = &mut self.table[id];
        if stream.has_turn() || stream.escalated_for.is_some() || stream.waiting == 0 {
            return;
        }
        let client = stream.client.id;
        stream.escalated_for = self.guarantees.register(now, id, client).then_some(client);
    }

    /// Removes a stream that has a turn or has ended from those that wait for a guarantee.
    pub(super) fn end_escalation(&mut self, id: u32) {
        if let Some(client) = self.table[id].escalated_for.take() {
            self.guarantees.deregister(id, client);
        }
    }

    /// Counts one command of a stream's turn, which ends with the last one.
    pub(super) fn spend_turn(&mut self, now: Instant, id: u32) {
        let arm = self.table[id].arm;
        let longest = u64::from(self.turn_requests(arm)) * self.read_bytes;
        let stream = &mut self.table[id];
        let left = stream.turn.commands.expect("it has a turn") - 1;
        // Otherwise half a request would stay in the memory until the next round.
        let splits_request = left == 0 && stream.ends_inside_request(longest);
        stream.turn.commands = Some(if splits_request { 1 } else { left });
        // A stream whose guarantee is due does not wait for the rest of this turn.
        let must_yield = stream.turn.guaranteed == 0 && self.urgent(now, arm).is_some();
        if left == 0 && !splits_request {
            self.end_turn(now, id, false);
        } else if must_yield {
            self.end_turn(now, id, true);
        }
    }

    /// The stream of an arm whose guarantee is due.
    fn urgent(&self, now: Instant, arm: usize) -> Option<u32> {
        self.guarantees.urgent(now, |id| self.table[id].arm == arm)
    }

    /// Begins the turn of the stream that is next at an arm that may have one more. Returns whether there is one.
    pub(super) fn begin_turn(&mut self, now: Instant) -> bool {
        let arms = self.arms.len();
        (0..arms).any(|turn| self.begin_turn_of(now, (self.arms.next + turn) % arms))
    }

    fn begin_turn_of(&mut self, now: Instant, arm: usize) -> bool {
        // One more may begin while the last commands of another are in flight, so that the disk does not idle.
        let most = self.dispatch_set.unwrap_or(2) as usize;
        let dispatch = &self.arms[arm].dispatch;
        let taken = dispatch.len() + dispatch.leaving as usize;
        if taken >= most || self.dispatch_set.is_none() && dispatch.len() > 0 {
            return false;
        }
        let urgent = self.urgent(now, arm);
        let dispatch = &mut self.arms[arm].dispatch;
        let Some(id) = urgent.or_else(|| dispatch.choose(self.order)) else { return false };
        let round = match self.table[id].queued {
            Some((Queue::Blocked(round), _)) => round,
            _ => dispatch.round(),
        };
        self.dequeue(id);
        self.arms[arm].dispatch.active.push(id);
        let client = self.table[id].escalated_for;
        let guaranteed =
            client.map_or(0, |client| self.guarantees.requests(now, id, client, self.read_bytes));
        self.end_escalation(id);
        let requests = self.turn_requests(arm).max(guaranteed);
        let stream = &mut self.table[id];
        let turn = &mut stream.turn;
        turn.guaranteed = guaranteed;
        if turn.round != round || turn.left == 0 {
            (turn.round, turn.left) = (round, requests);
        }
        turn.left = turn.left.max(guaranteed);
        (turn.commands, turn.began) = (Some(turn.left), now);
        stream.client.has_fetched = false;
        if stream.in_flight > 0 {
            self.arms[arm].dispatch.leaving -= 1;
        }
        self.turns += 1;
        true
    }

    /// Whether a turn takes far longer than usual while others wait, because its client or the disk pauses.
    pub(super) fn is_overdue(&self, now: Instant, id: u32) -> bool {
        let stream = &self.table[id];
        let StreamArm { dispatch, tuning, .. } = &self.arms[stream.arm];
        let requests = self.turn_requests(stream.arm).max(stream.turn.guaranteed);
        let turn = f64::from(requests) * self.read_bytes as f64 / tuning.bandwidth();
        let longest = 4.0 * (turn + tuning.positioning().as_secs());
        dispatch.blocked() > 0 && now.since(stream.turn.began).as_secs() > longest
    }

    /// Ends a turn. With `keeps_rest` the stream has the remaining commands later.
    pub(super) fn end_turn(&mut self, now: Instant, id: u32, keeps_rest: bool) {
        let stream = &mut self.table[id];
        let dispatch = &mut self.arms[stream.arm].dispatch;
        dispatch.leave(id);
        let left = stream.turn.commands.take().expect("it has a turn");
        stream.turn.left = if keeps_rest { left } else { 0 };
        if stream.in_flight > 0 {
            dispatch.leaving += 1;
        }
        self.enqueue(id);
        self.escalate(now, id);
    }

    /// Suspends the turns of readers because a direct request to this byte moves the arm. They get the rest when the arm is near again.
    pub(super) fn suspend_turns(&mut self, now: Instant, place: u64) {
        if self.order != Turns::Nearest || self.dispatch_set.is_some() {
            return;
        }
        let arm = self.arms.index_at(place);
        let reader = |schedule: &Schedule| {
            let mut active = schedule.arms[arm].dispatch.active.iter().copied();
            active.find(|id| !schedule.table[*id].is_writer())
        };
        while let Some(id) = reader(self) {
            self.end_turn(now, id, true);
        }
    }

    pub(super) fn mark_in_flight(&mut self, id: u32) {
        if let Some(stream) = self.table.get_mut(id) {
            stream.in_flight += 1;
            let is_leaving = stream.in_flight == 1 && !stream.has_turn();
            self.arms[stream.arm].dispatch.leaving += u32::from(is_leaving);
        }
    }

    pub(super) fn note_command_end(&mut self, now: Instant, id: u32) {
        if let Some(stream) = self.table.get_mut(id) {
            stream.in_flight -= 1;
            stream.last_end = now;
            let is_gone = stream.in_flight == 0 && !stream.has_turn();
            self.arms[stream.arm].dispatch.leaving -= u32::from(is_gone);
        }
    }

    pub(super) fn frame_freed(&mut self, id: u32) {
        if let Some(stream) = self.table.get_mut(id) {
            stream.frames -= 1;
            self.enqueue(id);
        }
    }

    pub(super) fn note_fetch(&mut self, now: Instant, id: u32, client: u64, bytes: u64, is_hit: bool) {
        let stream = &mut self.table[id];
        stream.client.fetch(now, client, bytes, is_hit);
        stream.totals.add(bytes, is_hit);
    }

    /// Advances a stream past bytes that it does not read ahead.
    pub(super) fn skip(&mut self, id: u32, offset: u64, bytes: u64) {
        let (at, disk_bytes) = (self.table.mirror(id, offset, bytes), self.table.disk_bytes());
        let stream = &mut self.table[id];
        let end = stream.next_after(at, bytes).min(disk_bytes);
        stream.passed = stream.passed.max(end);
        stream.skip_passed();
        if end > stream.expected {
            self.table.set_expected(id, end);
        }
        self.enqueue(id);
    }

    /// Removes a stream for which no request waits.
    pub(super) fn remove(&mut self, id: u32) {
        self.dequeue(id);
        self.end_escalation(id);
        let stream = self.table.remove(id);
        let dispatch = &mut self.arms[stream.arm].dispatch;
        dispatch.leave(id);
        assert!(stream.waiting == 0, "no request waits for a stream that ends");
        dispatch.leaving -= u32::from(stream.in_flight > 0 && !stream.has_turn());
    }

    /// Gives streams turns only for requests that wait already, or for all.
    pub(super) fn set_bypassed(&mut self, is_bypassed: bool) {
        self.is_bypassed = is_bypassed;
    }

    pub(super) fn enqueue_all(&mut self) {
        (0..self.table.capacity()).for_each(|id| self.enqueue(id as u32));
    }

    /// Puts a stream, if there still is one of this number, into the queue that it belongs to.
    pub(super) fn enqueue(&mut self, id: u32) {
        if !self.table.contains(id) {
            return;
        }
        self.assign_arm(id);
        let stream = &self.table[id];
        let dispatch = &mut self.arms[stream.arm].dispatch;
        let disk_bytes = self.table.disk_bytes();
        let due = if stream.turn.left > 0 { stream.turn.round } else { stream.turn.round + 1 };
        let wanted = match () {
            () if stream.has_turn() => None,
            () if stream.is_blocked() => Some(Queue::Blocked(due.max(dispatch.round()))),
            () if stream.wants_prefetch(disk_bytes) && !self.is_bypassed => Some(Queue::WantsPrefetch),
            () => None,
        };
        let wanted = match (wanted, stream.queued) {
            // It keeps its queue as long as it waits for the same.
            (Some(Queue::Blocked(_)), Some((queue @ Queue::Blocked(_), _))) => Some(queue),
            (wanted, _) => wanted,
        };
        let key = match (self.order, stream.queued) {
            (Turns::Nearest, _) => mirrored(stream.direction(), disk_bytes, stream.frontier, 0),
            (Turns::RoundRobin, Some((queue, key))) if Some(queue) == wanted => key,
            (Turns::RoundRobin, _) => dispatch.serial(),
        };
        let wanted = wanted.map(|queue| (queue, key));
        if wanted == stream.queued {
            return;
        }
        self.dequeue(id);
        if let Some((queue, key)) = wanted {
            let stream = &mut self.table[id];
            stream.queued = wanted;
            self.arms[stream.arm].dispatch.insert(queue, key, id);
        }
    }

    fn dequeue(&mut self, id: u32) {
        let stream = &mut self.table[id];
        if let Some((queue, key)) = stream.queued.take() {
            self.arms[stream.arm].dispatch.remove(queue, key, id);
        }
    }

    /// Moves a stream without a turn to the arm of its next command. The rounds of different arms are independent.
    fn assign_arm(&mut self, id: u32) {
        let stream = &self.table[id];
        if self.arms.len() == 1 || stream.has_turn() {
            return;
        }
        // A backward stream at the start of the disk is expected below it.
        let place = mirrored(stream.direction(), self.table.disk_bytes(), stream.frontier, 0)
            .saturating_sub(u64::from(stream.direction() == Direction::Backward));
        let (from, to) = (stream.arm, self.arms.index_at(place));
        if from == to {
            return;
        }
        self.dequeue(id);
        let stream = &mut self.table[id];
        let is_leaving = u32::from(stream.in_flight > 0);
        stream.arm = to;
        (stream.turn.round, stream.turn.left) = (0, 0);
        self.arms[from].dispatch.leaving -= is_leaving;
        self.arms[to].dispatch.leaving += is_leaving;
    }
}

impl Index<u32> for Schedule {
    type Output = Stream;

    fn index(&self, id: u32) -> &Stream {
        &self.table[id]
    }
}

impl IndexMut<u32> for Schedule {
    fn index_mut(&mut self, id: u32) -> &mut Stream {
        &mut self.table[id]
    }
}
