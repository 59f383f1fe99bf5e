//! How far a thread goes: by steps that grow, and by halving where it broke.

use super::LatticeError;
use super::pattern::{Alignment, wrap};
use super::walk::Walk;

/// What is looked at of a track, to see whether it begins where a thread has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedSectors {
    /// Its first sector: half as dear, and by chance another has its angle.
    First,
    /// That and the sector before.
    Both,
}

impl Walk {
    /// The last track, from `from` on, at whose beginning a thread conforms; all that begin on the disk may.
    pub(super) async fn last_matching_track(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
    ) -> Result<u64, LatticeError> {
        let top = alignment.last_before(self.end);
        let begun = alignment.clone();
        let mut good = self.search(alignment, from, top, CheckedSectors::First).await?;
        let Some(mismatch) = self.mismatch(alignment, from, good).await? else { return Ok(good) };
        // What was read is remembered, so that looking at both costs little more than their difference.
        *alignment = begun;
        good = self.search(alignment, from, mismatch - 1, CheckedSectors::Both).await?;
        while let Some(mismatch) = self.mismatch(alignment, from, good).await? {
            good = self.halve(alignment, from, (from, mismatch), CheckedSectors::Both).await?;
        }
        Ok(good)
    }

    /// The last track up to `top` that is seen to begin where a thread has it.
    async fn search(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
        top: u64,
        checked: CheckedSectors,
    ) -> Result<u64, LatticeError> {
        let repeat = alignment.pattern.tracks;
        let mut good = from;
        let mut near = self.near(alignment, from).into_iter();
        let usual = self.usual_tracks().filter(|_| repeat == 1 && from == 0);
        let mut step = repeat;
        while good < top {
            let mut to = near.find(|track| *track > good).unwrap_or(good + step);
            // The skew is certain enough for four times as far.
            if let Some(usual) = usual.filter(|usual| good < *usual && *usual <= to.max(4 * good)) {
                // The last track it is likely to have, and then the one it is likely not to.
                to = if good + 1 < usual { usual - 1 } else { usual };
            }
            let to = to.min(top);
            let Some(off) = self.begins_as_predicted(alignment, (from, good, to), checked).await? else {
                return self.halve(alignment, from, (good, to), checked).await;
            };
            alignment.refine(from, to, off);
            good = to;
            // A step of angle is as certain as it was followed far; twice as far, it still is.
            step = (good - from).max(repeat);
        }
        Ok(good)
    }

    /// The last track seen to begin where a thread has it, between one that was and one that was not.
    async fn halve(
        &mut self,
        alignment: &mut Alignment,
        from: u64,
        (mut good, mut bad): (u64, u64),
        checked: CheckedSectors,
    ) -> Result<u64, LatticeError> {
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

    /// Whether a track is seen to begin where a thread has it that held from one to another; if so, by how much later in angle.
    async fn begins_as_predicted(
        &mut self,
        alignment: &Alignment,
        (from, good, track): (u64, u64, u64),
        checked: CheckedSectors,
    ) -> Result<Option<f64>, LatticeError> {
        let (before, begin) = (alignment.start(track - 1), alignment.start(track));
        let mut within = self.width(&before.shape);
        if alignment.pattern.tracks == 1 && good > from {
            within = within.min(self.uncertainty((track - from) as f64 / (good - from) as f64));
        }
        let off = match checked {
            CheckedSectors::First => {
                let first = self.prober.expect(begin.sector, begin.angle).await?;
                first.map(|angle| wrap(angle - begin.angle))
            }
            CheckedSectors::Both => self.verify_boundary(before, begin).await?,
        };
        Ok(off.filter(|off| off.abs() <= within))
    }

    /// Within how many turns an angle lies that a line through two others foretells, so many times as far from the first as the second is:
    /// each is as uncertain as it is, and so is the clock.
    fn uncertainty(&self, times: f64) -> f64 {
        let deviations = libm::sqrt(2.0 + times * times + (times - 1.0) * (times - 1.0));
        0.8 * self.prober.tolerance() * deviations
    }

    /// A track at which a thread does not conform, though it seemed to there or farther on.
    async fn mismatch(
        &mut self,
        alignment: &Alignment,
        from: u64,
        good: u64,
    ) -> Result<Option<u64>, LatticeError> {
        if let Some(mismatch) = self.first_mismatch(alignment, from, good).await? {
            return Ok(Some(mismatch));
        }
        let holds = good == from || self.boundary_still_matches(alignment, good).await?;
        Ok((!holds).then_some(good))
    }

    /// Tracks where a thread may break sooner than elsewhere, in order: the next, as slips come in adjacent ones. Then the last before others
    /// follow, the first of them, and where they are of another length two of those: what is some tracks off in its cell shows there, and
    /// may not a whole cell later.
    fn near(&self, alignment: &Alignment, from: u64) -> [u64; 5] {
        let repeat = alignment.pattern.tracks;
        if repeat > 1 {
            let (_, end) = alignment.part(from);
            let other = alignment.end_of_equal_tracks(from);
            return [from + 1, end - 1, end, other, if other < from + repeat { other + 1 } else { other }];
        }
        [from + 1; 5]
    }

    /// Tracks of the last run, if that before it had as many: others may, too.
    fn usual_tracks(&self) -> Option<u64> {
        let last: Vec<u64> = self.found.iter().rev().take(2).map(|piece| piece.tracks).collect();
        matches!(last[..], [last, before] if last == before && last > 2).then(|| last[0])
    }

    /// Whether a track begins where a thread has it when it is read again: of many late answers one comes just when it is foretold.
    async fn boundary_still_matches(
        &mut self,
        alignment: &Alignment,
        track: u64,
    ) -> Result<bool, LatticeError> {
        let sector = alignment.start(track).sector;
        self.prober.forget_one(sector);
        self.prober.forget_one(sector - 1);
        Ok(self.boundary_matches(alignment, track).await?.is_some())
    }

    /// A track at whose beginning a thread does not conform, though it does at a later one: where tracks of another size have
    /// a boundary in common with those foretold, their angles may agree, too. And spares take up what is slipped before them.
    async fn first_mismatch(
        &mut self,
        alignment: &Alignment,
        from: u64,
        good: u64,
    ) -> Result<Option<u64>, LatticeError> {
        let halfway = [good - (good - from) / 4, good.saturating_sub(1)];
        let hidden = alignment.hidden(from, good);
        for track in hidden.into_iter().chain(halfway) {
            if track > from && track < good && self.boundary_matches(alignment, track).await?.is_none() {
                return Ok(Some(track));
            }
        }
        Ok(None)
    }
}
