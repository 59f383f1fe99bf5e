//! The keys of one job, with fio's defaults: a type for each group of keys that belong together.

mod access;
mod blocks;
mod control;
mod files;
mod pace;
mod priority;
mod random;
mod steady;
mod verify;
mod zones;

pub(super) use access::{Direction, FadviseHint, READ, RequestKinds, Rw, WRITE};
pub(super) use blocks::{RequestSizes, Split};
pub(super) use control::{EngineQueue, ExitScope, Flushes, Grouping, ReplayedLog};
pub(super) use files::{FileArea, FileNames, Service, ServiceChoice, split_names};
pub(super) use pace::{FlowRules, Lifetime, RateLimits, RateProcess, ThinkTime};
pub(super) use priority::{IssuedPriorities, JobPriority, RequestPriority, SizePriority};
pub(super) use random::{RandomPlaces, Spread, Zone};
pub(super) use steady::{SteadyRules, SteadyTarget};
pub(super) use verify::VerifyRules;
use zones::ZoneRules;
pub(super) use zones::{ZoneMode, ZoneResets};

use super::own::Own;
use crate::load::ReadAdvice;

/// The honoured keys of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Whether `k` is 1000.
    pub(super) decimal_k: bool,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) files: FileNames,
    pub(super) area: FileArea,
    pub(super) access: RequestKinds,
    pub(super) blocks: RequestSizes,
    pub(super) random: RandomPlaces,
    pub(super) zones: ZoneRules,
    pub(super) queue: EngineQueue,
    pub(super) life: Lifetime,
    pub(super) think_time: ThinkTime,
    pub(super) rate: RateLimits,
    pub(super) flushes: Flushes,
    pub(super) direct: bool,
    pub(super) fadvise: FadviseHint,
    pub(super) priority: JobPriority,
    pub(super) log: ReplayedLog,
    pub(super) group: Grouping,
    pub(super) own: Own,
}

impl Settings {
    /// The bytes of a `k`.
    pub(super) fn kb_base(&self) -> u64 {
        if self.decimal_k { 1000 } else { 1024 }
    }

    pub(super) fn direction(&self) -> Direction {
        self.access.rw.direction
    }

    /// Whether neither a file nor a size is given, so that only a volume can be meant.
    pub(super) fn names_nothing(&self) -> bool {
        !self.area.has_size() && self.files.are_default()
    }

    /// Whether requests bypass the page cache of the rig's host.
    pub(super) fn is_direct(&self) -> bool {
        self.direct || self.queue.engine.past_cache
    }

    /// The advice that fio gives the kernel about the reads of a job.
    pub(super) fn read_advice(&self) -> ReadAdvice {
        match self.fadvise {
            FadviseHint::Always(advice) => advice,
            FadviseHint::OfPattern if self.direction().random => ReadAdvice::Random,
            FadviseHint::OfPattern => ReadAdvice::Sequential,
        }
    }
}
