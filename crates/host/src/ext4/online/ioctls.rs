//! Two calls of Linux: exchanging blocks of two files of an ext4, and listing its free space.
//!
//! This is a place with `unsafe`, because the kernel gets the addresses of structures, which outlive the calls.
//!
//! *Source:* Linux `fs/ext4/ext4.h` (`struct move_extent`) and `include/uapi/linux/fsmap.h`; ioctl_getfsmap(2).

use rustix::ioctl::{Updater, ioctl, opcode};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `struct move_extent`.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    /// First block in the file, and in the donor.
    first: u64,
    donor_first: u64,
    blocks: u64,
    /// Blocks that were exchanged.
    moved: u64,
}

/// Exchanges blocks of a file with those of a donor, and copies the data to the file's new blocks. The kernel does so in
/// transactions of its journal, so that the file has its content at any time. Returns the number of exchanged blocks.
///
/// *Errors:* the kernel's, after which part of the blocks may have been exchanged.
pub(super) fn exchange(
    file: &File,
    donor: &File,
    first: u64,
    donor_first: u64,
    blocks: u64,
) -> io::Result<u64> {
    const MOVE_EXT: rustix::ioctl::Opcode = opcode::read_write::<MoveExtent>(b'f', 15);
    let donor = donor.as_raw_fd() as u32;
    let mut request = MoveExtent { reserved: 0, donor, first, donor_first, blocks, moved: 0 };
    // SAFETY: the kernel reads and writes one `struct move_extent`, which outlives the call.
    unsafe { ioctl(file, Updater::<MOVE_EXT, _>::new(&mut request)) }?;
    Ok(request.moved)
}

/// Ranges that one call returns.
const RECORDS: usize = 256;

/// `struct fsmap`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct SpaceRecord {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// `struct fsmap_head` without its records.
#[derive(Default)]
#[repr(C)]
struct SpaceQueryHead {
    in_flags: u32,
    out_flags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    /// The lowest and the highest record to return.
    keys: [SpaceRecord; 2],
}

#[repr(C)]
struct SpaceQuery {
    head: SpaceQueryHead,
    records: [SpaceRecord; RECORDS],
}

/// `FMR_OF_SPECIAL_OWNER`, `FMR_OF_LAST` and `FMR_OWN_FREE`.
const SPECIAL_OWNER: u32 = 0x10;
const LAST: u32 = 0x20;
const FREE: u64 = 1;

/// The free space of the file system of a file, in bytes of its device.
///
/// *Errors:* the kernel's.
pub(super) fn free_space(file: &File) -> io::Result<Vec<Range<u64>>> {
    const GETFSMAP: rustix::ioctl::Opcode = opcode::read_write::<SpaceQueryHead>(b'X', 59);
    let highest = SpaceRecord {
        device: u32::MAX,
        flags: u32::MAX,
        physical: u64::MAX,
        owner: u64::MAX,
        offset: u64::MAX,
        ..SpaceRecord::default()
    };
    let mut free = Vec::new();
    let mut lowest = SpaceRecord::default();
    loop {
        let head =
            SpaceQueryHead { count: RECORDS as u32, keys: [lowest, highest], ..SpaceQueryHead::default() };
        let mut query = SpaceQuery { head, records: [SpaceRecord::default(); RECORDS] };
        // SAFETY: the kernel writes at most `count` records behind the head, and there are as many; all outlive the call.
        unsafe { ioctl(file, Updater::<GETFSMAP, _>::new(&mut query)) }?;
        let found = &query.records[..(query.head.entries as usize).min(RECORDS)];
        let is_free = |record: &&SpaceRecord| record.flags & SPECIAL_OWNER != 0 && record.owner == FREE;
        free.extend(found.iter().filter(is_free).map(|one| one.physical..one.physical + one.length));
        match found.last() {
            // The kernel continues behind the record in the key.
            Some(last) if last.flags & LAST == 0 => lowest = *last,
            _ => return Ok(free),
        }
    }
}
