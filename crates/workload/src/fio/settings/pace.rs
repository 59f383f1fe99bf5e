//! When a job begins and ends, and how fast it may issue.

use headstack_model::Nanos;

#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct Lifetime {
    pub(in crate::fio) start_delay: (Nanos, Nanos),
    /// The time before `runtime` that is not measured.
    pub(in crate::fio) ramp: Nanos,
    pub(in crate::fio) runtime: Option<Nanos>,
    pub(in crate::fio) time_based: bool,
    pub(in crate::fio) loops: u64,
    /// Requests after which a clone ends; 0 for any number.
    pub(in crate::fio) requests: u64,
}

impl Default for Lifetime {
    fn default() -> Lifetime {
        let (ramp, start_delay) = (Nanos::ZERO, (Nanos::ZERO, Nanos::ZERO));
        Lifetime { start_delay, ramp, runtime: None, time_based: false, loops: 1, requests: 0 }
    }
}

impl Lifetime {
    /// Whether the files are repeated until the time is over.
    pub(in crate::fio) fn is_endless(&self) -> bool {
        self.time_based && self.runtime.is_some()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct ThinkTime {
    pub(in crate::fio) length: Nanos,
    pub(in crate::fio) spin: Nanos,
    /// Requests between two pauses.
    pub(in crate::fio) blocks: Option<u64>,
    /// Whether issued requests count, and not completed ones.
    pub(in crate::fio) at_issue: bool,
    /// Time between two pauses.
    pub(in crate::fio) every: Nanos,
}

/// How the gaps between requests of a rate are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fio) enum RateProcess {
    #[default]
    Linear,
    Poisson,
}

/// Maximum rate at which a job issues, by direction; 0 for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct RateLimits {
    pub(in crate::fio) bytes: [u64; 3],
    pub(in crate::fio) requests: [u64; 3],
    pub(in crate::fio) process: RateProcess,
    /// Whether a job does not catch up after a pause.
    pub(in crate::fio) forgives_pauses: bool,
}

impl RateLimits {
    /// Whether both `rate` and `rate_iops` are given.
    pub(in crate::fio) fn contradict(&self) -> bool {
        let given = |rates: [u64; 3]| rates.iter().any(|rate| *rate > 0);
        given(self.bytes) && given(self.requests)
    }
}

/// The share of a job in the requests of a group of jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct FlowRules {
    /// Weight among the jobs of the group; 0 for no group.
    pub(in crate::fio) weight: u64,
    pub(in crate::fio) group: u64,
    /// Pause of a job that is ahead of its share; zero to continue as soon as it no longer is.
    pub(in crate::fio) sleep: Nanos,
}
