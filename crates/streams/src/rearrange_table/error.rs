//! Why the region of a disk cannot be used.

use headstack_model::spec::Fault;
use std::io;

/// A region that is damaged, of another disk, or impossible. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Both labels are damaged.
    #[error(
        "the labels of its reserved region are damaged (pages {0} and {1}): restore the last 8 KiB of the disk from a backup, or give the \
         copies up with `headstack rearrange dissolve --discard-copies`"
    )]
    DamagedLabels(u64, u64),
    /// A later version wrote the label.
    #[error("its reserved region has format {0} (known: 1): use the version of headstack that wrote it")]
    Version(u32),
    /// The label was written on a disk of another size.
    #[error(
        "its reserved region was made on a disk of {made} bytes, and this one has {bytes}: use the disk that the region was made on, or \
         a copy of exactly its size"
    )]
    OtherSize {
        /// Bytes of the disk on which the region was made.
        made: u64,
        /// Bytes of this disk.
        bytes: u64,
    },
    /// A label names places that no region has.
    #[error(
        "the label of its reserved region is invalid ({0}): restore the last 8 KiB of the disk from a backup, or discard the copies with \
         `headstack rearrange dissolve --discard-copies`"
    )]
    Impossible(String),
    /// Both copies of a page of the table are damaged.
    #[error(
        "page {0} of its hot block table is damaged in both copies: restore the disk from a backup, or discard the copies with `headstack \
         rearrange dissolve --discard-copies`"
    )]
    DamagedPage(u32),
    /// A page of the table has the identifier of another region.
    #[error(
        "page {0} of its hot block table is of another disk's region: restore the disk from a backup, or discard the copies with \
         `headstack rearrange dissolve --discard-copies`"
    )]
    OtherTable(u32),
    /// The table names a block that the disk lacks, or one block twice.
    #[error(
        "its hot block table is invalid (slot {slot}, block {block}): restore the disk from a backup, or discard the copies with \
         `headstack rearrange dissolve --discard-copies`"
    )]
    Contradiction {
        /// The slot of the entry.
        slot: u32,
        /// Its block.
        block: u64,
    },
    /// The region is being dissolved.
    #[error("its reserved region is half dissolved: run `headstack rearrange dissolve` again")]
    HalfDissolved,
    /// A size or a place that a region cannot have.
    #[error(transparent)]
    Region(#[from] Fault),
    /// The disk could not be read.
    #[error("its hot block table: {0}")]
    Read(#[from] io::Error),
}
