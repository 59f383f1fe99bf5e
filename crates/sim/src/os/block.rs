//! The block layer's queue for one device: it plugs, splits, merges and orders requests.
//!
//! Requests are split at the largest command and go into an elevator, which merges them. A command of the elevator carries a chain
//! of parts, which all complete with it. A flush bypasses the elevator, as in Linux, and so does a request that the device will
//! refuse.
//!
//! *Source:* Linux's block layer (the behaviour).

use super::dispatch::DispatchLimit;
use super::target::Target;
use super::{HostQueueSpec, Merge, host_fault};
use crate::device::{Command, Completion, Outcome};
use crate::layer::Submission;
use headstack_model::spec::Fault;
use headstack_model::{Instant, Nanos, Op, Request};
use headstack_policy::elevator::{Added, Dispatch, Elevator, ElevatorRequest, EntryId, MergeRule};
use headstack_policy::order::Order;
use slab::Slab;
use std::collections::VecDeque;

/// No part, or no split request.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    part: Submission,
    /// The request that was split, where `part` is not all of it.
    split: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct SplitRequest {
    left: u32,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// Holds back requests to an idle device, so that more may be merged with them.
#[derive(Clone, Copy, Debug)]
struct Plug {
    requests: usize,
    delay: Nanos,
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    entry: Option<EntryId>,
    chain: Chain,
}

#[derive(Debug)]
pub(super) struct BlockQueue {
    elevator: Elevator,
    sectors_max: u32,
    requests_max: usize,
    plug: Plug,
    links: Slab<Link>,
    splits: Slab<SplitRequest>,
    chains: Vec<Chain>,
    /// Parts for which the elevator has no room.
    overflow: VecDeque<(Submission, u32)>,
    /// Flushes, and requests that the device will refuse: they bypass the elevator.
    bypass: VecDeque<u32>,
    sent: Vec<Sent>,
    /// The command that ended last, and which part of it is to be reported next.
    command: Completion,
    ended: u32,
}

impl BlockQueue {
    pub(super) fn new<T: Target>(spec: &HostQueueSpec, device: &T) -> Result<BlockQueue, Fault> {
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
                    .map_err(|error| host_fault("queue.order", error))?
            }
            Some(order) => Elevator::with_order(order, spec.requests_max(), device.sectors(), map()?, rule)
                .map_err(|error| host_fault("queue.order", error))?,
            None => Elevator::by_name(
                spec.elevator.as_deref().unwrap_or("noop"),
                &spec.tuning(device.arm_firsts()),
                rule,
            )
            .map_err(|error| host_fault("queue.elevator", error))?,
        };
        let (requests, delay) = spec.plug();
        Ok(BlockQueue {
            elevator,
            sectors_max,
            requests_max: spec.requests_max(),
            plug: Plug { requests, delay, until: None },
            links: Slab::new(),
            splits: Slab::new(),
            chains: Vec::new(),
            overflow: VecDeque::new(),
            bypass: VecDeque::new(),
            sent: Vec::with_capacity(2 * device.depth().min(1024)),
            command: Completion::at_once(Request::flush(), Instant::ZERO),
            ended: NONE,
        })
    }

    /// Accepts a request, in parts if it is longer than the largest command.
    pub(super) fn submit<T: Target>(&mut self, now: Instant, submission: Submission, device: &T) {
        let request = submission.request;
        if request.op == Op::Flush || request.sectors == 0 || request.end().0 > device.sectors() {
            let link = self.link(submission, NONE);
            return self.bypass.push_back(link);
        }
        if device.outstanding() == 0 && self.is_empty() && self.plug.delay > Nanos::ZERO {
            self.plug.until = Some(now + self.plug.delay);
        }
        let parts = request.sectors.div_ceil(self.sectors_max);
        let split = match parts {
            1 => NONE,
            _ => self.splits.insert(SplitRequest { left: parts, outcome: Outcome::Done }) as u32,
        };
        let mut from = request.lbn;
        while from < request.end() {
            let mut part = submission;
            part.request.lbn = from;
            part.request.sectors = ((request.end() - from) as u32).min(self.sectors_max);
            from = part.request.end();
            self.enter(now, part, split);
        }
    }

    /// Whether the queue is run after this request alone. Linux does so for a program's own call; it gathers what a page cache sends.
    pub(super) fn sends_at_once(&self, submission: &Submission) -> bool {
        submission.direct && self.plug.delay == Nanos::ZERO
    }

    pub(super) fn set_order(&mut self, order: Box<dyn Order>) -> bool {
        self.elevator.set_order(order)
    }

    fn is_empty(&self) -> bool {
        self.elevator.waiting() == 0 && self.overflow.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.elevator.waiting() + self.overflow.len() + self.bypass.len()
    }

    /// Adds a part to the elevator, or to the overflow in front of it if that is full.
    fn enter(&mut self, now: Instant, part: Submission, split: u32) {
        if self.has_room() && self.overflow.is_empty() {
            return self.add(now, part, split);
        }
        match self.elevator.merge(&elevator_request(&part)) {
            Some(added) => self.attach(part, split, added),
            None => self.overflow.push_back((part, split)),
        }
    }

    fn has_room(&self) -> bool {
        self.elevator.waiting() < self.requests_max
    }

    fn add(&mut self, now: Instant, part: Submission, split: u32) {
        let added = self.elevator.add(now, elevator_request(&part));
        self.attach(part, split, added);
    }

    /// Adds a part to the chain of the elevator's request that it became, or was merged into.
    fn attach(&mut self, part: Submission, split: u32, added: Added) {
        let link = self.link(part, split);
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

    fn is_urgent(&self, chain: Chain) -> bool {
        let next = |link: &u32| Some(self.links[*link as usize].next).filter(|next| *next != NONE);
        let mut links = std::iter::successors(Some(chain.first), next);
        links.any(|link| self.links[link as usize].part.urgent)
    }

    /// The duration limit of a chain; requests with different limits are not merged.
    fn limit(&self, chain: Chain) -> u8 {
        self.links[chain.first as usize].part.limit
    }

    fn append(&mut self, EntryId(into): EntryId, chain: Chain) {
        let whole = &mut self.chains[into as usize];
        self.links[whole.last as usize].next = chain.first;
        whole.last = chain.last;
    }

    fn link(&mut self, part: Submission, split: u32) -> u32 {
        self.links.insert(Link { part, split, next: NONE }) as u32
    }

    pub(super) fn settle<T: Target>(&mut self, now: Instant, device: &mut T, limit: &mut DispatchLimit) {
        while self.waiting() > 0 && limit.lets_through(now, device) {
            if let Some(first) = self.bypass.pop_front() {
                let request = self.links[first as usize].part.request;
                let sent = Sent { entry: None, chain: Chain { first, last: first } };
                self.send(now, device, limit, request, sent);
                continue;
            }
            if self.is_plugged(now) {
                return;
            }
            let Some(Dispatch { entry, request }) = self.elevator.dispatch(now) else { return };
            let chain = self.chains[entry.0 as usize];
            self.send(now, device, limit, request, Sent { entry: Some(entry), chain });
            while self.has_room()
                && let Some((next, split)) = self.overflow.pop_front()
            {
                self.add(now, next, split);
            }
        }
    }

    fn send<T: Target>(
        &mut self,
        now: Instant,
        device: &mut T,
        limit: &mut DispatchLimit,
        request: Request,
        sent: Sent,
    ) {
        // A request that was merged with an urgent one goes with it.
        let (urgent, limit_number) = (self.is_urgent(sent.chain), self.limit(sent.chain));
        let resets_zone = self.links[sent.chain.first as usize].part.resets_zone;
        let command = Command { urgent, limit: limit_number, resets_zone, ..request.into() };
        let tag = device.submit(now, command).expect("the device was seen to have room");
        limit.issued(now, tag);
        let place = tag.0 as usize;
        if place >= self.sent.len() {
            // More tags than the depth exist only while completions wait to be read.
            self.sent.resize(place + 1, sent);
        }
        self.sent[place] = sent;
    }

    /// Whether requests are held back so that more may be merged.
    fn is_plugged(&mut self, now: Instant) -> bool {
        let holds = |until| now < until && self.elevator.waiting() < self.plug.requests;
        self.plug.until = self.plug.until.filter(|until| holds(*until));
        self.plug.until.is_some()
    }

    /// The next request of which all parts are done; `ended` gets the completion of its last part.
    pub(super) fn poll<T: Target>(
        &mut self,
        now: Instant,
        device: &mut T,
        limit: &mut DispatchLimit,
        ended: &mut Completion,
        mut served: impl FnMut(&Completion),
    ) -> Option<u32> {
        loop {
            if self.ended == NONE {
                if !device.poll_into(ended) {
                    return None;
                }
                limit.completed(now, ended.tag);
                served(ended);
                let Sent { entry, chain } = self.sent[ended.tag.0 as usize];
                (self.command, self.ended) = (*ended, chain.first);
                if let Some(entry) = entry {
                    self.elevator.completed(now, entry);
                }
            }
            *ended = self.command;
            let Link { part, split, next } = self.links.remove(self.ended as usize);
            self.ended = next;
            if split == NONE || self.ends(split, &mut ended.outcome) {
                ended.number = part.id;
                return Some(part.id);
            }
        }
    }

    /// Records that a part of a split request ended with `outcome`. Returns whether it was the last one; `outcome` is then the worst of all.
    fn ends(&mut self, number: u32, outcome: &mut Outcome) -> bool {
        let split = &mut self.splits[number as usize];
        split.left -= 1;
        if *outcome != Outcome::Done {
            split.outcome = *outcome;
        }
        if split.left > 0 {
            return false;
        }
        *outcome = self.splits.remove(number as usize).outcome;
        true
    }

    /// When to call [`BlockQueue::settle`] although nothing else happened; never (`Instant::MAX`) while the dispatch limit is reached.
    pub(super) fn next_event(&self, is_shut: bool) -> Instant {
        if is_shut {
            return Instant::MAX;
        }
        let next = self.plug.until.or_else(|| self.elevator.poll_timeout());
        next.unwrap_or(Instant::MAX)
    }
}

fn elevator_request(part: &Submission) -> ElevatorRequest {
    let Submission { request, source, urgent, idle, limit, sync, .. } = *part;
    ElevatorRequest { request, source, urgent, idle, limit, sync }
}
