//! Layers in front of one disk that serve in virtual and in real time alike.
//!
//! The simulator's engine carries a request down a tree of layers with a time split, the node's core carries one down a list of layers
//! with bytes. A [`DiskLayer`] is written against neither: it knows a request by what [`LayerRequest`] says of it, an end by
//! [`LayerEnd`], and does everything through its [`LayerSink`]. It has no clock: each call has the time, which never decreases.

use super::messages::{Command, RequestKind};
use headstack_model::{Instant, Lbn, Op, Request};
use std::any::Any;
use std::fmt::Debug;

/// A request on its way down.
pub trait LayerRequest: Copy + Debug + Send + 'static {
    /// Its number, which its end repeats. The numbers of requests that a layer has differ.
    fn id(&self) -> u32;

    /// The request in blocks of this size; `None` if it is neither a read nor a write.
    fn blocks(&self, sector_bytes: u32) -> Option<Request>;
}

/// How a request ended.
pub trait LayerEnd {
    /// Whether it succeeded.
    fn is_good(&self) -> bool;
}

/// Takes what a layer does in a call. The owner of the layers carries it out after the call, in order.
pub trait LayerSink {
    /// Requests of this stack.
    type Request: LayerRequest;
    /// Their ends.
    type End: LayerEnd;

    /// Sends a request to what is below the layer. Its end comes to [`DiskLayer::complete`] with the request's number.
    fn down(&mut self, request: Self::Request);

    /// Ends the request that came from above with this number. What the layer sent down for it must have ended.
    fn up(&mut self, id: u32, end: Self::End);

    /// Wakes the layer at this time, in place of the time set before; [`Instant::MAX`] is never.
    fn wake_at(&mut self, at: Instant);

    /// Wakes the layer once all that happens at this time has reached it, for a choice among requests.
    fn wake_after_arrivals(&mut self);
}

/// Serves requests with the help of what is below it. Without methods of its own, it passes on all requests and their ends.
pub trait DiskLayer<S: LayerSink>: Any + Debug + Send {
    /// Accepts a request.
    fn submit(&mut self, _now: Instant, request: S::Request, out: &mut S) {
        out.down(request);
    }

    /// Accepts the end of a request that the layer sent down.
    fn complete(&mut self, _now: Instant, id: u32, end: S::End, out: &mut S) {
        out.up(id, end);
    }

    /// Carries out all that is due.
    fn wake(&mut self, _now: Instant, _out: &mut S) {}

    /// When to wake the layer if nothing has called it before; [`Instant::MAX`] for never.
    fn first_wake(&self) -> Instant {
        Instant::MAX
    }

    /// Begins an orderly end: no request comes any more, and none is pending.
    fn close(&mut self, _now: Instant, _out: &mut S) {}

    /// Whether nothing is left to do for an orderly end.
    fn is_closed(&self) -> bool {
        true
    }
}

impl<T, E> LayerEnd for Result<T, E> {
    fn is_good(&self) -> bool {
        self.is_ok()
    }
}

impl LayerRequest for Command {
    fn id(&self) -> u32 {
        self.id
    }

    fn blocks(&self, sector_bytes: u32) -> Option<Request> {
        let (op, offset, bytes, fua) = match self.kind {
            RequestKind::Read { offset, bytes, fua } => (Op::Read, offset, bytes, fua),
            RequestKind::Write { offset, bytes, fua } => (Op::Write, offset, bytes, fua),
            _ => return None,
        };
        let sector = u64::from(sector_bytes);
        let lbn = offset / sector;
        let sectors = u32::try_from((offset + bytes).div_ceil(sector) - lbn).ok()?;
        Some(Request { op, lbn: Lbn(lbn), sectors, fua })
    }
}
