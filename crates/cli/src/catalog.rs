//! Drives by name or by file.

use crate::failure::Failure;
use crate::files::SystemFiles;
use clap::Args;
use headstack::{DriveSpec, is_file};
use std::path::Path;

/// The option `--drive`, the same in every command.
#[derive(Args)]
pub(crate) struct DriveArg {
    /// A shipped drive (`headstack drive list`) or a drive file.
    #[arg(long, value_name = "NAME|FILE")]
    drive: String,
}

impl DriveArg {
    pub(crate) fn load(&self) -> Result<DriveSpec, Failure> {
        load(&self.drive)
    }
}

/// The shipped drive of this name, or the drive in this file. A name that contains `/` or ends with `.toml` is a file.
pub(crate) fn load(drive: &str) -> Result<DriveSpec, Failure> {
    headstack::load_drive(drive, &SystemFiles).map_err(Failure::input)
}

/// The name of the file that [`load`] reads, without its folder.
pub(crate) fn file_name(drive: &str) -> String {
    match Path::new(drive).file_name() {
        Some(name) if is_file(drive) => name.to_string_lossy().into_owned(),
        _ => format!("{drive}.toml"),
    }
}
