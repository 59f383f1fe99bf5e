//! `headstack drive check`.

use crate::failure::Failure;
use crate::files;
use crate::units::grouped;
use headstack_model::{DriveSpec, Geometry, SpecError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Check drive files: every key, and whether zones, spares, defects and capacity fit each other.
///
/// Prints an "ok" line for each valid file, and a "note" line for each value that is allowed but seldom
/// intended. The first error ends the check: the command prints file, line, key and what is allowed, with
/// exit code 1.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The drive files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for file in &self.files {
            let text = files::read_text(file)?;
            let (spec, geometry) = check(&text, file).map_err(|error| Failure::Check(error.to_string()))?;
            let tracks = u64::from(spec.geometry.heads) * u64::from(spec.geometry.cylinders);
            let (sectors, tracks) = (grouped(geometry.sectors()), grouped(tracks));
            writeln!(out, "ok: {}: {}: {sectors} sectors on {tracks} tracks", file.display(), spec.name)?;
            for note in spec.notes(&geometry, &text, &file.display().to_string()) {
                writeln!(out, "note: {note}")?;
            }
        }
        Ok(())
    }
}

fn check(text: &str, file: &Path) -> Result<(DriveSpec, Geometry), SpecError> {
    let spec = DriveSpec::parse(text, &file.display().to_string())?;
    let geometry = Geometry::new(&spec)?;
    Ok((spec, geometry))
}
