//! The stream scheduler before a disk of a few lines.

mod drawn;
mod laws;
mod limits;
mod world;
mod writers;
mod zoned;
