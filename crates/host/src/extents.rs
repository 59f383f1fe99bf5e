//! The location of a file's blocks on its device.

use fiemap::{Fiemap, FiemapExtent, FiemapExtentFlags as Flags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Extents of a file in bytes of the device, in the file's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Extents; those adjacent in the file and on the device are merged.
    pub(super) extents: Vec<Range<u64>>,
    /// Extents without blocks of their own: stored with the file's metadata.
    pub(super) inline: u64,
}

/// Queries the file system for the extents of a file.
///
/// *Errors:* it does not report them, or blocks are not allocated yet, or what it reports is no place on the device.
///
/// *Source:* kernel documentation, filesystems/fiemap.
pub(super) fn first_extents(file: &File) -> Result<Place, String> {
    refuse_other_addresses(file)?;
    let extents: io::Result<Vec<FiemapExtent>> = Fiemap::new(file).collect();
    let extents = extents.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => {
            "its file system does not tell where files lie (no FIEMAP)".to_string()
        }
        _ => format!("its extents: {error}"),
    })?;
    let mut place = Place::default();
    let mut follows = None;
    for extent in &extents {
        match kind(extent.fe_flags)? {
            Kind::Inline => place.inline += 1,
            Kind::Blocks => {
                let (begin, end) = (extent.fe_physical, extent.fe_physical + extent.fe_length);
                match place.extents.last_mut() {
                    Some(last) if follows == Some((extent.fe_logical, begin)) => last.end = end,
                    _ => place.extents.push(begin..end),
                }
                follows = Some((extent.fe_logical + extent.fe_length, end));
            }
        }
    }
    Ok(place)
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
