//! The layers between a node's scheduler and its disk.
//!
//! Each is a [`DiskLayer`], as in the simulator; those of the simulator that know only that trait serve here, too. The bytes are not in
//! the requests: a command names the buffer of its bytes ([`TransferBuffer`](headstack_streams::streams::TransferBuffer)), and what a layer
//! reads or writes itself has a buffer here.

use super::bytes::pages;
use super::messages::Ended;
use crate::BlockError;
use headstack_model::Instant;
use headstack_streams::streams::{Command, DiskLayer, LayerSink};
use memmap2::MmapMut;
use slab::Slab;
use std::any::Any;
use std::collections::VecDeque;

/// A layer in front of a node's disk.
pub type NodeLayer = Box<dyn DiskLayer<NodeOut>>;

/// How a command ended.
pub(super) type CommandEnd = Result<Ended, BlockError>;

/// What a layer does, until it is carried out.
#[derive(Debug)]
enum NodeEffect {
    Down(Command),
    Up(u32, CommandEnd),
}

/// When a layer is woken.
#[derive(Clone, Copy, Debug)]
struct WakeTimes {
    at: Instant,
    after_arrivals: bool,
}

/// Takes what a node's layer does in a call.
#[derive(Debug, Default)]
pub struct NodeOut {
    buffers: Slab<MmapMut>,
    /// What layers did, with their places in the stack.
    effects: VecDeque<(usize, NodeEffect)>,
    /// The place of the layer that is called.
    place: usize,
    wakes: Vec<WakeTimes>,
}

impl NodeOut {
    /// A buffer of this size in whole pages, until [`NodeOut::free`].
    pub(super) fn allocate(&mut self, bytes: usize) -> u32 {
        self.buffers.insert(pages(bytes)) as u32
    }

    /// Returns a buffer that no command uses any more.
    pub(super) fn free(&mut self, buffer: u32) {
        self.buffers.remove(buffer as usize);
    }

    /// A buffer of a layer.
    pub(super) fn buffer(&mut self, buffer: u32) -> &mut [u8] {
        &mut self.buffers[buffer as usize]
    }
}

impl LayerSink for NodeOut {
    type Request = Command;
    type End = CommandEnd;

    fn down(&mut self, command: Command) {
        self.effects.push_back((self.place, NodeEffect::Down(command)));
    }

    fn up(&mut self, id: u32, end: CommandEnd) {
        self.effects.push_back((self.place, NodeEffect::Up(id, end)));
    }

    fn wake_at(&mut self, at: Instant) {
        self.wakes[self.place].at = at;
    }

    fn wake_after_arrivals(&mut self) {
        self.wakes[self.place].after_arrivals = true;
    }
}

/// The layers of a disk, from the scheduler down.
#[derive(Debug, Default)]
pub(super) struct NodeStack {
    layers: Vec<NodeLayer>,
    out: NodeOut,
    /// Commands that have passed all layers, for the disk.
    starts: VecDeque<Command>,
    /// Commands of the scheduler that have ended.
    ends: VecDeque<(u32, CommandEnd)>,
}

impl NodeStack {
    /// Adds a layer below the others.
    pub(super) fn push(&mut self, layer: NodeLayer) {
        let at = layer.first_wake();
        self.out.wakes.push(WakeTimes { at, after_arrivals: at == Instant::ZERO });
        self.layers.push(layer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The first layer of a type.
    pub(super) fn layer<L: DiskLayer<NodeOut>>(&self) -> Option<&L> {
        self.layers.iter().find_map(|layer| (layer.as_ref() as &dyn Any).downcast_ref())
    }

    pub(super) fn layer_mut<L: DiskLayer<NodeOut>>(&mut self) -> Option<&mut L> {
        self.layers.iter_mut().find_map(|layer| (layer.as_mut() as &mut dyn Any).downcast_mut())
    }

    pub(super) fn bytes(&self, buffer: u32) -> &[u8] {
        &self.out.buffers[buffer as usize]
    }

    pub(super) fn buffer(&mut self, buffer: u32) -> &mut [u8] {
        self.out.buffer(buffer)
    }

    /// Accepts a command of the scheduler.
    pub(super) fn submit(&mut self, now: Instant, command: Command) {
        self.descend(now, 0, command);
        self.carry_out(now);
    }

    /// Accepts the end of a command of the disk.
    pub(super) fn end(&mut self, now: Instant, id: u32, end: CommandEnd) {
        self.ascend(now, self.layers.len(), id, end);
        self.carry_out(now);
    }

    /// Begins an orderly end of all layers.
    pub(super) fn close(&mut self, now: Instant) {
        self.call_each(now, |_| true, |layer, now, out| layer.close(now, out));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.layers.iter().all(|layer| layer.is_closed())
    }

    /// Wakes the layers that are due.
    pub(super) fn wake(&mut self, now: Instant) {
        let is_due = |wakes: &mut WakeTimes| {
            let is_due = wakes.at <= now;
            wakes.at = if is_due { Instant::MAX } else { wakes.at };
            is_due
        };
        self.call_each(now, is_due, |layer, now, out| layer.wake(now, out));
    }

    /// Wakes the layers that wait until all that happens now has reached them; returns whether there were any.
    pub(super) fn wake_after_arrivals(&mut self, now: Instant) -> bool {
        let waits = |wakes: &mut WakeTimes| std::mem::take(&mut wakes.after_arrivals);
        self.call_each(now, waits, |layer, now, out| layer.wake(now, out))
    }

    /// When to call [`NodeStack::wake`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.out.wakes.iter().map(|wakes| wakes.at).min().filter(|at| *at < Instant::MAX)
    }

    /// The next command for the disk.
    pub(super) fn poll_start(&mut self) -> Option<Command> {
        self.starts.pop_front()
    }

    /// The next command of the scheduler that has ended.
    pub(super) fn poll_end(&mut self) -> Option<(u32, CommandEnd)> {
        self.ends.pop_front()
    }

    /// Calls the layers that `is_meant` selects, and carries out what they do; returns whether there were any.
    fn call_each(
        &mut self,
        now: Instant,
        mut is_meant: impl FnMut(&mut WakeTimes) -> bool,
        call: impl Fn(&mut NodeLayer, Instant, &mut NodeOut),
    ) -> bool {
        let mut any = false;
        for place in 0..self.layers.len() {
            if is_meant(&mut self.out.wakes[place]) {
                any = true;
                self.out.place = place;
                call(&mut self.layers[place], now, &mut self.out);
                self.carry_out(now);
            }
        }
        any
    }

    /// Carries out what layers did, and what follows from it.
    fn carry_out(&mut self, now: Instant) {
        while let Some((place, effect)) = self.out.effects.pop_front() {
            match effect {
                NodeEffect::Down(command) => self.descend(now, place + 1, command),
                NodeEffect::Up(id, end) => self.ascend(now, place, id, end),
            }
        }
    }

    /// Submits a command to the layer at a place, or to the disk below all layers.
    fn descend(&mut self, now: Instant, place: usize, command: Command) {
        let Some(layer) = self.layers.get_mut(place) else { return self.starts.push_back(command) };
        self.out.place = place;
        layer.submit(now, command, &mut self.out);
    }

    /// Reports an end to the layer above a place, or to the scheduler.
    fn ascend(&mut self, now: Instant, place: usize, id: u32, end: CommandEnd) {
        let Some(above) = place.checked_sub(1) else { return self.ends.push_back((id, end)) };
        self.out.place = above;
        self.layers[above].complete(now, id, end, &mut self.out);
    }
}
