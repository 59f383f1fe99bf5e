//! `headstack drive keys`: every key of a drive file, from its definition in the model.

use crate::failure::Failure;
use crate::keys;
use headstack_model::DriveSpec;
use std::io::Write;

/// List every key of a drive file: type, unit, default, meaning.
#[derive(clap::Args)]
pub(crate) struct Keys {
    /// Print a JSON Schema, for editors that check and complete TOML.
    #[arg(long)]
    json_schema: bool,
}

impl Keys {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        keys::write(out, &DriveSpec::json_schema().to_value(), self.json_schema)
    }
}
