//! The reference data, where they are at hand.

use headstack_disksim::{Imported, import};
use headstack_model::spec::SpecError;
use std::path::{Path, PathBuf};

/// The folder with DiskSim's files, or `None` (said aloud) where it is not at hand.
pub(crate) fn disksim() -> Option<PathBuf> {
    let folder = std::env::var_os("HEADSTACK_REFERENCE").map(|path| PathBuf::from(path).join("disksim"));
    if folder.is_none() {
        eprintln!("skipped: HEADSTACK_REFERENCE does not name the folder with the reference data");
    }
    folder
}

/// Imports a file; those that it names lie in `specs`.
pub(crate) fn import_file(folder: &Path, path: &Path) -> Result<Imported, SpecError> {
    let text = std::fs::read_to_string(path).expect("the reference is readable");
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    import(&text, &name, |name| {
        std::fs::read_to_string(folder.join("specs").join(name)).map_err(|error| error.to_string())
    })
}
