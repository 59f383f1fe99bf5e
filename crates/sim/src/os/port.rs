//! The host's queue in front of a controller: it feeds a port of the controller, which represents a drive. The same queue in front of a
//! concatenation feeds a disk with several arms.

use super::HostQueueSpec;
use super::host_fault;
use super::queue::TargetQueue;
use super::target::Target;
use crate::device::{Command, Completion, QueueFull, Tag};
use crate::layer::{Completed, Layer, Out, Submission};
use headstack_model::Instant;
use headstack_model::spec::Fault;
use headstack_policy::Guard;
use headstack_policy::elevator::DiskMap;
use headstack_policy::order::Order;
use slab::Slab;
use std::collections::VecDeque;

/// Commands on their way to a controller, and completed ones.
#[derive(Debug)]
struct Port {
    sectors: u64,
    sector_bytes: u32,
    depth: usize,
    outstanding: usize,
    arm_firsts: Vec<u64>,
    /// The number of the command of each tag in use.
    tags: Slab<u32>,
    sent: VecDeque<(Tag, Command)>,
    done: VecDeque<Completion>,
}

impl Target for Port {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn arm_firsts(&self) -> &[u64] {
        &self.arm_firsts
    }

    fn submit(&mut self, _now: Instant, command: Command) -> Result<Tag, QueueFull> {
        if self.outstanding == self.depth {
            return Err(QueueFull);
        }
        self.outstanding += 1;
        let tag = Tag(self.tags.insert(command.number) as u32);
        self.sent.push_back((tag, command));
        Ok(tag)
    }

    fn poll_into(&mut self, ended: &mut Completion) -> bool {
        let Some(completion) = self.done.pop_front() else { return false };
        let number = self.tags.remove(completion.tag.0 as usize);
        *ended = Completion { number, ..completion };
        true
    }

    fn map(&self) -> Result<Box<dyn DiskMap>, Fault> {
        let message = "a controller stands before the drive, and chooses and caches by itself";
        Err(host_fault("queue.knows", message))
    }
}

#[derive(Debug)]
pub(crate) struct PortQueue {
    port: Port,
    queue: TargetQueue,
}

impl PortQueue {
    /// A queue for a port that accepts `depth` commands and represents a drive of `sectors` blocks of `sector_bytes`, whose arms begin at
    /// these blocks; none for one arm.
    ///
    /// *Errors:* a key of the queue is invalid.
    pub(crate) fn new(
        sectors: u64,
        sector_bytes: u32,
        depth: usize,
        arm_firsts: &[u64],
        queue: &HostQueueSpec,
    ) -> Result<PortQueue, Fault> {
        let (tags, sent, done) = (Slab::new(), VecDeque::new(), VecDeque::new());
        let arm_firsts = arm_firsts.to_vec();
        let port = Port { sectors, sector_bytes, depth, outstanding: 0, arm_firsts, tags, sent, done };
        Ok(PortQueue { queue: TargetQueue::new(queue, &port)?, port })
    }

    /// Commands that the port accepts.
    pub(crate) fn depth(&self) -> usize {
        self.port.depth
    }

    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.queue.guard()
    }

    pub(crate) fn set_order(&mut self, order: Box<dyn Order>) -> Result<(), Fault> {
        self.queue.set_order(order)
    }

    fn set_times(&self, out: &mut Out<'_>) {
        out.set_outstanding(self.queue.len() + self.port.outstanding);
        out.wake_at(self.queue.next_event(&self.port));
    }
}

impl Layer for PortQueue {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        self.queue.submit(now, submission, &mut self.port, true);
        self.set_times(out);
        out.wake_after_arrivals();
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.port.outstanding -= 1;
        self.port.done.push_back(Completion { tag: Tag(answer.id), ..answer.completion });
        let mut completion = answer.completion;
        while let Some(id) = self.queue.poll(now, &mut self.port, &mut completion, |_| {}) {
            out.up(Completed { id, completion, cached: false });
        }
        self.set_times(out);
        out.wake_after_arrivals();
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        self.queue.settle(now, &mut self.port);
        while let Some((Tag(id), command)) = self.port.sent.pop_front() {
            let Command { request, urgent, limit, resets_zone, .. } = command;
            out.down(0, Submission { urgent, limit, resets_zone, ..Submission::new(id, request) });
        }
        self.set_times(out);
    }
}
