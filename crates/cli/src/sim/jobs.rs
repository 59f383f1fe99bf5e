//! What each job of a load did, its reads, writes and flushes apart.

use super::outcome::{Outcome, ratio};
use super::results::responses;
use headstack_sim::stats::{Direction, SourceStats};
use serde_json::{Value, json};

/// The requests of one kind that a job, or a group of jobs, asked for.
pub(crate) struct Kind<'a> {
    /// `read`, `write` or `flush`.
    pub name: &'static str,
    /// What is kept of them.
    pub stats: &'a Direction,
    /// Time over which they counted, in seconds.
    seconds: f64,
}

impl Kind<'_> {
    /// Requests a second.
    pub(crate) fn iops(&self) -> f64 {
        ratio(self.stats.responses.count() as f64, self.seconds)
    }

    /// Millions of bytes a second.
    pub(crate) fn mb_s(&self) -> f64 {
        ratio(self.stats.bytes as f64 / 1e6, self.seconds)
    }
}

/// The kinds of requests that were met, reads first.
pub(crate) fn kinds(stats: &SourceStats) -> impl Iterator<Item = Kind<'_>> {
    let all = [("read", &stats.reads), ("write", &stats.writes), ("flush", &stats.flushes)];
    all.into_iter().filter_map(|(name, found)| {
        let found = found.as_deref()?;
        Some(Kind { name, stats: found, seconds: found.last.since(stats.begins).as_secs() })
    })
}

/// The sections of the load, each with what is kept of it; those that asked for nothing are left out.
pub(crate) fn sections(outcome: &Outcome) -> impl Iterator<Item = (&str, &SourceStats)> {
    let sections = outcome.load.sections.iter().zip(outcome.books.jobs());
    sections.filter_map(|(section, stats)| Some((section.name.as_str(), stats.as_deref()?)))
}

/// The list `jobs` of the object `headstack`: every section of the load, whatever was asked to be reported as a group.
pub(super) fn object(outcome: &Outcome) -> Vec<Value> {
    let stats = outcome.books.jobs();
    let sections = outcome.load.sections.iter().zip(stats);
    let object = |stats: Option<&SourceStats>, name: &str| {
        stats.and_then(|stats| kinds(stats).find(|kind| kind.name == name)).map(|kind| {
            json!({
                "requests": kind.stats.responses.count(),
                "bytes": kind.stats.bytes,
                "iops": kind.iops(),
                "bandwidth_mb_s": kind.mb_s(),
                "response_ms": responses(&kind.stats.responses),
            })
        })
    };
    let section = |(section, stats): (&super::outcome::Section, &Option<Box<SourceStats>>)| {
        let stats = stats.as_deref();
        json!({
            "name": section.name,
            "clones": section.clones,
            "group": section.group,
            "reads": object(stats, "read"),
            "writes": object(stats, "write"),
            "flushes": object(stats, "flush"),
        })
    };
    sections.map(section).collect()
}
