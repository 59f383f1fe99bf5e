//! *The simulator in a web page*: an experiment as one text, a run that advances step by step, and its events as rows of numbers.
//!
//! The crate is built for WebAssembly, where `src/exports.rs` is the interface of a page; on other targets its tests and its users call the
//! same run directly. The model is that of `headstack`: the results are the same to the last bit.

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
