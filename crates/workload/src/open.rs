//! An open load: requests come when they come, whether or not earlier ones are done.

use headstack_model::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::shape::{Requests, generator};
use crate::window::Window;
use crate::{Issue, Load, Poll, Shape, ShapeError};

/// The longest gap there may be: a hundred days.
const LONGEST: Nanos = Nanos::from_secs(100 * 86_400);

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Independently of each other: exponential gaps of this mean.
    Poisson(Nanos),
    /// Evenly.
    Constant(Nanos),
    /// Any gap from the first to the second is equally likely, both included.
    Uniform(Nanos, Nanos),
}

impl Gaps {
    fn check(self) -> Result<Gaps, ShapeError> {
        let (low, high) = match self {
            Gaps::Poisson(mean) | Gaps::Constant(mean) => (mean, mean),
            Gaps::Uniform(low, high) => (low, high),
        };
        if low <= high && high <= LONGEST { Ok(self) } else { Err(ShapeError::Gaps) }
    }

    #[inline]
    fn draw(self, random: &mut Pcg64Mcg) -> Nanos {
        match self {
            Gaps::Constant(gap) => gap,
            Gaps::Uniform(low, high) => Nanos(random.random_range(low.0..=high.0)),
            // The logarithm is one written in Rust: the system's differ from machine to machine in the last bit.
            Gaps::Poisson(mean) => {
                let share: f64 = random.random();
                Nanos((mean.0 as f64 * -libm::log(1.0 - share)).round() as u64)
            }
        }
    }
}

/// Requests of one shape that come in time. The first comes after one gap. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Open {
    requests: Requests,
    window: Window,
    gaps: Gaps,
    random: Pcg64Mcg,
    due: Nanos,
}

impl Open {
    /// `requests` requests in all, spaced as `gaps` says.
    ///
    /// *Errors:* the gaps are no range of times, or no request of that shape fits.
    pub fn new(shape: Shape, gaps: Gaps, requests: u64, seed: u64) -> Result<Open, ShapeError> {
        // A generator of its own, so that the same requests come whatever their spacing.
        let mut random = generator(!seed);
        let gaps = gaps.check()?;
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
