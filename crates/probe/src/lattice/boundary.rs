//! Checks whether the boundary between two tracks lies where it is predicted.
//!
//! A boundary *matches* if the sector before it has the predicted angle of its track's last sector, and the sector after it that of the
//! next track's first. Slipped and remapped sectors change one of the two angles in ways that are recognized.

use super::LatticeResult;
use super::pattern::{Alignment, Shape, Start, wrap, wrap_from};
use super::prober::Prober;

/// Tolerances of an angle that is predicted from two other readings. At twice their distance the prediction has 2² + 1² times the
/// variance of a reading, and the angle compared with it that of one reading: together √6 = 2.4 deviations.
pub(super) const PREDICTED: f64 = 2.4;
/// Maximum share of the gap between two tracks that a tolerance takes: less than half, so that no angle matches both tracks.
const GAP_SHARE: f64 = 0.4;
/// Tolerances by which two neighbours differ more than one sector where angles break. The difference of two readings has √2 = 1.4
/// deviations; the rest is margin.
pub(super) const BREAK: f64 = 1.6;
/// Share of its turn from which on a track counts as full: it then ends with its turn, even without a break of the angles. By trial.
pub(super) const FULL: f64 = 0.99;
/// Multiple of the width within which a mismatching first sector is not remapped: a spare sector has any angle.
const NOT_REMAPPED: f64 = 2.0;
/// Sectors between a remapped sector and the neighbour that is read in its place. *Source:* assumption, defects rarely reach so far.
const NEIGHBOUR: u64 = 3;
/// Sectors of a track up to which a neighbour may lie on another track.
const SHORT_TRACK: u64 = 8;

#[derive(Debug)]
pub(super) struct BoundaryVerifier {
    pub(super) prober: Prober,
    /// One past the last sector of the region that is searched.
    pub(super) end: u64,
    /// Whether a run without skew was found: each of its tracks begins at the angle at which the previous one ends, so that only
    /// the turn lost between them shows a boundary.
    pub(super) is_unskewed: bool,
}

/// What the angle of a track's last sector shows, where the first sector of the next track matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastSector {
    /// It is the predicted angle.
    Matches,
    /// It is later by sectors slipped in the track, but within the track's turn.
    Slipped { breaks: bool },
    /// Any other angle: the sector is remapped, or not on this track.
    Elsewhere { breaks: bool },
}

impl LastSector {
    /// `angle` was read of the last sector of `before`; the next track begins at `next`.
    fn classify(angle: f64, before: &Start, next: &Start, within: f64) -> LastSector {
        let off = wrap(angle - before.last());
        if off.abs() <= within {
            return LastSector::Matches;
        }
        let breaks = wrap(angle - next.angle + 1.0 / next.shape.turn).abs() > 2.0 * within;
        let room = 1.0 - before.shape.sectors as f64 / before.shape.turn;
        if wrap_from(-within, off) <= room + within {
            LastSector::Slipped { breaks }
        } else {
            LastSector::Elsewhere { breaks }
        }
    }
}

impl BoundaryVerifier {
    pub(super) fn tolerance(&self) -> f64 {
        self.prober.tolerance()
    }

    /// Tolerance, in turns, for an angle that is predicted from other measured angles: [`PREDICTED`] tolerances, at most [`GAP_SHARE`] of
    /// the gap to the next track, and at least one tolerance.
    pub(super) fn width(&self, shape: &Shape) -> f64 {
        let tolerance = self.tolerance();
        (PREDICTED * tolerance).min(GAP_SHARE * shape.gap().abs()).max(tolerance)
    }

    /// Whether a track begins where an alignment predicts; if so, by how many turns later.
    pub(super) async fn matches(&mut self, alignment: &Alignment, track: u64) -> LatticeResult<Option<f64>> {
        self.verify(alignment.start(track - 1), alignment.start(track)).await
    }

    /// Whether a track of an alignment begins before the end, and where it is predicted.
    pub(super) async fn begins(&mut self, alignment: &Alignment, track: u64) -> LatticeResult<bool> {
        Ok(alignment.start(track).sector < self.end && self.matches(alignment, track).await?.is_some())
    }

    /// Whether one track ends and another begins as predicted; if so, by how many turns later.
    pub(super) async fn verify(&mut self, before: Start, begin: Start) -> LatticeResult<Option<f64>> {
        let within = self.width(&before.shape);
        let last = before.last();
        self.prober.read_ahead(&[begin.sector - 1, begin.sector]).await?;
        // The later sector first, because a cache would hold it after a read of the earlier one.
        let first = self.prober.expect(begin.sector, begin.angle).await?;
        let Some(off) = first.map(|angle| wrap(angle - begin.angle)).filter(|off| off.abs() <= within) else {
            let is_remapped = self.is_first_remapped(&before, &begin, first, within).await?;
            return Ok(is_remapped.then_some(0.0));
        };
        let Some(angle) = self.prober.expect(begin.sector - 1, last).await? else {
            // The last sector cannot be read; try the one before it.
            let nearby_angle = last - 1.0 / before.shape.turn;
            let matches = self.angle_matches(begin.sector.saturating_sub(2), nearby_angle, within).await?;
            return Ok(matches.then_some(off));
        };
        let matches = match LastSector::classify(angle, &before, &begin, within) {
            LastSector::Matches => {
                let gap = wrap(begin.angle + off - angle - 1.0 / before.shape.turn).abs();
                let is_full = before.shape.sectors as f64 > FULL * before.shape.turn;
                let mut breaks = gap > BREAK * self.tolerance();
                if !breaks && self.is_unskewed {
                    breaks = self.prober.loses_turn(begin.sector, Some(true)).await?.unwrap_or(is_full);
                } else if !breaks {
                    breaks = is_full;
                }
                breaks
            }
            LastSector::Slipped { breaks: true } => true,
            LastSector::Slipped { breaks: false } if self.is_unskewed => {
                self.prober.loses_turn(begin.sector, None).await? == Some(true)
            }
            LastSector::Elsewhere { breaks: true } => {
                let nearby = begin.sector.saturating_sub(NEIGHBOUR + 1);
                self.angle_matches(nearby, last - NEIGHBOUR as f64 / before.shape.turn, within).await?
            }
            _ => false,
        };
        Ok(matches.then_some(off))
    }

    /// Whether the first sector of a track, which does not match, is remapped: the sectors around it match, and it does not continue the
    /// track before.
    async fn is_first_remapped(
        &mut self,
        before: &Start,
        begin: &Start,
        first: Option<f64>,
        within: f64,
    ) -> LatticeResult<bool> {
        let is_near = first.is_some_and(|first| wrap(first - begin.angle).abs() <= NOT_REMAPPED * within);
        if begin.shape.sectors <= SHORT_TRACK || is_near {
            return Ok(false);
        }
        let last = self.prober.one_reading_near(begin.sector - 1, before.last(), within).await?;
        let Some(angle) = last else { return Ok(false) };
        let continued = angle + 1.0 / before.shape.turn;
        let nearby_angle = begin.angle + NEIGHBOUR as f64 / begin.shape.turn;
        Ok(first.is_none_or(|first| wrap(first - continued).abs() > within)
            && self.angle_matches(begin.sector + NEIGHBOUR, nearby_angle, within).await?)
    }

    /// Whether a sector's angle is within a tolerance of a predicted one.
    pub(super) async fn angle_matches(
        &mut self,
        sector: u64,
        angle: f64,
        within: f64,
    ) -> LatticeResult<bool> {
        if sector >= self.end {
            return Ok(false);
        }
        Ok(self.prober.expect(sector, angle).await?.is_some_and(|found| wrap(found - angle).abs() <= within))
    }

    pub(super) async fn breaks(&mut self, sector: u64, turn: f64) -> LatticeResult<bool> {
        let next = self.prober.angle(sector).await?;
        let last = self.prober.angle(sector - 1).await?;
        let least = BREAK * self.tolerance();
        Ok(next.zip(last).is_none_or(|(next, last)| wrap(next - last - 1.0 / turn).abs() > least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_sector_is_classified_by_its_angle() {
        // Tracks of 90 sectors in a turn of 100, so that the last sector lies at 0.89, and the next track begins at 0.1.
        let shape = Shape { sectors: 90, turn: 100.0, skew: 0.1 };
        let before = Start { sector: 0, angle: 0.0, shape };
        let next = Start { sector: 90, angle: 0.1, shape };
        for (angle, expected) in [
            (0.89, LastSector::Matches),
            (0.898, LastSector::Matches),
            (0.93, LastSector::Slipped { breaks: true }),
            (0.99, LastSector::Slipped { breaks: true }),
            // Beyond its turn.
            (0.05, LastSector::Elsewhere { breaks: true }),
            (0.5, LastSector::Elsewhere { breaks: true }),
            // One sector before the first of the next track: it may belong to the next track.
            (0.09, LastSector::Elsewhere { breaks: false }),
        ] {
            assert_eq!(LastSector::classify(angle, &before, &next, 0.01), expected, "{angle}");
        }
        let next = Start { angle: 0.96, ..next };
        let silent = LastSector::classify(0.95, &before, &next, 0.01);
        assert_eq!(silent, LastSector::Slipped { breaks: false });
    }
}
