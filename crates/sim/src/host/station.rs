//! A device and the host's queue before it; or a device behind a controller, with a queue of the controller's before it
//! and the host's before the controller.

use super::block::BlockQueue;
use super::gate::Gate;
use super::port::Port;
use super::target::{Piece, Target, at_tag};
use super::{HostError, HostQueueSpec, HostSpec};
use crate::device::{Command, Completion, Device, Tag};
use crate::link::Links;
use headstack_model::Nanos;
use headstack_policy::Guard;
use headstack_policy::order::Order;
use std::collections::VecDeque;

/// A queue that keeps the order of arrival, merges nothing and splits nothing.
#[derive(Debug)]
struct Plain {
    held: VecDeque<Piece>,
    /// What each outstanding tag is for.
    sent: Vec<u32>,
}

/// What waits before a target's gate.
#[derive(Debug)]
enum Waiting {
    Plain(Plain),
    Block(Box<BlockQueue>),
}

/// The way to a device through a controller.
#[derive(Debug)]
struct Way {
    /// The controller's number.
    controller: u32,
    port: Port,
    waiting: Waiting,
    gate: Gate,
}

/// A device and what is held for it.
#[derive(Debug)]
pub(crate) struct Station {
    device: Device,
    gate: Gate,
    waiting: Waiting,
    /// Whether the device shares links, which it has at hand only while it settles or does what is due.
    shares: bool,
    /// The controller before it, if there is one: `waiting` is that one's queue then.
    way: Option<Box<Way>>,
}

impl Station {
    /// A station without a host: what the device cannot take waits in order of arrival.
    pub(crate) fn plain(device: Device) -> Station {
        let (gate, waiting) = (Gate::open(&device), Waiting::plain(device.depth()));
        Station { device, gate, waiting, shares: false, way: None }
    }

    pub(crate) fn new(device: Device, host: &HostSpec) -> Result<Station, HostError> {
        let mut station = Station::plain(device);
        (station.waiting, station.gate) = Waiting::new(&host.queue, &station.device)?;
        Ok(station)
    }

    /// Puts the device behind a controller that takes so many commands for it and has `queue` before it.
    ///
    /// *Errors:* a key of either queue is wrong.
    pub(crate) fn put_behind(
        &mut self,
        controller: u32,
        depth: usize,
        queue: &HostQueueSpec,
        host: &HostSpec,
    ) -> Result<(), HostError> {
        let port = Port::new(self.device.sectors(), self.device.sector_bytes(), depth);
        let (waiting, gate) = Waiting::new(&host.queue, &port)?;
        self.way = Some(Box::new(Way { controller, port, waiting, gate }));
        (self.waiting, self.gate) = Waiting::new(queue, &self.device)?;
        Ok(())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// The host's starvation guard before it, if there is one.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.way.as_ref().map_or(&self.gate, |way| &way.gate).guard()
    }

    /// Has the host's queue choose by a program's own order.
    ///
    /// *Errors:* it goes by no order.
    pub(crate) fn set_host_order(&mut self, order: Box<dyn Order>) -> Result<(), HostError> {
        let waiting = self.way.as_mut().map_or(&mut self.waiting, |way| &mut way.waiting);
        let is_set = match waiting {
            Waiting::Block(queue) => queue.set_order(order),
            Waiting::Plain(_) => false,
        };
        let fault = "an own order needs one in whose place it comes; `fcfs` is one";
        if is_set { Ok(()) } else { Err(HostError::new("queue.order", fault)) }
    }

    /// The number of the controller that the device is behind.
    #[inline]
    pub(crate) fn controller(&self) -> Option<u32> {
        self.way.as_ref().map(|way| way.controller)
    }

    /// Commands that the device (or the controller for it) has and requests that wait for it.
    pub(crate) fn outstanding(&self) -> usize {
        match &self.way {
            Some(way) => way.waiting.len() + way.port.outstanding(),
            None => self.waiting.len() + self.device.outstanding(),
        }
    }

    /// Has the station take nothing in when asked, but when it settles, with its device's links at hand.
    pub(crate) fn share(&mut self) {
        self.shares = true;
    }

    /// As [`Device::lend`].
    pub(crate) fn lend(&mut self, links: Box<Links>, number: u32) {
        self.device.lend(links, number);
    }

    /// As [`Device::give_back`].
    pub(crate) fn give_back(&mut self) -> Option<Box<Links>> {
        self.device.give_back()
    }

    /// The device has won its bus.
    pub(crate) fn handle_bus(&mut self, now: Nanos) {
        self.device.handle_bus(now);
    }

    /// Takes a piece; says in how many parts it will come back. [`Station::settle`] must follow at the same time.
    #[inline(always)]
    pub(crate) fn issue(&mut self, now: Nanos, piece: Piece) -> u32 {
        match &mut self.way {
            Some(way) => way.waiting.issue(now, piece, &mut way.port, &mut way.gate, true),
            None => self.transfer(now, piece),
        }
    }

    /// Takes a piece for the device itself, as a controller's transfers are; else as [`Station::issue`].
    #[inline(always)]
    pub(crate) fn transfer(&mut self, now: Nanos, piece: Piece) -> u32 {
        self.waiting.issue(now, piece, &mut self.device, &mut self.gate, !self.shares)
    }

    /// Gives the device what may go now.
    #[inline]
    pub(crate) fn settle(&mut self, now: Nanos) {
        if let Some(way) = &mut self.way {
            way.waiting.settle(now, &mut way.port, &mut way.gate);
        }
        self.waiting.settle(now, &mut self.device, &mut self.gate);
    }

    /// The next command for the controller.
    pub(crate) fn take_command(&mut self) -> Option<(Tag, Command)> {
        self.way.as_mut()?.port.take()
    }

    /// The controller has ended a command.
    pub(crate) fn end_command(&mut self, completion: Completion) {
        self.way.as_mut().expect("it is behind a controller").port.end(completion);
    }

    /// As [`Station::poll`], for commands that the controller has ended.
    pub(crate) fn poll_ended(&mut self, now: Nanos, ended: &mut Completion) -> Option<u32> {
        let way = self.way.as_mut()?;
        way.waiting.poll(now, &mut way.port, &mut way.gate, ended, |_| {})
    }

    /// Does all that is due.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        self.device.handle_timeout(now);
    }

    /// Whether nothing but the device's own work goes on here until one of its commands is done: no controller or link has a part
    /// in it, and nothing that waits may go before.
    #[inline]
    pub(crate) fn is_left_alone(&self) -> bool {
        let waits = match &self.waiting {
            // What is held goes on when a command is done, where the gate is shut until then.
            Waiting::Plain(plain) => !plain.held.is_empty() && !self.gate.is_shut(&self.device),
            Waiting::Block(_) => true,
        };
        !waits && !self.shares && self.way.is_none()
    }

    /// Whether what was issued last waits here until a command is done, so that nothing else has changed.
    #[inline]
    pub(crate) fn only_holds(&self) -> bool {
        let holds = matches!(&self.waiting, Waiting::Plain(plain) if !plain.held.is_empty());
        holds && self.is_left_alone()
    }

    /// As [`Device::run_to_completion`], where the device is left alone.
    #[inline]
    pub(crate) fn run_to_completion(&mut self, now: Nanos, until: Nanos) -> Nanos {
        self.device.run_to_completion(now, until)
    }

    /// The next ask of which a piece came back, and in `ended` how; behind a controller, the next of its transfers.
    /// `served` sees each command. [`Station::settle`] must follow once there are no more.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Nanos,
        ended: &mut Completion,
        served: impl FnOnce(&Completion),
    ) -> Option<u32> {
        self.waiting.poll(now, &mut self.device, &mut self.gate, ended, served)
    }

    /// When, from `now` on, the station wants to be looked at; `Nanos::MAX` when never.
    #[inline]
    pub(crate) fn next_event(&self, now: Nanos) -> Nanos {
        if self.device.has_completions() {
            return now;
        }
        let device = self.device.poll_timeout().unwrap_or(Nanos::MAX);
        let next = device.min(self.waiting.next_event(self.gate.is_shut(&self.device)));
        match &self.way {
            Some(way) => next.min(way.waiting.next_event(way.gate.is_shut(&way.port))),
            None => next,
        }
    }
}

impl Waiting {
    /// A queue that only holds.
    fn plain(depth: usize) -> Waiting {
        let sent = Vec::with_capacity(2 * depth.min(1024));
        Waiting::Plain(Plain { held: VecDeque::with_capacity(Plain::HELD), sent })
    }

    /// The queue that a spec describes, and the gate between it and its target.
    fn new<T: Target>(spec: &HostQueueSpec, target: &T) -> Result<(Waiting, Gate), HostError> {
        let waiting = match spec.is_plain() {
            true => Waiting::plain(target.depth()),
            false => Waiting::Block(Box::new(BlockQueue::new(spec, target)?)),
        };
        Ok((waiting, Gate::new(target, spec)))
    }

    fn len(&self) -> usize {
        match self {
            Waiting::Plain(plain) => plain.held.len(),
            Waiting::Block(queue) => queue.waiting(),
        }
    }

    /// Takes a piece, which goes on `at_once` where it may and nothing waits.
    #[inline(always)]
    fn issue<T: Target>(
        &mut self,
        now: Nanos,
        piece: Piece,
        target: &mut T,
        gate: &mut Gate,
        at_once: bool,
    ) -> u32 {
        match self {
            Waiting::Plain(plain) => {
                if at_once && plain.held.is_empty() && gate.lets_through(now, target) {
                    plain.submit(target, gate, now, piece);
                } else {
                    plain.held.push_back(piece);
                }
                1
            }
            Waiting::Block(queue) => queue.issue(now, piece, target),
        }
    }

    #[inline]
    fn settle<T: Target>(&mut self, now: Nanos, target: &mut T, gate: &mut Gate) {
        match self {
            Waiting::Plain(plain) => {
                while !plain.held.is_empty() && gate.lets_through(now, target) {
                    let piece = plain.held.pop_front().expect("there is one");
                    plain.submit(target, gate, now, piece);
                }
            }
            Waiting::Block(queue) => queue.settle(now, target, gate),
        }
    }

    #[inline]
    fn poll<T: Target>(
        &mut self,
        now: Nanos,
        target: &mut T,
        gate: &mut Gate,
        ended: &mut Completion,
        served: impl FnOnce(&Completion),
    ) -> Option<u32> {
        match self {
            Waiting::Plain(plain) => {
                *ended = target.poll_completion()?;
                gate.completed(now, ended.tag);
                served(ended);
                let ask = plain.sent[ended.tag.0 as usize];
                Some(ask)
            }
            Waiting::Block(queue) => queue.poll(now, target, gate, ended, served),
        }
    }

    #[inline]
    fn next_event(&self, is_shut: bool) -> Nanos {
        match self {
            Waiting::Plain(_) => Nanos::MAX,
            Waiting::Block(queue) => queue.next_event(is_shut),
        }
    }
}

impl Plain {
    /// Room for so many held requests before more is allocated.
    const HELD: usize = 256;

    #[inline(always)]
    fn submit<T: Target>(&mut self, target: &mut T, gate: &mut Gate, now: Nanos, piece: Piece) {
        let command = Command { urgent: piece.urgent, ..piece.request.into() };
        let tag = target.submit(now, command).expect("the target was seen to have room");
        gate.issued(now, tag);
        *at_tag(&mut self.sent, tag.0, 0) = piece.ask;
    }
}
