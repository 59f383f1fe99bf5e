//! *What do many runs say?* A sweep of rigs, loads, settings and seeds, whose results are rows of Parquet files in a folder.
#![doc = include_str!("../README.md")]

mod columns;
mod definition;
mod draw;
mod drives;
mod engine;
mod error;
mod folder;
mod inputs;
mod parquet_file;
mod pending;
mod plan;
mod row;
mod settings;

pub use definition::{SweepFile, TraceKeys};
pub use drives::SharedDrives;
pub use engine::{SweepRun, SweepSummary};
pub use error::SweepError;
pub use folder::read_rows;
pub use plan::{SweepCell, SweepPart, SweepPlan};
pub use settings::RandomSettings;

/// The version of the models: rows of another version are not reused.
pub const MODEL_VERSION: &str = env!("CARGO_PKG_VERSION");
