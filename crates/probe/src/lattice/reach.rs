//! How far an alignment matches: by growing steps, and by bisection after a mismatch.

use super::LatticeResult;
use super::boundary::BoundaryVerifier;
use super::pattern::{Alignment, wrap};

/// Share of the tolerance to allow for each deviation of an extrapolated angle: four of the five deviations of a tolerance.
const EXTRAPOLATED: f64 = 0.8;
/// Multiple of the tracks followed up to which a skew is certain enough to try the usual number of tracks.
const CERTAIN_TIMES: u64 = 4;

/// The sectors that are read to check whether a track begins where an alignment predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedSectors {
    /// Its first sector: half the cost, but another sector may have the same angle by chance.
    First,
    /// The first sector and the one before.
    Both,
}

/// A search for the last track that matches an alignment.
#[derive(Debug)]
pub(super) struct Reach<'a> {
    pub(super) boundaries: &'a mut BoundaryVerifier,
    /// Tracks of each of the last runs, if equal.
    pub(super) usual_tracks: Option<u64>,
}

impl Reach<'_> {
    /// The last track, from `from` on, whose beginning matches an alignment.
    pub(super) async fn last_matching_track(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
    ) -> LatticeResult<u64> {
        let top = alignment.last_before(self.boundaries.end);
        let begun = alignment.clone();
        let mut good = self.search(alignment, from, top, CheckedSectors::First).await?;
        let Some(mismatch) = self.mismatch(alignment, from, good).await? else { return Ok(good) };
        // Readings are remembered, so checking both sectors costs little more than the difference.
        *alignment = begun;
        good = self.search(alignment, from, mismatch - 1, CheckedSectors::Both).await?;
        while let Some(mismatch) = self.mismatch(alignment, from, good).await? {
            good = self.halve(alignment, from, (from, mismatch), CheckedSectors::Both).await?;
        }
        Ok(good)
    }

    /// The last track up to `top` that begins where an alignment predicts.
    async fn search(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
        top: u64,
        checked: CheckedSectors,
    ) -> LatticeResult<u64> {
        let repeat = alignment.pattern.tracks;
        let mut good = from;
        let mut near = early_tracks(alignment, from).into_iter();
        let usual = self.usual_tracks.filter(|_| repeat == 1 && from == 0);
        let mut step = repeat;
        while good < top {
            let mut to = near.find(|track| *track > good).unwrap_or(good + step);
            if let Some(usual) = usual.filter(|usual| good < *usual && *usual <= to.max(CERTAIN_TIMES * good))
            {
                // The last track of the usual number, and then the first beyond it.
                to = if good + 1 < usual { usual - 1 } else { usual };
            }
            let to = to.min(top);
            let Some(off) = self.begins_as_predicted(alignment, (from, good, to), checked).await? else {
                return self.halve(alignment, from, (good, to), checked).await;
            };
            alignment.refine(from, to, off);
            good = to;
            // A step of angle is as certain as the distance that it was followed; over twice the distance it is still certain.
            step = (good - from).max(repeat);
        }
        Ok(good)
    }

    /// The last track that begins where an alignment predicts, between one that does and one that does not.
    async fn halve(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
        (mut good, mut bad): (u64, u64),
        checked: CheckedSectors,
    ) -> LatticeResult<u64> {
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.begins_as_predicted(alignment, (from, good, middle), checked).await? {
                Some(off) => {
                    alignment.refine_part(from, middle, off);
                    alignment.refine(from, middle, off);
                    good = middle;
                }
                None => bad = middle,
            }
        }
        Ok(good)
    }

    /// Whether a track begins where an alignment predicts that matched from one track to another; if so, by how many turns later.
    async fn begins_as_predicted(
        &mut self,
        alignment: &Alignment,
        (from, good, track): (u64, u64, u64),
        checked: CheckedSectors,
    ) -> LatticeResult<Option<f64>> {
        let (before, begin) = (alignment.start(track - 1), alignment.start(track));
        let mut within = self.boundaries.width(&before.shape);
        if alignment.pattern.tracks == 1 && good > from {
            within = within.min(self.uncertainty((track - from) as f64 / (good - from) as f64));
        }
        let off = match checked {
            CheckedSectors::First => {
                let first = self.boundaries.prober.expect(begin.sector, begin.angle).await?;
                first.map(|angle| wrap(angle - begin.angle))
            }
            CheckedSectors::Both => self.boundaries.verify(before, begin).await?,
        };
        Ok(off.filter(|off| off.abs() <= within))
    }

    /// Tolerance, in turns, for an angle extrapolated by a line through two others, `times` as far from the first as the second is: all
    /// three readings and the clock are uncertain.
    fn uncertainty(&self, times: f64) -> f64 {
        let deviations = libm::sqrt(2.0 + times * times + (times - 1.0) * (times - 1.0));
        EXTRAPOLATED * self.boundaries.tolerance() * deviations
    }

    /// A track that does not match an alignment, although it or a later one seemed to.
    async fn mismatch(&mut self, alignment: &Alignment, from: u64, good: u64) -> LatticeResult<Option<u64>> {
        if let Some(mismatch) = self.first_mismatch(alignment, from, good).await? {
            return Ok(Some(mismatch));
        }
        let holds = good == from || self.boundary_still_matches(alignment, good).await?;
        Ok((!holds).then_some(good))
    }

    /// Whether a boundary also matches when read again: of many late answers, one may match by chance.
    async fn boundary_still_matches(&mut self, alignment: &Alignment, track: u64) -> LatticeResult<bool> {
        let sector = alignment.start(track).sector;
        self.boundaries.prober.forget_one(sector);
        self.boundaries.prober.forget_one(sector - 1);
        Ok(self.boundaries.matches(alignment, track).await?.is_some())
    }

    /// A track that does not match an alignment although a later one does: tracks of another size may share a boundary, with its
    /// angles, with the predicted ones, and spare sectors absorb slips before them.
    async fn first_mismatch(
        &mut self,
        alignment: &Alignment,
        from: u64,
        good: u64,
    ) -> LatticeResult<Option<u64>> {
        let halfway = [good - (good - from) / 4, good.saturating_sub(1)];
        let hidden = alignment.hidden(from, good);
        for track in hidden.into_iter().chain(halfway) {
            if track > from && track < good && self.boundaries.matches(alignment, track).await?.is_none() {
                return Ok(Some(track));
            }
        }
        Ok(None)
    }
}

/// Tracks to check early, in order: the next one, because slips occur on adjacent tracks. Then the last of this part, the first of the
/// next part, and two tracks of another length: an alignment that is off by some tracks within its pattern fails there, and may not
/// fail a whole pattern later.
fn early_tracks(alignment: &Alignment, from: u64) -> [u64; 5] {
    let repeat = alignment.pattern.tracks;
    if repeat > 1 {
        let (_, end) = alignment.part(from);
        let other = alignment.end_of_equal_tracks(from);
        return [from + 1, end - 1, end, other, if other < from + repeat { other + 1 } else { other }];
    }
    [from + 1; 5]
}
