//! `headstack rig keys`: every key of a rig file, from its definition in the library.

use crate::failure::Failure;
use crate::keys;
use headstack_sim::rig;
use std::io::Write;

/// List every key of a rig file except those of its drives: type, unit, default, meaning.
#[derive(clap::Args)]
pub(crate) struct Keys {
    /// Print a JSON Schema, for editors that check and complete TOML.
    #[arg(long)]
    json_schema: bool,
    /// Print every path that `--set` accepts, including those of the drives and the short forms.
    #[arg(long, conflicts_with = "json_schema")]
    paths: bool,
}

impl Keys {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.paths {
            return keys::write(out, &rig::json_schema(), self.json_schema);
        }
        for path in rig::all_paths() {
            let short: Vec<&str> =
                rig::ALIASES.iter().filter(|(_, full)| *full == path).map(|(short, _)| *short).collect();
            if short.is_empty() {
                writeln!(out, "{path}")?
            } else {
                writeln!(out, "{path} (or {})", short.join(", "))?
            }
        }
        Ok(())
    }
}
