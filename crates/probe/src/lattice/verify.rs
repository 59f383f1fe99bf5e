//! The final pass: it verifies boundaries again, relearns what is wrong, and reports what stays wrong.
//!
//! It verifies all runs that repeat no pattern, each part of a pattern once, and a random sample of tracks of the whole disk. Only the
//! sample gives the share of boundaries that may be wrong elsewhere.

use super::LatticeResult;
use super::boundary::{FULL, PREDICTED};
use super::history::{Copied, Piece};
use super::pattern::{Shape, Start, wrap};
use super::walk::Walk;
use headstack_model::Lbn;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Sampled tracks, as one of this number, and their bounds. A sample of 100 bounds the share of wrong boundaries to 4 %, one of
/// 10,000 to 0.04 % (`at_most(0)` of them).
const SAMPLED: (u64, u64, u64) = (400, 100, 10_000);
/// Times that wrong regions are relearned, each time with one more piece on both sides.
const ROUNDS: u64 = 3;
/// Maximum number of samples while some of their tracks are wrong.
const SAMPLES: u64 = 4;
/// Probability that the error rate is higher than reported, over all samples together.
const DOUBT: f64 = 0.05;
/// Standard deviations that a normal distribution exceeds with the probability [`DOUBT`] / [`SAMPLES`] = 0.0125.
const DEVIATIONS: f64 = 2.2414;
/// Tracks of a run that is too long to be a mistake, and copies of a part that are too many. By trial.
const MANY: u64 = 20;
/// A track may be longer than a neighbour with slipped sectors by one sector in this number.
const SLIPPED_SHARE: u64 = 64;
/// Share of its turn below which a track is probably mistaken: zones and spares take less. By trial.
const LEAST_SHARE: f64 = 0.6;
/// Tolerances within which both sectors at a boundary are equally late: two readings and two predictions have
/// √4 = 2 deviations; the rest is margin.
const EQUALLY_LATE: f64 = 3.0;
/// Widths by which both may be late: a run may hold surfaces that are rotated against each other by one.
const LATE_WIDTHS: f64 = 2.0;

/// The result of the verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// Irregular boundaries that were verified, and those of them that were wrong and relearned.
    pub irregular: (u64, u64),
    /// Sampled boundaries, over all samples, and those of them that were wrong.
    pub drawn: (u64, u64),
    /// Share of the last sample that was wrong.
    pub wrong_share: f64,
    /// Maximum share of wrong boundaries outside the doubtful regions, with a confidence of 95 %.
    pub error_rate: f64,
    /// Where tracks may be wrong: verification did not confirm them, or their angles fit neither those before nor any that a
    /// whole track may have, or do not break where one of another size begins.
    pub doubtful: Vec<Range<Lbn>>,
}

#[derive(Clone, Copy, Debug)]
struct BoundaryCheck {
    piece: usize,
    track: u64,
    drawn: bool,
}

#[derive(Debug)]
pub(super) struct Verifier<'a>(pub(super) &'a mut Walk);

impl Verifier<'_> {
    fn pieces(&self) -> &[Piece] {
        &self.0.history.pieces
    }

    pub(super) async fn verify(&mut self) -> LatticeResult<Verification> {
        let mut seen = Verification {
            irregular: (0, 0),
            drawn: (0, 0),
            wrong_share: 0.0,
            error_rate: 0.0,
            doubtful: Vec::new(),
        };
        let mut doubtful = Vec::new();
        for draw in 0..SAMPLES {
            let split = self.split();
            let (mut drawn, mut wrong) = (0, 0);
            let mut bad = self.mend(split, 0).await?;
            self.0.boundaries.prober.forget();
            let checks = self.checks(draw);
            for (number, check) in checks.iter().enumerate() {
                self.0
                    .boundaries
                    .prober
                    .disk
                    .report_progress("verifying boundaries", number as f64 / checks.len() as f64);
                self.read_ahead(&checks, number).await?;
                let holds = self.holds(check.piece, check.track).await?;
                let count = if check.drawn { &mut seen.drawn } else { &mut seen.irregular };
                (count.0, count.1) = (count.0 + 1, count.1 + u64::from(!holds));
                (drawn, wrong) = (drawn + u64::from(check.drawn), wrong + u64::from(check.drawn && !holds));
                if !holds {
                    bad.extend(self.suspected(check).await?);
                }
            }
            seen.wrong_share = wrong as f64 / drawn.max(1) as f64;
            let tracks: u64 = self.pieces().iter().map(|piece| piece.tracks).sum();
            // If all were verified, no other may be wrong.
            seen.error_rate =
                if drawn + 1 >= tracks { seen.wrong_share } else { (at_most(wrong) / drawn as f64).min(1.0) };
            for round in 0..ROUNDS {
                bad = self.mend(merged(bad), round).await?;
            }
            doubtful.extend(bad);
            if wrong == 0 {
                break;
            }
        }
        let doubtful = self.relearn_doubtful(doubtful).await?;
        let lbn = |sector| self.0.boundaries.prober.lbn(sector);
        seen.doubtful = doubtful.into_iter().map(|range| lbn(range.start)..lbn(range.end)).collect();
        Ok(seen)
    }

    /// On a busy host, relearns what is doubtful with more readings of each angle; returns what is doubtful then. On another host the
    /// disk is the cause, and relearning would find the same.
    async fn relearn_doubtful(&mut self, failed: Vec<Range<u64>>) -> LatticeResult<Vec<Range<u64>>> {
        let mut doubtful = self.doubtful(failed).await?;
        for round in 0..ROUNDS {
            if doubtful.is_empty() || !self.0.boundaries.prober.is_host_busy() {
                break;
            }
            self.0.boundaries.prober.require_more_agreement();
            let before = doubtful.clone();
            let failed = self.mend(doubtful, round).await?;
            doubtful = self.doubtful(failed).await?;
            if doubtful == before {
                break;
            }
        }
        Ok(doubtful)
    }

    /// Regions that were not confirmed, and those that look wrong.
    async fn doubtful(&mut self, mut failed: Vec<Range<u64>>) -> LatticeResult<Vec<Range<u64>>> {
        failed.extend(self.suspicious_tracks());
        failed.extend(self.unbroken().await?);
        Ok(merged(failed))
    }

    /// Reads the sectors of the next checks together, as many as the disk takes at a time.
    async fn read_ahead(&mut self, checks: &[BoundaryCheck], number: usize) -> LatticeResult<()> {
        let few = self.0.boundaries.prober.together() / 2;
        if few < 2 || !number.is_multiple_of(few) {
            return Ok(());
        }
        let begins = checks[number..]
            .iter()
            .take(few)
            .map(|check| self.pieces()[check.piece].start(check.track).sector);
        let sectors: Vec<u64> = begins.flat_map(|begin| [begin - 1, begin]).collect();
        self.0.boundaries.prober.read_ahead(&sectors).await
    }

    /// The boundaries to verify; in the first sample also the irregular ones.
    fn checks(&self, draw: u64) -> Vec<BoundaryCheck> {
        let tracks: u64 = self.pieces().iter().map(|piece| piece.tracks).sum();
        let count = (tracks / SAMPLED.0).clamp(SAMPLED.1, SAMPLED.2).min(tracks.saturating_sub(1));
        let mut random = Pcg64Mcg::seed_from_u64(draw);
        // Few tracks are all verified, because a random sample would miss some.
        let draw_of: BTreeSet<u64> = if count + 1 >= tracks {
            (1..tracks).collect()
        } else {
            (0..count).map(|_| random.random_range(1..tracks)).collect()
        };
        let copies = self.copies(&mut random);
        let (mut passed, mut checks) = (0, Vec::new());
        for (piece, found) in self.pieces().iter().enumerate() {
            let is_one = found.copy.is_none_or(|copy| copies.get(&copy).is_some_and(|one| one.1 == piece));
            if draw == 0 && piece > 0 && is_one {
                let looked_at = if self.may_be_slipped(piece) { found.tracks } else { 1 };
                checks.extend((0..looked_at).map(|track| BoundaryCheck { piece, track, drawn: false }));
            }
            let drawn = draw_of.range(passed..passed + found.tracks);
            checks.extend(drawn.map(|track| BoundaryCheck { piece, track: track - passed, drawn: true }));
            passed += found.tracks;
        }
        checks
    }

    /// Whether a piece has few tracks among longer ones: they may be slipped, and one that lost more than the first then
    /// compensates for one that lost less.
    fn may_be_slipped(&self, piece: usize) -> bool {
        let found = &self.pieces()[piece];
        let is_longer = |other: &&Piece| other.shape.sectors > found.shape.sectors;
        let neighbours = [piece.checked_sub(1), Some(piece + 1)].map(|at| self.pieces().get(at?));
        let longer: Vec<&Piece> = neighbours.into_iter().flatten().filter(is_longer).collect();
        let is_little_longer =
            |other: &&Piece| other.shape.sectors <= found.shape.sectors * (SLIPPED_SHARE + 1) / SLIPPED_SHARE;
        let is_among_longer =
            longer.len() > 1 || longer.iter().any(|other| other.tracks > MANY || is_little_longer(other));
        found.tracks <= MANY && is_among_longer
    }

    /// For each part of a repeated pattern, the number of copies, and the index of a random one.
    fn copies(&self, random: &mut Pcg64Mcg) -> BTreeMap<Copied, (u64, usize)> {
        let mut copies: BTreeMap<Copied, (u64, usize)> = BTreeMap::new();
        for (index, piece) in self.pieces().iter().enumerate() {
            let Some(copy) = piece.copy else { continue };
            let of_part = copies.entry(copy).or_default();
            of_part.0 += 1;
            if random.random_range(0..of_part.0) == 0 {
                of_part.1 = index;
            }
        }
        copies
    }

    /// The regions to relearn for a wrong boundary: all repetitions of its pattern, if another one is wrong, too.
    async fn suspected(&mut self, check: &BoundaryCheck) -> LatticeResult<Vec<Range<u64>>> {
        let around = self.around(check.piece, check.track);
        let Some(copy) = self.pieces()[check.piece].copy else { return Ok(vec![around]) };
        let is_of_pattern = |piece: &&Piece| piece.copy.is_some_and(|other| other.pattern == copy.pattern);
        let is_far = |(index, piece): &(usize, &Piece)| piece.copy == Some(copy) && *index != check.piece;
        let Some((other, _)) = self.pieces().iter().enumerate().rfind(is_far) else {
            return Ok(vec![around]);
        };
        if self.holds(other, check.track.min(self.pieces()[other].tracks - 1)).await? {
            return Ok(vec![around]);
        }
        let all = self.pieces().iter().filter(is_of_pattern).map(|piece| piece.first..piece.end());
        Ok(merged(all.chain([around]).collect()))
    }

    /// Pairs of tracks that together are as long as a neighbour: one track may have been split in two, in each repetition of its pattern.
    fn split(&self) -> Vec<Range<u64>> {
        let sectors = |index: usize| self.pieces().get(index).map(|piece| piece.shape.sectors);
        let is_split = |index: &usize| {
            let (first, second) = (&self.pieces()[*index], &self.pieces()[index + 1]);
            let whole = Some(first.shape.sectors + second.shape.sectors);
            let neighbours = [index.checked_sub(1).and_then(sectors), sectors(index + 2)];
            first.tracks == 1 && second.tracks == 1 && neighbours.contains(&whole)
        };
        let pairs = (0..self.pieces().len().saturating_sub(1)).filter(is_split);
        merged(pairs.map(|index| self.pieces()[index].first..self.pieces()[index + 1].end()).collect())
    }

    /// Recurring tracks: if they are shorter than their turn, they have spare sectors. None for physical sectors of several
    /// blocks, because wrong sector boundaries shorten tracks, too.
    fn recurrent(&self) -> Vec<Shape> {
        if self.0.boundaries.prober.blocks > 1 {
            return Vec::new();
        }
        let copies = self.copies(&mut Pcg64Mcg::seed_from_u64(0));
        let often = copies.into_values().filter(|(count, _)| *count >= MANY);
        often.map(|(_, index)| self.pieces()[index].shape).collect()
    }

    /// Tracks that lack much, and tracks shorter than their turn that do not lie where whole ones would.
    fn suspicious_tracks(&self) -> Vec<Range<u64>> {
        let recurrent = self.recurrent();
        let recurs = |shape: &Shape| recurrent.iter().any(|known| known.is_like(shape));
        let mut regions: Vec<Range<u64>> = Vec::new();
        let mut skew = None;
        for (index, piece) in self.pieces().iter().enumerate().skip(1) {
            let share = piece.shape.sectors as f64 / piece.shape.turn;
            if piece.tracks >= MANY && share >= LEAST_SHARE {
                skew = Some(piece.shape.skew);
                continue;
            }
            if share >= LEAST_SHARE && recurs(&piece.shape) {
                continue;
            }
            let before = self.pieces()[index - 1].last_start();
            let off = |from: f64, to: f64| skew.map_or(1.0, |skew| wrap(to - from - skew).abs());
            let next = self.pieces().get(index + 1).map(|next| off(piece.last_start().angle, next.angle));
            let within = self.0.boundaries.width(&Shape { skew: skew.unwrap_or(0.0), ..piece.shape });
            let continues = off(before.angle, piece.angle).max(next.unwrap_or(0.0)) <= within;
            // Much is missing on the disk's last track because the disk ends.
            let misses_much = share < LEAST_SHARE && next.is_some();
            let neighbours = regions.last().is_some_and(|last| last.end == piece.first);
            if share < FULL && (misses_much || neighbours || !continues) {
                regions.push(before.sector..piece.end());
            }
        }
        // If one region ends wrongly, the next begins wrongly.
        for region in &mut regions {
            let next = self.pieces().partition_point(|piece| piece.first < region.end);
            region.end = self.pieces().get(next).map_or(region.end, |piece| piece.start(1).sector);
        }
        regions
    }

    /// Tracks of different sizes without a break of the angles or a lost turn between them: only the length of earlier tracks
    /// gives their end. If that repeats, the copies show it.
    async fn unbroken(&mut self) -> LatticeResult<Vec<Range<u64>>> {
        let least = PREDICTED * self.0.boundaries.tolerance();
        let seams = self.pieces().windows(2).filter_map(|pair| {
            let last = pair[0].last_start();
            let gap = wrap(pair[1].angle - last.angle - last.shape.sectors as f64 / last.shape.turn);
            let differs = pair[1].copy.is_none() && last.shape.sectors != pair[1].shape.sectors;
            (differs && gap.abs() < least).then(|| (pair[1].first, last.sector..pair[1].start(1).sector))
        });
        let mut unbroken = Vec::new();
        for (seam, region) in seams.collect::<Vec<_>>() {
            if self.0.boundaries.prober.loses_turn(seam, None).await? != Some(true) {
                unbroken.push(region);
            }
        }
        Ok(unbroken)
    }

    /// Whether a track of a piece begins where it was found.
    async fn holds(&mut self, index: usize, track: u64) -> LatticeResult<bool> {
        let piece = self.pieces()[index];
        let before = match track.checked_sub(1) {
            Some(before) => piece.start(before),
            None if index == 0 => return Ok(true),
            None => self.pieces()[index - 1].last_start(),
        };
        let begin = piece.start(track);
        if self.0.boundaries.verify(before, begin).await?.is_none() {
            return self.breaks_as_predicted(before, begin).await;
        }
        if self.0.boundaries.breaks(begin.sector, before.shape.turn).await? {
            return Ok(true);
        }
        if self.0.boundaries.is_unskewed {
            return Ok(self.0.boundaries.prober.loses_turn(begin.sector, Some(true)).await? == Some(true));
        }
        // Without a break of the angles, only a full turn shows that a track ends.
        let is_full = before.shape.sectors as f64 > FULL * before.shape.turn;
        Ok(is_full
            && (before.sector == 0 || self.0.boundaries.breaks(before.sector, before.shape.turn).await?))
    }

    /// Whether angles break between two tracks as predicted, though both sectors are equally early or late: over long runs, predictions are
    /// less certain than the break between two sectors. Both may be off by as much as surfaces within a run may be rotated.
    async fn breaks_as_predicted(&mut self, before: Start, begin: Start) -> LatticeResult<bool> {
        let (tolerance, last) = (self.0.boundaries.tolerance(), before.last());
        let first_seen = self.0.boundaries.prober.expect(begin.sector, begin.angle).await?;
        let last_seen = self.0.boundaries.prober.expect(begin.sector - 1, last).await?;
        let Some((first_seen, last_seen)) = first_seen.zip(last_seen) else { return Ok(false) };
        let (off_first, off_last) = (wrap(first_seen - begin.angle), wrap(last_seen - last));
        let is_alike = wrap(off_first - off_last).abs() <= EQUALLY_LATE * tolerance;
        let is_near = off_first.abs() <= LATE_WIDTHS * self.0.boundaries.width(&before.shape);
        Ok(is_alike && is_near && self.0.boundaries.breaks(begin.sector, before.shape.turn).await?)
    }

    /// The sectors of the pieces on both sides of a track's start.
    fn around(&self, index: usize, track: u64) -> Range<u64> {
        let before = if track == 0 { index.saturating_sub(1) } else { index };
        self.pieces()[before].first..self.pieces()[index].end()
    }

    /// Relearns regions; returns those that are still wrong.
    async fn mend(&mut self, regions: Vec<Range<u64>>, more: u64) -> LatticeResult<Vec<Range<u64>>> {
        let mut bad = Vec::new();
        for region in regions {
            let from = self.pieces().partition_point(|piece| piece.end() <= region.start);
            let from = from.saturating_sub(more as usize);
            let to = self.pieces().partition_point(|piece| piece.first < region.end);
            let to = (to + more as usize).min(self.pieces().len());
            if from >= to {
                continue;
            }
            let whole = self.pieces()[from].first..self.pieces()[to - 1].end();
            self.relearn(from, to).await?;
            let from = self.pieces().partition_point(|piece| piece.end() <= whole.start);
            let to = self.pieces().partition_point(|piece| piece.first < whole.end);
            // Earlier readings must not confirm the walk's own assumptions.
            self.0.boundaries.prober.forget();
            let mut seen = BTreeSet::new();
            for index in from..(to + 1).min(self.pieces().len()) {
                if self.pieces()[index].copy.is_some_and(|copy| !seen.insert(copy)) {
                    continue;
                }
                let tracks = self.pieces()[index].tracks;
                let looked_at =
                    if self.may_be_slipped(index) { (0..tracks).collect() } else { vec![0, tracks / 2] };
                for track in looked_at {
                    if !self.holds(index, track).await? {
                        bad.push(self.around(index, track));
                    }
                }
            }
        }
        Ok(bad)
    }

    async fn relearn(&mut self, from: usize, to: usize) -> LatticeResult<()> {
        let Verifier(walk) = self;
        walk.boundaries.prober.forget();
        let behind = walk.history.pieces.split_off(to);
        let old: Vec<Piece> = walk.history.pieces.split_off(from);
        let last = walk.history.pieces.last().copied();
        let end = std::mem::replace(&mut walk.boundaries.end, old[old.len() - 1].end());
        (walk.at, walk.unmatched_tracks) = (old[0].first, 0);
        // The pattern may have been wrong as a whole.
        walk.history.pattern = None;
        walk.angle = walk.boundaries.prober.angle(walk.at).await?.unwrap_or(old[0].angle);
        let walked = walk.run().await;
        let pieces = &mut walk.history.pieces;
        if walked.is_err() {
            // Nothing better was found.
            while pieces.pop_if(|piece| piece.first >= old[0].first).is_some() {}
            if let (Some(changed), Some(last)) = (pieces.last_mut(), last) {
                *changed = last;
            }
            pieces.extend(old);
        }
        pieces.extend(behind);
        walk.boundaries.end = end;
        Ok(())
    }
}

fn merged(mut regions: Vec<Range<u64>>) -> Vec<Range<u64>> {
    regions.sort_by_key(|region| region.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for region in regions {
        match merged.last_mut() {
            Some(last) if last.end >= region.start => last.end = last.end.max(region.end),
            _ => merged.push(region),
        }
    }
    merged
}

/// Upper bound of the mean of a Poisson distribution with `seen` events, at a confidence of 95 % over all samples together: the
/// last of them was the first without a fault.
///
/// *Source:* E. B. Wilson and M. M. Hilferty (1931), The distribution of chi-square.
fn at_most(seen: u64) -> f64 {
    if seen == 0 {
        // Exact where the approximation is worst.
        return -libm::log(DOUBT / SAMPLES as f64);
    }
    let count = seen as f64 + 1.0;
    count * libm::pow(1.0 - 1.0 / (9.0 * count) + DEVIATIONS / (3.0 * libm::sqrt(count)), 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_upper_bound_matches_poisson_tables() {
        // From tables of the Poisson distribution; the formula is correct to 1 %.
        for (seen, most) in [(0, 4.382), (1, 6.385), (10, 19.722)] {
            assert!((at_most(seen) / most - 1.0).abs() < 0.01, "{seen}: {}", at_most(seen));
        }
    }

    #[test]
    fn touching_regions_are_merged() {
        assert_eq!(merged(vec![5..9, 1..3, 3..4, 8..12]), [1..4, 5..12]);
    }
}
