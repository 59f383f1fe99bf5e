//! Rigs by name or by file.

use crate::failure::Failure;
use crate::files;
use headstack_model::{DriveSpec, SpecError, drives};
use headstack_sim::rig::{Rig, RigError, shipped};
use std::path::Path;

/// The rig of this name or in this file; a drive, or a drive file, is a rig of that drive alone.
pub(crate) fn load(name: &str) -> Result<Rig, Failure> {
    if !is_file(name) {
        return shipped::load(name).map_err(Failure::input);
    }
    from_file(name)?.map_err(Failure::input)
}

/// The rig in a file, or that of the drive in it. The drive files that it names are looked for from its folder.
///
/// *Errors:* the outer one, a file that cannot be read.
pub(crate) fn from_file(name: &str) -> Result<Result<Rig, RigError>, Failure> {
    let text = files::read_text(Path::new(name))?;
    // A drive file has a geometry, and a rig has none outside its drives.
    if toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("geometry")) {
        return Ok(DriveSpec::parse(&text, name).map(Rig::from_drive).map_err(RigError::from));
    }
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    Ok(Rig::parse(&text, name, &mut |preset| drive(preset, folder)))
}

/// The drive of this name, or in this file.
fn drive(preset: &str, folder: &Path) -> Result<DriveSpec, SpecError> {
    if !is_file(preset) {
        return drives::load(preset);
    }
    let path = folder.join(preset);
    let origin = path.display().to_string();
    match files::read_text(&path) {
        Ok(text) => DriveSpec::parse(&text, &origin),
        Err(failure) => {
            let message = match failure {
                Failure::Input(message) | Failure::Check(message) => message,
                other => other.to_string(),
            };
            let message = message.strip_prefix(&format!("{origin}: ")).unwrap_or(&message).to_string();
            Err(SpecError { origin, line: 0, key: String::new(), message })
        }
    }
}

/// The files among the name of a rig and that of a load.
pub(crate) fn read_files<'a>(rig: &'a str, load: &'a str) -> Vec<&'a Path> {
    let rig = is_file(rig).then_some(Path::new(rig));
    rig.into_iter().chain([Path::new(load)]).collect()
}

/// Whether a word names a file: it holds a `/` or ends with `.toml`.
fn is_file(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".toml")
}
