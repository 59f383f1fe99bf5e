//! Drives by name or by file.

use crate::failure::Failure;
use crate::files::{self, SystemFiles};
use clap::Args;
use headstack::{DriveSpec, is_file};
use headstack_model::drives;
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

/// The drive of [`load`], with the text of its file.
pub(crate) fn load_with_text(drive: &str) -> Result<(DriveSpec, String), Failure> {
    if is_file(drive) {
        let text = files::read_text(Path::new(drive))?;
        return Ok((DriveSpec::parse(&text, drive).map_err(Failure::input)?, text));
    }
    let spec = load(drive)?;
    let shipped = drives::all().iter().find(|(name, _)| *name == drive);
    Ok((spec, shipped.map_or("", |(_, text)| text).to_string()))
}

/// The name of the file that [`load`] reads, without its folder.
pub(crate) fn file_name(drive: &str) -> String {
    match Path::new(drive).file_name() {
        Some(name) if is_file(drive) => name.to_string_lossy().into_owned(),
        _ => format!("{drive}.toml"),
    }
}
