//! fio job files: parsing, errors, the loads that they build, and a comparison with fio itself.

#![allow(clippy::disallowed_methods, reason = "tests read files and run fio")]

mod engines;
mod errors;
mod every_job;
mod load;
mod ours;
mod page;
mod priorities;
mod properties;
mod real;
mod shipped;
mod strided;
mod together;
mod verified;
mod zones;
