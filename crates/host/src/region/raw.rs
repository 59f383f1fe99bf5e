//! A disk by blocking calls, for the time in which no node serves it.

use super::CHUNK;
use crate::disk::stored_disk_bytes;
use crate::node::open_file;
use headstack_streams::rearrange_table::{LABELS_BYTES, PAGE_BYTES, RecoveredTable, RegionLabel, TableError};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// How often opening a disk in use is tried again, and the pause between two tries: two seconds in all.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct RawDisk {
    pub(super) file: File,
    /// Bytes of the disk; an emulated disk's file has more.
    pub(super) bytes: u64,
}

impl RawDisk {
    /// Opens a disk. Waits briefly for one in use, because the system releases the disk of a node some moments after that has ended.
    pub(super) fn open(path: &Path, read_only: bool) -> io::Result<RawDisk> {
        let mut tries = 0;
        let (file, bytes) = loop {
            match open_file(path, read_only) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                    tries += 1;
                    #[allow(clippy::disallowed_methods, reason = "no event reports that a lock is free")]
                    std::thread::sleep(PAUSE);
                }
                opened => break opened?,
            }
        };
        let bytes = stored_disk_bytes(&file, bytes)?;
        Ok(RawDisk { file, bytes })
    }

    /// The end of the last whole page.
    pub(super) fn end(&self) -> u64 {
        self.bytes - self.bytes % PAGE_BYTES as u64
    }

    pub(super) fn read(&self, first: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, first)
    }

    pub(super) fn write(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, first)
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(super) fn find(&self) -> Result<Option<RegionLabel>, TableError> {
        RecoveredTable::find(self.bytes, &mut |first, into| self.read(first, into))
    }

    pub(super) fn table(&self, label: RegionLabel) -> Result<RecoveredTable, TableError> {
        RecoveredTable::read(label, &mut |first, into| self.read(first, into))
    }

    /// Writes both labels, the second one first: one of them is whole at any moment, if one was before.
    pub(super) fn write_labels(&self, label: &RegionLabel) -> io::Result<()> {
        let (page, first) = (label.encode(), self.end() - LABELS_BYTES as u64);
        for number in [1, 0] {
            self.write(first + number * PAGE_BYTES as u64, &page)?;
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn erase_labels(&self) -> io::Result<()> {
        let first = self.end() - LABELS_BYTES as u64;
        for number in [1, 0] {
            self.erase(first + number * PAGE_BYTES as u64, PAGE_BYTES as u64)?;
            self.flush()?;
        }
        Ok(())
    }

    /// Makes a run zeros, and frees its space where the system can do that.
    pub(super) fn erase(&self, first: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if bytes == 0 || fallocate(&self.file, flags, first, bytes).is_ok() {
            return Ok(());
        }
        let zeros = vec![0; CHUNK];
        chunks(first, bytes).try_for_each(|(at, length)| self.write(at, &zeros[..length]))
    }

    /// The first byte of a run that is not zero.
    pub(super) fn first_data(&self, first: u64, bytes: u64) -> io::Result<Option<u64>> {
        let mut read = vec![0; CHUNK];
        for (at, length) in chunks(first, bytes) {
            self.read(at, &mut read[..length])?;
            if let Some(place) = read[..length].iter().position(|byte| *byte != 0) {
                return Ok(Some(at + place as u64));
            }
        }
        Ok(None)
    }
}

/// A run in parts of at most [`CHUNK`] bytes: first byte and length.
fn chunks(first: u64, bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let end = first + bytes;
    (first..end).step_by(CHUNK).map(move |at| (at, (end - at).min(CHUNK as u64) as usize))
}
