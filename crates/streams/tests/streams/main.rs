//! The stream scheduler in front of a simple disk.

mod drawn;
mod laws;
mod limits;
mod world;
mod writers;
mod zoned;
