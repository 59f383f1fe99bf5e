//! What each job of a workload did, its reads, writes and flushes apart.

use crate::numbers::ratio;
use headstack_sim::stats::{Direction, SourceStats};

/// A job, or a group of jobs that report together, and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct JobResult<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is kept of its requests; none where it issued none.
    pub statistics: Option<&'a SourceStats>,
}

impl<'a> JobResult<'a> {
    /// The kinds of requests that it issued, reads first.
    pub fn kinds(&self) -> impl Iterator<Item = KindResult<'a>> + use<'a> {
        self.statistics.into_iter().flat_map(kinds)
    }
}

/// The requests of one kind that a job issued. [`Direction::priorities`] has the response times of each priority.
#[derive(Clone, Copy, Debug)]
pub struct KindResult<'a> {
    /// `read`, `write` or `flush`.
    pub name: &'static str,
    /// What is kept of them.
    pub statistics: &'a Direction,
    /// Time over which they counted, in seconds.
    pub seconds: f64,
}

impl KindResult<'_> {
    /// Requests a second.
    pub fn iops(&self) -> f64 {
        ratio(self.statistics.responses.count() as f64, self.seconds)
    }

    /// Millions of bytes a second.
    pub fn mb_s(&self) -> f64 {
        ratio(self.statistics.bytes as f64 / 1e6, self.seconds)
    }
}

/// The kinds of requests that were met, reads first.
fn kinds(statistics: &SourceStats) -> impl Iterator<Item = KindResult<'_>> {
    let all = [("read", &statistics.reads), ("write", &statistics.writes), ("flush", &statistics.flushes)];
    all.into_iter().filter_map(|(name, found)| {
        let found = found.as_deref()?;
        Some(KindResult { name, statistics: found, seconds: found.last.since(statistics.begins).as_secs() })
    })
}
