//! Files the command reads and writes.

use crate::failure::Failure;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let bytes = fs::read(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::Input(format!("{}: byte {place} is not UTF-8 text", path.display()))
    })
}

/// Writes a file whole or not at all: beside its place first, then renamed.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let fault = |error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut beside = new_file(folder).map_err(fault)?;
    beside.write_all(content).map_err(fault)?;
    beside.persist(path).map_err(|error| fault(error.error))?;
    Ok(())
}

fn new_file(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".headstack-");
    #[cfg(unix)]
    {
        // A report is for others to read too: what the user's mask allows, not the 0600 of a secret.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
