//! Where the blocks of a file lie on its device.

use fiemap::{Fiemap, FiemapExtent, FiemapExtentFlags as Flags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;

/// A file's place: bytes of the device, from extent to extent in the file's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Extents; adjacent ones that continue each other in the file are one.
    pub(super) extents: Vec<Range<u64>>,
    /// Extents of no blocks of their own: what is kept with the file's metadata.
    pub(super) inline: u64,
}

/// Asks the file system where a file lies.
///
/// *Errors:* it cannot tell, or there is no place yet, or what it tells is no place on the device.
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

/// btrfs tells addresses of its own, which it lays on devices in another way.
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
    // What is encrypted block by block lies where it would lie in clear.
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
