//! Locates the end of a track that is not as predicted, sector by sector.
//!
//! The angle of a sector, from the track's first one, is its distance and what was slipped before it; the track ends where that
//! exceeds a whole turn. A bisection finds that end. It can fail if more is slipped than is left, if an angle is slightly wrong,
//! or if a sector is remapped, so an end must be a break of the angles as well.

use super::boundary::{BREAK, BoundaryVerifier, FULL};
use super::pattern::{Shape, wrap, wrap_from};
use super::{LatticeError, LatticeResult};

/// Share by which a track may have more sectors in a turn than predicted: the error of a count on one track. By trial; without it,
/// `large::disks_with_head_skew_near_track_skew_are_mapped` fails.
const DENSER: f64 = 0.012;
/// Share of a turn by which the end that a search finds may be off the break: slightly more than [`DENSER`]. By trial.
const NEAR_END: f64 = 0.014;
/// Turns from its prediction within which the next track begins. By trial.
const PREDICTED_START: f64 = 0.01;
/// Turns before its predicted start at which a sector may still lie on the next track. By trial.
const BEFORE_START: f64 = 0.02;
/// Turns, in addition to the tolerance, by which a sector may come early. By trial.
const EARLY: f64 = 0.004;
/// Maximum number of searches that continue behind or before a remapped sector: it is assumed that no more are remapped side by side.
const REMAPPED: usize = 4;
/// Sectors behind the end that was found, and before it, that are read because a remapped sector may look like an end, or hide one.
const END_NEIGHBOURS: (u64, u64) = (4, 3);
/// Steps per turn in the search of a track whose sectors are mostly slipped.
const STEPS: f64 = 16.0;
/// Neighbours before a sector that are read if it is unreadable.
const READABLE: [u64; 3] = [0, 1, 2];

/// A track that its pattern does not predict.
#[derive(Clone, Copy, Debug)]
pub(super) struct IrregularTrack {
    /// Sectors that hold blocks.
    pub(super) sectors: u64,
    /// Start of the next one; `None` at the end of the disk.
    pub(super) next: Option<f64>,
    /// Whether angles break at its end, or its turn is full: if not, its length was taken from other tracks.
    pub(super) breaks: bool,
}

/// The range of sectors in which a track's end lies.
#[derive(Clone, Copy, Debug)]
struct Search {
    turn: f64,
    within: u64,
    beyond: u64,
    /// Turns slipped before `within`. Behind it, at least this number of turns is slipped.
    hole: f64,
}

impl Search {
    /// For a track about as long as others: by how many sectors its end may be wrong, and whether it may be exactly as long.
    fn uncertainty(&self, usual: u64) -> (u64, bool) {
        let most = (NEAR_END * self.turn) as u64 + 1;
        let off_usual = usual.abs_diff(self.within + 1);
        // For a track about as long as those before, the range includes their end and the same margin behind it.
        (if off_usual <= 2 * most { most + off_usual } else { most }, off_usual <= most)
    }
}

/// A search for the end of the track that begins at a sector and an angle.
#[derive(Debug)]
pub(super) struct EndSearch<'a> {
    pub(super) boundaries: &'a mut BoundaryVerifier,
    pub(super) at: u64,
    pub(super) angle: f64,
    /// Turns of slipped sectors before the first sector.
    pub(super) leading_slips: f64,
}

impl EndSearch<'_> {
    /// Finds the end of the track with this approximate shape; the next track is expected to begin at angle `next`.
    pub(super) async fn locate(&mut self, shape: Shape, next: Option<f64>) -> LatticeResult<IrregularTrack> {
        let rest = self.boundaries.end - self.at;
        let limit = ((shape.turn * (1.0 + DENSER - self.leading_slips)) as u64 + 2).min(rest);
        let mut search = self.search_near(shape, next, limit).await?;
        if search.within + 1 == rest {
            return self.ended(&search, shape).await;
        }
        let mut end = self.ended(&search, shape).await?;
        if !end.breaks {
            // Lost turns show nothing where angles break, so they are measured first only after runs without skew were found.
            if self.boundaries.is_unskewed
                && let Some(unskewed) = self.find_unskewed_end(&search, shape).await?
            {
                return Ok(unskewed);
            }
            self.nudge(&mut search, shape.sectors, limit).await?;
            end = self.ended(&search, shape).await?;
        }
        let is_predicted = |end: &IrregularTrack| {
            let off = next.zip(end.next).map(|(predicted, found)| wrap(predicted - found).abs());
            end.breaks && off.is_some_and(|off| off < PREDICTED_START)
        };
        if !is_predicted(&end) && end.sectors < shape.sectors {
            // If most of several tracks is slipped, sectors far after the end seem to lie before it.
            let stepwise = self.stepwise(shape.turn, limit).await?;
            let other = self.ended(&stepwise, shape).await?;
            if is_predicted(&other) || other.breaks || !end.breaks {
                (end, search) = (other, stepwise);
            }
        }
        if !end.breaks
            && let Some(sectors) = self.break_before(&search).await?
        {
            end = IrregularTrack {
                sectors,
                next: self.boundaries.prober.angle(self.at + sectors).await?,
                breaks: true,
            };
        }
        end.breaks |= end.sectors as f64 > FULL * search.turn;
        if self.at + end.sectors < self.boundaries.end {
            // The first sector of the next track cannot be read.
            end.next = end.next.or(Some(wrap(self.angle + shape.skew)));
        }
        Ok(end)
    }

    /// Searches for the end of a track that is probably as long as a shape, or ends where the next track was expected.
    async fn search_near(&mut self, shape: Shape, next: Option<f64>, limit: u64) -> LatticeResult<Search> {
        let mut search = Search { turn: shape.turn, within: 0, beyond: limit, hole: 0.0 };
        if shape.sectors <= limit {
            self.narrow(&mut search, shape.sectors - 1).await?;
            if search.within + 1 == shape.sectors {
                self.narrow(&mut search, shape.sectors).await?;
            } else if let Some(next) = next
                && let Some(angle) = self.boundaries.prober.angle(self.at + shape.sectors - 1).await?
            {
                // The sector lies on the next track, by this number of sectors.
                let into = libm::round(wrap_from(-BEFORE_START, angle - next) * shape.turn).max(0.0) as u64;
                let sectors = (shape.sectors - 1).saturating_sub(into);
                self.narrow(&mut search, sectors.saturating_sub(1)).await?;
                self.narrow(&mut search, sectors).await?;
            }
        }
        self.close(&mut search).await?;
        // A remapped sector may look like an end, or hide one.
        for _ in 0..REMAPPED {
            let behind = search.within + END_NEIGHBOURS.0;
            if behind < limit && search.beyond < limit && self.hole_before(&search, behind).await?.is_some() {
                search = Search { within: behind, beyond: limit, ..search };
                self.close(&mut search).await?;
                continue;
            }
            let before = search.within.saturating_sub(END_NEIGHBOURS.1);
            if before > 0 && self.hole_before(&search, before).await?.is_none() {
                search = Search { within: 0, beyond: before, hole: 0.0, ..search };
                self.close(&mut search).await?;
                continue;
            }
            break;
        }
        Ok(search)
    }

    /// The end of a track around whose end no angles break, by the turn lost there.
    async fn find_unskewed_end(
        &mut self,
        search: &Search,
        shape: Shape,
    ) -> LatticeResult<Option<IrregularTrack>> {
        let (farthest, _) = search.uncertainty(shape.sectors);
        let around = (search.within.saturating_sub(farthest).max(1), search.within + farthest);
        if !self.continues_between(around, search.turn).await? {
            return Ok(None);
        }
        let Some(sectors) = self.end_by_turns(around).await? else { return Ok(None) };
        let search = Search { within: sectors - 1, ..*search };
        Ok(Some(IrregularTrack { breaks: true, ..self.ended(&search, shape).await? }))
    }

    /// Moves an end without a break to the nearest break, if there is one: an error in the angle at which the track begins moves
    /// the end of its full turn by the same amount. If there is none, no skew shows where the track ends; if it is about as long
    /// as those before, it is as long.
    async fn nudge(&mut self, search: &mut Search, usual: u64, limit: u64) -> LatticeResult<()> {
        let found = search.within;
        let (farthest, is_usual) = search.uncertainty(usual);
        for off in 1..=farthest {
            for within in [found.saturating_sub(off), found + off] {
                if within > 0
                    && within < limit
                    && self.boundaries.breaks(self.at + within + 1, search.turn).await?
                {
                    (search.within, search.beyond) = (within, within + 1);
                    return Ok(());
                }
            }
        }
        if is_usual {
            (search.within, search.beyond) = (usual - 1, usual);
        }
        Ok(())
    }

    async fn ended(&mut self, search: &Search, shape: Shape) -> LatticeResult<IrregularTrack> {
        let sectors = search.within + 1;
        if self.at + sectors >= self.boundaries.end {
            return Ok(IrregularTrack { sectors, next: None, breaks: true });
        }
        let breaks = self.boundaries.breaks(self.at + sectors, shape.turn).await?;
        Ok(IrregularTrack { sectors, next: self.boundaries.prober.angle(self.at + sectors).await?, breaks })
    }

    /// Finds the end of the track in steps from its beginning.
    async fn stepwise(&mut self, turn: f64, limit: u64) -> LatticeResult<Search> {
        let mut search = Search { turn, within: 0, beyond: limit, hole: 0.0 };
        let step = (turn / STEPS) as u64 + 1;
        while search.beyond == limit && search.within + step < limit {
            let sector = search.within + step;
            self.narrow(&mut search, sector).await?;
        }
        self.close(&mut search).await?;
        Ok(search)
    }

    /// The length of the track if its turn seems to be full at a place without a break of the angles: the break before, taken for
    /// slipped sectors, is then its end.
    async fn break_before(&mut self, search: &Search) -> LatticeResult<Option<u64>> {
        let (least, sector) = (BREAK * self.boundaries.tolerance(), 1.0 / search.turn);
        let Some(last) = self.boundaries.prober.angle(self.at + search.within).await? else {
            return Ok(None);
        };
        let hole = |angle: f64, along: u64, start: f64| {
            wrap_from(-least.max(PREDICTED_START), angle - start - along as f64 * sector)
        };
        let all = hole(last, search.within, self.angle);
        if all < least {
            return Ok(None);
        }
        let (mut before, mut behind) = (0, search.within);
        while behind - before > 1 {
            let middle = before + (behind - before) / 2;
            let angle = self.boundaries.prober.angle(self.at + middle).await?;
            if angle.is_some_and(|angle| hole(angle, middle, self.angle) > all / 2.0) {
                behind = middle
            } else {
                before = middle
            }
        }
        Ok(Some(behind))
    }

    /// Bisects until the end of the track is known.
    async fn close(&mut self, search: &mut Search) -> LatticeResult<()> {
        while search.beyond - search.within > 1 {
            let middle = search.within + (search.beyond - search.within) / 2;
            self.narrow(search, middle).await?;
        }
        Ok(())
    }

    async fn narrow(&mut self, search: &mut Search, sector: u64) -> LatticeResult<()> {
        if sector <= search.within || sector >= search.beyond {
            return Ok(());
        }
        match self.hole_before(search, sector).await? {
            Some(hole) => (search.within, search.hole) = (sector, hole),
            None => search.beyond = sector,
        }
        Ok(())
    }

    /// Turns slipped before a sector, counted from here, if it lies on the track that begins here.
    async fn hole_before(&mut self, search: &Search, sector: u64) -> LatticeResult<Option<f64>> {
        let slack = self.boundaries.prober.tolerance() + EARLY;
        let along = sector as f64 / search.turn;
        let mut seen = None;
        for back in READABLE {
            // If a sector cannot be read, its neighbour is.
            seen = self
                .boundaries
                .prober
                .expect(self.at + sector - back.min(sector), self.angle + along)
                .await?;
            if seen.is_some() {
                break;
            }
        }
        let Some(angle) = seen else {
            return Err(LatticeError::Unreadable { lbn: self.boundaries.prober.lbn(self.at + sector) });
        };
        // On a track with more sectors than predicted, sectors come earlier in proportion to their distance.
        let hole = wrap_from(-slack - DENSER * along, angle - self.angle - along);
        // What is slipped before a sector is slipped before all behind it.
        let is_more = sector < search.within || hole >= search.hole - slack;
        let fits = self.leading_slips + along + 1.0 / search.turn + hole <= 1.0 + slack;
        Ok((fits && is_more).then_some(hole))
    }

    /// The length of the track that begins here, within a range, by the turn lost at its end.
    async fn end_by_turns(&mut self, (mut least, mut most): (u64, u64)) -> LatticeResult<Option<u64>> {
        let at = self.at;
        most = most.min(self.boundaries.end - at - 1);
        if least == 0 || least >= most {
            return Ok(None);
        }
        // Numbers of sectors from here: one on this track and one on the next.
        least -= 1;
        if self.boundaries.prober.loses_turn_within(at + least, at + most, None).await? != Some(true) {
            return Ok(None);
        }
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            match self.boundaries.prober.loses_turn_within(at + least, at + middle, None).await? {
                Some(true) => most = middle,
                Some(false) => least = middle,
                None => return Ok(None),
            }
        }
        Ok(Some(most))
    }

    /// Whether angles continue without a break between two sectors, counted from here, at this number of sectors per turn.
    async fn continues_between(&mut self, (first, last): (u64, u64), turn: f64) -> LatticeResult<bool> {
        if self.at + last >= self.boundaries.end {
            return Ok(false);
        }
        let first_angle = self.boundaries.prober.angle(self.at + first).await?;
        let last_angle = self.boundaries.prober.angle(self.at + last).await?;
        let along = (last - first) as f64 / turn;
        let least = BREAK * self.boundaries.tolerance();
        Ok(first_angle.zip(last_angle).is_some_and(|(first, last)| wrap(last - first - along).abs() <= least))
    }
}
