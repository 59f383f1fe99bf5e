//! The geometry against disks laid out sector by sector, for every layout and sparing.

mod banded;
mod drives;
mod errors;
mod extents;
mod laws;
mod maxtor;
mod zoned;
