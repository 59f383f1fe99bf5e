//! Results of each job of a workload, with reads, writes and flushes separate.

use crate::numbers::ratio;
use headstack_sim::stats::{Direction, SourceStats};

/// Results of a job, or of a group of jobs that report together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JobResult<'a> {
    /// Its name.
    pub name: &'a str,
    /// Statistics of its requests; none if it issued none.
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
#[non_exhaustive]
pub struct KindResult<'a> {
    /// `read`, `write` or `flush`.
    pub name: &'static str,
    /// Statistics of them.
    pub statistics: &'a Direction,
    /// Time in seconds over which they counted; for writes, with the flushes after them.
    pub seconds: f64,
}

impl KindResult<'_> {
    /// Requests per second.
    pub fn iops(&self) -> f64 {
        ratio(self.statistics.responses.count() as f64, self.seconds)
    }

    /// MB (10⁶ bytes) per second.
    pub fn mb_s(&self) -> f64 {
        ratio(self.statistics.bytes as f64 / 1e6, self.seconds)
    }
}

/// The kinds of requests that occurred, reads first.
fn kinds(statistics: &SourceStats) -> impl Iterator<Item = KindResult<'_>> {
    let all = [("read", &statistics.reads), ("write", &statistics.writes), ("flush", &statistics.flushes)];
    all.into_iter().filter_map(|(name, found)| {
        let found = found.as_deref()?;
        let end = if name == "write" { statistics.writes_end() } else { None };
        let seconds = end.unwrap_or(found.last).since(statistics.begins).as_secs();
        Some(KindResult { name, statistics: found, seconds })
    })
}
