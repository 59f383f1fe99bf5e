//! The hot block table on a disk: what survives a crash of a rearranger.
//!
//! The last bytes of the disk hold two labels, which make the region recognisable and say where it is. Before them are the saved counts of
//! references, and the table in two copies of checksummed pages. `docs/formats/rearrange-table.md` has every field.
//!
//! This module has no clock and does no I/O: it encodes and decodes pages, recovers the table from bytes that a reader supplies, and
//! decides which page is written when ([`TableWriter`]).
//!
//! *Why no crash loses data.* A block has one place in force at any time, its home or its copy, and the table names it.
//! 1. A change is written only after a flush that follows the transfer of the block: the new place has the block's data.
//! 2. A change is in force only after a flush that follows the write of its page. Until then no request writes to the block.
//! 3. Of the two copies of a page, the second is written after the first is durable. A torn write therefore leaves one whole copy: the
//!    state before the change or after it. Both places of a block have the same data then.
//! 4. A copy counts as newer than its home, unless the table was closed in an orderly way after its last use.
//!
//! *Source:* our own; the paper (Akyürek and Salem 1995) says nothing of crashes.

mod counts;
mod error;
mod label;
mod page;
mod placement;
mod recovery;
mod writer;

pub use counts::SavedCounts;
pub use error::TableError;
pub use label::{RegionLabel, RegionRequest, RegionState, SECTOR_BYTES, scan_labels};
pub use placement::{PlacementCopies, PlacementError, PlacementTable};
pub use recovery::RecoveredTable;
pub use writer::{TableStep, TableWriter};

/// Bytes of a page: labels, pages of the table and heads of counts are as long, and are written whole. A multiple of every disk's sector.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of the two labels at the end of a disk.
pub const LABELS_BYTES: usize = 2 * PAGE_BYTES;
