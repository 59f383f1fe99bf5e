//! The translation layer of a drive-managed shingled disk: which place on the media has a block's newest data, and how the drive moves
//! data from its persistent cache to their bands.
//!
//! The host's blocks lie in bands of shingled tracks, each at a fixed place (static mapping). A write into a band damages the tracks
//! behind it, so a band is written only as a whole. All other writes are appended to a log in the persistent cache, and a map of
//! extents names the newest copy of each block. Cleaning takes the band of the log's oldest live extent (FIFO), reads it, merges its
//! cached extents, writes the result to a scratch area, then to the band.
//!
//! *Why no power cut loses data.*
//! 1. A record of the log is in force once it is whole on the media: its header has its sequence number, its extents and a checksum.
//! 2. A band is written over only after the merged band is whole in the scratch area, with a header. Recovery repeats the write.
//! 3. Extents leave the map with a record that says so. Without it, recovery applies them again, which changes nothing.
//! 4. The anchor names the oldest record that counts. The log reuses space only up to the anchor on the media.
//!
//! A whole band of new data goes to its place without the cache. Then a power cut costs the old data of blocks behind the head, all of
//! which the host was writing: they are unreadable until it writes them again. *Assumption:* no drive's firmware is published.
//!
//! Not modelled: data (the owner moves them), damaged headers beyond torn ones, bands of different sizes.
//!
//! *Source:* Aghayev and Desnoyers, Skylight: A Window on Shingled Disk Operation, FAST 2015, sections 4 and 5: cache at the outer
//! diameter, static mapping, FIFO cleaning by read-modify-write of whole bands. Headers, anchor and scratch area are our own.

mod band_extents;
mod cleaning;
mod extents;
mod layout;
mod log;
mod messages;
mod recovery;
mod translation;

pub use layout::{ShingleLayout, ShingleLayoutError};
pub use messages::{
    BandCleaned, CleaningStep, LoggedExtent, MediaPlace, ScratchHeader, ShingleAnchor, ShingleRecord,
};
pub use recovery::ShingleMedia;
pub use translation::{LogIsFull, ShingleTranslation};
