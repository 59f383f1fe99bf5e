//! The block layer's queue before one device: plug, split, merge, choose.
//!
//! Requests are split at the largest command and go into an elevator, which merges them. What an elevator's request
//! carries is a chain of pieces, which all end when its command does. A flush goes past the elevator, as in Linux, and so
//! does what the device will refuse. *Source:* Linux's block layer (the behaviour).

use super::gate::Gate;
use super::target::{Piece, Target, at_tag};
use super::{HostError, HostQueueSpec, Merge};
use crate::device::{Command, Completion};
use headstack_model::{Nanos, Op, Request};
use headstack_policy::elevator::{Added, Ask, Dispatch, Elevator, EntryId, MergeRule};
use headstack_policy::order::Order;
use std::collections::VecDeque;

/// No piece.
const NONE: u32 = u32::MAX;

/// A piece and the next one in its chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    piece: Piece,
    next: u32,
}

/// Pieces that end together.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// Holds back what comes to an idle device, so that more may come to be merged with it.
#[derive(Clone, Copy, Debug)]
struct Plug {
    requests: usize,
    delay: Nanos,
    until: Option<Nanos>,
}

/// What a tag is out for.
#[derive(Clone, Copy, Debug)]
struct Sent {
    entry: Option<EntryId>,
    chain: Chain,
}

/// A host's queue with merging and an elevator.
#[derive(Debug)]
pub(super) struct BlockQueue {
    elevator: Elevator,
    sectors_max: u32,
    requests_max: usize,
    plug: Plug,
    links: Vec<Link>,
    free: Vec<u32>,
    /// The chain of each of the elevator's requests.
    chains: Vec<Chain>,
    /// Pieces for which the elevator has no room.
    beyond: VecDeque<Piece>,
    /// Flushes, and what the device will refuse.
    past: VecDeque<u32>,
    sent: Vec<Sent>,
    /// The command that ended last, and which of its pieces is next to be told so.
    command: Completion,
    ended: u32,
}

impl BlockQueue {
    pub(super) fn new<T: Target>(spec: &HostQueueSpec, device: &T) -> Result<BlockQueue, HostError> {
        let sectors_max = spec.sectors_max(device.sector_bytes());
        let merge = spec.merge();
        let rule = MergeRule {
            adjacent: merge != Merge::None,
            overlapping: merge == Merge::Overlapping,
            sectors_max,
        };
        let rule = if merge == Merge::None { MergeRule::NONE } else { rule };
        let map = || if spec.has_map() { device.map().map(Some) } else { Ok(None) };
        let elevator = match &spec.order {
            Some(order) if spec.urgent_first => {
                let maps = [map()?, map()?];
                Elevator::with_urgent_first(order, spec.requests_max(), device.sectors(), maps, rule)
                    .map_err(|error| HostError::new("queue.order", error))?
            }
            Some(order) => Elevator::with_order(order, spec.requests_max(), device.sectors(), map()?, rule)
                .map_err(|error| HostError::new("queue.order", error))?,
            None => Elevator::by_name(spec.elevator.as_deref().unwrap_or("noop"), &spec.tuning(), rule)
                .map_err(|error| HostError::new("queue.elevator", error))?,
        };
        let (requests, delay) = spec.plug();
        Ok(BlockQueue {
            elevator,
            sectors_max,
            requests_max: spec.requests_max(),
            plug: Plug { requests, delay, until: None },
            links: Vec::new(),
            free: Vec::new(),
            chains: Vec::new(),
            beyond: VecDeque::new(),
            past: VecDeque::new(),
            sent: Vec::with_capacity(2 * device.depth().min(1024)),
            command: Completion::at_once(Request::flush(), Nanos::ZERO),
            ended: NONE,
        })
    }

    /// Takes a piece; says into how many parts it was split.
    pub(super) fn issue<T: Target>(&mut self, now: Nanos, piece: Piece, device: &T) -> u32 {
        let request = piece.request;
        if request.op == Op::Flush || request.sectors == 0 || request.end().0 > device.sectors() {
            let link = self.link(piece);
            self.past.push_back(link);
            return 1;
        }
        if device.outstanding() == 0 && self.is_empty() && self.plug.delay > Nanos::ZERO {
            self.plug.until = Some(now + self.plug.delay);
        }
        let (mut from, mut parts) = (request.lbn, 0);
        while from < request.end() {
            let mut part = piece;
            part.request.lbn = from;
            part.request.sectors = ((request.end() - from) as u32).min(self.sectors_max);
            from = part.request.end();
            parts += 1;
            self.enter(now, part);
        }
        parts
    }

    /// As [`Elevator::set_order`].
    pub(super) fn set_order(&mut self, order: Box<dyn Order>) -> bool {
        self.elevator.set_order(order)
    }

    fn is_empty(&self) -> bool {
        self.elevator.waiting() == 0 && self.beyond.is_empty()
    }

    /// Requests that have not gone to the device.
    pub(super) fn waiting(&self) -> usize {
        self.elevator.waiting() + self.beyond.len() + self.past.len()
    }

    /// Puts a piece into the elevator, or before it where that is full.
    fn enter(&mut self, now: Nanos, piece: Piece) {
        if self.has_room() && self.beyond.is_empty() {
            return self.add(now, piece);
        }
        match self.elevator.merge(&ask(&piece)) {
            Some(added) => self.attach(piece, added),
            None => self.beyond.push_back(piece),
        }
    }

    fn has_room(&self) -> bool {
        self.elevator.waiting() < self.requests_max
    }

    fn add(&mut self, now: Nanos, piece: Piece) {
        let added = self.elevator.add(now, ask(&piece));
        self.attach(piece, added);
    }

    /// Chains a piece to the elevator's request that it became, or became part of.
    fn attach(&mut self, piece: Piece, added: Added) {
        let link = self.link(piece);
        let alone = Chain { first: link, last: link };
        match added {
            Added::Queued(EntryId(entry)) => {
                let entry = entry as usize;
                if entry == self.chains.len() {
                    self.chains.push(alone);
                }
                self.chains[entry] = alone;
            }
            Added::Merged { into, absorbed } => {
                self.append(into, alone);
                if let Some(absorbed) = absorbed {
                    self.append(into, self.chains[absorbed.0 as usize]);
                }
            }
        }
    }

    /// Whether any piece of a chain is urgent.
    fn is_urgent(&self, chain: Chain) -> bool {
        let next = |link: &u32| Some(self.links[*link as usize].next).filter(|next| *next != NONE);
        let mut links = std::iter::successors(Some(chain.first), next);
        links.any(|link| self.links[link as usize].piece.urgent)
    }

    fn append(&mut self, EntryId(into): EntryId, chain: Chain) {
        let whole = &mut self.chains[into as usize];
        self.links[whole.last as usize].next = chain.first;
        whole.last = chain.last;
    }

    fn link(&mut self, piece: Piece) -> u32 {
        let link = Link { piece, next: NONE };
        if let Some(free) = self.free.pop() {
            self.links[free as usize] = link;
            return free;
        }
        self.links.push(link);
        (self.links.len() - 1) as u32
    }

    /// Gives the device what may go now.
    pub(super) fn settle<T: Target>(&mut self, now: Nanos, device: &mut T, gate: &mut Gate) {
        while self.waiting() > 0 && gate.lets_through(now, device) {
            if let Some(first) = self.past.pop_front() {
                let request = self.links[first as usize].piece.request;
                let sent = Sent { entry: None, chain: Chain { first, last: first } };
                self.send(now, device, gate, request, sent);
                continue;
            }
            if self.is_plugged(now) {
                return;
            }
            let Some(Dispatch { entry, request }) = self.elevator.dispatch(now) else { return };
            let chain = self.chains[entry.0 as usize];
            self.send(now, device, gate, request, Sent { entry: Some(entry), chain });
            while self.has_room()
                && let Some(next) = self.beyond.pop_front()
            {
                self.add(now, next);
            }
        }
    }

    fn send<T: Target>(&mut self, now: Nanos, device: &mut T, gate: &mut Gate, request: Request, sent: Sent) {
        // What was merged with something urgent goes with it.
        let command = Command { urgent: self.is_urgent(sent.chain), ..request.into() };
        let tag = device.submit(now, command).expect("the device was seen to have room");
        gate.issued(now, tag);
        *at_tag(&mut self.sent, tag.0, sent) = sent;
    }

    /// Whether what waits is held back so that more may join it.
    fn is_plugged(&mut self, now: Nanos) -> bool {
        let holds = |until| now < until && self.elevator.waiting() < self.plug.requests;
        self.plug.until = self.plug.until.filter(|until| holds(*until));
        self.plug.until.is_some()
    }

    /// The next piece that came back, and how.
    pub(super) fn poll<T: Target>(
        &mut self,
        now: Nanos,
        device: &mut T,
        gate: &mut Gate,
        ended: &mut Completion,
        served: impl FnOnce(&Completion),
    ) -> Option<u32> {
        if self.ended == NONE {
            *ended = device.poll_completion()?;
            gate.completed(now, ended.tag);
            served(ended);
            let Sent { entry, chain } = self.sent[ended.tag.0 as usize];
            (self.command, self.ended) = (*ended, chain.first);
            if let Some(entry) = entry {
                self.elevator.completed(now, entry);
            }
        }
        *ended = self.command;
        let Link { piece, next } = self.links[self.ended as usize];
        self.free.push(self.ended);
        self.ended = next;
        Some(piece.ask)
    }

    /// When to call [`BlockQueue::settle`] though nothing else happened; `Nanos::MAX` when never, as while the gate stays
    /// shut until a command comes back.
    pub(super) fn next_event(&self, is_shut: bool) -> Nanos {
        if is_shut {
            return Nanos::MAX;
        }
        let next = self.plug.until.or_else(|| self.elevator.poll_timeout());
        next.unwrap_or(Nanos::MAX)
    }
}

fn ask(piece: &Piece) -> Ask {
    let Piece { request, source, urgent, sync, .. } = *piece;
    Ask { request, source, urgent, sync }
}
