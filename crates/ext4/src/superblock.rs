//! The superblock: its position, its flags, and changes of its state.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4 ("Data Structures and Algorithms").

use crate::Shape;
use crate::bytes::{checksum, put_u16, put_u32, read_at, read_u32, write_at};
use crate::error::FormatError;
use std::fs::File;

/// Offset and length of the superblock in bytes.
const OFFSET: u64 = 1024;
const BYTES: usize = 1024;
/// A bit above all known `INCOMPAT` features. Neither the kernel nor e2fsck accepts a file system with an unknown feature, so
/// that this bit keeps an unfinished one from being mounted.
pub(crate) const UNFINISHED: u32 = 0x4000_0000;
/// Offsets of `s_state`, `s_feature_incompat`, `s_feature_ro_compat` and `s_checksum`.
const STATE: usize = 0x3A;
pub(crate) const INCOMPATIBLE: usize = 0x60;
pub(crate) const READ_ONLY: usize = 0x64;
const CHECKSUM: usize = 0x3FC;
/// `RO_COMPAT_METADATA_CSUM`: metadata have checksums.
pub(crate) const METADATA_CHECKSUMS: u32 = 0x400;
/// Offsets of the low and high half of the free block count.
const FREE_BLOCKS: (usize, usize) = (0xC, 0x158);
/// Bytes that mke2fs erases first, at the start of a disk.
const HEAD_BYTES: usize = 4096;

/// A value of `s_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Cleanly unmounted.
    Clean = 1,
    /// Errors were detected: e2fsck has to run, and the kernel warns at the next mount.
    Errors = 2,
}

pub(crate) fn read(file: &File) -> Result<Vec<u8>, FormatError> {
    let mut bytes = vec![0; BYTES];
    read_at(file, &mut bytes, OFFSET)?;
    Ok(bytes)
}

/// Writes a superblock with its checksum, and syncs the disk.
fn write(file: &File, mut bytes: Vec<u8>) -> Result<(), FormatError> {
    if read_u32(&bytes, READ_ONLY) & METADATA_CHECKSUMS != 0 {
        let sum = checksum(!0, &bytes[..CHECKSUM]);
        put_u32(&mut bytes, CHECKSUM, sum);
    }
    write_at(file, &bytes, OFFSET)?;
    file.sync_all().map_err(FormatError::File)
}

/// Writes a copy of `superblock` with which the file system cannot be mounted.
pub(crate) fn write_unfinished(file: &File, superblock: &[u8]) -> Result<(), FormatError> {
    let mut bytes = superblock.to_vec();
    put_u16(&mut bytes, STATE, State::Errors as u16);
    let features = read_u32(&bytes, INCOMPATIBLE) | UNFINISHED;
    put_u32(&mut bytes, INCOMPATIBLE, features);
    write(file, bytes)
}

/// Writes a superblock in state [`State::Clean`] with `taken` fewer free blocks.
pub(crate) fn write_clean(file: &File, mut bytes: Vec<u8>, taken: u64) -> Result<(), FormatError> {
    let (low, high) = FREE_BLOCKS;
    let free = u64::from(read_u32(&bytes, low)) | u64::from(read_u32(&bytes, high)) << 32;
    let free = free.checked_sub(taken);
    let free = free.ok_or_else(|| FormatError::Malformed("the number of free blocks".to_string()))?;
    put_u32(&mut bytes, low, free as u32);
    put_u32(&mut bytes, high, (free >> 32) as u32);
    put_u16(&mut bytes, STATE, State::Clean as u16);
    write(file, bytes)
}

/// Erases the first 4 KiB of a disk, so that no earlier file system is found there while another is made.
///
/// *Errors:* those of the file.
pub fn erase_head(file: &File) -> Result<(), FormatError> {
    write_at(file, &[0; HEAD_BYTES], 0)?;
    file.sync_all().map_err(FormatError::File)
}

/// Records a state in the superblock.
///
/// *Errors:* those of the file, and a superblock that is no ext4's.
pub fn put_state(file: &File, state: State) -> Result<(), FormatError> {
    let mut bytes = read(file)?;
    Shape::new(&bytes)?;
    put_u16(&mut bytes, STATE, state as u16);
    write(file, bytes)
}
