//! *The library*: load a rig, load a workload, run, results.
#![doc = include_str!("../README.md")]

mod error;
mod files;
mod load;
mod recorder;
mod results;
mod rig;
mod simulation;

pub use error::Error;
pub use files::{FileSource, NoFiles, read_bounded, read_text};
pub use load::{
    AccessPattern, ArrivalProcess, JobInfo, JobSection, PatternError, PatternSpec, TraceOptions, Workload,
    WorkloadInfo, WorkloadKind,
};
pub use results::{
    DeviceResult, EarlyStop, GuardUse, JobResult, KindResult, Results, RigInfo, VolumeResult, grouped, ratio,
};
pub use rig::{is_file, load_drive, load_rig, read_rig};
pub use simulation::{RunProgress, Simulation};

pub use headstack_model::{self as model, DriveSpec, Nanos};
pub use headstack_sim::rig::Rig;
pub use headstack_sim::{self as sim, Observer};
pub use headstack_workload::{self as workload, Load};
