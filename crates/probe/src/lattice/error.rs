//! Why no lattice was found.

use headstack_model::Lbn;

/// Why the tracks of a disk could not be found from the times of its answers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LatticeError {
    /// There is next to nothing to read.
    #[error("the disk has {0} physical sectors; at least 1000 are needed")]
    TooSmall(u64),
    /// Repeated reads of a block do not end at equal intervals.
    #[error(
        "no rotation found: {steady} of {reads} reads of one place ended at equal intervals (at least {needed} needed)"
    )]
    NoPeriod {
        /// Reads of one place.
        reads: usize,
        /// Those that came at a whole number of turns after the others.
        steady: usize,
        /// Those that have to.
        needed: usize,
    },
    /// All answers come from a cache.
    #[error(
        "all answers come from a cache (block {lbn} in {micros} µs, after {others} others were read); turn it off, or read past it"
    )]
    Cached {
        /// The block read.
        lbn: Lbn,
        /// Time of the last answer.
        micros: u64,
        /// Blocks read meanwhile.
        others: usize,
    },
    /// A block comes at another angle each time.
    #[error("block {lbn} came at {reads} angles in {reads} reads; the answers are too unsteady")]
    Unsteady {
        /// The block read.
        lbn: Lbn,
        /// How often.
        reads: usize,
    },
    /// Nothing can be read here.
    #[error("blocks {lbn} and around it cannot be read")]
    Unreadable {
        /// The block read.
        lbn: Lbn,
    },
    /// Sectors far from each other come at one angle.
    #[error(
        "all sectors from block {lbn} on come at one angle; no disk does that, but a device without a platter may"
    )]
    NoSectors {
        /// Where they begin.
        lbn: Lbn,
    },
    /// No break in the angles is seen where a track must have ended.
    #[error(
        "no skew: from block {lbn} on the angles run through more than a turn without a break, so tracks cannot be told apart by angle"
    )]
    NoSkew {
        /// Where the track began.
        lbn: Lbn,
    },
    /// Verification refutes what was found.
    #[error(
        "the map is not reliable: {percent_wrong} % of the verified boundaries were wrong, and {percent_doubtful} % of the blocks are in doubt; do physical sectors begin at multiples of {physical_sectors} blocks?"
    )]
    Unreliable {
        /// Of the boundaries drawn last.
        percent_wrong: u32,
        /// Of the disk's blocks.
        percent_doubtful: u32,
        /// Blocks of a physical sector.
        physical_sectors: u32,
    },
    /// Nothing fits.
    #[error("lost at block {lbn}: the last {tracks} tracks follow no rule")]
    Lost {
        /// Where it was given up.
        lbn: Lbn,
        /// Tracks that each had to be found by itself.
        tracks: usize,
    },
}
