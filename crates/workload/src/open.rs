//! An open load: requests arrive at their own times, whether or not earlier ones are done.

use headstack_model::{Instant, Nanos};
use rand_pcg::Pcg64Mcg;

use crate::dist::{Distribution, Sampler};
use crate::load::{Issue, Load, Poll};
use crate::shape::{Requests, generator};
use crate::window::Window;
use crate::{Pick, Shape, ShapeError};

/// Requests at given times. The first arrives after one gap. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Open<P = Requests> {
    requests: P,
    window: Window,
    gaps: Sampler<Nanos>,
    random: Pcg64Mcg,
    due: Instant,
}

impl Open {
    /// `requests` requests of one shape in all, spaced as `gaps` says.
    ///
    /// *Errors:* the gaps cannot be drawn, or no request of that shape fits.
    pub fn new(
        shape: Shape,
        gaps: &Distribution<Nanos>,
        requests: u64,
        seed: u64,
    ) -> Result<Open, ShapeError> {
        Open::from_pick(Requests::new(shape, seed)?, gaps, requests, seed)
    }
}

impl<P: Pick> Open<P> {
    /// `requests` requests from `pick`, spaced as `gaps` says.
    ///
    /// *Errors:* the gaps cannot be drawn.
    pub fn from_pick(
        pick: P,
        gaps: &Distribution<Nanos>,
        requests: u64,
        seed: u64,
    ) -> Result<Open<P>, ShapeError> {
        // A generator of its own, so that the requests are the same whatever their spacing.
        let mut random = generator(!seed);
        let gaps = gaps.sampler()?;
        let due = Instant::ZERO + gaps.draw(&mut random);
        Ok(Open { requests: pick, window: Window::new(u32::MAX, requests)?, gaps, random, due })
    }
}

impl<P: Pick> Load for Open<P> {
    fn poll(&mut self, now: Instant) -> Poll {
        if let Err(poll) = self.window.ready_at(now, self.due) {
            return poll;
        }
        let id = self.window.next_id();
        self.due = self.due.saturating_add(self.gaps.draw(&mut self.random));
        Poll::Issue(Issue::new(0, self.requests.pick(now), id))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.window.close();
    }
}
