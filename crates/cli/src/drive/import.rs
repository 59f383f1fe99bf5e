//! `headstack drive import`.

use crate::failure::Failure;
use crate::files;
use crate::parameters::Parameters;
use std::io::Write;
use std::path::PathBuf;

/// Convert a drive in DiskSim's parameter language to a drive file.
///
/// Keys that cannot be converted are reported on standard error, one per line.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// A .diskspecs, .model or .parv file of DiskSim.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write the drive file. [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A folder with files that FILE names. They are searched in FILE's folder, then in this one, then in the folders
    /// next to FILE's.
    #[arg(long, value_name = "FOLDER")]
    search: Vec<PathBuf>,
}

impl Import {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        files::check_apart(&[&self.file], &[("--output", self.output.as_deref())])?;
        let mut parameters = Parameters::open(&self.file, &self.search)?;
        let imported = parameters.import(|text, name, read| headstack_disksim::import(text, name, read))?;
        let drive = imported.spec.to_toml();
        match &self.output {
            Some(path) => files::write_whole(path, drive.as_bytes())?,
            None => out.write_all(drive.as_bytes())?,
        }
        parameters.tell(imported.not_carried);
        Ok(())
    }
}
