//! The tracks found so far, and the patterns in which they repeat.

use super::boundary::PREDICTED;
use super::pattern::{Alignment, Part, PeriodicPattern, Shape, Start, wrap};

/// Maximum number of runs in a pattern. *Source:* assumption, a band over 16 surfaces with four runs each.
const LONGEST: usize = 64;
/// Repetitions within which the whole pattern must match once, or it is discarded. By trial
/// (`large::slips_of_adjacent_tracks_are_not_kept_as_cell`).
const PATIENCE: u64 = 8;
/// Shapes of tracks that are tried at the start of a track; each costs a probe or two where it fails.
pub(super) const TRIED: usize = 3;
/// Number of densities (sectors per turn) that are tried; only those that a part of the track shows cost a probe.
const DENSITIES: usize = 12;
/// Two densities are equal if they differ by less than this share, which is less than one sector of 500.
const SAME_DENSITY: f64 = 0.002;
/// Share of the tolerance within which two patterns are the same: less than a boundary is checked to.
const SAME_PATTERN: f64 = 0.6;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Copied {
    /// The number of the learned pattern.
    pub(super) pattern: u64,
    pub(super) part: usize,
}

impl Piece {
    pub(super) fn start(&self, track: u64) -> Start {
        Start {
            sector: self.first + track * self.shape.sectors,
            angle: wrap(self.angle + track as f64 * self.shape.skew),
            shape: self.shape,
        }
    }

    pub(super) fn last_start(&self) -> Start {
        self.start(self.tracks - 1)
    }

    pub(super) fn end(&self) -> u64 {
        self.first + self.shape.sectors * self.tracks
    }

    /// Whether the next piece continues this one within measurement error, `within` turns where it begins.
    fn is_continued_by(&self, next: &Piece, within: f64) -> bool {
        let next_angle = self.angle + self.tracks as f64 * self.shape.skew;
        let parting = wrap(self.shape.skew - next.shape.skew).abs() * self.tracks.min(next.tracks) as f64;
        self.shape.is_like(&next.shape)
            && wrap(next_angle - next.angle).abs() <= within
            && parting <= 2.0 * within
    }
}

/// The pieces found so far, and the pattern that repeated last.
#[derive(Debug, Default)]
pub(super) struct TrackHistory {
    pub(super) pieces: Vec<Piece>,
    pub(super) pattern: Option<PeriodicPattern>,
    /// Tracks found so far, and how many of them lie before the pattern's first track.
    pub(super) tracks: u64,
    pub(super) before_pattern: u64,
    /// Tracks found when the whole pattern last repeated.
    pub(super) last_full_repeat: u64,
    /// Tracks found when the pattern last restarted after a mismatch, the last three times.
    begun: [u64; 3],
    patterns: u64,
}

impl TrackHistory {
    /// Discards a pattern that did not repeat: slips of adjacent tracks looked like one.
    pub(super) fn discard_stale_pattern(&mut self) {
        let since = self.tracks - self.last_full_repeat;
        if self.pattern.as_ref().is_some_and(|pattern| since > PATIENCE * pattern.tracks) {
            self.pattern = None;
        }
    }

    pub(super) fn number_of_new_pattern(&mut self) -> u64 {
        self.patterns += 1;
        self.patterns
    }

    pub(super) fn begin_pattern(&mut self, pattern: PeriodicPattern) {
        self.pattern = Some(pattern);
        (self.before_pattern, self.last_full_repeat) = (self.tracks, self.tracks);
    }

    pub(super) fn restart_pattern(&mut self) {
        self.begun = [self.begun[1], self.begun[2], self.tracks];
    }

    /// The track of the pattern that begins here if none was missed.
    pub(super) fn counted(&self, pattern: &PeriodicPattern) -> u64 {
        (self.tracks.wrapping_sub(self.before_pattern) as i64).rem_euclid(pattern.tracks as i64) as u64
    }

    fn expected(&self) -> Option<Part> {
        self.pattern.as_ref().map(|pattern| pattern.parts[pattern.part_of(self.counted(pattern))])
    }

    pub(super) fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        let expected = self.expected().into_iter().map(|part| part.shape);
        let last = self.pieces.iter().rev().take(2 * LONGEST).filter(|piece| piece.tracks > 1);
        for shape in expected.chain(last.map(|piece| piece.shape)) {
            if shapes.len() < TRIED && !shapes.iter().any(|known| known.is_like(&shape)) {
                shapes.push(shape);
            }
        }
        shapes
    }

    /// Known densities: first that of the pattern's next part, then those of the last runs.
    pub(super) fn densities(&self) -> Vec<f64> {
        let next = self.expected().into_iter().map(|part| part.shape.turn);
        let runs = self.pieces.iter().rev().take(4 * LONGEST).filter(|piece| piece.tracks > 2);
        let mut turns: Vec<f64> = Vec::new();
        for turn in next.chain(runs.chain(self.pieces.last()).map(|piece| piece.shape.turn)) {
            if turns.len() < DENSITIES
                && !turns.iter().any(|known| (known - turn).abs() < SAME_DENSITY * turn)
            {
                turns.push(turn);
            }
        }
        turns
    }

    /// Tracks of the last run, if the one before had as many.
    pub(super) fn usual_tracks(&self) -> Option<u64> {
        let last: Vec<u64> = self.pieces.iter().rev().take(2).map(|piece| piece.tracks).collect();
        matches!(last[..], [last, before] if last == before && last > 2).then(|| last[0])
    }

    /// The pattern of the runs that end here, if they have repeated, or equal those of the last pattern in number and length. The
    /// next track begins at `angle`.
    pub(super) fn repeated(&self, angle: f64, tolerance: f64) -> Option<PeriodicPattern> {
        let found = &self.pieces[..];
        let tracks = |pieces: &[Piece]| pieces.iter().map(|piece| piece.tracks).collect::<Vec<_>>();
        let before = self
            .pattern
            .as_ref()
            .map(|pattern| pattern.parts.iter().map(|part| part.tracks).collect::<Vec<_>>());
        let known = before.filter(|before| {
            let last = found.len().checked_sub(before.len()).map(|first| tracks(&found[first..]));
            last.is_some_and(|last| {
                (0..last.len()).any(|turn| [&last[turn..], &last[..turn]].concat() == *before)
            })
        });
        let count =
            known.map(|known| known.len()).or_else(|| (1..=LONGEST).find(|count| self.repeats(*count)))?;
        let pattern = pattern_of(&found[found.len() - count..], angle);
        // The same pattern as before is already known to end here.
        let off = SAME_PATTERN * tolerance;
        let is_new = self.pattern.as_ref().is_none_or(|known| {
            let is_same = |a: &Part, b: &Part| {
                a.shape.is_like(&b.shape)
                    && wrap(a.angle - b.angle).abs() < off
                    && (a.shape.skew - b.shape.skew).abs() * (a.tracks as f64) < off
            };
            wrap(known.step - pattern.step).abs() > off
                || !known.parts.iter().zip(&pattern.parts).all(|(a, b)| is_same(a, b))
        });
        (is_new && pattern.tracks > 1).then_some(pattern)
    }

    /// A longer pattern that contains the last one several times, if that failed three times after equal numbers of tracks: bands
    /// of equal surfaces.
    pub(super) fn repeated_multiple(&self, angle: f64, tolerance: f64) -> Option<PeriodicPattern> {
        let (known, [first, second, third]) = (self.pattern.as_ref()?, self.begun);
        let tracks = self.tracks - third;
        let is_regular = third - second == tracks && second - first == tracks;
        if !is_regular || tracks <= known.tracks || !tracks.is_multiple_of(known.tracks) {
            return None;
        }
        let mut passed = 0;
        let run = self.pieces.iter().rev().take(LONGEST).position(|run| {
            passed += run.tracks;
            passed >= tracks
        })?;
        let mut runs = self.pieces[self.pieces.len() - run - 1..].to_vec();
        // The first may continue what came before.
        let before = passed - tracks;
        let begin = runs[0].start(before);
        runs[0] =
            Piece { first: begin.sector, angle: begin.angle, tracks: runs[0].tracks - before, ..runs[0] };
        let pattern = pattern_of(&runs, angle);
        let step = (pattern.tracks / known.tracks) as f64 * known.step;
        (wrap(pattern.step - step).abs() > tolerance).then_some(pattern)
    }

    /// Whether the last `count` runs equal the `count` before; a single run must have occurred three times.
    fn repeats(&self, count: usize) -> bool {
        let need = (2 * count).max(3);
        let Some(first) = self.pieces.len().checked_sub(need) else { return false };
        let window = &self.pieces[first..];
        window.iter().zip(&window[count..]).all(|(a, b)| a.tracks == b.tracks && a.shape.is_like(&b.shape))
    }

    /// Adds the tracks of an alignment from one up to another.
    pub(super) fn push_tracks(&mut self, alignment: &Alignment, mut from: u64, to: u64, tolerance: f64) {
        while from < to {
            let begin = alignment.start(from);
            let until = if alignment.pattern.tracks > 1 { alignment.part(from).1.min(to) } else { to };
            let repeats = from >= alignment.pattern.tracks && alignment.pattern.tracks > 1;
            let copy =
                repeats.then(|| Copied { pattern: alignment.pattern.number, part: alignment.part(from).0 });
            let (first, angle) = (begin.sector, begin.angle);
            self.push(Piece { first, shape: begin.shape, tracks: until - from, angle, copy }, tolerance);
            from = until;
        }
    }

    /// Adds tracks. They are merged with the last piece if they continue it.
    pub(super) fn push(&mut self, piece: Piece, tolerance: f64) {
        self.tracks += piece.tracks;
        match self.pieces.last_mut().filter(|last| last.is_continued_by(&piece, PREDICTED * tolerance)) {
            Some(last) => {
                if piece.tracks > last.tracks {
                    // The shape of a longer run is more certain.
                    last.angle = wrap(piece.angle - last.tracks as f64 * piece.shape.skew);
                    last.shape = piece.shape;
                }
                last.tracks += piece.tracks;
            }
            None => self.pieces.push(piece),
        }
    }
}

/// The pattern of runs before a track that begins at an angle.
fn pattern_of(runs: &[Piece], angle: f64) -> PeriodicPattern {
    PeriodicPattern::new(
        runs.iter().map(|run| (run.shape, run.tracks, wrap(run.angle - runs[0].angle))),
        wrap(angle - runs[0].angle),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of these numbers of tracks and sectors.
    fn history(runs: &[(u64, u64)]) -> TrackHistory {
        let mut history = TrackHistory::default();
        for (index, (tracks, sectors)) in runs.iter().enumerate() {
            let shape = Shape { sectors: *sectors, turn: *sectors as f64, skew: 0.1 };
            let angle = 0.3 * index as f64;
            history.push(Piece { first: 0, shape, tracks: *tracks, angle, copy: None }, 0.001);
        }
        history
    }

    #[test]
    fn repeated_runs_become_a_pattern() {
        let (a, b) = ((4, 100), (4, 90));
        for (runs, parts) in [
            // A single run has to occur three times, several runs twice.
            (&[a][..], None),
            (&[a, a], None),
            (&[a, a, a], Some(1)),
            (&[a, b, a], None),
            (&[a, b, a, b], Some(2)),
            (&[b, b, a, b, b, a], Some(3)),
            (&[a, (5, 100), a], None),
            // A single track is a run, not a pattern.
            (&[(1, 100), (1, 100), (1, 100)], None),
        ] {
            let found = history(runs).repeated(0.3 * runs.len() as f64, 0.001);
            assert_eq!(found.map(|pattern| pattern.parts.len()), parts, "{runs:?}");
        }
    }

    #[test]
    fn known_pattern_that_breaks_is_not_repeated() {
        let mut history = history(&[(4, 100); 3]);
        let pattern = history.repeated(0.9, 0.001).expect("it repeats");
        history.begin_pattern(pattern);
        assert!(history.repeated(0.9, 0.001).is_none());
        // Another step is another pattern.
        assert!(history.repeated(0.95, 0.001).is_some());
    }

    #[test]
    fn pattern_without_repetition_is_discarded() {
        let mut history = history(&[(4, 100); 3]);
        let pattern = history.repeated(0.9, 0.001).expect("it repeats");
        history.begin_pattern(pattern);
        for (tracks, is_kept) in [(4 * PATIENCE, true), (1, false)] {
            history.tracks += tracks;
            history.discard_stale_pattern();
            assert_eq!(history.pattern.is_some(), is_kept);
        }
    }

    #[test]
    fn continued_run_is_one_piece() {
        let shape = Shape { sectors: 100, turn: 100.0, skew: 0.1 };
        let piece = |first, angle| Piece { first, shape, tracks: 2, angle, copy: None };
        for (angle, pieces) in [(0.2, 1), (0.202, 1), (0.21, 2)] {
            let mut history = TrackHistory::default();
            history.push(piece(0, 0.0), 0.001);
            history.push(piece(200, angle), 0.001);
            assert_eq!((history.pieces.len(), history.tracks), (pieces, 4), "{angle}");
        }
    }
}
