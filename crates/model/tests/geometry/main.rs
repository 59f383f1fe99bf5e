//! The geometry against disks laid out sector by sector, for every layout and sparing.

mod banded;
mod laws;
mod zoned;
