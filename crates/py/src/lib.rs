//! *How does Python call the library?* The extension `headstack._native`: converts arguments, calls the library, converts results.
//!
//! It contains no logic of the simulator. Each simulation runs on a separate thread, without Python's global lock. A panic becomes an
//! exception.

#![allow(
    clippy::disallowed_types,
    reason = "Python's threads share objects, and wait for the simulation's thread"
)]

mod drive;
mod error;
mod files;
mod layer;
mod layer_state;
mod lists;
mod load;
mod order;
mod python_load;
mod results;
mod rig;
mod run_state;
mod simulation;
mod steps;
mod sweep;
mod sweep_setup;
mod trace;
mod tune;
mod watch;
mod worker;

/// The extension module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::drive::NativeDrive;
    #[pymodule_export]
    use crate::error::{InputError, InternalError};
    #[pymodule_export]
    use crate::layer::NativeLayerCalls;
    #[pymodule_export]
    use crate::layer_state::NativeLayerRequest;
    #[pymodule_export]
    use crate::lists::{
        cache_uses, drives, operations, orders, outcomes, parts, rigs, trace_formats, version,
    };
    #[pymodule_export]
    use crate::load::NativeLoad;
    #[pymodule_export]
    use crate::order::NativeQueue;
    #[pymodule_export]
    use crate::results::NativeResults;
    #[pymodule_export]
    use crate::rig::NativeRig;
    #[pymodule_export]
    use crate::simulation::NativeSimulation;
    #[pymodule_export]
    use crate::steps::{NativeCompletion, NativeLoadContext, NativeRequest, NativeSleep};
    #[pymodule_export]
    use crate::sweep::NativeSweep;
    #[pymodule_export]
    use crate::trace::{read_trace, write_trace};
    #[pymodule_export]
    use crate::tune::tune;
}
