//! The queue in front of a target (a drive, or a controller's port), with the limit on the target's commands.

use super::block::BlockQueue;
use super::dispatch::DispatchLimit;
use super::target::Target;
use super::{HostQueueSpec, host_fault};
use crate::device::{Command, Completion};
use crate::layer::Submission;
use headstack_model::Instant;
use headstack_model::spec::Fault;
use headstack_policy::Guard;
use headstack_policy::order::Order;
use std::collections::VecDeque;

#[derive(Debug)]
enum Waiting {
    /// In the order of arrival; nothing is merged or split, so that a command has the number of its request.
    Plain(VecDeque<Submission>),
    Block(Box<BlockQueue>),
}

#[derive(Debug)]
pub(super) struct TargetQueue {
    waiting: Waiting,
    limit: DispatchLimit,
}

impl TargetQueue {
    /// A queue that only holds requests that the target cannot accept.
    pub(super) fn plain<T: Target>(target: &T) -> TargetQueue {
        TargetQueue { waiting: Waiting::plain(), limit: DispatchLimit::of_target(target) }
    }

    /// The queue that a spec describes.
    ///
    /// *Errors:* a key of the spec is wrong.
    pub(super) fn new<T: Target>(spec: &HostQueueSpec, target: &T) -> Result<TargetQueue, Fault> {
        let waiting = if spec.is_plain() {
            Waiting::plain()
        } else {
            Waiting::Block(Box::new(BlockQueue::new(spec, target)?))
        };
        Ok(TargetQueue { waiting, limit: DispatchLimit::new(target, spec) })
    }

    pub(super) fn guard(&self) -> Option<&Guard> {
        self.limit.guard()
    }

    /// Replaces the order by which the queue chooses with a program's own.
    ///
    /// *Errors:* the queue has no order.
    pub(super) fn set_order(&mut self, order: Box<dyn Order>) -> Result<(), Fault> {
        let is_set = match &mut self.waiting {
            Waiting::Block(queue) => queue.set_order(order),
            Waiting::Plain(_) => false,
        };
        let fault = "an own order needs one in whose place it comes; `fcfs` is one";
        if is_set { Ok(()) } else { Err(host_fault("queue.order", fault)) }
    }

    pub(super) fn len(&self) -> usize {
        match &self.waiting {
            Waiting::Plain(held) => held.len(),
            Waiting::Block(queue) => queue.waiting(),
        }
    }

    /// Accepts a request; if `at_once`, what the queue need not gather goes to the target immediately where it may be sent.
    #[inline(always)]
    pub(super) fn submit<T: Target>(
        &mut self,
        now: Instant,
        submission: Submission,
        target: &mut T,
        at_once: bool,
    ) {
        match &mut self.waiting {
            Waiting::Plain(held) => {
                if at_once && held.is_empty() && self.limit.lets_through(now, target) {
                    send(target, &mut self.limit, now, submission);
                } else {
                    held.push_back(submission);
                }
            }
            Waiting::Block(queue) => {
                queue.submit(now, submission, target);
                if at_once && queue.sends_at_once(&submission) {
                    queue.settle(now, target, &mut self.limit);
                }
            }
        }
    }

    #[inline]
    pub(super) fn settle<T: Target>(&mut self, now: Instant, target: &mut T) {
        match &mut self.waiting {
            Waiting::Plain(held) => {
                while !held.is_empty() && self.limit.lets_through(now, target) {
                    let submission = held.pop_front().expect("the queue is not empty");
                    send(target, &mut self.limit, now, submission);
                }
            }
            Waiting::Block(queue) => queue.settle(now, target, &mut self.limit),
        }
    }

    /// The next completed request, with its completion in `ended`. Calls `served` with each command of the target.
    #[inline]
    pub(super) fn poll<T: Target>(
        &mut self,
        now: Instant,
        target: &mut T,
        ended: &mut Completion,
        mut served: impl FnMut(&Completion),
    ) -> Option<u32> {
        match &mut self.waiting {
            Waiting::Plain(_) => {
                if !target.poll_into(ended) {
                    return None;
                }
                self.limit.completed(now, ended.tag);
                served(ended);
                Some(ended.number)
            }
            Waiting::Block(queue) => queue.poll(now, target, &mut self.limit, ended, served),
        }
    }

    /// When to settle if nothing else happens before; `Instant::MAX` for never.
    #[inline]
    pub(super) fn next_event<T: Target>(&self, target: &T) -> Instant {
        match &self.waiting {
            Waiting::Plain(_) => Instant::MAX,
            Waiting::Block(queue) => queue.next_event(self.limit.is_shut(target)),
        }
    }

    /// Whether no waiting request may be sent before one of the target's commands is done.
    #[inline]
    pub(super) fn is_blocked<T: Target>(&self, target: &T) -> bool {
        match &self.waiting {
            Waiting::Plain(held) => held.is_empty() || self.limit.is_shut(target),
            Waiting::Block(_) => false,
        }
    }

    /// Whether requests wait here in order of arrival.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        matches!(&self.waiting, Waiting::Plain(held) if !held.is_empty())
    }
}

impl Waiting {
    /// Held requests for which memory is allocated at the start.
    const HELD: usize = 256;

    fn plain() -> Waiting {
        Waiting::Plain(VecDeque::with_capacity(Waiting::HELD))
    }
}

/// Sends a request to the target as a command of its own.
#[inline(always)]
fn send<T: Target>(target: &mut T, limit: &mut DispatchLimit, now: Instant, submission: Submission) {
    let Submission { id: number, request, urgent, limit: limit_number, resets_zone, .. } = submission;
    let command = Command { number, urgent, limit: limit_number, resets_zone, ..request.into() };
    let tag = target.submit(now, command).expect("the limit keeps to the target's depth");
    limit.issued(now, tag);
}
