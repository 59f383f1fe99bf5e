//! The stream scheduler before a disk of a few lines.

mod drawn;
mod laws;
mod world;
mod writers;
mod zoned;
