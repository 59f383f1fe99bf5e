//! Studies: does the simulator agree with what was published? Each module sets up and runs one study, and compares its numbers with the
//! published ones.
//!
//! A study has a folder `studies/<id>` with a README and `expect.tsv`, which [`expect`] reads. Its module computes each metric in the
//! simulator, and [`judge`] compares it with its row. A row names its source and its tolerance. In a full run, a published metric that was
//! not computed counts as a miss, so that no row is dropped unnoticed. [`study::all`] lists the studies; each is a module with a `STUDY`,
//! and an entry in that list.

pub mod everyday;
pub mod expect;
mod interfaces;
pub mod judge;
mod modern_drives;
mod ncq;
mod rearrangement;
mod runs;
mod scheduling;
pub mod set_ups;
mod st2000dm006;
mod streams;
mod striping;
pub mod study;
mod today;
mod traxtents;
pub mod validation;
