//! Why the hot block table of an emulated disk cannot be used.

use headstack_streams::rearrange_table::PlacementError;
use std::io;

/// Why the copies of an earlier run cannot be used. The data can.
#[derive(Debug, thiserror::Error)]
pub enum CopiesError {
    /// The table cannot be used.
    #[error("{0}; the data do not depend on it")]
    Table(#[from] PlacementError),
    /// The file has room for the table of another region.
    #[error(
        "its hot block table is that of another region ({held} bytes; the rig's has {needed}); the data do not depend on it"
    )]
    OtherSize {
        /// Bytes between the disk's and the mark.
        held: u64,
        /// Bytes that the rig's table needs.
        needed: u64,
    },
    /// The file cannot be read or written.
    #[error("its hot block table: {0}")]
    File(#[from] io::Error),
}
