//! Processes that think, issue one request, and wait for it: a closed load of a number of processes (MPL).
//!
//! *Source:* the closed model of the striping study: each process delays at an infinite server, issues a request, waits.

use headstack_model::{Instant, Nanos};
use rand_pcg::Pcg64Mcg;

use super::{Process, Step, Wait, check_processes};
use crate::dist::{Distribution, Sampler};
use crate::shape::{generator, seed_of};
use crate::{Pick, Requests, Shape, ShapeError};

/// The shape of a load of thinking processes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ThinkShape {
    /// The requests of each process. Sequential processes begin at places that are spaced evenly over the region.
    pub shape: Shape,
    pub processes: u32,
    /// Time from a completion to the process's next request, and from the start to its first one.
    pub think: Distribution<Nanos>,
}

/// A process that thinks, issues a request and waits.
#[derive(Clone, Debug)]
pub struct Thinker {
    requests: Requests,
    think: Sampler<Nanos>,
    /// A separate generator, so that the requests are the same whatever the think time.
    random: Pcg64Mcg,
}

impl Process for Thinker {
    fn next(&mut self, now: Instant) -> Option<Step> {
        let gap = self.think.draw(&mut self.random);
        Some(Step { gap, device: 0, request: self.requests.pick(now), wait: Wait::AtOnce, urgent: false })
    }
}

impl ThinkShape {
    pub(super) fn build(&self, seed: u64) -> Result<Vec<Thinker>, ShapeError> {
        check_processes(u64::from(self.processes))?;
        let think = self.think.sampler()?;
        let thinker = |index| {
            let seed = seed_of(seed, index);
            let mut requests = Requests::new(self.shape, seed)?;
            requests.begin_at(index, u64::from(self.processes));
            Ok(Thinker { requests, think: think.clone(), random: generator(!seed) })
        };
        (0..u64::from(self.processes)).map(thinker).collect()
    }
}
