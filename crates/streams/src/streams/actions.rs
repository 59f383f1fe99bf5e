//! What the owner has to do: copies, commands of the disk, answers.

use super::config::Config;
use super::messages::{Action, Answer, Command, Piece, Request};
use headstack_model::Instant;
use headstack_policy::Guard;
use slab::Slab;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Direct(Request),
    Frame(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) purpose: Purpose,
    pub(super) issued: Instant,
}

/// Commands in flight, and actions that the owner has not polled yet.
#[derive(Debug)]
pub(super) struct Actions {
    queue_depth: usize,
    guard: Option<Guard>,
    in_flight: Slab<InFlight>,
    copies: VecDeque<Action>,
    starts: VecDeque<Command>,
    answers: VecDeque<Answer>,
}

impl Actions {
    pub(super) fn new(config: &Config) -> Actions {
        Actions {
            queue_depth: config.queue_depth as usize,
            guard: (config.guard_cost > 0.0).then(|| Guard::adaptive(config.guard_cost)),
            in_flight: Slab::new(),
            copies: VecDeque::new(),
            starts: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(super) fn is_disk_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether the disk may have one more command, whatever the guard says.
    pub(super) fn has_slot(&self) -> bool {
        self.in_flight.len() < self.queue_depth
    }

    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        self.has_slot() && self.guard.as_mut().is_none_or(|guard| guard.may_issue(now))
    }

    /// Starts a command, which gets its number here. [`has_room`](Actions::has_room) must hold.
    pub(super) fn start(&mut self, now: Instant, purpose: Purpose, command: Command) {
        let id = self.in_flight.insert(InFlight { purpose, issued: now }) as u32;
        if let Some(guard) = &mut self.guard {
            guard.issued(now, id);
        }
        self.starts.push_back(Command { id, ..command });
    }

    pub(super) fn purpose(&self, id: u32) -> Purpose {
        self.in_flight[id as usize].purpose
    }

    pub(super) fn complete(&mut self, now: Instant, id: u32) -> InFlight {
        if let Some(guard) = &mut self.guard {
            guard.completed(now, id);
        }
        self.in_flight.remove(id as usize)
    }

    pub(super) fn copy_in(&mut self, ticket: u64, from: u64, piece: Piece) {
        self.copies.push_back(Action::CopyIn { ticket, from, piece });
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.push_back(answer);
    }

    /// The next action: copies before commands, and commands before answers.
    pub(super) fn poll(&mut self) -> Option<Action> {
        if let Some(copy) = self.copies.pop_front() {
            return Some(copy);
        }
        if let Some(start) = self.starts.pop_front() {
            return Some(Action::Start(start));
        }
        self.answers.pop_front().map(Action::Answer)
    }
}
