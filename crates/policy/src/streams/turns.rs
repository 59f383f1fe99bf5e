//! Turns: which streams have the disk, and for how long.

use super::config::Turns;
use super::stream::{Queue, mirrored};
use super::{Streams, stream::Stream};

/// Result of a stream's step in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It began a command, or took writes in.
    Began,
    /// It continues later.
    Waits,
    /// It has nothing more to do.
    Over,
}

impl Streams {
    /// Whether streams have commands for the disk.
    pub(super) fn streams_want_disk(&self) -> bool {
        self.dispatch.blocked() > 0 || self.dispatch.len() > 0
    }

    /// Begins a command of a stream.
    pub(super) fn start_stream(&mut self) -> bool {
        // At most, each stream that wants a turn begins one, does nothing and ends it.
        for _ in 0..4 * (self.streams.len() + 1) {
            match self.step_active() {
                Some(Step::Began) => return true,
                Some(_) => {}
                None if self.begin_turn() => {}
                None => return false,
            }
        }
        unreachable!("a stream that has nothing to do wants no turn")
    }

    /// Lets the active streams take a step; `None` if all of them wait.
    fn step_active(&mut self) -> Option<Step> {
        let count = self.dispatch.active.len();
        for turn in 0..count {
            let place = (self.dispatch.next + turn) % count;
            // Eviction for one stream may have ended the turn of another.
            let Some(id) = self.dispatch.active.get(place).copied() else { return Some(Step::Waits) };
            if self.is_overdue(id) {
                self.end_turn(id, false);
                return Some(Step::Over);
            }
            let is_writer = self.streams[id as usize].is_writer();
            let step = if is_writer { self.advance_writer(id) } else { self.advance_reader(id) };
            match step {
                Step::Began => self.dispatch.next = place + 1,
                Step::Waits if self.dispatch.active.get(place) == Some(&id) => continue,
                // Its turn ended in this step.
                Step::Waits => {}
                Step::Over => self.end_turn(id, false),
            }
            return Some(step);
        }
        None
    }

    /// Counts one command of a stream's turn, which ends with the last one.
    pub(super) fn spend_turn(&mut self, id: u32) {
        let longest = u64::from(self.turn_requests()) * self.read_bytes();
        let stream = &mut self.streams[id as usize];
        let left = stream.turn.expect("it has a turn") - 1;
        // Otherwise half a request would stay in the memory until the next round.
        let splits_request = left == 0 && stream.ends_inside_request(longest);
        stream.turn = Some(if splits_request { 1 } else { left });
        // A stream whose guarantee is due does not wait for the rest of this turn.
        let must_yield = self.dispatch.has_urgent(self.now) && stream.promised == 0;
        if left == 0 && !splits_request {
            self.end_turn(id, false);
        } else if must_yield {
            self.end_turn(id, true);
        }
    }

    fn begin_turn(&mut self) -> bool {
        // One more may begin while the last commands of another are in flight, so that the disk does not idle.
        let most = self.config.dispatch_set.unwrap_or(2) as usize;
        let taken = self.dispatch.active.len() + self.dispatch.leaving as usize;
        if taken >= most || self.config.dispatch_set.is_none() && !self.dispatch.active.is_empty() {
            return false;
        }
        let Some(id) = self.dispatch.choose(self.now, self.config.turns) else { return false };
        let round = match self.streams[id as usize].queued {
            Some((Queue::Blocked(round), _)) => round,
            _ => self.dispatch.round(),
        };
        self.dequeue(id);
        self.dispatch.active.push(id);
        let promised = self.promised_requests(id);
        self.end_escalation(id);
        let requests = self.turn_requests().max(promised);
        let stream = &mut self.streams[id as usize];
        stream.promised = promised;
        if stream.round != round || stream.left == 0 {
            (stream.round, stream.left) = (round, requests);
        }
        stream.left = stream.left.max(promised);
        stream.turn = Some(stream.left);
        stream.was_fetched = false;
        stream.began = self.now;
        if stream.in_flight > 0 {
            self.dispatch.leaving -= 1;
        }
        self.books.turns += 1;
        true
    }

    /// N.
    pub(super) fn turn_requests(&self) -> u32 {
        self.config.requests_per_turn.unwrap_or_else(|| {
            let streams = self.dispatch.blocked() + self.dispatch.len();
            let bytes = self.tuning.turn_bytes(&self.config, streams);
            bytes.div_ceil(self.read_bytes()).clamp(1, 1 << 20) as u32
        })
    }

    /// R.
    pub(super) fn read_bytes(&self) -> u64 {
        self.config.read_bytes(self.frames.frame_bytes())
    }

    /// Whether a turn takes far longer than usual while others wait, because its client or the disk pauses.
    fn is_overdue(&self, id: u32) -> bool {
        let requests = self.turn_requests().max(self.streams[id as usize].promised);
        let turn = f64::from(requests) * self.read_bytes() as f64 / self.tuning.bandwidth();
        let longest = 4.0 * (turn + self.tuning.positioning().as_secs());
        let took = self.now.since(self.streams[id as usize].began);
        self.dispatch.blocked() > 0 && took.as_secs() > longest
    }

    /// Ends a turn. With `keeps_rest` the stream has the remaining commands later.
    fn end_turn(&mut self, id: u32, keeps_rest: bool) {
        self.dispatch.leave(id);
        let stream = &mut self.streams[id as usize];
        let left = stream.turn.take().expect("it has a turn");
        stream.left = if keeps_rest { left } else { 0 };
        if stream.in_flight > 0 {
            self.dispatch.leaving += 1;
        }
        self.enqueue(id);
        self.escalate(id);
    }

    /// Suspends the turns of readers because a direct request moves the arm. They have the rest when the arm is near again.
    pub(super) fn suspend_turns(&mut self) {
        if self.config.turns != Turns::Nearest || self.config.dispatch_set.is_some() {
            return;
        }
        while let Some(id) =
            self.dispatch.active.iter().copied().find(|id| !self.streams[*id as usize].is_writer())
        {
            self.end_turn(id, true);
        }
    }

    /// Counts the end of a stream's command.
    pub(super) fn note_command_end(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id as usize) else { return };
        stream.in_flight -= 1;
        stream.last_end = self.now;
        if stream.in_flight == 0 && stream.turn.is_none() {
            self.dispatch.leaving -= 1;
        }
    }

    /// Puts a stream into the queue that it belongs to.
    pub(super) fn enqueue(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id as usize) else { return };
        let round = self.dispatch.round();
        let due = if stream.left > 0 { stream.round } else { stream.round + 1 };
        let wanted = match () {
            () if stream.turn.is_some() => None,
            () if stream.is_blocked() => Some(Queue::Blocked(due.max(round))),
            () if stream.wants_prefetch(self.disk_bytes) && !self.bypass.is_on() => {
                Some(Queue::WantsPrefetch)
            }
            () => None,
        };
        let wanted = match (wanted, stream.queued) {
            // It keeps its queue as long as it waits for the same.
            (Some(Queue::Blocked(_)), Some((queue @ Queue::Blocked(_), _))) => Some(queue),
            (wanted, _) => wanted,
        };
        let key = match (self.config.turns, stream.queued) {
            (Turns::Nearest, _) => resume_offset(stream, self.disk_bytes),
            (Turns::RoundRobin, Some((queue, key))) if Some(queue) == wanted => key,
            (Turns::RoundRobin, _) => self.dispatch.serial(),
        };
        let wanted = wanted.map(|queue| (queue, key));
        if wanted == self.streams[id as usize].queued {
            return;
        }
        self.dequeue(id);
        if let Some((queue, key)) = wanted {
            self.dispatch.insert(queue, key, id);
            self.streams[id as usize].queued = wanted;
        }
    }

    /// Removes a stream from its queue.
    pub(super) fn dequeue(&mut self, id: u32) {
        if let Some((queue, key)) = self.streams[id as usize].queued.take() {
            self.dispatch.remove(queue, key, id);
        }
    }
}

/// Where on the disk a stream continues.
fn resume_offset(stream: &Stream, disk_bytes: u64) -> u64 {
    mirrored(stream.direction(), disk_bytes, stream.frontier, 0)
}
