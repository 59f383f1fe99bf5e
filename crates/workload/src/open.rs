//! An open load: requests come when they come, whether or not earlier ones are done.

use headstack_model::Nanos;
use rand_pcg::Pcg64Mcg;

use crate::dist::{Distribution, Sampler};
use crate::shape::{Requests, generator};
use crate::window::Window;
use crate::{Issue, Load, Poll, Shape, ShapeError};

/// Requests of one shape that come in time. The first comes after one gap. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Open {
    requests: Requests,
    window: Window,
    gaps: Sampler<Nanos>,
    random: Pcg64Mcg,
    due: Nanos,
}

impl Open {
    /// `requests` requests in all, spaced as `gaps` says.
    ///
    /// *Errors:* the gaps cannot be drawn, or no request of that shape fits.
    pub fn new(
        shape: Shape,
        gaps: &Distribution<Nanos>,
        requests: u64,
        seed: u64,
    ) -> Result<Open, ShapeError> {
        // A generator of its own, so that the same requests come whatever their spacing.
        let mut random = generator(!seed);
        let gaps = gaps.sampler()?;
        let due = gaps.draw(&mut random);
        let window = Window::new(u32::MAX, requests)?;
        Ok(Open { requests: Requests::new(shape, seed)?, window, gaps, random, due })
    }
}

impl Load for Open {
    fn poll(&mut self, now: Nanos) -> Poll {
        match self.window.open_at(now, self.due) {
            Ok(id) => {
                self.due = Nanos(self.due.0.saturating_add(self.gaps.draw(&mut self.random).0));
                Poll::Issue(Issue::new(0, self.requests.next(), id))
            }
            Err(poll) => poll,
        }
    }

    fn handle_completion(&mut self, _now: Nanos, _id: u64) {
        self.window.close();
    }
}
