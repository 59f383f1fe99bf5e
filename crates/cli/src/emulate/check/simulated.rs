//! A job in virtual time.

use super::Bench;
use super::job::Job;
use crate::failure::Failure;
use headstack_model::{Instant, Nanos};
use headstack_workload::{Load, Poll};
use std::collections::VecDeque;

impl Bench<'_> {
    /// Response times of a job whose client starts at a given time and learns of each completion after a delay.
    pub(super) fn simulate(
        &self,
        job: &Job,
        end: Instant,
        Client { begins, late }: Client,
    ) -> Result<Vec<Nanos>, Failure> {
        let load = job.load(self.info, end, self.seed)?;
        let mut engine = self.rig.build(self.seed).map_err(Failure::input)?;
        let mut times = Vec::new();
        let mut load = Late { load, begins, late, held: VecDeque::new() };
        engine.run(&mut load, &mut |finished| times.push(finished.completion.response()));
        Ok(times)
    }
}

/// Delays of a simulated client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    pub(super) begins: Instant,
    pub(super) late: Nanos,
}

/// A load that begins later, and learns of its completions later.
struct Late<L> {
    load: L,
    begins: Instant,
    late: Nanos,
    held: VecDeque<(Instant, u64)>,
}

impl<L: Load> Load for Late<L> {
    fn poll(&mut self, now: Instant) -> Poll {
        if now < self.begins {
            return Poll::Later(self.begins);
        }
        while let Some((at, id)) = self.held.front().copied().filter(|(at, _)| *at <= now) {
            self.held.pop_front();
            self.load.handle_completion(at, id);
        }
        match (self.load.poll(now), self.held.front()) {
            (Poll::Later(at), Some((learns, _))) => Poll::Later(at.min(*learns)),
            (Poll::Waiting | Poll::Done, Some((learns, _))) => Poll::Later(*learns),
            (poll, _) => poll,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.held.push_back((now + self.late, id));
    }

    fn handle_computed(&mut self, now: Instant, id: u64, until: Instant) {
        self.load.handle_computed(now, id, until);
    }
}
