//! Storage of a disk's bytes: a sparse file, or memory that behaves like one.
//!
//! A hole reads as zeros and takes no space. The store has no model of time; the host determines its speed.

use super::copies_error::CopiesError;
use super::mark::Mark;
use super::unwritten::Content;
use super::zones_error::ZonesError;
use crate::{BlockError, StatusExtent};
use headstack_streams::rearrange_table::PAGE_BYTES;
use rustix::fs::{FallocateFlags, MemfdFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The bytes of a volume.
#[derive(Debug)]
pub struct Store {
    file: File,
    bytes: u64,
    /// The mark at the end of the file; none in memory.
    mark: Option<Mark>,
}

impl Store {
    /// A store of `bytes` in memory; bytes never written take no space.
    ///
    /// *Errors:* the system has no such memory.
    pub fn memory(bytes: u64) -> io::Result<Store> {
        let file = File::from(rustix::fs::memfd_create("headstack", MemfdFlags::CLOEXEC)?);
        file.set_len(bytes)?;
        Ok(Store { file, bytes, mark: None })
    }

    /// A store of `bytes` in a sparse file, which is created if missing; its contents stay. A mark behind the bytes names the
    /// disk. A file of exactly this size without a mark, as an image of a real disk, gets one; the second result says whether it
    /// did.
    ///
    /// *Errors:* the file cannot be opened or created, or another program uses it as a store ([`io::ErrorKind::ResourceBusy`]); it has
    /// another disk's data, or none of any disk.
    pub fn file(path: &Path, bytes: u64, owner: &str) -> io::Result<(Store, bool)> {
        let mut options = OpenOptions::new();
        // Only regular files are opened: opening a pipe could wait forever.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let in_use = || io::Error::new(io::ErrorKind::ResourceBusy, "another program keeps a disk in it");
        file.try_lock().map_err(|_| in_use())?;
        let mut mark = Mark { owner: owner.to_string(), bytes, table: 0 };
        let held = file.metadata()?.len();
        let unmarked = match Mark::read_from(&file, held)? {
            Some(found) => {
                mark.table = found.table;
                found.admits(&mark).map(|()| false)
            }
            None if held == 0 => mark.write(&file).map(|()| false),
            None if held == bytes => mark.write(&file).map(|()| true),
            None => Err(mark.refuse(held)),
        }?;
        Ok((Store { file, bytes, mark: Some(mark) }, unmarked))
    }

    /// The file, and the offset in it of a hot block table of `bytes` bytes, which begins at the next page boundary after the disk's bytes;
    /// `None` in memory. If the file has no table, or `forget` is set, it gets a table of zeros.
    ///
    /// *Errors:* the file has a table of another size; it cannot be written.
    pub(super) fn table(&mut self, bytes: u64, forget: bool) -> Result<Option<(File, u64)>, CopiesError> {
        let Some(mark) = &mut self.mark else { return Ok(None) };
        let first = self.bytes.next_multiple_of(PAGE_BYTES as u64);
        let needed = first - self.bytes + bytes;
        if forget || mark.table == 0 {
            // A file of just the disk's bytes is accepted, should the program be killed before the new mark is written.
            self.file.set_len(self.bytes)?;
            mark.table = needed;
            mark.write(&self.file)?;
        }
        if mark.table != needed {
            return Err(CopiesError::OtherSize { held: mark.table, needed });
        }
        Ok(Some((self.file.try_clone()?, first)))
    }

    /// The file, and the area of `bytes` bytes in it for write pointers, which begins at the next page boundary after the disk's bytes; `None` in
    /// memory. If the file has no such area, it gets one of zeros.
    ///
    /// *Errors:* the file has something else there; it cannot be written.
    pub(super) fn zones_area(&mut self, bytes: u64) -> Result<Option<(File, TableArea)>, ZonesError> {
        let Some(mark) = &mut self.mark else { return Ok(None) };
        let first = self.bytes.next_multiple_of(PAGE_BYTES as u64);
        let needed = first - self.bytes + bytes;
        if mark.table == 0 {
            // A file of just the disk's bytes is accepted, should the program be killed before the new mark is written.
            self.file.set_len(self.bytes)?;
            mark.table = needed;
            mark.write(&self.file)?;
        }
        if mark.table == needed {
            Ok(Some((self.file.try_clone()?, TableArea { first, bytes })))
        } else {
            Err(ZonesError::OtherZones)
        }
    }

    /// The same bytes, read-only.
    #[cfg(test)]
    pub(super) fn read_only(&self) -> Store {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = OpenOptions::new().read(true).open(path).expect("it is open");
        Store { file, bytes: self.bytes, mark: None }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn room(&self) -> u64 {
        // The file is open, so its metadata can be read.
        self.file.metadata().map_or(self.bytes, |metadata| metadata.blocks() * 512)
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.file.read_exact_at(into, offset).map_err(|_| BlockError::Medium)
    }

    /// Writes data; zeros become holes where they may.
    pub(super) fn keep(&self, offset: u64, content: &Content) -> Result<(), BlockError> {
        match content {
            Content::Data(data) => self.write(offset, data),
            Content::Zeros { bytes, may_trim: true } => self.clear(offset, *bytes),
            Content::Zeros { bytes, may_trim: false } => self.fill(offset, *bytes),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        if data.chunks(16).all(|chunk| chunk == &[0; 16][..chunk.len()])
            && self.punch(offset, data.len() as u64)
        {
            return Ok(());
        }
        self.file.write_all_at(data, offset).map_err(full)
    }

    /// Makes a run read as zeros, and frees its space where possible.
    pub(super) fn clear(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        if bytes == 0 || self.punch(offset, bytes) {
            return Ok(());
        }
        self.fill(offset, bytes)
    }

    fn fill(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let mut at = offset;
        while at < offset + bytes {
            let part = (offset + bytes - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..part as usize], at).map_err(full)?;
            at += part;
        }
        Ok(())
    }

    /// Makes a hole; returns whether the file system can.
    fn punch(&self, offset: u64, bytes: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes).is_ok()
    }

    /// Extents of data and holes from `offset` on, at most `most`; the list may end early.
    pub(super) fn allocation(&self, offset: u64, bytes: u64, most: usize) -> Vec<StatusExtent> {
        crate::node::allocation(&self.file, offset, bytes, most)
    }
}

/// The bytes of a store's file from the next page boundary after the disk's bytes to the mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableArea {
    pub(super) first: u64,
    pub(super) bytes: u64,
}

impl TableArea {
    /// The area in a file; `None` if the file has no mark, or nothing before it.
    pub(super) fn find(file: &File) -> io::Result<Option<TableArea>> {
        let Some(mark) = Mark::read_from(file, file.metadata()?.len())? else { return Ok(None) };
        let first = mark.bytes.next_multiple_of(PAGE_BYTES as u64);
        let bytes = (mark.bytes + mark.table).saturating_sub(first);
        Ok((bytes > 0).then_some(TableArea { first, bytes }))
    }
}

/// Bytes of the disk in a file of `bytes`: fewer than the file has where a mark follows them.
///
/// *Errors:* the file cannot be read.
pub fn stored_disk_bytes(file: &File, bytes: u64) -> io::Result<u64> {
    Ok(Mark::read_from(file, bytes)?.map_or(bytes, |mark| mark.bytes))
}

fn full(error: io::Error) -> BlockError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BlockError::NoSpace,
        _ => BlockError::Medium,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write files")]
mod tests {
    use super::*;

    #[test]
    fn memory_reads_as_zeros_until_written() {
        let store = Store::memory(1 << 40).expect("memory that is not used is free");
        let mut read = [7; 512];
        store.read((1 << 40) - 512, &mut read).expect("it is inside");
        assert_eq!(read, [0; 512]);
        store.write(1 << 30, &[9; 4096]).expect("there is room");
        let hole = |bytes| StatusExtent { bytes, hole: true };
        let data = StatusExtent { bytes: 4096, hole: false };
        assert_eq!(store.allocation((1 << 30) - 4096, 12_288, 9), [hole(4096), data, hole(4096)]);
        store.clear(1 << 30, 4096).expect("a hole can be made");
        assert_eq!(store.allocation((1 << 30) - 4096, 12_288, 9), [hole(12_288)]);
    }

    #[test]
    fn file_of_another_disk_or_in_use_is_rejected() {
        let folder = tempfile::tempdir().expect("there is room for it");
        let path = folder.path().join("disk");
        let (store, _) = Store::file(&path, 8192, "wd").expect("it can be made");
        store.write(8191, b"x").expect("there is room");
        let refused = |bytes, owner| Store::file(&path, bytes, owner).expect_err("it is refused").to_string();
        assert_eq!(refused(8192, "wd"), "another program keeps a disk in it");
        drop(store);
        for (bytes, owner) in [(4096, "wd"), (16_384, "wd"), (8192, "atlas"), (12_288, "wd")] {
            let said = refused(bytes, owner);
            assert!(said.starts_with("it holds the data of wd, 8192 bytes, and"), "{said}");
        }
        let (again, unmarked) = Store::file(&path, 8192, "wd").expect("it is its own");
        let mut byte = [0];
        again.read(8191, &mut byte).expect("it is inside");
        assert_eq!((byte[0], unmarked, again.bytes()), (b'x', false, 8192));
    }

    #[test]
    fn file_without_disk_data_is_rejected_and_unchanged() {
        let folder = tempfile::tempdir().expect("there is room for it");
        let path = folder.path().join("notes");
        std::fs::write(&path, "x\n").expect("the folder is writable");
        let said = Store::file(&path, 8192, "wd").expect_err("it is no disk").to_string();
        assert!(said.starts_with("it holds 2 bytes and no data of a disk, and wd has 8192"), "{said}");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"x\n");
        let pipe = Store::file(Path::new("/dev/null"), 8192, "wd").expect_err("it is no file");
        assert_eq!(pipe.to_string(), "it is no file");
    }

    #[test]
    fn file_of_matching_length_is_marked_and_copies_keep_the_mark() {
        let folder = tempfile::tempdir().expect("there is room for it");
        let (path, copy) = (folder.path().join("disk"), folder.path().join("copy"));
        std::fs::write(&path, [7; 8192]).expect("the folder is writable");
        assert!(Store::file(&path, 8192, "wd").expect("it may be a real disk's").1);
        assert!(!Store::file(&path, 8192, "wd").expect("it is its own now").1);
        std::fs::copy(&path, &copy).expect("there is room");
        assert!(Store::file(&copy, 8192, "atlas").is_err());
        let (store, _) = Store::file(&copy, 8192, "wd").expect("it is its own");
        let mut bytes = [0; 8192];
        store.read(0, &mut bytes).expect("it is inside");
        assert_eq!(bytes, [7; 8192]);
    }
}
