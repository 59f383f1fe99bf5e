//! The reference data, where they are at hand.

use headstack_disksim::{Imported, import};
use headstack_model::spec::SpecError;
use std::path::{Path, PathBuf};

/// The folder with DiskSim's files; nothing, and a recorded skip, where it is missing.
pub(crate) fn disksim() -> Option<PathBuf> {
    headstack_prerequisites::reference_data("disksim")
}

/// Imports a file; those that it names lie in `specs`.
pub(crate) fn import_file(folder: &Path, path: &Path) -> Result<Imported, SpecError> {
    let text = std::fs::read_to_string(path).expect("the reference is readable");
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    import(&text, &name, |name| {
        std::fs::read_to_string(folder.join("specs").join(name)).map_err(|error| error.to_string())
    })
}
