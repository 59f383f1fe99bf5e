//! The mark behind a disk's bytes in a file: which disk they are of.
//!
//! It stands at the end of the file, so that the bytes before it are the disk's, at their places, for any program, and so
//! that it survives what copies a file: `cp`, `scp`, `tar`, with holes or without. (Extended attributes and a file beside do
//! not.) A page of zeros but for three lines: what it is, the disk, its bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the mark: a whole sector of any disk.
const MARK_BYTES: u64 = 4096;
/// Its first line.
const FIRST_LINE: &str = "headstack disk 1";
/// The longest name of a disk that it holds.
const OWNER_BYTES: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) owner: String,
    pub(super) bytes: u64,
}

impl Mark {
    /// The mark at the end of a file of this length, if it has one.
    pub(super) fn read_from(file: &File, length: u64) -> io::Result<Option<Mark>> {
        let Some(start) = length.checked_sub(MARK_BYTES) else { return Ok(None) };
        let mut page = [0; MARK_BYTES as usize];
        file.read_exact_at(&mut page, start)?;
        let text = String::from_utf8_lossy(&page);
        let mut lines = text.split('\n');
        let mark = (|| {
            (lines.next()? == FIRST_LINE).then_some(())?;
            let owner = lines.next()?.strip_prefix("disk ")?.to_string();
            let bytes = lines.next()?.strip_prefix("bytes ")?.parse().ok()?;
            Some(Mark { owner, bytes })
        })();
        Ok(mark.filter(|mark| mark.bytes == start))
    }

    /// Puts it behind the bytes, which makes the file as long as it has to be.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let text = format!("{FIRST_LINE}\ndisk {}\nbytes {}\n", self.owner(), self.bytes);
        let mut page = text.into_bytes();
        page.resize(MARK_BYTES as usize, 0);
        file.write_all_at(&page, self.bytes)
    }

    /// Whether the bytes of this mark are those of a disk.
    ///
    /// *Errors:* they are another's.
    pub(super) fn admits(&self, disk: &Mark) -> io::Result<()> {
        if self.bytes == disk.bytes && self.owner == disk.owner() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "it holds the data of {}, {} bytes, and this is {} with {}; name a file that is not there, and it is made",
                self.owner,
                self.bytes,
                disk.owner(),
                disk.bytes
            ),
        ))
    }

    /// What is said of a file of this length that holds no disk.
    pub(super) fn refuse(&self, held: u64) -> io::Error {
        let message = format!(
            "it holds {held} bytes and no data of a disk, and {} has {}; name a file that is not there, and it is made (an \
             image of the disk has just its bytes)",
            self.owner(),
            self.bytes
        );
        io::Error::new(io::ErrorKind::InvalidInput, message)
    }

    fn owner(&self) -> String {
        let line: String = self.owner.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let end = line.char_indices().map(|(at, _)| at).take_while(|at| *at <= OWNER_BYTES).last();
        if line.len() <= OWNER_BYTES { line } else { line[..end.unwrap_or(0)].to_string() }
    }
}
