//! Taking up a clock: how much later it is by a journal than by the clock of a disk that was begun anew.

use super::Record;
use crate::spin::{QUICK, SpinError, spin};
use crate::{Answer, Ask, Disk};
use headstack_model::{Lbn, Nanos};
use std::f64::consts::TAU;

/// Why a clock cannot be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejoinError {
    /// The disk cannot be learned from.
    #[error("{0}")]
    Spin(SpinError),
    /// Blocks do not come round one after the other as they did.
    #[error("the journal is of another disk: of {asked} blocks {agree} come round as they did")]
    OtherDisk {
        /// Blocks that were read again.
        asked: usize,
        /// Those of them that lie where they did, but for one turn of all.
        agree: usize,
    },
}

/// How near to each other blocks agree, in turns.
const NEAR: f64 = 0.01;

/// The block that a read from the media was of, if an answer is of one.
pub(super) fn block_of(record: &Record) -> Option<Lbn> {
    match record.ask {
        Ask::Read { lbn, .. } if is_of_media(&record.answer) => Some(lbn),
        _ => None,
    }
}

/// By how much the disk's clock is to be put forward, so that it is later than `end`, when the last answer of a journal came, and
/// the blocks that some of its answers were of come round as they would have.
///
/// *Errors:* the disk cannot be learned from, or is another one.
pub async fn rejoin(disk: &Disk, last: &[Record], end: Nanos) -> Result<Nanos, RejoinError> {
    let spin = spin(disk).await.map_err(RejoinError::Spin)?;
    let forward = Nanos(end.0.saturating_sub(disk.now().0));
    let mut offs = Vec::new();
    for record in last {
        let Ask::Read { lbn, sectors, .. } = record.ask else { continue };
        // The second time, too, where the first was late by chance.
        for _ in 0..2 {
            let answer = disk.read(lbn, sectors).await;
            if is_of_media(&answer) {
                let apart = record.answer.ended.0 as f64 - (answer.ended.0 + forward.0) as f64;
                let off = apart / spin.turn_ns;
                offs.push(off - off.floor());
            }
        }
    }
    let (off, agree) = most_agreed(&offs);
    if offs.is_empty() || agree * 3 < offs.len() * 2 {
        return Err(RejoinError::OtherDisk { asked: offs.len(), agree });
    }
    Ok(forward + Nanos((off * spin.turn_ns) as u64))
}

fn is_of_media(answer: &Answer) -> bool {
    answer.is_done() && answer.took() > QUICK
}

/// The angle that most agree on, and how many do.
fn most_agreed(offs: &[f64]) -> (f64, usize) {
    let near = |off: f64| offs.iter().map(move |other| apart(*other, off)).filter(|apart| apart.abs() < NEAR);
    let best = offs.iter().map(|off| (near(*off).count(), *off)).max_by(|a, b| a.0.cmp(&b.0));
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
    fn is_the_angle_found_that_most_agree_on() {
        let (off, agree) = most_agreed(&[0.999, 0.001, 0.5, 0.0005, 0.7]);
        assert_eq!(agree, 3);
        assert!(apart(off, 0.0005).abs() < 1e-9, "{off}");
        assert_eq!(most_agreed(&[]), (0.0, 0));
    }
}
