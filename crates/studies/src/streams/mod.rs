//! Large numbers of sequential streams: their effect on disks and controllers, and what a storage node in front of them gains.
//!
//! Modelled: the study's simulated path (readers, a controller with a queue, a sweep and a cache, drives with segmented caches), its node
//! with given R, D, N and M, and its disk. In addition, what the study left open: values that the node chooses by itself, little memory,
//! writers, a random reader together with streams, slow consumers. Not modelled: the study's network, its host's processor and Linux.
//!
//! *Source:* I. Panagiotakis, "Reducing disk I/O performance sensitivity for large numbers of sequential streams" (thesis,
//! University of Crete, 2006). Most of its curves are lost; what its prose says of them is in `expect.tsv`.

mod arms;
mod disk;
mod forms;
mod limits;
mod node;
mod ours;
mod paced;
mod path;
mod play;
mod rates;
#[cfg(test)]
mod tests;

use crate::study::{Findings, Length, Setting, Study, StudyError};

pub(crate) const STUDY: Study = Study {
    id: "streams",
    title: "Large numbers of sequential streams: disk, controller, storage node",
    summary: "Throughput of up to 100 streams over the caches of drive and controller, then through a storage node that gives each a long turn; with values of its own choice, writers and random readers.",
    expect: include_str!("../../studies/streams/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut parts = vec![
        disk::run(setting)?,
        path::scale(setting)?,
        path::queue(setting)?,
        path::segments(setting)?,
        path::xdd(setting)?,
        path::controller(setting)?,
        node::read_ahead(setting)?,
        node::memory(setting)?,
        node::response(setting)?,
        ours::chosen(setting)?,
        ours::disks(setting)?,
        ours::writers(setting)?,
        ours::random_reader(setting)?,
        ours::slow(setting)?,
        rates::carried(setting)?,
        rates::small_reads(setting)?,
        rates::guaranteed(setting)?,
        forms::compared(setting)?,
        arms::both(setting)?,
        limits::gain(setting)?,
    ];
    if setting.length == Length::Full {
        // Two minutes a round.
        parts.push(node::dispatch(setting)?);
    }
    Ok(Findings::join(parts))
}
