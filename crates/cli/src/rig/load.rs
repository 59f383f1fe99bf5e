//! Rigs by name or by file.

use crate::failure::Failure;
use crate::files::SystemFiles;
use headstack::{Error, Rig, is_file};
use std::path::Path;

/// The shipped rig of this name, or the rig in this file. A drive or a drive file stands for a rig with that drive alone.
pub(crate) fn load(name: &str) -> Result<Rig, Failure> {
    headstack::load_rig(name, &SystemFiles).map_err(Failure::input)
}

/// As [`load`], for a command whose arguments are a rig and then a load.
///
/// *Errors:* as [`load`]; the message says so where the two are swapped.
pub(crate) fn load_before(name: &str, workload: &str) -> Result<Rig, Failure> {
    headstack::load_rig(name, &SystemFiles).map_err(|error| {
        match headstack::load_rig(workload, &SystemFiles) {
            Ok(_) => Failure::Input(format!(
                "{name}: no rig or drive; the rig comes before the load: {workload} {name}"
            )),
            Err(_) => Failure::input(error),
        }
    })
}

/// The rig in a file, or a rig with the drive in it, for a check.
pub(crate) fn check(name: &str) -> Result<Rig, Failure> {
    headstack::read_rig(name, &SystemFiles).map_err(|error| match error {
        Error::Rig(error) => Failure::Check(error.to_string()),
        other => Failure::input(other),
    })
}

/// The files among the names of a rig and of a load.
pub(crate) fn read_files<'a>(rig: &'a str, load: &'a str) -> Vec<&'a Path> {
    let rig = is_file(rig).then_some(Path::new(rig));
    rig.into_iter().chain([Path::new(load)]).collect()
}
