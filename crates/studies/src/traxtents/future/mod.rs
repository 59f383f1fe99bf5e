//! What the study names as future work: small files in groups, aged file systems and their remedies, blocks that vary in size, and stripes
//! of a RAID-5 in place of tracks.

mod ageing;
mod fitted;
mod grouping;
mod raid;

use crate::study::{Findings, Setting, StudyError};

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    Ok(Findings::join([
        grouping::run(setting)?,
        raid::run(setting)?,
        ageing::run(setting)?,
        fitted::run(setting)?,
    ]))
}
