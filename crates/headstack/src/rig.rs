//! Rigs and drives by name or from a file.

use crate::error::Error;
use crate::files::{FileSource, read_text};
use headstack_model::{DriveSpec, SpecError, drives};
use headstack_sim::RigError;
use headstack_sim::rig::{Rig, shipped};
use std::path::Path;

/// The shipped rig or drive of this name, or that of a file; a drive becomes a rig of that drive alone. A name that contains `/`
/// or ends with `.toml` is a file.
///
/// *Errors:* an unknown name, with the nearest; the file cannot be read or is invalid.
pub fn load_rig(name: &str, files: &dyn FileSource) -> Result<Rig, Error> {
    if is_file(name) { read_rig(name, files) } else { Ok(shipped::load(name)?) }
}

/// The rig of a rig file, or of the drive in a drive file. The drive files that a rig names are relative to its folder.
///
/// *Errors:* the file cannot be read or is invalid.
pub fn read_rig(path: &str, files: &dyn FileSource) -> Result<Rig, Error> {
    let text = read_text(files, Path::new(path))?;
    // A drive file has a geometry, and a rig has none outside its drives.
    if toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("geometry")) {
        return Ok(Rig::from_drive(DriveSpec::parse(&text, path).map_err(RigError::from)?));
    }
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    Ok(Rig::parse(&text, path, &mut |preset| preset_drive(preset, folder, files))?)
}

/// The shipped drive of this name, or that of a drive file, as for [`load_rig`].
///
/// *Errors:* an unknown name, with the nearest; the file cannot be read or is invalid.
pub fn load_drive(name: &str, files: &dyn FileSource) -> Result<DriveSpec, Error> {
    if is_file(name) {
        return Ok(DriveSpec::parse(&read_text(files, Path::new(name))?, name)?);
    }
    Ok(drives::load(name)?)
}

/// Whether a word names a file: it contains `/` or ends with `.toml`.
pub fn is_file(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".toml")
}

fn preset_drive(preset: &str, folder: &Path, files: &dyn FileSource) -> Result<DriveSpec, SpecError> {
    if !is_file(preset) {
        return drives::load(preset);
    }
    let path = folder.join(preset);
    let origin = path.display().to_string();
    match read_text(files, &path) {
        Ok(text) => DriveSpec::parse(&text, &origin),
        Err(Error::Read { file, message }) => {
            Err(SpecError { origin: file, line: 0, key: String::new(), message })
        }
        Err(error) => Err(SpecError { origin, line: 0, key: String::new(), message: error.to_string() }),
    }
}
