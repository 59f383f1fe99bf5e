//! Access to files through the program: the library opens none itself.

use crate::error::Error;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maximum bytes of a text; drives, rigs, nodes, loads and parameters have some thousands.
const MOST_BYTES: u64 = 16 << 20;

/// Opens the files of rigs, drives, jobs and traces.
///
/// Any function that opens a file is one: `|path: &Path| File::open(path)`.
pub trait FileSource {
    /// Opens a file for reading.
    ///
    /// *Errors:* the operating system's; the library adds the file's name.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>>;

    /// The length of a file in bytes, for the progress of a trace; none if unknown.
    fn length(&self, _path: &Path) -> Option<u64> {
        None
    }

    /// The value of `${NAME}` in a fio job, and of fio's `$pagesize`, `$ncpus` and `$mb_memory`; none if undefined.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}

impl<F, R> FileSource for F
where
    F: Fn(&Path) -> io::Result<R>,
    R: Read + 'static,
{
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(self(path)?))
    }
}

/// A source without files: only shipped rigs and drives, and texts of the program, can be loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn open(&self, _path: &Path) -> io::Result<Box<dyn Read>> {
        Err(io::Error::new(ErrorKind::Unsupported, "this program reads no files"))
    }
}

/// Reads a text file, without a leading byte order mark.
///
/// *Errors:* it cannot be read, is longer than 16 MiB or is not UTF-8.
pub fn read_text(files: &dyn FileSource, path: &Path) -> Result<String, Error> {
    let fault = |message: String| Error::Read { file: path.display().to_string(), message };
    let bytes = files.open(path).and_then(read_bounded).map_err(|error| fault(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        fault(format!("byte {place} is not UTF-8 text"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// Reads a file of limited length, because a device may never end.
///
/// *Errors:* it cannot be read, or is longer than 16 MiB.
pub fn read_bounded(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("more than {} MiB, which no file of this kind has", MOST_BYTES >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8]) -> Result<String, String> {
        let files = |_: &Path| Ok(bytes);
        read_text(&files, Path::new("a.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn endless_file_is_rejected_at_the_size_bound() {
        let files = |_: &Path| Ok(io::repeat(b'a'));
        let refused = read_text(&files, Path::new("a.toml")).expect_err("it never ends").to_string();
        assert_eq!(refused, "a.toml: more than 16 MiB, which no file of this kind has");
    }

    #[test]
    fn byte_order_mark_is_stripped_and_bad_text_is_located() {
        assert_eq!(read("\u{feff}[a]".as_bytes()), Ok("[a]".to_string()));
        assert_eq!(read(b"ab\xff"), Err("a.toml: byte 2 is not UTF-8 text".to_string()));
        let refused = read_text(&NoFiles, Path::new("a.toml")).expect_err("there are no files").to_string();
        assert_eq!(refused, "a.toml: this program reads no files");
    }
}
