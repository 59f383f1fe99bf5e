//! Files the command reads and writes.

use crate::failure::Failure;
use crate::interrupt::Listed;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let bytes = fs::read(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::Input(format!("{}: byte {place} is not UTF-8 text", path.display()))
    })
}

/// Opens a file to read.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    let fault = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    File::open(path).map_err(fault)
}

/// Makes a folder and those that it lies in, where they are not there.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    let fault = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    fs::create_dir_all(path).map_err(fault)
}

/// Writes a file whole or not at all: beside its place first, then renamed.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    NewFile::beside(path)?.fill(content)
}

/// A file that is written beside its place, and put there once it is whole. Dropped before, it leaves nothing behind. A terminal or a
/// pipe is not replaced but written to; of a link the file is replaced that it leads to.
pub(crate) struct NewFile {
    beside: tempfile::NamedTempFile,
    /// Has a second signal remove it. It stands after the file, so that it outlives it.
    _listed: Listed,
    /// As it was told.
    path: PathBuf,
    /// What is replaced: of a link the file that it leads to.
    end: PathBuf,
    is_special: bool,
}

impl NewFile {
    /// A new file that is to lie at `path`.
    ///
    /// *Errors:* it cannot be written, or is a disk.
    pub(crate) fn beside(path: &Path) -> Result<NewFile, Failure> {
        use std::os::unix::fs::FileTypeExt;
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(|found| found.file_type().is_block_device()) {
            return Err(Failure::Input(format!("{}: a disk, which no file is written over", path.display())));
        }
        let is_other = found.is_some_and(|found| !found.is_file() && !found.is_dir());
        let is_special = is_other || is_of_the_system(path);
        let is_link = !is_special && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        let end =
            is_link.then(|| fs::canonicalize(path).ok()).flatten().unwrap_or_else(|| path.to_path_buf());
        let elsewhere = std::env::temp_dir();
        let folder = match end.parent() {
            _ if is_special => &elsewhere,
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (beside, _listed) = Listed::make(|| new_file(folder), |file| file.path())
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        Ok(NewFile { beside, _listed, path: path.to_path_buf(), end, is_special })
    }

    /// A new file for each path that was given, so that a place that cannot be written is told before the work is done.
    pub(crate) fn if_named(path: Option<&Path>) -> Result<Option<NewFile>, Failure> {
        path.map(NewFile::beside).transpose()
    }

    /// Writes all of it and puts it in its place.
    pub(crate) fn fill(mut self, content: &[u8]) -> Result<(), Failure> {
        let written = self.write_all(content);
        written.map_err(|error| Failure::Input(format!("{}: {error}", self.path.display())))?;
        self.keep()
    }

    /// Where it is to lie, as it was told.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it there.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        let fault = |error: io::Error| Failure::Input(format!("{}: {error}", self.path.display()));
        if self.is_special {
            let mut to = File::options().append(true).open(&self.path).map_err(fault)?;
            return io::copy(&mut self.beside.reopen().map_err(fault)?, &mut to).map(|_| ()).map_err(fault);
        }
        self.beside.persist(&self.end).map_err(|error| fault(error.error))?;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.beside.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.beside.flush()
    }
}

/// Whether a path is one of the system's names for what is open, as `/dev/stdout` is for a file.
fn is_of_the_system(path: &Path) -> bool {
    let is_there = |path: &Path| path.starts_with("/dev/fd") || path.starts_with("/proc");
    is_there(path) || fs::read_link(path).is_ok_and(|end| is_there(&end))
}

fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    fn written(path: &Path, content: &str) {
        write_whole(path, content.as_bytes()).unwrap_or_else(|failure| panic!("{failure}"));
    }

    fn is_link(path: &Path) -> bool {
        fs::symlink_metadata(path).expect("it is there").is_symlink()
    }

    #[test]
    fn is_a_device_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let link = folder.path().join("null");
        symlink("/dev/null", &link).expect("the folder is writable");
        written(&link, "gone");
        assert!(is_link(&link), "it was replaced");
        let open = tempfile::NamedTempFile::new_in(folder.path()).expect("the folder is writable");
        let stdout = folder.path().join("stdout");
        symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &stdout).expect("the folder is writable");
        written(&stdout, "told");
        assert!(is_link(&stdout), "it was replaced");
        assert_eq!(read_text(open.path()).ok().as_deref(), Some("told"));
    }

    #[test]
    fn is_a_link_written_through_under_the_name_that_was_told() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        written(&file, "kept");
        symlink(&file, &link).expect("the folder is writable");
        written(&link, "linked");
        assert!(is_link(&link), "it was replaced");
        assert_eq!(read_text(&file).ok().as_deref(), Some("linked"));
        let told = folder.path().join("..").join(folder.path().file_name().expect("it has a name"));
        for path in [link, told.join("link"), told.join("file")] {
            let new = NewFile::beside(&path).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(new.path(), path, "messages and names are those that were told");
        }
    }
}
