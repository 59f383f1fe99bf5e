//! The geometry against disks laid out sector by sector, for every layout and sparing.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod banded;
mod drives;
mod errors;
mod extents;
mod laws;
mod maxtor;
mod zoned;
