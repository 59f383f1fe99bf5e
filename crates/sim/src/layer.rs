//! The request layer: the one interface of everything that serves requests.
//!
//! A page cache, a stream scheduler, an array, a queue in front of a controller and a controller are layers. They are stacked on
//! each other, and on the devices with their queues. The engine ([`crate::Engine`]) carries requests down and answers up, and
//! calls each layer when it has something to do. A layer knows no other layer: it passes a request to a child by the child's
//! number, and answers a request by the request's number. A program puts layers of its own anywhere in a rig with
//! [`crate::Engine::insert`].
//!
//! *Time:* a layer has no clock. Each call has the time, which never decreases; [`Layer::next_event`] returns when to call again.
//! A request may wait between its submission and the time in [`Completion::submitted`]. The engine adds this wait to the answer as
//! `queued`, so that the parts of the time split add up at every level.

use crate::device::Completion;
use crate::link::ProcessorWork;
use headstack_model::{Instant, Lbn, Request};
use headstack_workload::ReadAdvice;
use std::any::Any;
use std::fmt::Debug;

/// A request on its way from a layer to one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The sender's number for it, which the answer repeats. Numbers of requests in flight need not differ.
    pub id: u32,
    /// The request itself.
    pub request: Request,
    /// The process, job or stream that issued it; `u32::MAX` for none.
    pub source: u32,
    /// Whether it is urgent: queues that obey priorities serve it before others.
    pub urgent: bool,
    /// Whether an elevator of the host serves it only while no other request waits, if it is not urgent.
    pub idle: bool,
    /// The number of its command duration limit; 0 for none. Caches do not pass it on.
    pub limit: u8,
    /// Whether a process waits for it, as for a read or for a flush; not for a write-back.
    pub sync: bool,
    /// Whether it bypasses the host's page cache (`O_DIRECT`).
    pub direct: bool,
    /// The program's advice about its reads. Caches do not pass it on.
    pub advice: ReadAdvice,
    /// Whether the zone of a write is reset before it. Caches and schedulers of streams do not pass it on.
    pub resets_zone: bool,
}

impl Submission {
    /// A request that a process waits for, of no source, which bypasses the page cache.
    pub fn new(id: u32, request: Request) -> Submission {
        let (source, advice) = (u32::MAX, ReadAdvice::Normal);
        Submission {
            id,
            request,
            source,
            urgent: false,
            idle: false,
            limit: 0,
            sync: true,
            direct: true,
            advice,
            resets_zone: false,
        }
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The number that the request was submitted with.
    pub id: u32,
    /// Its completion. The engine sets `request`, and moves `submitted` back to the submission.
    pub completion: Completion,
    /// Whether a page cache or a stream scheduler answered it without waiting for a device.
    pub cached: bool,
}

/// An effect of a layer, to be carried out by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Submit a request to a child, by the child's number.
    Down {
        /// The number of the child, from 0 on.
        child: u32,
        /// The request.
        submission: Submission,
    },
    /// Complete a request that came from above.
    Up(Completed),
    /// Occupy the host's processor from now on, or from when it is free. The engine answers at once with [`Layer::computed`].
    Compute {
        /// The layer's number for the work.
        id: u32,
        /// The work.
        work: ProcessorWork,
    },
}

/// A request that a layer passed down; see [`Layer::pass_down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedRequest {
    /// The layer's number for it.
    pub key: u32,
    /// Where it begins at child 0; the rest of it stays the same.
    pub lbn: Lbn,
}

/// A layer's view of its children, for a choice among them.
pub trait Below {
    /// Requests that a child has not answered.
    fn outstanding(&self, child: u32) -> usize;
    /// Cylinders between the arm of a child's (first) disk and a block.
    fn cylinders_to(&self, child: u32, lbn: Lbn) -> u32;
    /// Whether a child's (first) disk has died.
    fn is_dead(&self, _child: u32, _now: Instant) -> bool {
        false
    }
}

/// Serves requests with the help of the layers below it.
pub trait Layer: Any + Debug + Send {
    /// Accepts a request that arrived at port `port`: 0, except in a controller, which has a port for each drive.
    fn submit(&mut self, now: Instant, port: u32, submission: Submission, below: &dyn Below);

    /// Accepts a request in place of [`Layer::submit`]. A layer may do so if it needs nothing but one request to child 0, equal except perhaps
    /// for the first block, if that request's answer goes up unchanged, and if [`Layer::next_event`] stays the same. This saves a record of the
    /// request and both effects, where a layer does so with nearly all requests. `None`: the request was not accepted.
    fn pass_down(&mut self, _now: Instant, _request: &Request) -> Option<PassedRequest> {
        None
    }

    /// A request that the layer passed down was answered. Returns whether the layer has effects, or another next event.
    fn passed_up(&mut self, _now: Instant, _key: u32, _request: &Request, _completion: &Completion) -> bool {
        false
    }

    /// Accepts the answer to a request that was submitted to a child.
    fn complete(&mut self, now: Instant, child: u32, answer: &Completed);

    /// Carries out all that is due.
    fn handle_timeout(&mut self, now: Instant);

    /// The processor will have done the work `id` of [`Effect::Compute`] at `until`.
    fn computed(&mut self, _now: Instant, _id: u32, _until: Instant) {}

    /// The next effect; the engine calls this after each of the calls above, until there is none.
    fn poll(&mut self, now: Instant) -> Option<Effect>;

    /// When to call [`Layer::handle_timeout`]; [`Instant::MAX`] for never.
    fn next_event(&self) -> Instant;

    /// Whether the layer decides what to send down only after all requests of the same time have arrived, as a block queue does.
    /// The engine then calls [`Layer::settle`] after them.
    fn gathers(&self) -> bool {
        false
    }

    /// Decides what to send down; see [`Layer::gathers`].
    fn settle(&mut self, _now: Instant) {}

    /// Requests that the layer has not answered, if it counts them in its own way, such as after merging.
    fn outstanding(&self) -> Option<usize> {
        None
    }
}

/// Requests that a layer forwards unchanged, in addition to those that it serves.
#[derive(Debug, Default)]
pub(crate) struct PassThrough {
    ids: slab::Slab<u32>,
}

impl PassThrough {
    /// Numbers from here on are those of forwarded requests.
    const FIRST: u32 = 1 << 31;

    pub(crate) fn submit(&mut self, submission: Submission) -> Effect {
        let id = PassThrough::FIRST + self.ids.insert(submission.id) as u32;
        Effect::Down { child: 0, submission: Submission { id, ..submission } }
    }

    pub(crate) fn complete(&mut self, answer: &Completed) -> Option<Effect> {
        let key = answer.id.checked_sub(PassThrough::FIRST)?;
        Some(Effect::Up(Completed { id: self.ids.remove(key as usize), ..*answer }))
    }
}
