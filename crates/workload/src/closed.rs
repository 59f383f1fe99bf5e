//! A closed load: always so many requests outstanding, with no think time.

use headstack_model::Nanos;

use crate::shape::Requests;
use crate::window::Window;
use crate::{Issue, Load, Poll, Shape, ShapeError};

/// Requests of one shape, always `depth` of them outstanding. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Closed {
    requests: Requests,
    window: Window,
}

impl Closed {
    /// `requests` requests in all, `depth` of them at a time.
    ///
    /// *Errors:* the depth is 0, or no request of that shape fits.
    pub fn new(shape: Shape, depth: u32, requests: u64, seed: u64) -> Result<Closed, ShapeError> {
        Ok(Closed { requests: Requests::new(shape, seed)?, window: Window::new(depth, requests)? })
    }
}

impl Load for Closed {
    fn poll(&mut self, _now: Nanos) -> Poll {
        match self.window.open() {
            Ok(id) => Poll::Issue(Issue::new(0, self.requests.next(), id)),
            Err(poll) => poll,
        }
    }

    fn handle_completion(&mut self, _now: Nanos, _id: u64) {
        self.window.close();
    }
}
