//! `headstack drive import`.

use crate::failure::Failure;
use std::io::Write;
use std::path::PathBuf;

/// Turn a drive in DiskSim's parameter language into a drive file.
///
/// Files it names with `source` are looked for beside it. What cannot be carried over is told on standard error.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// A .diskspecs, .model or .parv file of DiskSim.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write the drive file; standard output when absent.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Import {
    pub(super) fn run(&self, _out: &mut dyn Write) -> Result<(), Failure> {
        Err(Failure::Input(format!("{} {:?}", self.file.display(), self.output)))
    }
}
