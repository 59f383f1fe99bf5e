//! Rigs and loads that a program made, which have no file.

use headstack::{Error, FileSource, Results, Rig, Simulation, TraceOptions, Workload};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A load that a program made.
pub trait SweepLoad: Send + Sync {
    /// All that decides about its requests, apart from the files that it opens.
    fn content(&self) -> Vec<u8>;

    /// Its requests; `files` opens the files that it names.
    ///
    /// *Errors:* it is invalid, or a file cannot be read.
    fn workload<'f>(&self, files: &'f dyn FileSource) -> Result<Workload<'f>, Error>;
}

/// What a program puts into the simulations of a rig, such as an order of its own.
pub trait SweepSetup: Send + Sync {
    /// All that decides about what it does.
    fn content(&self) -> Vec<u8>;

    /// Runs a simulation of a rig with it; none if `stops` ended it.
    ///
    /// *Errors:* why the cell fails.
    fn run(
        &self,
        rig: &Rig,
        simulation: Simulation<'_>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Results>, String>;
}

/// A rig that a program made.
#[derive(Clone)]
pub struct SweepRig {
    /// The rig, over which the settings of a cell are set.
    pub rig: Rig,
    /// What else the program puts into each simulation.
    pub setup: Option<Arc<dyn SweepSetup>>,
}

/// Rigs and loads that a program made, by the names that the definition has for them.
#[derive(Clone, Default)]
pub struct SweepObjects {
    /// By their names in `rigs`.
    pub rigs: BTreeMap<String, SweepRig>,
    /// By their names in `loads`.
    pub loads: BTreeMap<String, Arc<dyn SweepLoad>>,
}

/// Where the requests of a load of a plan come from.
pub(crate) enum LoadPlace {
    Path(String),
    Object(Arc<dyn SweepLoad>),
}

impl LoadPlace {
    pub(crate) fn workload<'f>(
        &self,
        options: &TraceOptions,
        files: &'f dyn FileSource,
    ) -> Result<Workload<'f>, Error> {
        match self {
            LoadPlace::Path(path) => Workload::open(path, options, files),
            LoadPlace::Object(load) => load.workload(files),
        }
    }
}

/// Runs a simulation to its end; none if `stops` ended it. Both are asked every few thousand steps.
pub(crate) fn run_whole(
    mut simulation: Simulation<'_>,
    stops: &mut dyn FnMut() -> bool,
) -> Result<Option<Results>, Error> {
    let mut is_stopped = stops();
    if !is_stopped {
        simulation.run_while(&mut |_| {
            is_stopped = stops();
            if is_stopped { ControlFlow::Break("stopped".to_string()) } else { ControlFlow::Continue(()) }
        });
    }
    if is_stopped { Ok(None) } else { simulation.finish().map(Some) }
}
