//! A closed load: a constant number of requests outstanding, with no think time.

use headstack_model::Instant;

use crate::load::{Issue, Load, Poll};
use crate::shape::Requests;
use crate::window::Window;
use crate::{Pick, Shape, ShapeError};

/// Requests of which `depth` are always outstanding. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Closed<P = Requests> {
    requests: P,
    window: Window,
}

impl Closed {
    /// `requests` requests of one shape in all, `depth` of them at a time.
    ///
    /// *Errors:* the depth is 0, or no request of that shape fits.
    pub fn new(shape: Shape, depth: u32, requests: u64, seed: u64) -> Result<Closed, ShapeError> {
        Closed::from_pick(Requests::new(shape, seed)?, depth, requests)
    }
}

impl<P: Pick> Closed<P> {
    /// `requests` requests from `pick`, `depth` of them at a time.
    ///
    /// *Errors:* the depth is 0.
    pub fn from_pick(pick: P, depth: u32, requests: u64) -> Result<Closed<P>, ShapeError> {
        Ok(Closed { requests: pick, window: Window::new(depth, requests)? })
    }
}

impl<P: Pick> Load for Closed<P> {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.window.open() {
            Ok(id) => Poll::Issue(Issue::new(0, self.requests.pick(now), id)),
            Err(poll) => poll,
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.window.close();
    }
}
