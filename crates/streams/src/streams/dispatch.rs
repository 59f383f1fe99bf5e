//! The dispatch set of an arm: the streams that have a turn, and the queues of those that want one.
//!
//! Turns are counted in rounds: a stream that has used its commands of this round waits for the next, whatever the order within a
//! round. So the order may follow the arm, and all streams get equal shares. Where direct requests move the arm again and again, a
//! stream near it may be one round ahead.

use super::config::Turns;
use super::stream::Queue;
use std::collections::BTreeSet;

type Places = BTreeSet<(u64, u32)>;

#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) active: Vec<u32>,
    /// Index in `active` of the stream to try first.
    pub(super) next: usize,
    /// Streams whose clients wait, by the round in which they have commands left: this one, the next, and the one after.
    blocked: [Places; 3],
    round: u64,
    wants_prefetch: Places,
    /// Where the last command ends, in bytes from the start of the disk.
    arm: u64,
    /// Whether a direct request has moved the arm since the last command of a stream.
    is_arm_elsewhere: bool,
    serial: u64,
    /// Streams whose turn is over and that still have commands in flight.
    pub(super) leaving: u32,
}

impl Default for Dispatch {
    fn default() -> Dispatch {
        Dispatch {
            active: Vec::new(),
            next: 0,
            blocked: Default::default(),
            round: 1,
            wants_prefetch: Places::new(),
            arm: 0,
            is_arm_elsewhere: false,
            serial: 0,
            leaving: 0,
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

    /// Streams that wait for a turn, and whose clients wait.
    pub(super) fn blocked(&self) -> usize {
        self.blocked.iter().map(BTreeSet::len).sum()
    }

    pub(super) fn round(&self) -> u64 {
        self.round
    }

    pub(super) fn leave(&mut self, id: u32) {
        self.active.retain(|active| *active != id);
    }

    /// Records where a command moves the arm, and whether it is a stream's.
    pub(super) fn send_arm(&mut self, to: u64, is_stream: bool) {
        (self.arm, self.is_arm_elsewhere) = (to, !is_stream);
    }

    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn queue(&mut self, queue: Queue) -> &mut Places {
        match queue {
            Queue::Blocked(round) => &mut self.blocked[(round % 3) as usize],
            Queue::WantsPrefetch => &mut self.wants_prefetch,
        }
    }

    pub(super) fn insert(&mut self, queue: Queue, key: u64, id: u32) {
        self.queue(queue).insert((key, id));
    }

    pub(super) fn remove(&mut self, queue: Queue, key: u64, id: u32) {
        self.queue(queue).remove(&(key, id));
    }

    pub(super) fn choose(&mut self, turns: Turns) -> Option<u32> {
        while self.round_queue(self.round).is_empty() && self.blocked() > 0 {
            self.round += 1;
        }
        let blocked = self.round_queue(self.round);
        let queue = if blocked.is_empty() { &self.wants_prefetch } else { blocked };
        let found = match turns {
            Turns::RoundRobin => queue.first(),
            Turns::Nearest if self.is_arm_elsewhere => {
                nearest([queue, self.round_queue(self.round + 1)], self.arm)
            }
            Turns::Nearest => queue.range((self.arm, 0)..).next().or_else(|| queue.first()),
        };
        found.map(|(_, id)| *id)
    }

    /// Streams that have commands left in a round.
    fn round_queue(&self, round: u64) -> &Places {
        &self.blocked[(round % 3) as usize]
    }
}

fn nearest(queues: [&Places; 2], arm: u64) -> Option<&(u64, u32)> {
    let above = queues.map(|queue| queue.range((arm, 0)..).next());
    let below = queues.map(|queue| queue.range(..(arm, 0)).next_back());
    above.into_iter().chain(below).flatten().min_by_key(|(place, _)| place.abs_diff(arm))
}
