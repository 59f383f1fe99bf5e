//! The geometry against disks laid out sector by sector, for every layout and sparing.

mod banded;
mod extents;
mod laws;
mod zoned;
