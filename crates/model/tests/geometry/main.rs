//! The geometry compared with disks that are laid out sector by sector, for every layout and kind of sparing.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod banded;
mod drives;
mod errors;
mod extents;
mod laws;
mod maxtor;
mod zoned;
