//! Track-aligned extents: what requests gain that begin where a track does and are as long.
//!
//! Modelled: the study's disks under random requests of a track's length, one outstanding and two; a video server's
//! disk in rounds. Not modelled: its host.
//!
//! *Source:* J. Schindler, J. Griffin, C. Lumb and G. Ganger, "Track-aligned extents: matching access patterns to disk drive
//! characteristics" (FAST 2002).

mod disk;
mod ffs;
mod lfs;
mod video;

use crate::figure::Section;
use crate::judge::Measured;
use crate::study::{Findings, Setting, Study, StudyError};

/// The study.
pub(crate) const STUDY: Study = Study {
    id: "traxtents",
    title: "Track-aligned extents: disks, file systems, video servers",
    summary: "Requests of a track's length on four disks, aligned to tracks and not, alone and in a video server.",
    expect: include_str!("../../../../studies/traxtents/expect.tsv"),
    run,
};

/// What a part of the study adds.
type Part = (Vec<Measured>, Vec<Section>);

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut findings = Findings::default();
    let parts: [Part; 4] =
        [disk::run(setting)?, ffs::run(setting)?, video::run(setting)?, lfs::run(setting)?];
    for (measured, sections) in parts {
        findings.measured.extend(measured);
        findings.sections.extend(sections);
    }
    Ok(findings)
}
