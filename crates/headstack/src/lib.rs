//! *The library*: load a rig, load a workload, run, results.
#![doc = include_str!("../README.md")]

mod cgroups;
mod error;
mod files;
mod load;
mod numbers;
mod paired_looks;
mod recorder;
pub mod report;
mod requests;
mod results;
mod rig;
mod setup;
mod simulation;
mod stream_watch;
pub mod tune;
pub mod validation;

pub use error::{Error, PatternError};
pub use files::{FileSource, NoFiles, read_bounded, read_text};
pub use load::{
    AccessPattern, ArrivalProcess, JobInfo, JobSection, PatternSpec, TraceOptions, Workload, WorkloadInfo,
    WorkloadKind,
};
pub use numbers::{confidence_interval, grouped, ratio, significant};
pub use paired_looks::PairedLooks;
pub use requests::{KeptRequests, SparseColumn};
pub use results::Note;
pub use results::{
    DeviceResult, EarlyStop, GuardUse, JobResult, KindResult, PhaseResult, Results, RigInfo, VolumeResult,
};
pub use rig::{is_file, load_drive, load_rig, read_rig};
pub use setup::{DriveSetup, RunSetup, WriteCacheState};
pub use simulation::{RunProgress, Simulation};
pub use stream_watch::StreamResult;

pub use headstack_model::{self as model, DriveSpec, Instant, Nanos};
pub use headstack_policy as policy;
pub use headstack_sim::rig::Rig;
pub use headstack_sim::{self as sim, Observer};
pub use headstack_workload::Load;

/// What is requested: generators, fio jobs, traces, load files and personalities.
pub mod workload {
    pub use headstack_personalities::{self as personality, LoadFile, LoadSpec, load_file};
    pub use headstack_workload::*;
}

/// The program in the repository's README, which must compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
