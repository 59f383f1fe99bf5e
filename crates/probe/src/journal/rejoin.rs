//! Resuming a journal: checks that the disk is the journal's, and finds the offset of the journal's clock from the disk's new one.

use super::Record;
use crate::spin::{QUICK, SpinError, spin};
use crate::{Answer, Disk, Outcome, ProbeCommand};
use headstack_model::{Instant, Lbn, Nanos};
use std::collections::BTreeSet;
use std::f64::consts::TAU;

/// Why a journal cannot be resumed on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RejoinError {
    #[error("{0}")]
    Spin(SpinError),
    #[error(
        "the journal is of another disk: {agree} of {requested} blocks end at their recorded angles; name the journal of this disk"
    )]
    OtherDisk { requested: usize, agree: usize },
    #[error(
        "the journal is of another disk: {agree} of {requested} addresses translate as recorded; name the journal of this disk"
    )]
    OtherPlaces { requested: usize, agree: usize },
    #[error(
        "the disk cannot be identified by the journal: {requested} recorded blocks come from its media (at least {LEAST}); begin a new journal"
    )]
    Few { requested: usize },
}

/// Tolerance of angles that agree, in turns.
const NEAR: f64 = 0.01;
/// Least number of blocks or places that identify a disk: fewer could agree by chance.
pub(super) const LEAST: usize = 8;
/// One place of this number may have changed, because defects grow.
const CHANGED: usize = 8;

/// The block of a successful read from the media.
fn block_of(record: &Record) -> Option<Lbn> {
    match record.command {
        ProbeCommand::Read { lbn, .. } if is_of_media(&record.answer) => Some(lbn),
        _ => None,
    }
}

/// Recorded answers that identify a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fingerprint {
    /// The last reads from the media, one per block.
    Reads(Vec<Record>),
    /// Address translations, if too few blocks were read.
    Places(Vec<Record>),
}

impl Fingerprint {
    /// The fingerprint of recorded answers; `None` if there are too few.
    pub(super) fn from_records(known: &[Record]) -> Option<Fingerprint> {
        let mut blocks = BTreeSet::new();
        let is_new = |record: &&Record| block_of(record).is_some_and(|lbn| blocks.insert(lbn));
        let reads: Vec<Record> = known.iter().rev().filter(is_new).take(MOST).cloned().collect();
        if reads.len() >= LEAST {
            return Some(Fingerprint::Reads(reads));
        }
        let is_told = |record: &&Record| {
            matches!(record.answer.outcome, Outcome::Place { .. } | Outcome::Block(Some(_)))
        };
        let reported: Vec<&Record> = known.iter().filter(is_told).collect();
        // Spread over all of them: disks of one model differ in few places.
        let spread =
            reported.iter().step_by(reported.len().div_ceil(MOST).max(1)).map(|record| (*record).clone());
        let places: Vec<Record> = spread.collect();
        (places.len() >= LEAST).then_some(Fingerprint::Places(places))
    }
}

/// Maximum number of blocks or places that are probed again.
const MOST: usize = 64;

/// Offset to add to the disk's clock: beyond `end`, the journal's last answer, and so that its blocks keep their angles.
///
/// *Errors:* the disk cannot be probed, or is another one.
pub(super) async fn rejoin(
    disk: &Disk,
    fingerprint: &Fingerprint,
    end: Instant,
) -> Result<Nanos, RejoinError> {
    match fingerprint {
        Fingerprint::Reads(last) => by_reads(disk, last, end).await,
        Fingerprint::Places(places) => by_places(disk, places).await.map(|()| forward(disk, end)),
    }
}

fn forward(disk: &Disk, end: Instant) -> Nanos {
    end.since(disk.now())
}

async fn by_places(disk: &Disk, places: &[Record]) -> Result<(), RejoinError> {
    let mut agree = 0;
    for record in places {
        agree += usize::from(disk.execute(record.command).await.outcome == record.answer.outcome);
    }
    let requested = places.len();
    if (requested - agree) * CHANGED <= requested {
        Ok(())
    } else {
        Err(RejoinError::OtherPlaces { requested, agree })
    }
}

async fn by_reads(disk: &Disk, last: &[Record], end: Instant) -> Result<Nanos, RejoinError> {
    let spin = spin(disk).await.map_err(RejoinError::Spin)?;
    let forward = forward(disk, end);
    let mut offs = vec![Vec::new(); last.len()];
    // A second time, because the first may be late by chance; after all others, so that it does not come from a cache.
    for _ in 0..2 {
        for (offs, record) in offs.iter_mut().zip(last) {
            let ProbeCommand::Read { lbn, sectors, .. } = record.command else { continue };
            let answer = disk.read(lbn, sectors).await;
            if is_of_media(&answer) {
                let apart = record.answer.ended.0 as f64 - (answer.ended + forward).0 as f64;
                let off = apart / spin.turn_ns;
                offs.push(off - off.floor());
            }
        }
    }
    offs.retain(|offs| !offs.is_empty());
    let (requested, (off, agree)) = (offs.len(), most_agreed(&offs));
    if requested < LEAST {
        return Err(RejoinError::Few { requested });
    }
    if agree * 3 < requested * 2 {
        return Err(RejoinError::OtherDisk { requested, agree });
    }
    Ok(forward + Nanos((off * spin.turn_ns) as u64))
}

fn is_of_media(answer: &Answer) -> bool {
    answer.is_done() && answer.took() > QUICK
}

/// The angle that most blocks agree on, each read once or several times, and their number.
fn most_agreed(blocks: &[Vec<f64>]) -> (f64, usize) {
    let nearest = |block: &Vec<f64>, off: f64| {
        let aparts = block.iter().map(|other| apart(*other, off));
        aparts.min_by(|a, b| a.abs().total_cmp(&b.abs())).filter(|apart| apart.abs() < NEAR)
    };
    let near = |off: f64| blocks.iter().filter_map(move |block| nearest(block, off));
    let all = blocks.iter().flatten();
    let best = all.map(|off| (near(*off).count(), *off)).max_by(|a, b| a.0.cmp(&b.0));
    let Some((agree, off)) = best else { return (0.0, 0) };
    let mut aparts: Vec<f64> = near(off).collect();
    let middle = off + crate::spin::middle(&mut aparts).unwrap_or(0.0);
    (middle - middle.floor(), agree)
}

/// From one angle to another, the shorter way, in turns.
fn apart(to: f64, from: f64) -> f64 {
    let angle = (to - from) * TAU;
    libm::atan2(libm::sin(angle), libm::cos(angle)) / TAU
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_agreed_angle_offset_is_chosen() {
        let blocks = [vec![0.999], vec![0.001, 0.4], vec![0.5], vec![0.9, 0.0005], vec![0.7]];
        let (off, agree) = most_agreed(&blocks);
        assert_eq!(agree, 3);
        assert!(apart(off, 0.0005).abs() < 1e-9, "{off}");
        assert_eq!(most_agreed(&[]), (0.0, 0));
    }
}
