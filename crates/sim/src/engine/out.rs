//! The sink of a layer's call: it takes what the layer does, and the engine carries that out after the call.
//!
//! Effects of one layer keep their order, also where one of them leads to a further call of the layer.

use super::branch::{Branch, Effect, NodeId};
use crate::events::Events;
use crate::layer::{Completed, Submission};
use crate::link::ProcessorWork;
use crate::os::DeviceQueue;
use headstack_model::{Instant, Lbn};

/// How the request of a call is forwarded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    pub(super) child: u32,
    pub(super) lbn: Lbn,
    /// The layer's number for the request, or `NO_KEY`.
    pub(super) key: u32,
}

/// Marks a forwarded request whose answer the layer does not note.
pub(super) const NO_KEY: u32 = u32::MAX;

/// Takes what a layer does in a call. The engine carries it out after the call, in order.
#[derive(Debug)]
pub struct Out<'a> {
    pub(super) devices: &'a [DeviceQueue],
    pub(super) branches: &'a mut [Branch],
    pub(super) events: &'a mut Events,
    pub(super) number: usize,
    pub(super) port: u32,
    pub(super) forward: Option<Forward>,
    /// Whether the layer wants to be called after all requests of this time have arrived.
    pub(super) gathers: bool,
}

impl Out<'_> {
    /// The port at which the request of this call arrived: 0, except in a controller, which has a port for each drive.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Submits a request to a child, by the child's number from 0 on. Its answer comes to [`crate::Layer::complete`].
    #[inline]
    pub fn down(&mut self, child: u32, submission: Submission) {
        self.push(Effect::Down { child, submission });
    }

    /// Completes a request that came from above.
    #[inline]
    pub fn up(&mut self, completed: Completed) {
        self.push(Effect::Up(completed));
    }

    /// Sends the request that is being submitted on to a child, where it begins at block `lbn`, before any other effect. Its answer goes up by
    /// itself, with the request as it arrived here, so that nothing needs to be recorded. Call it at most once in [`crate::Layer::submit`].
    #[inline]
    pub fn forward(&mut self, child: u32, lbn: Lbn) {
        self.forward_noted(child, lbn, NO_KEY);
    }

    /// As [`Out::forward`]; [`crate::Layer::note`] gets the answer with the number `key` before it goes up. [`u32::MAX`] is no such number.
    #[inline]
    pub fn forward_noted(&mut self, child: u32, lbn: Lbn, key: u32) {
        self.forward = Some(Forward { child, lbn, key });
    }

    /// Sends a request that was submitted earlier, or a changed one in its place, on to a child. Its answer goes up by itself.
    #[inline]
    pub fn forward_held(&mut self, child: u32, submission: Submission) {
        self.push(Effect::ForwardHeld { child, submission });
    }

    /// Occupies the host's processor from now on, or from when it is free. [`crate::Layer::computed`] gets the end, with the layer's number
    /// for the work.
    #[inline]
    pub fn compute(&mut self, id: u32, work: ProcessorWork) {
        self.push(Effect::Compute { id, work });
    }

    /// Wakes the layer at this time, in place of the time set before; [`Instant::MAX`] is never.
    #[inline]
    pub fn wake_at(&mut self, at: Instant) {
        self.events.set(self.branches[self.number].event as usize, at);
    }

    /// Wakes the layer once all requests of this time have arrived, for a decision among them. The time of [`Out::wake_at`] stays.
    #[inline]
    pub fn wake_after_arrivals(&mut self) {
        self.gathers = true;
    }

    /// Sets the number of requests that the layer has not answered, if it counts them in its own way, such as after merging.
    #[inline]
    pub fn set_outstanding(&mut self, requests: usize) {
        self.branches[self.number].outstanding = Some(requests);
    }

    /// A child, for a choice among several.
    #[inline]
    pub fn child(&self, child: u32) -> ChildView<'_> {
        let node = self.branches[self.number].children[child as usize].node;
        ChildView { devices: self.devices, branches: self.branches, node }
    }

    #[inline]
    fn push(&mut self, effect: Effect) {
        self.branches[self.number].effects.push_back(effect);
    }
}

/// A layer's view of one of its children.
#[derive(Clone, Copy, Debug)]
pub struct ChildView<'a> {
    devices: &'a [DeviceQueue],
    branches: &'a [Branch],
    node: NodeId,
}

impl ChildView<'_> {
    /// Requests that it has not answered.
    pub fn outstanding(&self) -> usize {
        match self.branch() {
            Some(branch) => branch.outstanding.unwrap_or(branch.in_flight),
            None => self.devices[self.node as usize].outstanding(),
        }
    }

    /// Cylinders between the arm of its (first) disk and a block.
    pub fn cylinders_to(&self, lbn: Lbn) -> u32 {
        self.device().cylinders_to(lbn)
    }

    /// Whether its (first) disk has died.
    pub fn is_dead(&self, now: Instant) -> bool {
        self.device().device().has_died(now)
    }

    fn branch(&self) -> Option<&Branch> {
        Some(&self.branches[(self.node as usize).checked_sub(self.devices.len())?])
    }

    fn device(&self) -> &DeviceQueue {
        &self.devices[self.branch().map_or(self.node, |branch| branch.device) as usize]
    }
}
