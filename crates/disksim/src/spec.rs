//! The contents of a set-up.

use crate::not_carried::NotCarried;
use headstack_model::DriveSpec;
use headstack_sim::rig::{ArraySpec, ControllerSpec};
use headstack_workload::process::SyntheticSpec;

/// A set-up as in DiskSim's files, before its conversion to a rig.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Setup {
    /// The drives, in the order of their numbers.
    pub drives: Vec<SetupDrive>,
    pub buses: Vec<SetupBus>,
    pub controllers: Vec<ControllerSpec>,
    pub arrays: Vec<ArraySpec>,
    pub queue: SetupQueue,
    /// Whether the driver sends a drive one command at a time.
    pub one_at_a_time: bool,
    /// The devices of traces by number, and their drives.
    pub devices: Vec<(u64, String)>,
    pub processors: u32,
    pub load: Option<SetupLoad>,
    /// What could not be carried over, in the order of the files.
    pub not_carried: Vec<NotCarried>,
}

/// A drive of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupDrive {
    pub name: String,
    /// The drive itself, without its path to the host.
    pub spec: DriveSpec,
    /// Its bus: the index in [`Setup::buses`].
    pub bus: Option<usize>,
}

/// A bus of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupBus {
    pub name: String,
    /// Whether one drive at a time owns it.
    pub exclusive: bool,
    /// Transfer time of a sector to the host.
    pub read_us_per_sector: f64,
    /// Transfer time of a sector from the host.
    pub write_us_per_sector: f64,
    pub arbitration_us: f64,
    /// Its controller: the index in [`Setup::controllers`].
    pub controller: Option<usize>,
}

/// A queue of a set-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupQueue {
    /// Name of the order, with its parameters.
    pub order: String,
    /// Whether requests that a process waits for go first.
    pub urgent_first: bool,
}

/// The synthetic load of a set-up.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetupLoad {
    /// Number of requests after which it ends.
    pub requests: u32,
    /// Time at which it ends.
    pub max_time_s: f64,
    pub processes: Vec<SetupProcess>,
}

/// A process of a synthetic load, and the place of its block.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct SetupProcess {
    pub file: String,
    pub line: usize,
    pub spec: SyntheticSpec,
}
