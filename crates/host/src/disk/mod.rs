//! The emulated disk without its clock: a machine that is told the time, and the bytes it keeps.
//!
//! The model alone says when an operation is done; the bytes are kept by a [`Store`] at full speed. What the model's drive
//! has taken and not put on its media is held apart from the store, which is therefore at every time what the media hold:
//! a power cut is to forget the rest.
//!
//! What the store does not take because the host has no room is kept beside it, and whoever writes or flushes is told so until it
//! does.
//!
//! *Assumptions:* of data that overwrote each other in a drive's cache, those are on the media that the model says went, by
//! when they were submitted to the drive. Where several had been asked for by then, because one waited before the drive or
//! they came at the same time, the youngest of them count.
//!
//! Not modelled: data that a failing disk garbles; time that TRIM takes.

mod books;
mod emulator;
mod machine;
mod mark;
mod store;
mod task;
mod unwritten;
mod volume;

pub use books::{Books, Count, Kind};
pub use emulator::{Answered, Emulator, EmulatorFaults, Outcome};
pub use store::Store;
pub use volume::Volume;
