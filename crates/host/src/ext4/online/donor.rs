//! A file without a name whose preallocated blocks are exchanged with those of other files.
//!
//! ext4 has no call that allocates chosen blocks. A donor therefore allocates more than is needed; the planner then chooses tracks
//! among the blocks that the file system gave. The remaining blocks stay with the donor, so that it never gets the same ones again. They
//! become free when the donor is closed: at the end, or when the process ends, in whatever way.

use super::ioctls;
use super::movable::mapping;
use crate::extents;
use headstack_tracks::relocate::{BlockMove, Mapping, merged};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Divisor of the free space: the result is what a donor may take; the rest is left to others.
const SPARED_SHARE: u64 = 2;

pub(super) struct Donor {
    file: File,
    block_bytes: u64,
    /// Its length in blocks.
    blocks: u64,
    /// Its extents by their place on the disk.
    mappings: Vec<Mapping>,
}

impl Donor {
    /// A donor without blocks on the file system of a folder, near that folder's files.
    ///
    /// *Errors:* the system's.
    pub(super) fn create(folder: &Path, block_bytes: u64) -> io::Result<Donor> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR)?);
        Ok(Donor { file, block_bytes, blocks: 0, mappings: Vec::new() })
    }

    /// Allocates further blocks in requests of this length, for each of which the file system prefers consecutive ones. Returns
    /// whether it had room for all.
    ///
    /// *Errors:* the system's.
    pub(super) fn grow(&mut self, requests: u64, blocks: u64) -> io::Result<bool> {
        let available = rustix::fs::fstatvfs(&self.file)?.f_bavail / SPARED_SHARE;
        let fitting = requests.min(available / blocks.max(1));
        for _ in 0..fitting {
            let first = self.blocks;
            // The kernel exchanges no blocks behind the end of a file, also those of a request that failed half-way.
            self.blocks += blocks;
            self.file.set_len(self.blocks * self.block_bytes)?;
            let (offset, length) = (first * self.block_bytes, blocks * self.block_bytes);
            match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, length) {
                Err(Errno::NOSPC) => return self.refresh().map(|()| false),
                result => result?,
            }
        }
        self.refresh()?;
        Ok(fitting == requests)
    }

    /// Writes all data of the file system to the disk.
    ///
    /// *Errors:* the system's.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.file)?)
    }

    fn refresh(&mut self) -> io::Result<()> {
        let found = extents::extents_of(&self.file).map_err(io::Error::other)?;
        self.mappings = found.extents.iter().map(|extent| mapping(extent, self.block_bytes)).collect();
        self.mappings.sort_by_key(|mapping| mapping.blocks.start);
        Ok(())
    }

    /// Its blocks on the disk, merged where adjacent.
    pub(super) fn free(&self) -> Vec<Range<u64>> {
        // Adjacent on the disk alone: the place in the file does not matter.
        let by_place = self
            .mappings
            .iter()
            .map(|mapping| Mapping { logical: mapping.blocks.start, blocks: mapping.blocks.clone() });
        merged(by_place.collect()).into_iter().map(|mapping| mapping.blocks).collect()
    }

    /// Exchanges blocks of a file with those at the destination of a move.
    ///
    /// *Errors:* the kernel's; part of the blocks may have been exchanged.
    pub(super) fn exchange(&self, file: &File, one: &BlockMove) -> io::Result<()> {
        for part in self.parts(&one.destination) {
            let blocks = part.blocks.end - part.blocks.start;
            let first = one.logical + (part.blocks.start - one.destination.start);
            let mut done = 0;
            while done < blocks {
                match ioctls::exchange(file, &self.file, first + done, part.logical + done, blocks - done)? {
                    // The file ends before these blocks by now.
                    0 => return Err(Errno::NODATA.into()),
                    moved => done += moved,
                }
            }
        }
        Ok(())
    }

    /// The parts of the donor that hold a range of the disk.
    fn parts<'a>(&'a self, range: &'a Range<u64>) -> impl Iterator<Item = Mapping> + 'a {
        let from = self.mappings.partition_point(|mapping| mapping.blocks.end <= range.start);
        let overlapping = self.mappings[from..].iter().take_while(|mapping| mapping.blocks.start < range.end);
        overlapping.map(|mapping| {
            let blocks = mapping.blocks.start.max(range.start)..mapping.blocks.end.min(range.end);
            Mapping { logical: mapping.logical + (blocks.start - mapping.blocks.start), blocks }
        })
    }
}
