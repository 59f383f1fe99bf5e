//! The walk over the disk: it follows a pattern as far as it matches, and locates the end of the first track that does not match.
//!
//! Slipped sectors only move blocks forward, so if a distant boundary matches, all before it match: the walk finds the number of
//! matching tracks by growing steps and bisection (`reach`). It examines the first other track sector by sector (`irregular`): a
//! track ends where the angle from its first sector exceeds a whole turn, whatever was slipped in it. What that track shows is a
//! [`Hypothesis`], which says how the walk continues.

use super::boundary::BoundaryVerifier;
use super::history::{Piece, TRIED, TrackHistory};
use super::hypothesis::{DENSITY_PLACES, Hypothesis, LocatedTrack, NextTrack};
use super::irregular::{EndSearch, IrregularTrack};
use super::new_track::{MeasuredTrack, NewTrack};
use super::pattern::{Alignment, PeriodicPattern, Shape, wrap};
use super::reach::Reach;
use super::{LatticeError, LatticeResult};

/// Tracks after which a run's skew is certain: its error is a fourth of a reading's.
const CERTAIN: u64 = 4;
/// Maximum number of consecutive tracks without a pattern. By trial: clusters of defects on the test disks span fewer.
const MAX_UNMATCHED_TRACKS: usize = 300;

/// The tracks found so far, and the position of the walk: the first sector of a track, and its angle.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) boundaries: BoundaryVerifier,
    pub(super) at: u64,
    pub(super) angle: f64,
    pub(super) history: TrackHistory,
    /// Consecutive tracks that matched no pattern and were each located alone.
    pub(super) unmatched_tracks: usize,
    /// What the last mismatch showed of the track here.
    next: Hypothesis,
}

impl Walk {
    pub(super) fn new(boundaries: BoundaryVerifier, angle: f64) -> Walk {
        let (history, next) = (TrackHistory::default(), Hypothesis::Pattern);
        Walk { boundaries, at: 0, angle, history, unmatched_tracks: 0, next }
    }

    pub(super) async fn run(&mut self) -> LatticeResult<()> {
        let mut tried = None;
        while self.at < self.boundaries.end {
            let share = self.at as f64 / self.boundaries.end as f64;
            self.boundaries.prober.disk.report_progress("walking the tracks", share);
            // What failed here would fail again.
            let known = if self.next.excludes_known_shapes() && tried == Some(self.at) {
                None
            } else {
                self.matching_alignment().await?
            };
            (self.next, tried) = (Hypothesis::Pattern, Some(self.at));
            match known {
                Some((alignment, from)) => {
                    let (before, whole) = (self.history.tracks, alignment.pattern.tracks);
                    self.next = self.follow(alignment, from, true).await?;
                    if whole > 1 && self.history.tracks - before >= whole {
                        self.history.last_full_repeat = self.history.tracks;
                    }
                }
                None => match self.learn().await? {
                    Some(alignment) => {
                        let first = self.at;
                        let few = CERTAIN * alignment.pattern.sectors;
                        self.next = self.follow(alignment, 0, false).await?;
                        if self.at - first > few {
                            self.unmatched_tracks = 0;
                        }
                    }
                    None => return Ok(()),
                },
            }
            if self.unmatched_tracks > MAX_UNMATCHED_TRACKS {
                let (lbn, tracks) = (self.boundaries.prober.lbn(self.at), self.unmatched_tracks);
                return Err(LatticeError::Lost { lbn, tracks });
            }
        }
        Ok(())
    }

    /// A known alignment that matches here, and the number of its track that begins here.
    async fn matching_alignment(&mut self) -> LatticeResult<Option<(Alignment, u64)>> {
        self.history.discard_stale_pattern();
        let tolerance = self.boundaries.tolerance();
        let multiple = self.history.repeated_multiple(self.angle, tolerance);
        for mut pattern in [multiple, self.history.repeated(self.angle, tolerance)].into_iter().flatten() {
            pattern.number = self.history.number_of_new_pattern();
            let alignment = Alignment::new(pattern.clone(), 0, self.at, self.angle);
            if self.boundaries.begins(&alignment, alignment.end_of_equal_tracks(0)).await? {
                self.history.begin_pattern(pattern);
                self.unmatched_tracks = 0;
                return Ok(Some((alignment, 0)));
            }
        }
        if let Some(found) = self.resumed().await? {
            self.unmatched_tracks = 0;
            if found.1 == 0 {
                self.history.restart_pattern();
            }
            return Ok(Some(found));
        }
        // A track that matches no known shape may still begin a known pattern.
        let shapes = if self.next.excludes_known_shapes() { Vec::new() } else { self.history.shapes() };
        for shape in shapes {
            let alignment = Alignment::new(PeriodicPattern::of_track(shape), 0, self.at, self.angle);
            if self.boundaries.begins(&alignment, 1).await? {
                self.unmatched_tracks = 0;
                return Ok(Some((alignment, 0)));
            }
        }
        Ok(None)
    }

    /// The last pattern: at the track that counting predicts, or else at the start of one of its parts, if that part's end and the
    /// start of the next match.
    async fn resumed(&mut self) -> LatticeResult<Option<(Alignment, u64)>> {
        let Some(pattern) = self.history.pattern.clone() else { return Ok(None) };
        let counted = self.history.counted(&pattern);
        if self.continues().await? {
            return Ok(Some((Alignment::new(pattern, counted, self.at, self.angle), counted)));
        }
        let (count, expected) = (pattern.parts.len(), pattern.part_of(counted));
        for part in (0..count.min(TRIED)).map(|more| (expected + more) % count) {
            let from = pattern.parts[part].track;
            if from == counted {
                continue;
            }
            let alignment = Alignment::new(pattern.clone(), from, self.at, self.angle);
            let other = alignment.end_of_equal_tracks(from);
            if self.boundaries.begins(&alignment, other).await?
                && self.boundaries.begins(&alignment, other + 1).await?
            {
                self.history.before_pattern = self.history.tracks.wrapping_sub(from);
                return Ok(Some((alignment, from)));
            }
        }
        Ok(None)
    }

    /// Whether the last pattern continues here at the track that counting predicts.
    async fn continues(&mut self) -> LatticeResult<bool> {
        let Some(pattern) = self.history.pattern.clone() else { return Ok(false) };
        let counted = self.history.counted(&pattern);
        let alignment = Alignment::new(pattern, counted, self.at, self.angle);
        self.boundaries.begins(&alignment, counted + 1).await
    }

    /// Learns the track that begins here without a hypothesis; `None` if it is the last.
    async fn learn(&mut self) -> LatticeResult<Option<Alignment>> {
        self.unmatched_tracks += 1;
        let mut track = NewTrack {
            densities: self.history.densities(),
            at: self.at,
            angle: self.angle,
            is_first: self.history.pieces.is_empty(),
            boundaries: &mut self.boundaries,
        };
        let measured = track.learn().await;
        self.angle = track.angle;
        let (MeasuredTrack { shape, is_last }, first, angle) = (measured?, self.at, self.angle);
        if is_last {
            self.history.pieces.push(Piece { first, shape, tracks: 1, angle, copy: None });
            self.at += shape.sectors;
            return Ok(None);
        }
        Ok(Some(Alignment::new(PeriodicPattern::of_track(shape), 0, first, angle)))
    }

    /// Follows an alignment from its track `from`, which begins here, over slipped sectors, to its first mismatch, and returns what that
    /// shows. An alignment that is not `sure`, such as that of a single track, is dropped if it matches no further track.
    async fn follow(
        &mut self,
        mut alignment: Alignment,
        mut from: u64,
        sure: bool,
    ) -> LatticeResult<Hypothesis> {
        let (first, is_single) = (from, alignment.pattern.tracks == 1);
        loop {
            let good = self.advance(&mut alignment, from).await?;
            let begin = alignment.start(good);
            if !sure && good == first + 1 {
                return Ok(Hypothesis::Pattern);
            }
            // After equal tracks with slips the previous pattern may continue.
            if is_single && good > first && self.continues().await? {
                return Ok(Hypothesis::Pattern);
            }
            let is_established = sure || good > first;
            if is_established && self.is_of_other_density(&begin.shape).await? {
                return Ok(Hypothesis::NewZone);
            }
            let next = alignment.start(good + 1);
            let end = self.locate_track_end(begin.shape, Some(next.angle), 0.0).await?;
            let found = self.explain(&alignment, good, &end, is_established);
            if found.excludes_known_shapes() {
                return Ok(found);
            }
            let is_slipped = matches!(found, Hypothesis::Slip { .. });
            if is_slipped && is_established && self.is_full(&begin.shape, end.sectors).await? {
                return Ok(Hypothesis::NewZone);
            }
            self.push_track(Shape { sectors: end.sectors, ..begin.shape });
            if !is_single {
                self.history.pattern = Some(alignment.pattern.clone());
            }
            let Some(angle) = end.next else { return Ok(Hypothesis::Pattern) };
            self.angle = angle;
            from = good + 1;
            match self.explain_next(&alignment, good, wrap(angle - next.angle), is_slipped) {
                Hypothesis::Pattern => {}
                Hypothesis::LeadingSlip { .. } => {
                    let Some(track) = self.skip_leading_slips(&alignment, from).await? else {
                        return Ok(Hypothesis::NewSurface { sectors: None });
                    };
                    from = track;
                }
                other => return Ok(other),
            }
            alignment.slip(alignment.start(from).sector as i64 - self.at as i64);
        }
    }

    /// Explains the number of sectors of the track here, which was located where an alignment has its track `good`.
    fn explain(
        &self,
        alignment: &Alignment,
        good: u64,
        end: &IrregularTrack,
        is_established: bool,
    ) -> Hypothesis {
        let before = self.history.pieces.last().filter(|last| last.end() == self.at);
        Hypothesis::of_track(&LocatedTrack {
            predicted: alignment.start(good).shape.sectors,
            sectors: end.sectors,
            breaks: end.breaks,
            is_established,
            begins_part: alignment.pattern.tracks > 1 && alignment.begins_part(good),
            before: before.map(|last| last.shape.sectors),
        })
    }

    /// What follows the track `good` of an alignment, if the next begins `off` turns later than predicted.
    fn explain_next(&self, alignment: &Alignment, good: u64, off: f64, is_slipped: bool) -> Hypothesis {
        let is_single = alignment.pattern.tracks == 1;
        Hypothesis::of_next(&NextTrack {
            off,
            width: self.boundaries.width(&alignment.start(good).shape),
            tolerance: self.boundaries.tolerance(),
            is_single,
            may_slip: if is_single { is_slipped } else { alignment.part(good).1 > good + 1 },
        })
    }

    /// Moves to the last track that matches an alignment, from its track `from` on, and adds the tracks before it. Returns its number.
    async fn advance(&mut self, alignment: &mut Alignment, from: u64) -> LatticeResult<u64> {
        let usual_tracks = self.history.usual_tracks();
        let mut reach = Reach { boundaries: &mut self.boundaries, usual_tracks };
        let good = reach.last_matching_track(alignment, from).await?;
        self.history.push_tracks(alignment, from, good, self.boundaries.tolerance());
        let begin = alignment.start(good);
        if good - from >= CERTAIN && alignment.pattern.tracks == 1 {
            self.boundaries.prober.resolve_gap(begin.shape.gap());
            self.boundaries.is_unskewed |= begin.shape.gap().abs() < self.boundaries.tolerance();
        }
        self.at = begin.sector;
        self.angle = self.boundaries.prober.expect(self.at, begin.angle).await?.unwrap_or(begin.angle);
        if wrap(self.angle - begin.angle).abs() > self.boundaries.width(&begin.shape) {
            // The sector is remapped elsewhere.
            self.angle = begin.angle;
        }
        Ok(good)
    }

    /// Skips tracks whose first sectors are slipped, from an alignment's track `track` on. Returns the next track that begins where the
    /// alignment predicts, or `None` if the tracks are not explained by leading slips.
    async fn skip_leading_slips(
        &mut self,
        alignment: &Alignment,
        mut track: u64,
    ) -> LatticeResult<Option<u64>> {
        // Later readings may make angles less uncertain; the bound stays.
        let tolerance = self.boundaries.tolerance();
        loop {
            let (begin, next) = (alignment.start(track), alignment.start(track + 1));
            let here = Hypothesis::of_beginning(self.angle - begin.angle, tolerance);
            let Hypothesis::LeadingSlip { turns } = here else { return Ok(None) };
            let end = self.locate_track_end(begin.shape, Some(next.angle), turns).await?;
            let Some(angle) = end.next.filter(|_| end.breaks && end.sectors < begin.shape.sectors) else {
                return Ok(None);
            };
            let width = self.boundaries.width(&begin.shape);
            let behind = Hypothesis::after_leading_slip(angle - next.angle, angle - self.angle, width);
            if matches!(behind, Hypothesis::NewSurface { .. }) {
                return Ok(None);
            }
            self.push_track(Shape { sectors: end.sectors, ..begin.shape });
            self.angle = angle;
            track += 1;
            if behind == Hypothesis::Pattern {
                return Ok(Some(track));
            }
        }
    }

    /// Finds the end of the track that begins here, with this approximate shape; the next track is expected to begin at an angle.
    async fn locate_track_end(
        &mut self,
        shape: Shape,
        next: Option<f64>,
        leading_slips: f64,
    ) -> LatticeResult<IrregularTrack> {
        let (at, angle) = (self.at, self.angle);
        EndSearch { boundaries: &mut self.boundaries, at, angle, leading_slips }.locate(shape, next).await
    }

    /// Whether the track here has another number of sectors per turn than predicted, and no slipped ones.
    async fn is_of_other_density(&mut self, predicted: &Shape) -> LatticeResult<bool> {
        let tolerance = self.boundaries.tolerance();
        let [farther, nearer] = DENSITY_PLACES;
        let far = self.off_at(farther, predicted).await?;
        let Some(far) = far.filter(|far| Hypothesis::may_be_new_zone(*far, tolerance)) else {
            return Ok(false);
        };
        let near = self.off_at(nearer, predicted).await?;
        Ok(near.is_some_and(|near| Hypothesis::is_new_zone(far, near, tolerance)))
    }

    /// By how many turns a sector is later than predicted, at this share of the track that begins here.
    async fn off_at(&mut self, share: f64, predicted: &Shape) -> LatticeResult<Option<f64>> {
        let sector = (share * predicted.turn) as u64;
        if self.at + sector >= self.boundaries.end || sector < 2 {
            return Ok(None);
        }
        let angle = self.angle + sector as f64 / predicted.turn;
        let seen = self.boundaries.prober.expect(self.at + sector, angle).await?;
        Ok(seen.map(|seen| wrap(seen - angle)))
    }

    /// Whether a track of fewer sectors than predicted has a lower density, and no slipped sectors.
    async fn is_full(&mut self, predicted: &Shape, sectors: u64) -> LatticeResult<bool> {
        let tolerance = self.boundaries.tolerance();
        let middle = Hypothesis::middle_of_full_track(predicted, sectors, tolerance);
        let Some((middle, turns)) = middle else { return Ok(false) };
        self.boundaries.angle_matches(self.at + middle, wrap(self.angle + turns), tolerance).await
    }

    /// Adds one track of a shape, which begins here, and moves behind it.
    fn push_track(&mut self, shape: Shape) {
        let track = Piece { first: self.at, shape, tracks: 1, angle: self.angle, copy: None };
        self.history.push(track, self.boundaries.tolerance());
        self.at += shape.sectors;
    }
}
