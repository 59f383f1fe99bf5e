//! Benchmarks of disks through a file system: [`Bonnie`], [`Iozone`] and, without a file system, [`DeviceTiming`].
//!
//! Each gives the phases of an [`Ext2Session`](super::ext2::Ext2Session). Modelled: the calls and the programs' own processor time.
//! Not modelled: the time to start a process.

mod bonnie;
mod hdparm;
mod iozone;

pub use bonnie::Bonnie;
pub use hdparm::DeviceTiming;
pub use iozone::Iozone;

/// The start and the length of each piece of `bytes` bytes.
fn pieces(bytes: u64, piece: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(piece)).map(move |index| (index * piece, piece.min(bytes - index * piece)))
}
