//! Finds the end of a track by the angles of its blocks.

use super::TimingError;
use super::clock::{Clock, apart};
use crate::track_end::{OnTrack, track_end};
use headstack_model::Lbn;

/// Distances in units at which the angle of a sector is measured, one after the other.
const DISTANCES: [u64; 5] = [4, 16, 64, 128, 256];
/// Minimum distance in units of a valid measurement.
const LEAST_DISTANCE: u64 = 64;
/// Units that are read as a whole to test whether the arm moves between them. Few, so that their transfer takes less than a turn.
const PIECE: u64 = 8;
/// Maximum searches for one end.
const ATTEMPTS: u32 = 5;

/// A block whose angle is known, and the angle of a unit of its track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    pub(super) lbn: Lbn,
    pub(super) angle: f64,
    pub(super) slope: f64,
}

/// The end of a track: the first block behind it, and the angle of that block.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) lbn: Lbn,
    pub(super) angle: f64,
}

/// Angle of a unit of the track of `lbn`; `None` if the track ends too soon.
pub(super) async fn slope(clock: &Clock, lbn: Lbn, angle: f64) -> Result<Option<f64>, TimingError> {
    let mut slope = None;
    let mut measured = 0;
    for distance in DISTANCES {
        let there = lbn + distance * clock.unit();
        if there >= clock.sectors() {
            break;
        }
        let turned = clock.sure_angle(there).await? - angle;
        let expected = slope.map_or(0.0, |slope: f64| slope * distance as f64);
        let off = match slope {
            None => turned.rem_euclid(1.0),
            Some(_) => apart(turned, expected),
        };
        // The first distance gives the angle directly; further ones must continue it.
        if slope.is_some() && off.abs() > 2.0 * clock.tolerance {
            break;
        }
        slope = Some((expected + off) / distance as f64);
        measured = distance;
    }
    Ok(slope.filter(|slope| measured >= LEAST_DISTANCE && *slope > 0.0))
}

/// The block's angle if the angle jumps there, so that a track begins.
pub(super) async fn jump(clock: &Clock, lbn: Lbn, slope: f64) -> Result<Option<f64>, TimingError> {
    let before = clock.sure_angle(Lbn(lbn.0 - clock.unit())).await?;
    let angle = clock.sure_angle(lbn).await?;
    Ok((apart(angle - before, slope).abs() > 3.0 * clock.tolerance).then_some(angle))
}

/// The end of the track of `from`, with the slope that found it; none at `limit`.
///
/// *Errors:* an unreadable block, and an end on which no two searches agree.
pub(super) async fn end_of(
    clock: &Clock,
    from: Lbn,
    known: Option<f64>,
    guesses: &[u32],
) -> Result<(Option<End>, f64), TimingError> {
    let limit = clock.sectors();
    for _ in 0..ATTEMPTS {
        let angle = clock.sure_angle(from).await?;
        let Some(slope) = slope(clock, from, angle).await?.or(known) else { break };
        let mut track = Angles { clock, at: Anchor { lbn: from, angle, slope } };
        let end = track_end(&mut track, from, limit, clock.unit(), guesses).await?;
        // More than a turn is more than a track.
        if ((end - from) / clock.unit()) as f64 * slope > 1.0 + 2.0 * clock.tolerance {
            let end = hidden(clock, from, slope).await?;
            return Ok((Some(End { lbn: end, angle: clock.sure_angle(end).await? }), slope));
        }
        if end >= limit {
            return Ok((None, slope));
        }
        if let Some(angle) = jump(clock, end, slope).await? {
            return Ok((Some(End { lbn: end, angle }), slope));
        }
    }
    Err(TimingError::Unsure { lbn: from.0 })
}

/// The end of a track whose angle continues into the next one, as may be at the end of a zone: a read over it takes a turn more.
async fn hidden(clock: &Clock, from: Lbn, slope: f64) -> Result<Lbn, TimingError> {
    let unit = clock.unit();
    let mut begin = from;
    for _ in 0..=(1.0 / slope) as u64 / PIECE {
        let end = begin + PIECE * unit;
        if end + unit > clock.sectors() {
            break;
        }
        if clock.is_broken(begin, end + unit).await? {
            // Broken from `on` to behind `off`, and not from `begin` to behind `on`.
            let (mut on, mut off) = (begin, end);
            while on + unit < off {
                let middle = on + (off - on) / unit / 2 * unit;
                if clock.is_broken(begin, middle + unit).await? { off = middle } else { on = middle }
            }
            return Ok(off);
        }
        begin = end;
    }
    Err(TimingError::Unsure { lbn: from.0 })
}

/// Tests blocks of a track by their angle from the last block on it.
struct Angles<'a> {
    clock: &'a Clock,
    at: Anchor,
}

impl OnTrack for Angles<'_> {
    type Error = TimingError;

    async fn is_on(&mut self, lbn: Lbn) -> Result<bool, TimingError> {
        let unit = self.clock.unit();
        let turned = (lbn.0 as f64 - self.at.lbn.0 as f64) / unit as f64 * self.at.slope;
        let expected = self.at.angle + turned;
        // An unexpected angle is measured twice.
        for _ in 0..2 {
            let angle = self.clock.angle(lbn).await?;
            if apart(angle, expected).abs() < self.clock.tolerance {
                (self.at.lbn, self.at.angle) = (lbn, angle);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
