//! *Does it agree* with what was published? One module a study: set-up, run, and its own numbers compared with the published ones.
//!
//! A study has a folder `studies/<id>` with a README and `expect.tsv`, which [`expect`] reads. Its module computes each
//! metric in the simulator; [`judge`] holds it against its row. A row names its source and its tolerance, and a metric
//! that was published but not computed counts as a miss, so that nothing falls silently away. [`study::all`] lists the
//! studies; each is a module with its `STUDY`, and a line in that list.

pub mod expect;
mod interfaces;
pub mod judge;
mod modern_drives;
mod ncq;
mod rearrangement;
pub mod report;
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
