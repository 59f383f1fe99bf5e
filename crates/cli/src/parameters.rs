//! DiskSim's parameter files, and the files that they name.

use crate::failure::{self, Failure};
use crate::files;
use headstack_disksim::NotCarried;
use headstack_model::SpecError;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A parameter file, and the paths of the files that it names.
pub(crate) struct Parameters {
    text: String,
    name: String,
    folders: Vec<PathBuf>,
    paths: BTreeMap<String, PathBuf>,
}

/// Returns the text of a file that the imported file names.
type Reader<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

impl Parameters {
    /// Reads a file; the files it names are searched next to it, in `search`, and in sibling folders.
    pub(crate) fn open(file: &Path, search: &[PathBuf]) -> Result<Parameters, Failure> {
        let text = read(file).map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let paths = BTreeMap::from([(name.clone(), file.to_path_buf())]);
        Ok(Parameters { text, name, folders: folders(file, search), paths })
    }

    /// Imports the file; an error has the path of the file at fault.
    pub(crate) fn import<T>(
        &mut self,
        import: impl FnOnce(&str, &str, Reader<'_>) -> Result<T, SpecError>,
    ) -> Result<T, Failure> {
        let (folders, paths) = (&self.folders, &mut self.paths);
        let mut reader = |name: &str| {
            let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            let path = found.ok_or_else(|| "no such file (--search names folders to look in)".to_string())?;
            let text = read(&path).map_err(|error| error.to_string())?;
            paths.insert(name.to_string(), path);
            Ok(text)
        };
        let imported = import(&self.text, &self.name, &mut reader);
        imported.map_err(|mut error| {
            error.origin = self.path_of(&error.origin);
            Failure::input(error)
        })
    }

    /// Prints a line for each item that the import did not carry over.
    pub(crate) fn tell(&self, not_carried: Vec<NotCarried>) {
        for mut left in not_carried {
            left.file = self.path_of(&left.file);
            failure::print_note(&format!("not carried over: {left}"));
        }
    }

    /// The path of a file by its name in the parameter file; the name itself if it was not found.
    fn path_of(&self, name: &str) -> String {
        self.paths.get(name).map_or(name.to_string(), |path| path.display().to_string())
    }
}

fn folders(file: &Path, search: &[PathBuf]) -> Vec<PathBuf> {
    let own = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let mut next_to_it: Vec<PathBuf> = fs::read_dir(own.join(".."))
        .map(|entries| entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
        .unwrap_or_default();
    next_to_it.sort();
    std::iter::once(own).chain(search.iter().cloned()).chain(next_to_it).collect()
}

/// Reads a file, where other bytes than UTF-8 are replaced: comments of old parameter files have such bytes.
fn read(path: &Path) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&files::read(path)?).into_owned())
}
