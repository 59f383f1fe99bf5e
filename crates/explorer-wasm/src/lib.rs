//! *The simulator in a browser's page*: an experiment as one text, a run that is moved step by step, rows of what happened.
//!
//! The crate is built for WebAssembly, where `src/exports.rs` is the interface of a page; on other targets its tests and its users call the
//! same run directly. Modelled is what `headstack` models: the results are the same to the last bit.

mod describe;
#[cfg(target_arch = "wasm32")]
mod exports;
mod inputs;
pub mod rows;
mod run;
pub mod snapshot;

pub use describe::describe_running;
pub use inputs::{MemoryFiles, PageExperiment, PageTraceKeys, RIG_PATH};
pub use run::SteppedRun;
