//! The walk over the disk: it follows a pattern as far as it matches, and locates the end of the first track that does not match.
//!
//! A boundary *matches* if the sector before it has the predicted angle of its track's last sector, and the sector after it that of
//! the next track's first. Slipped sectors only move blocks forward, so a distant boundary that matches shows that all before it
//! match: the walk finds the number of matching tracks by growing steps and bisection. It examines the first other track
//! sector by sector (`locate_track_end`): a track ends where the angle from its first sector exceeds a whole turn, whatever was
//! slipped in it.

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
    /// The part of a pattern that it repeats.
    pub(super) copy: Option<Copied>,
}

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Copied {
    /// The pattern's number among those learned.
    pub(super) pattern: u64,
    /// The part's index in the pattern.
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

/// The tracks found so far, and the position of the walk: the first sector of a track, and its angle.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) prober: Prober,
    /// One past the last sector to find.
    pub(super) end: u64,
    pub(super) at: u64,
    pub(super) angle: f64,
    pub(super) found: Vec<Piece>,
    /// The pattern that repeated last.
    pub(super) pattern: Option<PeriodicPattern>,
    /// Tracks found so far, and how many of them lie before the pattern's first track.
    pub(super) tracks: u64,
    pub(super) before_pattern: u64,
    /// Tracks found when the whole pattern last repeated.
    pub(super) last_full_repeat: u64,
    /// Tracks found when the pattern last restarted after a mismatch, the last three times.
    pub(super) begun: [u64; 3],
    /// Patterns learned so far.
    pub(super) patterns: u64,
    /// Tracks in a row that matched no pattern and were each located alone.
    pub(super) unmatched_tracks: usize,
    /// Whether the track that begins here is known to match no earlier one.
    pub(super) is_unmatched: bool,
    /// Turns of slipped sectors before the first sector here.
    pub(super) leading_slips: f64,
    /// Whether a run was found whose tracks each begin at the angle at which the one before ends.
    pub(super) is_unskewed: bool,
}

/// Tracks after which a run's skew is certain.
const CERTAIN: u64 = 4;
/// Repetitions within which the whole pattern must match once, or it is discarded.
pub(super) const ROUNDS: u64 = 8;
/// Tracks in a row that may match no pattern.
const MAX_UNMATCHED_TRACKS: usize = 300;

impl Walk {
    /// Walks to the end.
    pub(super) async fn run(&mut self) -> Result<(), LatticeError> {
        let mut tried = None;
        while self.at < self.end {
            self.prober.disk.report_progress("walking the tracks", self.at as f64 / self.end as f64);
            // What was tried here and failed at once would fail again.
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

    /// Follows an alignment from its track `from`, which begins here, over slipped sectors, to its first mismatch. An alignment that is
    /// not `sure`, such as that of a single track, is dropped if it matches no further track.
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
            // After equal tracks with slips the previous pattern may continue.
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
                // The skew differs slightly from that of the alignment.
                return Ok(());
            }
            alignment.slip(alignment.start(from).sector as i64 - self.at as i64);
        }
    }

    /// Skips tracks whose first sectors are slipped, from an alignment's track `track` on. Returns the next track that begins where the
    /// alignment predicts, or `None` if the tracks are not explained by leading slips.
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

    /// Whether a track of another size than predicted belongs to another surface or zone, and has no slipped sectors: true at the start of
    /// a surface, and if the track before was as long.
    fn is_other(&self, alignment: &Alignment, track: u64, sectors: u64) -> bool {
        let is_first = alignment.pattern.tracks > 1
            && alignment.part(track).1 - alignment.part_of(track).tracks == track;
        let last = self.found.last().filter(|last| last.end() == self.at);
        is_first || last.is_some_and(|last| last.shape.sectors == sectors)
    }

    /// Whether the track here has more or fewer sectors in a turn than predicted, and not slipped ones: then the angle is off by twice as
    /// much at twice the distance.
    async fn is_of_other_rate(&mut self, predicted: &Shape) -> Result<bool, LatticeError> {
        let tolerance = self.prober.tolerance();
        let Some(far) = self.off_at(0.7, predicted).await? else { return Ok(false) };
        if far.abs() < 1.5 * tolerance || far < -0.2 {
            return Ok(false);
        }
        let Some(near) = self.off_at(0.35, predicted).await? else { return Ok(false) };
        // Slips never move a sector to an earlier angle, and they move it to a later one abruptly.
        let within = if far < 0.0 { 1.2 * tolerance } else { (1.2 * tolerance).min(0.25 * far) };
        Ok((near - 0.5 * far).abs() < within && (far < 0.0 || far > 3.2 * tolerance))
    }

    /// By how many turns a sector is later than predicted, at this share of the track that begins here.
    async fn off_at(&mut self, share: f64, predicted: &Shape) -> Result<Option<f64>, LatticeError> {
        let sector = (share * predicted.turn) as u64;
        if self.at + sector >= self.end || sector < 2 {
            return Ok(None);
        }
        let angle = self.angle + sector as f64 / predicted.turn;
        Ok(self.prober.expect(self.at + sector, angle).await?.map(|seen| wrap(seen - angle)))
    }

    /// Whether a track of fewer sectors than predicted has a lower density, and no slipped sectors: slips would move the angle of its middle
    /// sector by half of the difference.
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

    /// Whether a track begins where an alignment predicts; if so, by how many turns later.
    pub(super) async fn boundary_matches(
        &mut self,
        alignment: &Alignment,
        track: u64,
    ) -> Result<Option<f64>, LatticeError> {
        self.verify_boundary(alignment.start(track - 1), alignment.start(track)).await
    }

    /// Whether one track ends and another begins as predicted; if so, by how many turns later.
    pub(super) async fn verify_boundary(
        &mut self,
        before: Start,
        begin: Start,
    ) -> Result<Option<f64>, LatticeError> {
        let within = self.width(&before.shape);
        let last = wrap(before.angle + before.shape.last());
        self.prober.read_ahead(&[begin.sector - 1, begin.sector]).await?;
        // The later sector first, because a cache would hold it after a read of the earlier one.
        let first = self.prober.expect(begin.sector, begin.angle).await?;
        let Some(off) = first.map(|angle| wrap(angle - begin.angle)).filter(|off| off.abs() <= within) else {
            // The first sector alone may be remapped, unless it is still part of the track before.
            let is_near = first.is_some_and(|first| wrap(first - begin.angle).abs() <= 2.0 * within);
            if begin.shape.sectors <= 8 || is_near {
                return Ok(None);
            }
            let Some(angle) = self.prober.one_reading_near(begin.sector - 1, last, within).await? else {
                return Ok(None);
            };
            let continues = angle + 1.0 / before.shape.turn;
            let nearby_angle = begin.angle + 3.0 / begin.shape.turn;
            let matches_beyond = first.is_none_or(|first| wrap(first - continues).abs() > within)
                && self.angle_matches(begin.sector + 3, nearby_angle, within).await?;
            return Ok(matches_beyond.then_some(0.0));
        };
        let Some(angle) = self.prober.expect(begin.sector - 1, last).await? else {
            // The last sector cannot be read; try the one before it.
            let nearby_angle = last - 1.0 / before.shape.turn;
            let matches_beyond =
                self.angle_matches(begin.sector.saturating_sub(2), nearby_angle, within).await?;
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
        // Slips within a track move its last sector to a later angle, but within its turn.
        let jump = wrap(angle - begin.angle + 1.0 / begin.shape.turn).abs() > 2.0 * within;
        let room = 1.0 - before.shape.sectors as f64 / before.shape.turn;
        let hole = wrap_from(-within, hole);
        if hole <= room + within {
            let is_silent = !jump && self.is_unskewed;
            if jump || is_silent && self.prober.loses_turn(begin.sector, None).await? == Some(true) {
                return Ok(Some(off));
            }
        }
        // The last sector alone may be remapped.
        let nearby_angle = last - 3.0 / before.shape.turn;
        let remapped =
            jump && self.angle_matches(begin.sector.saturating_sub(4), nearby_angle, within).await?;
        Ok(remapped.then_some(off))
    }

    /// Tolerance, in turns, for an angle that is predicted from other measured angles: 2.4 tolerances, because those are uncertain, too,
    /// but at most 0.4 of the gap to the next track, so that two tracks are not confused, and at least one tolerance.
    pub(super) fn width(&self, shape: &Shape) -> f64 {
        let tolerance = self.prober.tolerance();
        (2.4 * tolerance).min(0.4 * shape.gap().abs()).max(tolerance)
    }

    /// Whether a sector's angle is within a tolerance of a predicted one.
    async fn angle_matches(&mut self, sector: u64, angle: f64, within: f64) -> Result<bool, LatticeError> {
        if sector >= self.end {
            return Ok(false);
        }
        Ok(self.prober.expect(sector, angle).await?.is_some_and(|found| wrap(found - angle).abs() <= within))
    }

    /// Notes the tracks of an alignment from one up to another.
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

    /// Notes tracks. They are merged with the last piece if they continue it.
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
                // The shape of a longer run is more certain.
                last.angle = wrap(piece.angle - last.tracks as f64 * piece.shape.skew);
                last.shape = piece.shape;
            }
            last.tracks += piece.tracks;
            return;
        }
        self.found.push(piece);
    }
}

/// Turns by which two shapes that begin at one angle differ after this number of tracks.
fn parting(one: &Shape, other: &Shape, tracks: u64) -> f64 {
    wrap(one.skew - other.skew).abs() * tracks as f64
}
