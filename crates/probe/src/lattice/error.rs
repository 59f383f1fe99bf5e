//! Errors of the lattice extraction.

use headstack_model::Lbn;

/// Why the tracks of a disk could not be found from the times of its answers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LatticeError {
    #[error("the disk has {0} physical sectors; at least 1000 are needed")]
    TooSmall(u64),
    #[error(
        "no rotation found: {steady} of {reads} reads of one place ended at equal intervals (at least {needed} needed)"
    )]
    NoPeriod { reads: usize, steady: usize, needed: usize },
    #[error(
        "all answers come from a cache (block {lbn} in {micros} µs, after {others} others were read); turn it off, or read past it"
    )]
    Cached { lbn: Lbn, micros: u64, others: usize },
    #[error("block {lbn} came at {reads} angles in {reads} reads; the answers are too unsteady")]
    Unsteady { lbn: Lbn, reads: usize },
    #[error("blocks {lbn} and around it cannot be read")]
    Unreadable { lbn: Lbn },
    #[error(
        "all sectors from block {lbn} on come at one angle; no disk does that, but a device without a platter may"
    )]
    NoSectors { lbn: Lbn },
    #[error(
        "no skew: from block {lbn} on the angles run through more than a turn without a break, so angles do not distinguish tracks"
    )]
    NoSkew { lbn: Lbn },
    #[error(
        "the map is not reliable: {percent_wrong} % of the verified boundaries were wrong, and {percent_doubtful} % of the blocks are in doubt; do physical sectors begin at multiples of {physical_sectors} blocks?"
    )]
    Unreliable { percent_wrong: u32, percent_doubtful: u32, physical_sectors: u32 },
    #[error("lost at block {lbn}: the last {tracks} tracks follow no rule")]
    Lost { lbn: Lbn, tracks: usize },
}
