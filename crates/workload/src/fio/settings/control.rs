//! How many requests are outstanding, their force unit access and flushes, and how jobs depend on each other.

use super::pace::FlowRules;
use super::steady::SteadyRules;
use super::verify::VerifyRules;
use crate::fio::engine::{Engine, PSYNC};

#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct EngineQueue {
    pub(in crate::fio) engine: Engine,
    pub(in crate::fio) iodepth: u64,
    /// Number of outstanding requests to which the queue drains before it is filled again; 0 for `iodepth`.
    pub(in crate::fio) low: u64,
    /// Completions waited for at a time.
    pub(in crate::fio) complete_min: u64,
    pub(in crate::fio) offload: bool,
}

impl Default for EngineQueue {
    fn default() -> EngineQueue {
        EngineQueue { engine: PSYNC, iodepth: 1, low: 0, complete_min: 1, offload: false }
    }
}

impl EngineQueue {
    /// Whether a synchronous engine keeps one request outstanding although `iodepth` is larger. Requests that fio passes to
    /// threads of their own (`io_submit_mode=offload`) do not wait for each other.
    pub(in crate::fio) fn is_capped(&self) -> bool {
        self.engine.synchronous && !self.offload && self.iodepth > 1
    }

    /// Requests outstanding at most.
    pub(in crate::fio) fn depth(&self) -> u64 {
        if self.is_capped() { 1 } else { self.iodepth }
    }

    /// The number outstanding at which a full queue is filled again.
    pub(in crate::fio) fn refill(&self) -> u64 {
        let depth = self.depth();
        let low = if self.low == 0 { depth } else { self.low };
        low.min(depth - self.complete_min.clamp(1, depth))
    }
}

/// What follows writes: flushes, and the reads of `verify`.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct Flushes {
    /// Writes between two flushes; 0 for no flush.
    pub(in crate::fio) fsync: u64,
    pub(in crate::fio) fdatasync: u64,
    pub(in crate::fio) at_end: bool,
    /// Writes with force unit access.
    pub(in crate::fio) fua: bool,
    pub(in crate::fio) verify: VerifyRules,
}

#[derive(Clone, Debug)]
pub(in crate::fio) struct ReplayedLog {
    pub(in crate::fio) names: Option<String>,
    pub(in crate::fio) no_stall: bool,
    pub(in crate::fio) time_percent: u64,
}

impl Default for ReplayedLog {
    fn default() -> ReplayedLog {
        ReplayedLog { names: None, no_stall: false, time_percent: 100 }
    }
}

impl ReplayedLog {
    /// The factor of the log's times.
    pub(in crate::fio) fn time_scale(&self) -> f64 {
        if self.no_stall { 0.0 } else { self.time_percent as f64 / 100.0 }
    }
}

/// Which clones `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fio) enum ExitScope {
    #[default]
    Group,
    /// All that have begun.
    Running,
    All,
}

/// The clones of a job, and its group.
#[derive(Clone, Debug)]
pub(in crate::fio) struct Grouping {
    pub(in crate::fio) clones: u64,
    pub(in crate::fio) stonewall: bool,
    pub(in crate::fio) new_group: bool,
    pub(in crate::fio) wait_for: Option<String>,
    pub(in crate::fio) exitall: bool,
    pub(in crate::fio) exit_what: ExitScope,
    pub(in crate::fio) reporting: bool,
    pub(in crate::fio) flow: FlowRules,
    pub(in crate::fio) steady: SteadyRules,
    /// The control group.
    pub(in crate::fio) cgroup: Option<String>,
}

impl Default for Grouping {
    fn default() -> Grouping {
        let (stonewall, new_group, exitall, reporting) = (false, false, false, false);
        let exit_what = ExitScope::default();
        Grouping {
            clones: 1,
            stonewall,
            new_group,
            wait_for: None,
            exitall,
            exit_what,
            reporting,
            flow: FlowRules::default(),
            steady: SteadyRules::default(),
            cgroup: None,
        }
    }
}
