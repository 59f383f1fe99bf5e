//! Files that are written whole or not at all, or standard output instead.

use crate::failure::Failure;
use crate::interrupt;
use crate::temporary::Listed;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes a file whole or not at all: to a temporary file, then renamed.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    NewFile::beside(path)?.fill(content)
}

/// An output file. It is written as a temporary file in its folder and renamed once it is complete; if dropped before, it is removed. A
/// terminal or a pipe gets a copy of the complete content. For a link, the file that it leads to is replaced; root may not write through a link,
/// because another user may have made it. A replacement keeps the file's mode, and its owner if possible.
pub(crate) struct NewFile {
    beside: tempfile::NamedTempFile,
    /// Lets a second signal remove the file. It is declared behind the file, so that it is dropped later.
    _listed: Listed,
    path: PathBuf,
    /// The replaced file; for a link, the file that it leads to.
    end: PathBuf,
    is_special: bool,
}

impl NewFile {
    /// A new file for `path`.
    ///
    /// *Errors:* it cannot be written, or is a disk.
    pub(crate) fn beside(path: &Path) -> Result<NewFile, Failure> {
        NewFile::create(path, !rustix::process::geteuid().is_root())
    }

    fn create(path: &Path, follows_links: bool) -> Result<NewFile, Failure> {
        if is_standard(path) {
            return Err(Failure::Input(
                "-: only --json, --requests and traces go to standard output; a file of that name is ./-"
                    .to_string(),
            ));
        }
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(|found| found.file_type().is_block_device()) {
            return Err(Failure::Input(format!("{}: a disk, which no file is written over", path.display())));
        }
        if found.as_ref().is_some_and(|found| found.is_dir()) {
            return Err(Failure::Input(format!(
                "{}: a folder, where a file is to be written",
                path.display()
            )));
        }
        let is_other = found.is_some_and(|found| !found.is_file());
        let is_special = is_other || is_of_the_system(path);
        let is_link = !is_special && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        if is_link && !follows_links {
            return Err(Failure::Input(format!(
                "{}: a link, which root does not write through; name the file that it leads to",
                path.display()
            )));
        }
        let end =
            is_link.then(|| fs::canonicalize(path).ok()).flatten().unwrap_or_else(|| path.to_path_buf());
        let elsewhere = std::env::temp_dir();
        let folder = match end.parent() {
            _ if is_special => &elsewhere,
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let fault = |error: io::Error| {
            // The message leaves out the name of the temporary file.
            let error = error.to_string();
            let error = error.split(" at path ").next().unwrap_or_default();
            Failure::Input(format!("{}: the folder {}: {error}", path.display(), folder.display()))
        };
        let (beside, _listed) = Listed::make(|| new_file(folder), |file| file.path()).map_err(fault)?;
        if !is_special && let Ok(replaced) = fs::metadata(&end) {
            keep_access(beside.as_file(), &replaced)
                .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        }
        Ok(NewFile { beside, _listed, path: path.to_path_buf(), end, is_special })
    }

    /// A new file for the path, if one is given. Commands call this before their work, so that an unwritable place is reported early.
    pub(crate) fn if_named(path: Option<&Path>) -> Result<Option<NewFile>, Failure> {
        path.map(NewFile::beside).transpose()
    }

    /// Writes the whole content and moves the file to its place.
    pub(crate) fn fill(mut self, content: &[u8]) -> Result<(), Failure> {
        let written = self.write_all(content);
        written.map_err(|error| Failure::Input(format!("{}: {error}", self.path.display())))?;
        self.keep()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn keep(self) -> Result<(), Failure> {
        let fault = |error: io::Error| Failure::Input(format!("{}: {error}", self.path.display()));
        if self.is_special {
            let mut to = open_special(&self.path).map_err(fault)?;
            return io::copy(&mut self.beside.reopen().map_err(fault)?, &mut to).map(|_| ()).map_err(fault);
        }
        self.beside.persist(&self.end).map_err(|error| fault(error.error))?;
        Ok(())
    }
}

// The file without its name, because the errors of the named one have the temporary name.
impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.beside.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.beside.as_file_mut().flush()
    }
}

/// Opens a device or a pipe to append to it. Waits for the reader of a named pipe until a signal asks for the end.
fn open_special(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.append(true);
    if !fs::metadata(path)?.file_type().is_fifo() {
        return options.open(path);
    }
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    loop {
        match options.open(path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                if interrupt::is_requested() {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "the pipe has no reader"));
                }
                #[allow(clippy::disallowed_methods, reason = "no event reports that a pipe has a reader")]
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => {
                let file = opened?;
                fcntl_setfl(&file, fcntl_getfl(&file)? & !OFlags::NONBLOCK)?;
                return Ok(file);
            }
        }
    }
}

/// Copies the owner and mode of the replaced file, so that a private file stays private.
fn keep_access(file: &fs::File, replaced: &fs::Metadata) -> io::Result<()> {
    // Only root may change the owner.
    let _ = std::os::unix::fs::fchown(file, Some(replaced.uid()), Some(replaced.gid()));
    file.set_permissions(fs::Permissions::from_mode(replaced.mode() & 0o777))
}

/// Whether a path is one of the system's names for open files, such as `/dev/stdout`.
fn is_of_the_system(path: &Path) -> bool {
    let is_there = |path: &Path| path.starts_with("/dev/fd") || path.starts_with("/proc");
    is_there(path) || fs::read_link(path).is_ok_and(|end| is_there(&end))
}

fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".headstack-");
    #[cfg(unix)]
    {
        // Other users may read a report: its mode is what the user's umask allows, not the 0600 of a temporary file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// The target of an output: a file, or standard output for `-`.
pub(crate) enum Output {
    File(NewFile),
    Standard(io::Stdout),
}

impl Output {
    /// The output that `path` names.
    ///
    /// *Errors:* the file cannot be written, or is a disk.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        Ok(if is_standard(path) {
            Output::Standard(io::stdout())
        } else {
            Output::File(NewFile::beside(path)?)
        })
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Output::File(file) => file.path().display().to_string(),
            Output::Standard(_) => "standard output".to_string(),
        }
    }

    pub(crate) fn fault(name: &str, error: io::Error) -> Failure {
        match name {
            "standard output" => Failure::Output(error),
            _ => Failure::Input(format!("{name}: {error}")),
        }
    }

    pub(crate) fn keep(self) -> Result<(), Failure> {
        match self {
            Output::File(file) => file.keep(),
            Output::Standard(mut out) => Ok(out.flush()?),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(file) => file.write(bytes),
            Output::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) => file.flush(),
            Output::Standard(out) => out.flush(),
        }
    }
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::super::read_text;
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
    fn device_is_written_and_not_replaced() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let link = folder.path().join("null");
        symlink("/dev/null", &link).expect("the folder is writable");
        written(&link, "gone");
        assert!(is_link(&link), "it was replaced");
        let open = tempfile::NamedTempFile::new_in(folder.path()).expect("the folder is writable");
        let stdout = folder.path().join("stdout");
        symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &stdout).expect("the folder is writable");
        written(&stdout, "text");
        assert!(is_link(&stdout), "it was replaced");
        assert_eq!(read_text(open.path()).ok().as_deref(), Some("text"));
    }

    #[test]
    fn link_is_written_through_under_its_own_name() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        written(&file, "kept");
        symlink(&file, &link).expect("the folder is writable");
        let through = |path: &Path| NewFile::create(path, true).unwrap_or_else(|failure| panic!("{failure}"));
        through(&link).fill(b"linked").unwrap_or_else(|failure| panic!("{failure}"));
        assert!(is_link(&link), "it was replaced");
        assert_eq!(read_text(&file).ok().as_deref(), Some("linked"));
        let reported = folder.path().join("..").join(folder.path().file_name().expect("it has a name"));
        for path in [link, reported.join("link"), reported.join("file")] {
            assert_eq!(through(&path).path(), path, "messages and names are those that were given");
        }
    }

    #[test]
    fn link_is_rejected_when_root_writes() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        written(&file, "kept");
        symlink(&file, &link).expect("the folder is writable");
        let refused = NewFile::create(&link, false).err().expect("it is a link").to_string();
        assert!(refused.contains("a link, which root does not write through"), "{refused}");
        assert_eq!(read_text(&file).ok().as_deref(), Some("kept"));
    }

    #[test]
    fn replaced_file_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let file = folder.path().join("file");
        written(&file, "secret");
        for mode in [0o600, 0o640, 0o666] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("it is ours");
            written(&file, "new");
            assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o7777, mode);
        }
    }

    #[test]
    fn missing_folder_is_reported_without_the_hidden_file() {
        let refused =
            NewFile::beside(Path::new("/nonexistent/x")).err().expect("there is no folder").to_string();
        assert_eq!(
            refused,
            "/nonexistent/x: the folder /nonexistent: No such file or directory (os error 2)"
        );
    }
}
