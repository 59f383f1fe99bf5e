//! What a set-up holds.

use crate::NotCarried;
use headstack_model::DriveSpec;
use headstack_sim::rig::{ArraySpec, ControllerSpec};
use headstack_workload::process::SyntheticSpec;

/// A set-up as it stands in DiskSim's files, before it is made a rig.
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

/// A process of a synthetic load, and the place of its block.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct SetupProcess {
    pub file: String,
    pub line: usize,
    pub spec: SyntheticSpec,
}
