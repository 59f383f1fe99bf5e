//! `headstack drive import`.

use crate::failure::Failure;
use crate::files;
use headstack_model::import;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Turn a drive in DiskSim's parameter language into a drive file.
///
/// What cannot be carried over is told on standard error, a line for each key.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// A .diskspecs, .model or .parv file of DiskSim.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to write the drive file; standard output when absent.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A folder with files that FILE names. They are looked for beside it, then here, then in the folders next to its own.
    #[arg(long, value_name = "FOLDER")]
    search: Vec<PathBuf>,
}

impl Import {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let text =
            read(&self.file).map_err(|error| Failure::Input(format!("{}: {error}", self.file.display())))?;
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut found =
            Found { folders: self.folders(), paths: BTreeMap::from([(name.clone(), self.file.clone())]) };
        let imported = import::import(&text, &name, |name| found.read(name)).map_err(|mut error| {
            error.origin = found.path_of(&error.origin);
            Failure::input(error)
        })?;
        let drive = imported.spec.to_toml();
        match &self.output {
            Some(path) => files::write_whole(path, drive.as_bytes())?,
            None => out.write_all(drive.as_bytes())?,
        }
        for mut left in imported.not_carried {
            left.file = found.path_of(&left.file);
            eprintln!("not carried over: {left}");
        }
        Ok(())
    }

    /// Where to look for files that the imported one names, in order.
    fn folders(&self) -> Vec<PathBuf> {
        let own = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
        let mut next_to_it: Vec<PathBuf> = fs::read_dir(own.join(".."))
            .map(|entries| entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
            .unwrap_or_default();
        next_to_it.sort();
        std::iter::once(own).chain(self.search.iter().cloned()).chain(next_to_it).collect()
    }
}

/// Where the files that an import names were found.
struct Found {
    folders: Vec<PathBuf>,
    paths: BTreeMap<String, PathBuf>,
}

impl Found {
    fn read(&mut self, name: &str) -> Result<String, String> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let path = found.ok_or_else(|| "no such file (--search names folders to look in)".to_string())?;
        let text = read(&path).map_err(|error| error.to_string())?;
        self.paths.insert(name.to_string(), path);
        Ok(text)
    }

    /// The path of a file by its name in the language; the name itself where the file was not found.
    fn path_of(&self, name: &str) -> String {
        self.paths.get(name).map_or(name.to_string(), |path| path.display().to_string())
    }
}

/// Old parameter files are not always UTF-8 in their comments.
fn read(path: &Path) -> std::io::Result<String> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}
