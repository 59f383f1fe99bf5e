//! The location of a file's blocks on its device.

use fiemap::{Fiemap, FiemapExtent, FiemapExtentFlags as Flags, FiemapFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Bytes that are consecutive in a file and on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First byte, counted in the file.
    pub logical: u64,
    /// The bytes of the device.
    pub device: Range<u64>,
}

/// Extents of a file, in the file's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// Extents; those adjacent in the file and on the device are merged.
    pub extents: Vec<FileExtent>,
    /// Extents without blocks of their own: stored with the file's metadata.
    pub inline: u64,
}

/// Queries the file system for the extents of a file.
///
/// *Errors:* it does not report them, or blocks are not allocated yet, or what it reports is no place on the device.
///
/// *Source:* kernel documentation, filesystems/fiemap.
pub fn extents_of(file: &File) -> Result<FileExtents, String> {
    query(file, FiemapFlags::empty())
}

/// As [`extents_of`], after the file's data have been written to the device.
///
/// *Errors:* those of [`extents_of`], if more data arrive meanwhile or the data cannot be written.
pub fn written_extents_of(file: &File) -> Result<FileExtents, String> {
    query(file, FiemapFlags::SYNC)
}

fn query(file: &File, flags: FiemapFlags) -> Result<FileExtents, String> {
    refuse_other_addresses(file)?;
    let extents: io::Result<Vec<FiemapExtent>> = Fiemap::with_flags(file, flags).collect();
    let extents = extents.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => {
            "its file system does not tell where files lie (no FIEMAP)".to_string()
        }
        _ => format!("its extents: {error}"),
    })?;
    let mut found = FileExtents::default();
    let mut follows = None;
    for extent in &extents {
        match kind(extent.fe_flags)? {
            Kind::Inline => found.inline += 1,
            Kind::Blocks => {
                let (logical, begin) = (extent.fe_logical, extent.fe_physical);
                let end = begin + extent.fe_length;
                match found.extents.last_mut() {
                    Some(last) if follows == Some((logical, begin)) => last.device.end = end,
                    _ => found.extents.push(FileExtent { logical, device: begin..end }),
                }
                follows = Some((logical + extent.fe_length, end));
            }
        }
    }
    Ok(found)
}

/// btrfs reports logical addresses, which it maps to devices itself.
fn refuse_other_addresses(file: &File) -> Result<(), String> {
    /// *Source:* statfs(2), the list of types.
    const BTRFS: u64 = 0x9123_683e;
    match rustix::fs::fstatfs(file) {
        Ok(found) if found.f_type as u64 == BTRFS => {
            Err("btrfs does not tell where on the device files lie".to_string())
        }
        _ => Ok(()),
    }
}

enum Kind {
    Blocks,
    Inline,
}

fn kind(flags: Flags) -> Result<Kind, String> {
    if flags.intersects(Flags::DELALLOC | Flags::UNKNOWN) {
        return Err("not all of it is on the disk yet: run sync first".to_string());
    }
    // Encryption block by block does not change the location.
    if flags.contains(Flags::ENCODED) && !flags.contains(Flags::DATA_ENCRYPTED) {
        return Err("it is compressed, so that its extents are longer than what lies on the disk".to_string());
    }
    Ok(if flags.intersects(Flags::DATA_INLINE | Flags::DATA_TAIL) { Kind::Inline } else { Kind::Blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extent_without_a_physical_location_is_rejected() {
        assert!(kind(Flags::DELALLOC | Flags::UNKNOWN).is_err_and(|reported| reported.contains("sync")));
        assert!(kind(Flags::ENCODED).is_err());
        assert!(matches!(kind(Flags::ENCODED | Flags::DATA_ENCRYPTED), Ok(Kind::Blocks)));
        assert!(matches!(kind(Flags::DATA_INLINE | Flags::NOT_ALIGNED), Ok(Kind::Inline)));
        assert!(matches!(kind(Flags::LAST | Flags::UNWRITTEN), Ok(Kind::Blocks)));
    }
}
