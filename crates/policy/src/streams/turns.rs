//! The dispatch set: which streams have the disk, for how long, and who is next.

use super::config::Turns;
use super::stream::{Queue, turned};
use super::{Streams, stream::Stream};
use headstack_model::Nanos;
use std::collections::BTreeSet;

/// What came of a stream's turn to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It began a command, or took writes in.
    Began,
    /// It will go on later.
    Waits,
    /// There is nothing more for it to do.
    Over,
}

/// The streams that have a turn, and those that want one.
#[derive(Debug)]
pub(super) struct Dispatch {
    active: Vec<u32>,
    /// Which of them is asked first.
    next: usize,
    needy: BTreeSet<(u64, u32)>,
    hungry: BTreeSet<(u64, u32)>,
    /// From where on the disk the next is taken.
    hand: u64,
    serial: u64,
    /// Streams whose turn is over and whose commands are not.
    leaving: u32,
    /// When a writer has kept others waiting for long enough.
    pub(super) grace_at: Nanos,
}

impl Default for Dispatch {
    fn default() -> Dispatch {
        Dispatch {
            active: Vec::new(),
            next: 0,
            needy: BTreeSet::new(),
            hungry: BTreeSet::new(),
            hand: 0,
            serial: 0,
            leaving: 0,
            grace_at: Nanos::MAX,
        }
    }
}

impl Dispatch {
    pub(super) fn has(&self, id: u32) -> bool {
        self.active.contains(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.active.len()
    }

    pub(super) fn needy(&self) -> usize {
        self.needy.len()
    }

    /// Takes a stream out, which is no more.
    pub(super) fn leave(&mut self, id: u32) {
        self.active.retain(|active| *active != id);
    }

    /// A stream without a turn has a command under way.
    pub(super) fn arrive_late(&mut self) {
        self.leaving += 1;
    }

    /// Commands of a stream without a turn are nobody's any more.
    pub(super) fn arrive_early(&mut self) {
        self.leaving -= 1;
    }

    fn queue(&mut self, queue: Queue) -> &mut BTreeSet<(u64, u32)> {
        match queue {
            Queue::Needy => &mut self.needy,
            Queue::Hungry => &mut self.hungry,
        }
    }

    /// The next that wants a turn.
    fn choose(&self, turns: Turns) -> Option<u32> {
        let from = if turns == Turns::Nearest { self.hand } else { 0 };
        let next = |queue: &BTreeSet<(u64, u32)>| {
            queue.range((from, 0)..).next().or_else(|| queue.first()).map(|(_, id)| *id)
        };
        next(&self.needy).or_else(|| next(&self.hungry))
    }
}

impl Streams {
    /// Whether streams have something for the disk.
    pub(super) fn streams_want_disk(&self) -> bool {
        !self.dispatch.needy.is_empty() || !self.dispatch.active.is_empty()
    }

    /// Begins a command of a stream.
    pub(super) fn start_stream(&mut self) -> bool {
        // Each that wants a turn begins one, does nothing and ends it, at most.
        for _ in 0..4 * (self.streams.len() + 1) {
            match self.step_active() {
                Some(Step::Began) => return true,
                Some(_) => {}
                None if self.begin_turn() => {}
                None => return false,
            }
        }
        debug_assert!(false, "a stream that has nothing to do wants no turn");
        false
    }

    /// Has those go on that have a turn: nothing where they all wait.
    fn step_active(&mut self) -> Option<Step> {
        let count = self.dispatch.active.len();
        for turn in 0..count {
            let place = (self.dispatch.next + turn) % count;
            // Room made for one may have ended the turn of another.
            let Some(id) = self.dispatch.active.get(place).copied() else { return Some(Step::Waits) };
            let is_writer = self.streams[id as usize].is_writer();
            let step = if is_writer { self.advance_writer(id) } else { self.advance_reader(id) };
            match step {
                Step::Began => self.dispatch.next = place + 1,
                Step::Waits if self.dispatch.active.get(place) == Some(&id) => continue,
                // Its turn ended on the way.
                Step::Waits => {}
                Step::Over => self.end_turn(id),
            }
            return Some(step);
        }
        None
    }

    /// Takes one off what is left of a stream's turn, which ends with the last.
    pub(super) fn spend_turn(&mut self, id: u32) {
        let left = self.streams[id as usize].turn.as_mut().expect("it has a turn");
        *left -= 1;
        if *left == 0 {
            self.end_turn(id);
        }
    }

    fn begin_turn(&mut self) -> bool {
        // One more may begin while the last commands of another are under way, so that the disk need not wait.
        let most = self.config.dispatch_set.unwrap_or(2) as usize;
        let taken = self.dispatch.active.len() + self.dispatch.leaving as usize;
        if taken >= most || self.config.dispatch_set.is_none() && !self.dispatch.active.is_empty() {
            return false;
        }
        let Some(id) = self.dispatch.choose(self.config.turns) else { return false };
        let (_, key) = self.streams[id as usize].filed.expect("it is filed");
        self.unfile(id);
        self.dispatch.hand = key + 1;
        self.dispatch.active.push(id);
        let requests = self.turn_requests();
        let stream = &mut self.streams[id as usize];
        stream.turn = Some(requests);
        stream.turn_from = key;
        stream.was_fetched = false;
        if stream.in_flight > 0 {
            self.dispatch.leaving -= 1;
        }
        self.books.turns += 1;
        true
    }

    /// N.
    pub(super) fn turn_requests(&self) -> u32 {
        self.config.requests_a_turn.unwrap_or_else(|| {
            let streams = self.dispatch.needy.len() + self.dispatch.active.len();
            let bytes = self.tuning.turn_bytes(&self.config, streams);
            bytes.div_ceil(self.read_bytes()).clamp(1, 1 << 20) as u32
        })
    }

    /// R.
    pub(super) fn read_bytes(&self) -> u64 {
        self.config.read_bytes(self.frames.frame_bytes())
    }

    fn end_turn(&mut self, id: u32) {
        self.dispatch.leave(id);
        let stream = &mut self.streams[id as usize];
        stream.turn = None;
        let from = stream.turn_from;
        if stream.in_flight > 0 {
            self.dispatch.leaving += 1;
        }
        let place = place(stream, self.disk_bytes);
        if self.config.turns == Turns::Nearest && from < self.dispatch.hand && self.dispatch.hand <= place {
            // It has had its turn in this round.
            self.dispatch.hand = place + 1;
        }
        self.file(id);
    }

    /// A command of a stream has ended.
    pub(super) fn landed(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id as usize) else { return };
        stream.in_flight -= 1;
        if stream.in_flight == 0 && stream.turn.is_none() {
            self.dispatch.leaving -= 1;
        }
    }

    /// Puts a stream into the queue where it belongs.
    pub(super) fn file(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id as usize) else { return };
        let wanted = match () {
            () if stream.turn.is_some() => None,
            () if stream.is_needy() => Some(Queue::Needy),
            () if stream.is_hungry(self.disk_bytes) => Some(Queue::Hungry),
            () => None,
        };
        let key = match (self.config.turns, stream.filed) {
            (Turns::Nearest, _) => place(stream, self.disk_bytes),
            (Turns::RoundRobin, Some((queue, key))) if Some(queue) == wanted => key,
            (Turns::RoundRobin, _) => self.dispatch.serial,
        };
        let wanted = wanted.map(|queue| (queue, key));
        if wanted == stream.filed {
            return;
        }
        self.unfile(id);
        if let Some((queue, key)) = wanted {
            self.dispatch.queue(queue).insert((key, id));
            self.dispatch.serial += 1;
            self.streams[id as usize].filed = wanted;
        }
    }

    /// Takes a stream out of its queue.
    pub(super) fn unfile(&mut self, id: u32) {
        if let Some((queue, key)) = self.streams[id as usize].filed.take() {
            self.dispatch.queue(queue).remove(&(key, id));
        }
    }
}

/// Where on the disk a stream goes on.
fn place(stream: &Stream, disk_bytes: u64) -> u64 {
    turned(stream.direction(), disk_bytes, stream.frontier, 0)
}
