//! What a set-up holds.

use crate::NotCarried;
use headstack_model::DriveSpec;

/// A set-up as it stands in DiskSim's files, before it is made a rig.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Setup {
    /// The drives, in the order of their numbers.
    pub drives: Vec<SetupDrive>,
    pub buses: Vec<SetupBus>,
    pub controllers: Vec<SetupController>,
    pub arrays: Vec<SetupArray>,
    pub queue: SetupQueue,
    /// Whether the driver sends a drive one command at a time.
    pub one_at_a_time: bool,
    /// The devices of traces by number, and the drives that they go to.
    pub devices: Vec<(u64, String)>,
    pub processors: u32,
    pub load: Option<SetupLoad>,
    /// What was met and could not be carried over, in the order of the files.
    pub not_carried: Vec<NotCarried>,
}

/// A drive of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupDrive {
    pub name: String,
    /// The drive itself, without its way to the host.
    pub spec: DriveSpec,
    /// Its bus: the place in [`Setup::buses`].
    pub bus: Option<usize>,
}

/// A bus of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupBus {
    pub name: String,
    /// Whether one drive at a time has it.
    pub exclusive: bool,
    /// Time a sector takes to the host.
    pub read_us_per_sector: f64,
    /// Time a sector takes from the host.
    pub write_us_per_sector: f64,
    pub arbitration_us: f64,
    /// Its controller: the place in [`Setup::controllers`].
    pub controller: Option<usize>,
}

/// A controller of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupController {
    pub name: String,
    /// Whether it has a queue and a cache of its own.
    pub smart: bool,
    pub us_per_sector: f64,
    /// Time that each of its messages takes.
    pub delay_us: f64,
    pub order: Option<String>,
    pub queue_depth: Option<u32>,
    /// Commands that it has outstanding at each drive.
    pub drive_depth: Option<u32>,
    pub cache: Option<SetupCache>,
}

/// A controller's cache.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupCache {
    pub sectors: u32,
    pub line_sectors: Option<u32>,
    /// Name of the drive that is the cache.
    pub drive: Option<String>,
    /// Whether a write is done once it is in the cache.
    pub write_back: bool,
    /// How often dirty blocks are written.
    pub flush_period_ms: Option<f64>,
    /// After how long without work dirty blocks are written.
    pub flush_idle_ms: Option<f64>,
    /// Most neighbouring lines that are written together.
    pub flush_cluster_lines: u32,
}

/// How the blocks of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupOrganisation {
    /// One drive after the other.
    Concatenation,
    /// In stripe units.
    Striping,
    /// Copies, striped where there are more drives.
    Mirroring,
    /// Stripes with parity on one drive.
    ParityDrive,
    /// Stripes with parity on a drive in turn.
    ParityRotated,
}

/// An array of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupArray {
    pub name: String,
    pub organisation: SetupOrganisation,
    pub drives: Vec<String>,
    pub stripe_unit_sectors: u32,
    pub parity_unit_sectors: u32,
    pub copies: u32,
    /// Which copy is read: 1 the first, 2 any, 3 in turn, 4 the nearest, 5 and 6 that with the shortest queue.
    pub read_choice: u32,
    /// How parity wanders: 1 and 2 to the left, symmetric or not, 3 and 4 to the right, not or symmetric.
    pub rotation: u32,
    /// Share of a stripe up to which old data and parity are read.
    pub read_modify_write_ratio: f64,
    /// Whether nothing is written before all is read.
    pub ordered_writes: bool,
}

/// A queue of a set-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupQueue {
    /// Name of the order, with its parameters.
    pub order: String,
    /// Whether requests that somebody waits for go first.
    pub urgent_first: bool,
}

/// The synthetic load of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupLoad {
    /// It ends after so many requests.
    pub requests: u32,
    /// It ends at this time.
    pub max_time_s: f64,
    pub processes: Vec<SetupProcess>,
}

/// A process of a synthetic load.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupProcess {
    pub file: String,
    pub line: usize,
    pub volumes: Vec<String>,
    pub capacity_sectors: u32,
    /// Requests are multiples of so many sectors.
    pub blocking_sectors: u32,
    /// Share of requests that continue the last one.
    pub sequential_share: f64,
    /// Share of requests near the last one.
    pub local_share: f64,
    pub read_share: f64,
    /// Share of requests that it waits for at once.
    pub critical_share: f64,
    /// Share of requests that it waits for after a while.
    pub limited_share: f64,
    /// That while, in ms.
    pub limit: SetupDistribution,
    /// Time to a request that is neither sequential nor local, in ms.
    pub gap: SetupDistribution,
    /// Time to a sequential request, in ms.
    pub sequential_gap: SetupDistribution,
    /// Time to a local request, in ms.
    pub local_gap: SetupDistribution,
    /// Distance to a local request, in sectors.
    pub distance: SetupDistribution,
    /// Size of a request, in sectors.
    pub size: SetupDistribution,
}

/// A distribution of a synthetic load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SetupDistribution {
    /// Evenly from the one to the other.
    Uniform(f64, f64),
    /// The bell curve: mean, deviation.
    Normal(f64, f64),
    /// Memoryless: base, mean beyond it.
    Exponential(f64, f64),
    /// Numbers of rare events: base, mean beyond it.
    Poisson(f64, f64),
    /// One of two: the usual one, the other, the share of the other.
    TwoValued(f64, f64, f64),
}
