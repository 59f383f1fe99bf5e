//! Drives by name or by file.

use crate::failure::Failure;
use crate::files;
use clap::Args;
use headstack_model::DriveSpec;
use std::path::Path;

/// The option `--drive`, the same in every command.
#[derive(Args)]
pub(crate) struct DriveArg {
    /// A shipped drive (`headstack drive list`) or a drive file.
    #[arg(long, value_name = "NAME|FILE")]
    pub drive: String,
}

impl DriveArg {
    pub(crate) fn load(&self) -> Result<DriveSpec, Failure> {
        load(&self.drive)
    }
}

/// The drive of this name, or in this file: what holds a `/` or ends with `.toml` is a file.
pub(crate) fn load(drive: &str) -> Result<DriveSpec, Failure> {
    if drive.contains(['/', '\\']) || drive.ends_with(".toml") {
        let text = files::read_text(Path::new(drive))?;
        return DriveSpec::parse(&text, drive).map_err(Failure::input);
    }
    let shipped = shipped();
    if let Some(found) = shipped.iter().find(|spec| spec.name == drive) {
        return Ok(found.clone());
    }
    let near = |spec: &&DriveSpec| (strsim::jaro_winkler(&spec.name, drive) * 1e6) as u64;
    let hint = shipped.iter().max_by_key(near).filter(|spec| near(spec) > 800_000);
    let hint = hint.map_or(String::new(), |spec| format!("; did you mean `{}`?", spec.name));
    Err(Failure::Input(format!("no drive is called `{drive}`{hint} (`headstack drive list` shows them)")))
}

/// All shipped drives, by name.
pub(crate) fn shipped() -> Vec<DriveSpec> {
    Vec::new()
}
