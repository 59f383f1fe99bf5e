//! The journal file.

use crate::failure::Failure;
use crate::files;
use headstack_probe::journal::{Head, Journal, JournalError, Record, is_enough};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

/// The recorded answers, and the output for new ones.
pub(super) struct Kept {
    pub(super) known: Vec<Record>,
    pub(super) to: Box<dyn Write>,
}

/// Opens a journal: a new one, or one to resume.
///
/// *Errors:* it cannot be written; a new one exists already; there is none to resume; it is damaged, or of another disk.
pub(super) fn open(path: Option<&Path>, resume: bool, head: &Head) -> Result<Kept, Failure> {
    let Some(path) = path else { return Ok(Kept { known: Vec::new(), to: Box::new(io::sink()) }) };
    let at = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    if !resume {
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        at("the journal exists already: --resume continues from it".to_string())
                    }
                    _ => at(error.to_string()),
                }
            })?;
        file.write_all(head.text().as_bytes()).map_err(|error| at(error.to_string()))?;
        return Ok(Kept { known: Vec::new(), to: Box::new(file) });
    }
    let journal = Journal::read(BufReader::new(files::open(path)?)).map_err(|error| match error {
        JournalError::Head { line: 1, met, .. } if met.is_empty() => at("it is empty".to_string()),
        error => at(error.to_string()),
    })?;
    journal.fits(head).map_err(|error| at(error.to_string()))?;
    // If its answers are too few to identify the disk, they are discarded, and all probes are sent again.
    let (known, whole) = if is_enough(&journal.records) {
        (journal.records, journal.whole)
    } else {
        (Vec::new(), head.text().len() as u64)
    };
    let file = append(path, whole).map_err(|error| at(error.to_string()))?;
    Ok(Kept { known, to: Box::new(file) })
}

/// Truncates a file to `bytes` bytes and opens it for writing at its end.
fn append(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}
