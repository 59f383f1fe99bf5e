//! The mark in a store's file that says which disk its bytes belong to.
//!
//! It follows the disk's bytes at the end of the file, so that other programs find those at their offsets, and `cp`, `scp` and
//! `tar` copy it (an extended attribute or a second file would be lost). It is a page of zeros except for three lines: format, disk,
//! size in bytes. Between a disk's bytes and the mark lie the hot block table of a disk with copies and the write pointers of a disk with
//! zones; a fourth line then says how many bytes these take.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Size of the mark: a whole number of sectors of any disk.
const MARK_BYTES: u64 = 4096;
/// First line of the mark: its format.
const FIRST_LINE: &str = "headstack disk 1";
/// Longest name of a disk, in bytes.
const OWNER_BYTES: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) owner: String,
    pub(super) bytes: u64,
    /// Number of bytes between those of the disk and the mark.
    pub(super) table: u64,
}

impl Mark {
    /// The mark at the end of a file of this length, if there is one.
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
            let table = lines.next().and_then(|line| line.strip_prefix("table "));
            let table = table.map_or(Some(0), |table| table.parse().ok())?;
            Some(Mark { owner, bytes, table })
        })();
        Ok(mark.filter(|mark| mark.bytes.checked_add(mark.table) == Some(start)))
    }

    /// Writes the mark behind the bytes, extending the file.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\ndisk {}\nbytes {}\n", self.owner(), self.bytes);
        if self.table > 0 {
            text += &format!("table {}\n", self.table);
        }
        let mut page = text.into_bytes();
        page.resize(MARK_BYTES as usize, 0);
        file.write_all_at(&page, self.bytes + self.table)
    }

    /// Checks that the file holds the data of this disk.
    ///
    /// *Errors:* the data are another disk's.
    pub(super) fn admits(&self, disk: &Mark) -> io::Result<()> {
        if self.bytes == disk.bytes && self.owner == disk.owner() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "it holds the data of {}, {} bytes, and this is {} with {}; name a new file to create one",
                self.owner,
                self.bytes,
                disk.owner(),
                disk.bytes
            ),
        ))
    }

    /// The error for a file of this length without a mark.
    pub(super) fn refuse(&self, held: u64) -> io::Error {
        let message = format!(
            "it holds {held} bytes and no data of a disk, and {} has {}; name a new file to create one (an \
             image of the disk has exactly its bytes)",
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
