//! `headstack rig import`.

use crate::failure::{self, Failure};
use crate::files;
use crate::parameters::Parameters;
use headstack_disksim::rig;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Convert a set-up in DiskSim's parameter language to a rig file, and its synthetic load to a load file.
///
/// Keys that cannot be converted are reported on standard error, one per line.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// A .parv file of DiskSim.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write the rig file. [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where to write the load file. [default: next to the rig file, with `-load` before the ending]
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// A folder with files that FILE names. They are searched in FILE's folder, then in this one, then in the folders
    /// next to FILE's.
    #[arg(long, visible_alias = "specs", value_name = "FOLDER")]
    search: Vec<PathBuf>,
}

impl Import {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let load = self.load.clone().or_else(|| self.output.as_deref().map(load_path));
        let outputs = [("--output", self.output.as_deref()), ("--load", load.as_deref())];
        files::check_apart(&[&self.file], &outputs)?;
        let mut parameters = Parameters::open(&self.file, &self.search)?;
        let imported = parameters.import(|text, name, read| rig::import(text, name, read))?;
        match &self.output {
            Some(path) => files::write_whole(path, imported.rig.as_bytes())?,
            None => out.write_all(imported.rig.as_bytes())?,
        }
        match (&imported.load, load) {
            (Some(load), Some(path)) => files::write_whole(&path, load.as_bytes())?,
            (Some(_), None) => failure::print_note("not written: the synthetic load (--load FILE)"),
            (None, _) => {}
        }
        parameters.tell(imported.not_carried);
        Ok(())
    }
}

/// `x-load.toml` next to `x.toml`.
fn load_path(rig: &Path) -> PathBuf {
    let stem = rig.file_stem().unwrap_or_default().to_string_lossy();
    rig.with_file_name(format!("{stem}-load.toml"))
}
