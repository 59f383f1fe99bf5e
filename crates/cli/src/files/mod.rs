//! Files that the command reads and writes.

mod apart;
mod output;

use crate::failure::Failure;
use headstack::FileSource;
use nix::unistd::{SysconfVar, sysconf};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

pub(crate) use apart::check_apart;
pub(crate) use output::{NewFile, Output, is_standard, write_whole};

/// Gives the library access to the machine's files, and to its variables for job files.
pub(crate) struct SystemFiles;

impl FileSource for SystemFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
        let file = File::open(path)?;
        Ok(Box::new(file))
    }

    fn length(&self, path: &Path) -> Option<u64> {
        fs::metadata(path).ok().map(|data| data.len())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let system = |what| sysconf(what).ok().flatten();
        let page_size = || system(SysconfVar::PAGE_SIZE);
        match name {
            "$pagesize" => Some(page_size()?.to_string()),
            "$ncpus" => Some(system(SysconfVar::_NPROCESSORS_ONLN)?.to_string()),
            "$mb_memory" => Some(((page_size()? * system(SysconfVar::_PHYS_PAGES)?) >> 20).to_string()),
            #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
            name => std::env::var(name).ok(),
        }
    }
}

/// Reads a text file, without a leading byte order mark.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    headstack::read_text(&SystemFiles, path).map_err(Failure::input)
}

/// Reads a file of limited length, as [`headstack::read_bounded`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    headstack::read_bounded(SystemFiles.open(path)?)
}

pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    let fault = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    File::open(path).map_err(fault)
}

/// Writes what a command prints into a new file, also where it fails because a check did.
pub(crate) fn fill_with(
    path: &Path,
    run: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let file = NewFile::if_named(Some(path))?.expect("it is named");
    let mut text = Vec::new();
    let done = run(&mut text);
    if matches!(done, Ok(()) | Err(Failure::Check(_) | Failure::Stopped(_))) {
        file.fill(&text)?;
    }
    done
}

pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    let fault = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    fs::create_dir_all(path).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_file_is_rejected_at_the_size_bound() {
        let refused = read_text(Path::new("/dev/zero")).expect_err("it never ends").to_string();
        assert_eq!(refused, "/dev/zero: more than 16 MiB, which no file of this kind has");
    }

    #[test]
    fn byte_order_mark_is_stripped_from_text() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let path = folder.path().join("text");
        write_whole(&path, "\u{feff}[a]".as_bytes()).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(read_text(&path).ok().as_deref(), Some("[a]"));
    }
}
