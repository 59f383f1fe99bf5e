//! Why the write pointers of an emulated disk cannot be used.

use std::io;

/// Why the write pointers of an earlier run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ZonesError {
    /// The file has the write pointers of a disk that is divided otherwise, or a hot block table.
    #[error(
        "it does not hold write pointers of these zones; name a file that does not exist, and the emulator creates it"
    )]
    OtherZones,
    /// A number is out of its range.
    #[error(
        "the write pointers that it keeps are damaged: {written} of {sectors} blocks of zone {zone} are written"
    )]
    Damaged {
        /// The number of the zone.
        zone: usize,
        /// The number met.
        written: u64,
        /// Blocks of the zone.
        sectors: u64,
    },
    /// The file cannot be read or written.
    #[error("its write pointers: {0}")]
    File(#[from] io::Error),
}
