//! `headstack rig check`.

use super::load;
use crate::failure::Failure;
use std::io::Write;

/// Check rig files: every key, whether the parts fit each other, and whether the rig can be simulated.
///
/// Prints an "ok" line for each valid file. The first error ends the check: the command prints file, line, key
/// and what is allowed, with exit code 1.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The rig files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

impl Check {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for file in &self.files {
            let rig = load::check(file)?;
            rig.build(0).map_err(|error| Failure::Check(error.to_string()))?;
            let volumes = rig.volumes().len();
            writeln!(out, "ok: {file}: {volumes} volume{}", if volumes == 1 { "" } else { "s" })?;
        }
        Ok(())
    }
}
