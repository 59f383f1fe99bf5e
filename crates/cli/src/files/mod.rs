//! Files the command reads and writes.

mod apart;
mod output;

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

pub(crate) use apart::check_apart;
pub(crate) use output::{NewFile, Output, is_standard, write_whole};

/// Bytes that a text may have: drives, rigs, nodes, loads and parameters have some thousands.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a text file, without the byte order mark that some editors put before it.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = read(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::Input(format!("{}: byte {place} is not UTF-8 text", path.display()))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// Reads a file of bounded length: a longer one is none of the kinds that are read whole, and a device may never end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("more than {} MiB, which no file of this kind has", MOST_BYTES >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
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
