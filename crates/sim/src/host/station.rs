//! A device and the host's queue before it.

use super::block::BlockQueue;
use super::{HostError, HostSpec};
use crate::device::{Command, Completion, Device, Tag};
use crate::link::Links;
use headstack_model::{Nanos, Request};
use std::collections::VecDeque;

/// What the engine asks of a station: a request, or one device's part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The engine's number for what it belongs to.
    pub(crate) ask: u32,
    pub(crate) request: Request,
    pub(crate) source: u32,
    pub(crate) urgent: bool,
    /// Whether somebody waits for it.
    pub(crate) sync: bool,
}

/// A queue that keeps the order of arrival, merges nothing and splits nothing.
#[derive(Debug)]
struct Plain {
    held: VecDeque<Piece>,
    /// What each outstanding tag is for.
    sent: Vec<u32>,
}

#[derive(Debug)]
enum Waiting {
    Plain(Plain),
    Block(Box<BlockQueue>),
}

/// A device and what the host holds for it.
#[derive(Debug)]
pub(crate) struct Station {
    device: Device,
    depth: usize,
    waiting: Waiting,
    /// Whether the device shares links, which it has at hand only while it settles or does what is due.
    shares: bool,
}

impl Station {
    /// A station without a host: what the device cannot take waits in order of arrival.
    pub(crate) fn plain(device: Device) -> Station {
        let depth = device.depth();
        let plain = Plain { held: VecDeque::with_capacity(Plain::HELD), sent: Vec::with_capacity(2 * depth) };
        Station { device, depth, waiting: Waiting::Plain(plain), shares: false }
    }

    pub(crate) fn new(device: Device, host: &HostSpec) -> Result<Station, HostError> {
        let queue = &host.queue;
        let depth = queue.depth.map_or(device.depth(), |depth| device.depth().min(depth as usize));
        let mut station = Station::plain(device);
        station.depth = depth;
        if !queue.is_plain() {
            station.waiting = Waiting::Block(Box::new(BlockQueue::new(queue, &station.device)?));
        }
        Ok(station)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Commands that the device has and requests that wait for it.
    pub(crate) fn outstanding(&self) -> usize {
        let waiting = match &self.waiting {
            Waiting::Plain(plain) => plain.held.len(),
            Waiting::Block(queue) => queue.waiting(),
        };
        waiting + self.device.outstanding()
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

    /// Takes a piece; says in how many parts it will come back. [`Station::settle`] must follow at the same time.
    #[inline]
    pub(crate) fn issue(&mut self, now: Nanos, piece: Piece) -> u32 {
        match &mut self.waiting {
            Waiting::Plain(plain) => {
                if plain.held.is_empty() && self.device.outstanding() < self.depth && !self.shares {
                    plain.submit(&mut self.device, now, piece);
                } else {
                    plain.held.push_back(piece);
                }
                1
            }
            Waiting::Block(queue) => queue.issue(now, piece, &self.device),
        }
    }

    /// Gives the device what may go now.
    #[inline]
    pub(crate) fn settle(&mut self, now: Nanos) {
        match &mut self.waiting {
            Waiting::Plain(plain) => {
                while !plain.held.is_empty() && self.device.outstanding() < self.depth {
                    let piece = plain.held.pop_front().expect("there is one");
                    plain.submit(&mut self.device, now, piece);
                }
            }
            Waiting::Block(queue) => queue.settle(now, &mut self.device, self.depth),
        }
    }

    /// Does all that is due.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        self.device.handle_timeout(now);
    }

    /// The next ask of which a piece came back, and in `ended` how. `served` sees each command. [`Station::settle`] must
    /// follow once there are no more.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Nanos,
        ended: &mut Completion,
        served: impl FnOnce(&Completion),
    ) -> Option<u32> {
        match &mut self.waiting {
            Waiting::Plain(plain) => {
                *ended = self.device.poll_completion()?;
                served(ended);
                let ask = plain.sent[ended.tag.0 as usize];
                Some(ask)
            }
            Waiting::Block(queue) => queue.poll(now, &mut self.device, ended, served),
        }
    }

    /// When, from `now` on, the station wants to be looked at; `Nanos::MAX` when never.
    #[inline]
    pub(crate) fn next_event(&self, now: Nanos) -> Nanos {
        if self.device.has_completions() {
            return now;
        }
        let device = self.device.poll_timeout().unwrap_or(Nanos::MAX);
        match &self.waiting {
            Waiting::Plain(_) => device,
            Waiting::Block(queue) => device.min(queue.next_event(&self.device, self.depth)),
        }
    }
}

impl Plain {
    /// Room for so many held requests before more is allocated.
    const HELD: usize = 256;

    fn submit(&mut self, device: &mut Device, now: Nanos, piece: Piece) {
        let command = Command { urgent: piece.urgent, ..piece.request.into() };
        let Tag(tag) = device.submit(now, command).expect("the device was seen to have room");
        *at_tag(&mut self.sent, tag, 0) = piece.ask;
    }
}

/// The place of a tag in a table of them. There are more tags than the depth only while completions wait to be taken.
#[inline]
pub(super) fn at_tag<T: Clone>(table: &mut Vec<T>, tag: u32, nothing: T) -> &mut T {
    let index = tag as usize;
    if index >= table.len() {
        table.resize(index + 1, nothing);
    }
    &mut table[index]
}
