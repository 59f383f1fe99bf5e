//! *Does it agree* with what was published? One module a study: set-up, run, and its own numbers beside the published.
//!
//! A study has a folder `studies/<id>` with a README and `expect.tsv`, which [`expect`] reads. Its module computes each
//! metric in the simulator; [`expect::Report`] judges it by its row. A row names its source and its tolerance, and a metric
//! that was published but not computed counts as a miss, so that nothing falls silently away.

pub mod expect;
pub mod modern_drives;
mod runs;
pub mod st2000dm006;
