//! The walk over the disk: a cell is followed as far as it goes, and where it breaks the track is found by itself.
//!
//! A boundary *conforms* where the sector before it has the angle of its track's last, and that behind it the angle of
//! the next track's first. Slipped sectors only ever move blocks forward, so a boundary far away that conforms says
//! that all before it do: how many tracks conform is found by growing steps and halving. The track at which they cease
//! to is looked at sector by sector (`locate_track_end`): a track ends where the angle from its first sector passes a whole
//! turn, whatever was slipped in it.

use super::LatticeError;
use super::pattern::{Alignment, PeriodicPattern, Shape, Start, wrap, wrap_from};
use super::prober::Prober;

/// Equal tracks that were found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) shape: Shape,
    pub(super) tracks: u64,
    pub(super) angle: f64,
    /// What it is a repetition of.
    pub(super) copy: Option<Copied>,
}

/// A part of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Copied {
    /// The cell's number among those learned.
    pub(super) pattern: u64,
    /// The part's in the cell.
    pub(super) part: usize,
}

impl Piece {
    /// Where one of its tracks begins.
    pub(super) fn start(&self, track: u64) -> Start {
        Start {
            sector: self.first + track * self.shape.sectors,
            angle: wrap(self.angle + track as f64 * self.shape.skew),
            shape: self.shape,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.first + self.shape.sectors * self.tracks
    }

    /// The angle at which a further track would begin.
    fn next_angle(&self) -> f64 {
        self.angle + self.tracks as f64 * self.shape.skew
    }
}

/// What was found so far, and where the walk is: at the beginning of a track.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) prober: Prober,
    /// The sector behind the last to find.
    pub(super) end: u64,
    pub(super) at: u64,
    pub(super) angle: f64,
    pub(super) found: Vec<Piece>,
    /// What repeated last.
    pub(super) pattern: Option<PeriodicPattern>,
    /// Tracks found so far, and how many of them lie before the first of the cell.
    pub(super) tracks: u64,
    pub(super) before_pattern: u64,
    /// Tracks found when the cell last came round as a whole.
    pub(super) last_full_repeat: u64,
    /// Tracks found when the cell last began anew behind where it broke, the last three times.
    pub(super) begun: [u64; 3],
    /// Cells learned so far.
    pub(super) patterns: u64,
    /// Tracks that each had to be found by itself since something repeated.
    pub(super) unmatched_tracks: usize,
    /// Whether the track that begins here is known to be none of those that came before.
    pub(super) is_unmatched: bool,
    /// Turns of slipped sectors before the first sector here.
    pub(super) leading_slips: f64,
    /// Whether a run was found whose tracks each begin at the angle at which the one before ends.
    pub(super) is_unskewed: bool,
}

/// Tracks by which a run's skew is certain.
const CERTAIN: u64 = 4;
/// Times round within which a cell has to come round as a whole, or it was none.
pub(super) const ROUNDS: u64 = 8;
/// Tracks in a row that may each have to be found by itself.
const MAX_UNMATCHED_TRACKS: usize = 300;

impl Walk {
    /// Walks to the end.
    pub(super) async fn run(&mut self) -> Result<(), LatticeError> {
        let mut tried = None;
        while self.at < self.end {
            self.prober.disk.report_progress("walking the tracks", self.at as f64 / self.end as f64);
            // What was tried here and broke at once would do so again.
            let known = match self.is_unmatched && tried == Some(self.at) {
                true => None,
                false => self.hypothesis().await?,
            };
            (self.is_unmatched, tried) = (false, Some(self.at));
            match known {
                Some((alignment, from)) => {
                    let (before, whole) = (self.tracks, alignment.pattern.tracks);
                    self.follow(alignment, from, true).await?;
                    if whole > 1 && self.tracks - before >= whole {
                        self.last_full_repeat = self.tracks;
                    }
                }
                None => match self.learn().await? {
                    Some(alignment) => {
                        let first = self.at;
                        let few = CERTAIN * alignment.pattern.sectors;
                        self.follow(alignment, 0, false).await?;
                        if self.at - first > few {
                            self.unmatched_tracks = 0;
                        }
                    }
                    None => return Ok(()),
                },
            }
            if self.unmatched_tracks > MAX_UNMATCHED_TRACKS {
                let (lbn, tracks) = (self.prober.lbn(self.at), self.unmatched_tracks);
                return Err(LatticeError::Lost { lbn, tracks });
            }
        }
        Ok(())
    }

    /// Follows a thread from its track `from`, which begins here, over slipped sectors, to where it breaks. Of a thread that
    /// is not sure, as one track alone is not, no more is taken where it holds for no other.
    async fn follow(
        &mut self,
        mut alignment: Alignment,
        mut from: u64,
        sure: bool,
    ) -> Result<(), LatticeError> {
        let first = from;
        loop {
            let good = self.last_matching_track(&mut alignment, from).await?;
            self.emit(&alignment, from, good);
            let begin = alignment.start(good);
            if good - from >= CERTAIN && alignment.pattern.tracks == 1 {
                self.prober.resolve_gap(begin.shape.gap());
                self.is_unskewed |= begin.shape.gap().abs() < self.prober.tolerance();
            }
            self.at = begin.sector;
            self.angle = self.prober.expect(self.at, begin.angle).await?.unwrap_or(begin.angle);
            if wrap(self.angle - begin.angle).abs() > self.width(&begin.shape) {
                // The sector is remapped elsewhere.
                self.angle = begin.angle;
            }
            if !sure && good == first + 1 {
                return Ok(());
            }
            // Behind slipped tracks that are alike the cell may go on.
            if alignment.pattern.tracks == 1 && good > first && self.continues().await? {
                return Ok(());
            }
            let taken = sure || good > first;
            if taken && self.is_of_other_rate(&begin.shape).await? {
                self.is_unmatched = true;
                return Ok(());
            }
            let next = alignment.start(good + 1);
            let end = self.locate_track_end(begin.shape, Some(next.angle)).await?;
            let differs = end.sectors != begin.shape.sectors;
            if differs && taken {
                // Slips make no track longer.
                let is_longer = end.sectors > begin.shape.sectors;
                let is_other = is_longer || !end.breaks || self.is_other(&alignment, good, end.sectors);
                if is_other || self.is_whole(&begin.shape, end.sectors).await? {
                    self.is_unmatched = true;
                    return Ok(());
                }
            }
            self.push_track(Shape { sectors: end.sectors, ..begin.shape });
            self.at += end.sectors;
            if alignment.pattern.tracks > 1 {
                self.pattern = Some(alignment.pattern.clone());
            }
            let Some(angle) = end.next else { return Ok(()) };
            self.angle = angle;
            from = good + 1;
            let off = wrap(angle - next.angle).abs();
            if off > self.width(&begin.shape) {
                let inside = differs && alignment.pattern.tracks == 1
                    || alignment.pattern.tracks > 1 && alignment.part(good).1 > from;
                let track = if inside { self.skip_leading_slips(&alignment, from).await? } else { None };
                let Some(track) = track else { return Ok(()) };
                from = track;
            } else if alignment.pattern.tracks == 1 && off > self.prober.tolerance() {
                // A skew that is nearly that of the thread.
                return Ok(());
            }
            alignment.slip(alignment.start(from).sector as i64 - self.at as i64);
        }
    }

    /// Goes over tracks whose first sectors are slipped, from a thread's track `track` on; returns the next that begins where it
    /// does in the thread. Where they make no sense as such, it stays.
    async fn skip_leading_slips(
        &mut self,
        alignment: &Alignment,
        mut track: u64,
    ) -> Result<Option<u64>, LatticeError> {
        let least = 2.0 * self.prober.tolerance();
        loop {
            let (begin, next) = (alignment.start(track), alignment.start(track + 1));
            let leading_slips = wrap_from(0.0, self.angle - begin.angle);
            if leading_slips < least || leading_slips > 1.0 - least {
                return Ok(None);
            }
            self.leading_slips = leading_slips;
            let end = self.locate_track_end(begin.shape, Some(next.angle)).await;
            self.leading_slips = 0.0;
            let end = end?;
            let Some(angle) = end.next.filter(|_| end.breaks && end.sectors < begin.shape.sectors) else {
                return Ok(None);
            };
            let within = self.width(&begin.shape);
            let is_back = wrap(angle - next.angle).abs() <= within;
            let is_same = wrap(angle - self.angle).abs() <= within;
            if !is_back && !is_same {
                return Ok(None);
            }
            self.push_track(Shape { sectors: end.sectors, ..begin.shape });
            (self.at, self.angle) = (self.at + end.sectors, angle);
            track += 1;
            if is_back {
                return Ok(Some(track));
            }
        }
    }

    /// Whether a track of another size than foretold is rather one of another surface or zone than one with slipped sectors:
    /// where a surface begins, and where the one before was as long.
    fn is_other(&self, alignment: &Alignment, track: u64, sectors: u64) -> bool {
        let is_first = alignment.pattern.tracks > 1
            && alignment.part(track).1 - alignment.part_of(track).tracks == track;
        let last = self.found.last().filter(|last| last.end() == self.at);
        is_first || last.is_some_and(|last| last.shape.sectors == sectors)
    }

    /// Whether angles show that the track here has more sectors in a turn than foretold, or fewer, and not slipped ones: they are off twice as
    /// much twice as far.
    async fn is_of_other_rate(&mut self, predicted: &Shape) -> Result<bool, LatticeError> {
        let tolerance = self.prober.tolerance();
        let Some(far) = self.off_at(0.7, predicted).await? else { return Ok(false) };
        if far.abs() < 1.5 * tolerance || far < -0.2 {
            return Ok(false);
        }
        let Some(near) = self.off_at(0.35, predicted).await? else { return Ok(false) };
        // No slips bring a sector sooner; those that bring it later do so at once.
        let within = if far < 0.0 { 1.2 * tolerance } else { (1.2 * tolerance).min(0.25 * far) };
        Ok((near - 0.5 * far).abs() < within && (far < 0.0 || far > 3.2 * tolerance))
    }

    /// By how much later than foretold a sector is so far into the track that begins here, in turns.
    async fn off_at(&mut self, share: f64, predicted: &Shape) -> Result<Option<f64>, LatticeError> {
        let sector = (share * predicted.turn) as u64;
        if self.at + sector >= self.end || sector < 2 {
            return Ok(None);
        }
        let angle = self.angle + sector as f64 / predicted.turn;
        Ok(self.prober.expect(self.at + sector, angle).await?.map(|seen| wrap(seen - angle)))
    }

    /// Whether a track of fewer sectors than foretold is one of lower density, and not one with slipped sectors: those would
    /// have the sector in its middle half of them too early or too late.
    async fn is_whole(&mut self, predicted: &Shape, sectors: u64) -> Result<bool, LatticeError> {
        let lost = predicted.turn - sectors as f64;
        let tolerance = self.prober.tolerance();
        if lost < 0.0 || 0.5 * lost / predicted.turn < 1.6 * tolerance {
            return Ok(false);
        }
        let middle = sectors / 2;
        let angle = wrap(self.angle + middle as f64 / sectors as f64);
        self.angle_matches(self.at + middle, angle, tolerance).await
    }

    /// Whether a track begins where a thread has it; if so, by how much later in angle.
    pub(super) async fn boundary_matches(
        &mut self,
        alignment: &Alignment,
        track: u64,
    ) -> Result<Option<f64>, LatticeError> {
        self.verify_boundary(alignment.start(track - 1), alignment.start(track)).await
    }

    /// Whether one track ends and another begins where and as foretold; if so, by how much later in angle.
    pub(super) async fn verify_boundary(
        &mut self,
        before: Start,
        begin: Start,
    ) -> Result<Option<f64>, LatticeError> {
        let within = self.width(&before.shape);
        let last = wrap(before.angle + before.shape.last());
        self.prober.read_ahead(&[begin.sector - 1, begin.sector]).await?;
        // The later sector first, since a cache would have it after the earlier one.
        let first = self.prober.expect(begin.sector, begin.angle).await?;
        let Some(off) = first.map(|angle| wrap(angle - begin.angle)).filter(|off| off.abs() <= within) else {
            // The first sector may be remapped elsewhere, alone; not so where it is one more of the track before.
            let is_near = first.is_some_and(|first| wrap(first - begin.angle).abs() <= 2.0 * within);
            if begin.shape.sectors <= 8 || is_near {
                return Ok(None);
            }
            let Some(angle) = self.prober.one_reading_near(begin.sector - 1, last, within).await? else {
                return Ok(None);
            };
            let continues = angle + 1.0 / before.shape.turn;
            let beside = begin.angle + 3.0 / begin.shape.turn;
            let matches_beyond = first.is_none_or(|first| wrap(first - continues).abs() > within)
                && self.angle_matches(begin.sector + 3, beside, within).await?;
            return Ok(matches_beyond.then_some(0.0));
        };
        let Some(angle) = self.prober.expect(begin.sector - 1, last).await? else {
            // It cannot be read; the one before it can.
            let beside = last - 1.0 / before.shape.turn;
            let matches_beyond = self.angle_matches(begin.sector.saturating_sub(2), beside, within).await?;
            return Ok(matches_beyond.then_some(off));
        };
        let hole = wrap(angle - last);
        if hole.abs() <= within {
            let break_seen = wrap(begin.angle + off - angle - 1.0 / before.shape.turn).abs();
            let is_full = before.shape.sectors as f64 > 0.99 * before.shape.turn;
            let mut breaks = break_seen > 1.6 * self.prober.tolerance();
            if !breaks && self.is_unskewed {
                breaks = self.prober.loses_turn(begin.sector, Some(true)).await?.unwrap_or(is_full);
            } else if !breaks {
                breaks = is_full;
            }
            return Ok(breaks.then_some(off));
        }
        // Sectors slipped within a track leave its last one later, but within its turn.
        let jump = wrap(angle - begin.angle + 1.0 / begin.shape.turn).abs() > 2.0 * within;
        let room = 1.0 - before.shape.sectors as f64 / before.shape.turn;
        let hole = wrap_from(-within, hole);
        if hole <= room + within {
            let is_silent = !jump && self.is_unskewed;
            if jump || is_silent && self.prober.loses_turn(begin.sector, None).await? == Some(true) {
                return Ok(Some(off));
            }
        }
        // The last sector may be remapped elsewhere, alone.
        let beside = last - 3.0 / before.shape.turn;
        let remapped = jump && self.angle_matches(begin.sector.saturating_sub(4), beside, within).await?;
        Ok(remapped.then_some(off))
    }

    /// Within how many turns an angle has to lie that was foretold from others: they are as uncertain as it, and farther
    /// away the more so, but no further than tells a track from the next.
    pub(super) fn width(&self, shape: &Shape) -> f64 {
        let tolerance = self.prober.tolerance();
        (2.4 * tolerance).min(0.4 * shape.gap().abs()).max(tolerance)
    }

    /// Whether a sector has an angle.
    async fn angle_matches(&mut self, sector: u64, angle: f64, within: f64) -> Result<bool, LatticeError> {
        if sector >= self.end {
            return Ok(false);
        }
        Ok(self.prober.expect(sector, angle).await?.is_some_and(|found| wrap(found - angle).abs() <= within))
    }

    /// Notes the tracks of a thread from one up to another.
    fn emit(&mut self, alignment: &Alignment, mut from: u64, to: u64) {
        while from < to {
            let begin = alignment.start(from);
            let until = if alignment.pattern.tracks > 1 { alignment.part(from).1.min(to) } else { to };
            let tracks = until - from;
            let repeats = from >= alignment.pattern.tracks && alignment.pattern.tracks > 1;
            let copy =
                repeats.then(|| Copied { pattern: alignment.pattern.number, part: alignment.part(from).0 });
            let (first, angle) = (begin.sector, begin.angle);
            self.push(Piece { first, shape: begin.shape, tracks, angle, copy });
            from = until;
        }
    }

    /// Notes one track of a shape, which begins here.
    fn push_track(&mut self, shape: Shape) {
        self.push(Piece { first: self.at, shape, tracks: 1, angle: self.angle, copy: None });
    }

    /// Notes tracks; those that go on as the last did belong to them.
    fn push(&mut self, piece: Piece) {
        self.tracks += piece.tracks;
        let continues = 2.4 * self.prober.tolerance();
        if let Some(last) = self.found.last_mut()
            && last.shape.sectors == piece.shape.sectors
            && last.shape.is_like(&piece.shape)
            && wrap(last.next_angle() - piece.angle).abs() <= continues
            && parting(&last.shape, &piece.shape, last.tracks.min(piece.tracks)) <= 2.0 * continues
        {
            if piece.tracks > last.tracks {
                // The longer they are the better they are known.
                last.angle = wrap(piece.angle - last.tracks as f64 * piece.shape.skew);
                last.shape = piece.shape;
            }
            last.tracks += piece.tracks;
            return;
        }
        self.found.push(piece);
    }
}

/// By how many turns tracks of two shapes that begin at one angle have parted after so many.
fn parting(one: &Shape, other: &Shape, tracks: u64) -> f64 {
    wrap(one.skew - other.skew).abs() * tracks as f64
}
