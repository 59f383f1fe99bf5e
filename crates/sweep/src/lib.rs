//! *What do many runs say?* A sweep of rigs, loads, settings and seeds, whose results are rows of Parquet files in a folder.
#![doc = include_str!("../README.md")]

mod columns;
mod combinations;
mod definition;
mod draw;
mod drives;
mod engine;
mod error;
mod finished;
mod folder;
mod inputs;
mod objects;
mod parquet_file;
mod pending;
mod plan;
mod row;
mod runs;
mod settings;
mod status;
mod table;

pub use definition::{SweepFile, TraceKeys};
pub use drives::SharedDrives;
pub use engine::{SweepRun, SweepSummary};
pub use error::SweepError;
pub use folder::{read_rows, read_table, write_table};
pub use objects::{SweepLoad, SweepObjects, SweepRig, SweepSetup};
pub use plan::{SweepCell, SweepPart, SweepPlan};
pub use settings::{RandomSettings, SettingKind};
pub use status::{PartStatus, SweepStatus, merged_table};
pub use table::{ColumnValues, SweepTable};

/// The version of the models: rows of another version are not reused.
pub const MODEL_VERSION: &str = env!("CARGO_PKG_VERSION");
