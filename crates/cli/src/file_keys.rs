//! `headstack keys`: every key of a kind of file, from its definition in the library.

use crate::failure::Failure;
use crate::keys;
use crate::serve::NodeSpec;
use headstack::workload::LoadSpec;
use headstack_model::DriveSpec;
use headstack_sim::rig;
use headstack_sweep::SweepFile;
use schemars::schema_for;
use std::io::Write;

/// List every key of a kind of file: type, range, unit, default, meaning.
#[derive(clap::Args)]
pub(crate) struct FileKeys {
    /// The kind of file.
    kind: FileKind,
    /// Print a JSON Schema, for editors that check and complete TOML.
    #[arg(long)]
    json_schema: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FileKind {
    Drive,
    Rig,
    Node,
    Load,
    Sweep,
}

impl FileKeys {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let schema = match self.kind {
            FileKind::Drive => DriveSpec::json_schema().to_value(),
            FileKind::Rig => rig::json_schema(),
            FileKind::Node => schema_for!(NodeSpec).to_value(),
            FileKind::Load => schema_for!(LoadSpec).to_value(),
            FileKind::Sweep => schema_for!(SweepFile).to_value(),
        };
        keys::write(out, &schema, self.json_schema)
    }
}
