//! Track-aligned extents: what requests gain that begin and end at track boundaries.
//!
//! Modelled: the study's disks under random requests of a track's length, one outstanding and two, and the same on drives of
//! today; what it takes to find the tracks; programs over FFS; a video server's disk in rounds; the segments of a log-structured file
//! system. Not modelled: the study's host.
//!
//! *Source:* J. Schindler, J. Griffin, C. Lumb and G. Ganger, "Track-aligned extents: matching access patterns to disk drive
//! characteristics" (FAST 2002).

mod access;
mod curves;
mod disk;
mod extraction;
mod ffs;
mod future;
mod lfs;
mod modern;
mod video;

use crate::study::{Findings, Setting, Study, StudyError};

pub(crate) const STUDY: Study = Study {
    id: "traxtents",
    title: "Track-aligned extents: disks, file systems, video servers",
    summary: "Requests of a track's length, aligned to tracks and not, on disks of 2000 and 2020: alone, in FFS, in a log-structured file system and in a video server; what it takes to find the tracks.",
    expect: include_str!("../../studies/traxtents/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    Ok(Findings::join([
        disk::run(setting)?,
        modern::run(setting)?,
        extraction::run(setting)?,
        ffs::run(setting)?,
        video::run(setting)?,
        lfs::run(setting)?,
        future::run(setting)?,
    ]))
}
