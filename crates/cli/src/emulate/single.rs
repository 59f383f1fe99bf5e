//! An emulated disk of one volume, for other commands.

use super::data::Data;
use super::fault::Faults;
use super::plan;
use super::running::{EmulatorOptions, emulator};
use crate::failure::Failure;
use headstack_host::{Clock, Disk, Timing};
use std::path::Path;

/// Starts a disk: a drive or a rig, shipped or a file, with its data in a file or in memory. Waits briefly for a file in use, until
/// `is_end_requested` returns true.
///
/// *Errors:* an unknown drive; a rig of several volumes; a file that cannot be used; a speed out of range.
pub(crate) fn start(
    drive: &str,
    data: Option<&Path>,
    speed: f64,
    is_end_requested: &dyn Fn() -> bool,
) -> Result<Disk, Failure> {
    let clock = Clock::new(speed).map_err(Failure::Input)?;
    let plans = plan::of_name(drive)?;
    let volumes: usize = plans.iter().map(|plan| plan.volumes.len()).sum();
    if volumes != 1 {
        return Err(Failure::Input(format!("{drive}: a rig of one volume is needed, and it has {volumes}")));
    }
    let data = data.map_or(Data::Memory, |path| Data::At(path.to_path_buf()));
    let volumes = data.volumes(&plans, is_end_requested)?.remove(0);
    let emulator = emulator(&plans[0], volumes, &Faults(&[]), EmulatorOptions::default())?;
    Disk::start(&plans[0].volumes[0].name, emulator, clock, Timing::default())
        .map_err(|error| Failure::Input(format!("{drive}: {error}")))
}
