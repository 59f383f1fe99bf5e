//! Hypotheses for the next track: a known pattern, a known shape, or a new track.

use super::LatticeError;
use super::irregular::IrregularTrack;
use super::pattern::{Alignment, Part, PeriodicPattern, Shape, wrap, wrap_from};
use super::prober::Resolution;
use super::walk::{Piece, ROUNDS, Walk};

/// Runs of tracks in a pattern, at most.
const LONGEST: usize = 64;
/// Parts of a pattern, and shapes of tracks, that are tried at the start of a track.
const TRIED: usize = 3;
/// Rates (sectors per turn) that are tried.
const TURNS: usize = 12;

impl Walk {
    /// A known alignment that matches here, and the number of its track that begins here.
    pub(super) async fn hypothesis(&mut self) -> Result<Option<(Alignment, u64)>, LatticeError> {
        let since = self.tracks - self.last_full_repeat;
        if self.pattern.as_ref().is_some_and(|pattern| since > ROUNDS * pattern.tracks) {
            // It was not a pattern: slips of adjacent tracks looked like one.
            self.pattern = None;
        }
        for mut pattern in [self.repeated_multiple(), self.repeated()].into_iter().flatten() {
            self.patterns += 1;
            pattern.number = self.patterns;
            let alignment = Alignment::new(pattern.clone(), 0, self.at, self.angle);
            if self.begins(&alignment, alignment.end_of_equal_tracks(0)).await? {
                (self.pattern, self.before_pattern, self.unmatched_tracks) = (Some(pattern), self.tracks, 0);
                self.last_full_repeat = self.tracks;
                return Ok(Some((alignment, 0)));
            }
        }
        if let Some(found) = self.resumed().await? {
            self.unmatched_tracks = 0;
            if found.1 == 0 {
                self.begun = [self.begun[1], self.begun[2], self.tracks];
            }
            return Ok(Some(found));
        }
        // An unmatched track has no known shape, but may begin a known pattern.
        let shapes = if self.is_unmatched { Vec::new() } else { self.shapes() };
        for shape in shapes {
            let alignment = Alignment::new(PeriodicPattern::of_track(shape), 0, self.at, self.angle);
            if self.begins(&alignment, 1).await? {
                self.unmatched_tracks = 0;
                return Ok(Some((alignment, 0)));
            }
        }
        Ok(None)
    }

    async fn begins(&mut self, alignment: &Alignment, track: u64) -> Result<bool, LatticeError> {
        let begin = alignment.start(track);
        Ok(begin.sector < self.end && self.boundary_matches(alignment, track).await?.is_some())
    }

    /// The last pattern: at the track that counting predicts, or else at the start of one of its parts, if that part's end and the
    /// start of the next match.
    async fn resumed(&mut self) -> Result<Option<(Alignment, u64)>, LatticeError> {
        let Some(pattern) = self.pattern.clone() else { return Ok(None) };
        let counted = self.counted(&pattern);
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
            if self.begins(&alignment, other).await? && self.begins(&alignment, other + 1).await? {
                self.before_pattern = self.tracks.wrapping_sub(from);
                return Ok(Some((alignment, from)));
            }
        }
        Ok(None)
    }

    /// Whether the last pattern continues here at the track that counting predicts.
    pub(super) async fn continues(&mut self) -> Result<bool, LatticeError> {
        let Some(pattern) = self.pattern.clone() else { return Ok(false) };
        let counted = self.counted(&pattern);
        let alignment = Alignment::new(pattern, counted, self.at, self.angle);
        self.begins(&alignment, counted + 1).await
    }

    /// The track of the pattern that begins here if none was missed.
    fn counted(&self, pattern: &PeriodicPattern) -> u64 {
        (self.tracks.wrapping_sub(self.before_pattern) as i64).rem_euclid(pattern.tracks as i64) as u64
    }

    /// The part of that track.
    fn expected(&self) -> Option<Part> {
        self.pattern.as_ref().map(|pattern| pattern.parts[pattern.part_of(self.counted(pattern))])
    }

    /// Shapes of tracks that may come next.
    fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        let expected = self.expected().into_iter().map(|part| part.shape);
        let last = self.found.iter().rev().take(2 * LONGEST).filter(|piece| piece.tracks > 1);
        for shape in expected.chain(last.map(|piece| piece.shape)) {
            if shapes.len() < TRIED && !shapes.iter().any(|known| known.is_like(&shape)) {
                shapes.push(shape);
            }
        }
        shapes
    }

    /// The pattern of the runs that end here, if they have repeated, or equal those of the last pattern in number and length.
    fn repeated(&self) -> Option<PeriodicPattern> {
        let found = &self.found[..];
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
        let pattern = self.pattern_of(&found[found.len() - count..]);
        // The same as before is already known to break here.
        let off = 0.6 * self.prober.tolerance();
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

    /// The pattern of runs that end here.
    fn pattern_of(&self, runs: &[Piece]) -> PeriodicPattern {
        PeriodicPattern::new(
            runs.iter().map(|run| (run.shape, run.tracks, wrap(run.angle - runs[0].angle))),
            wrap(self.angle - runs[0].angle),
        )
    }

    /// A longer pattern that contains the last one several times, if that failed three times after equal numbers of tracks: bands of
    /// equal surfaces.
    fn repeated_multiple(&self) -> Option<PeriodicPattern> {
        let (known, [first, second, third]) = (self.pattern.as_ref()?, self.begun);
        let tracks = self.tracks - third;
        let is_regular = third - second == tracks && second - first == tracks;
        if !is_regular || tracks <= known.tracks || !tracks.is_multiple_of(known.tracks) {
            return None;
        }
        let mut passed = 0;
        let run = self.found.iter().rev().take(LONGEST).position(|run| {
            passed += run.tracks;
            passed >= tracks
        })?;
        let is_other = |pattern: &PeriodicPattern| {
            let step = (pattern.tracks / known.tracks) as f64 * known.step;
            wrap(pattern.step - step).abs() > self.prober.tolerance()
        };
        let mut runs = self.found[self.found.len() - run - 1..].to_vec();
        // The first may have gone on from what came before.
        let before = passed - tracks;
        let begin = runs[0].start(before);
        runs[0] =
            Piece { first: begin.sector, angle: begin.angle, tracks: runs[0].tracks - before, ..runs[0] };
        Some(self.pattern_of(&runs)).filter(is_other)
    }

    /// Whether the last `count` runs equal the `count` before; a single run must have occurred three times.
    fn repeats(&self, count: usize) -> bool {
        let need = (2 * count).max(3);
        let Some(first) = self.found.len().checked_sub(need) else { return false };
        let window = &self.found[first..];
        window.iter().zip(&window[count..]).all(|(a, b)| a.tracks == b.tracks && a.shape.is_like(&b.shape))
    }

    /// Learns the track that begins here without a hypothesis, by angles exact enough to count its sectors; `None` if it is the last.
    pub(super) async fn learn(&mut self) -> Result<Option<Alignment>, LatticeError> {
        self.unmatched_tracks += 1;
        if self.prober.set_resolution(Resolution::CountSectors) {
            let within = 2.0 * self.prober.tolerance() + self.prober.usual_tolerance();
            let again = self.prober.angle(self.at).await?;
            // If its first sector is remapped, the predicted angle is right.
            self.angle = again.filter(|again| wrap(again - self.angle).abs() < within).unwrap_or(self.angle);
        }
        let mut learned = self.learn_exactly().await;
        // A small skew needs more readings than the first angles took; and late answers that agree by chance hide sectors.
        while let Err(LatticeError::NoSkew { .. } | LatticeError::NoSectors { .. }) = learned
            && self.prober.refine_resolution()
        {
            self.angle = self.prober.angle(self.at).await?.unwrap_or(self.angle);
            learned = self.learn_exactly().await;
        }
        self.prober.set_resolution(Resolution::TellTracksApart);
        learned
    }

    async fn learn_exactly(&mut self) -> Result<Option<Alignment>, LatticeError> {
        let (mut turn, mut end) = self.measured().await?;
        if end.sectors <= 2 && self.begins_at_neighbour(turn).await? {
            (turn, end) = self.measured().await?;
        }
        let turn = self.whole(turn, end.sectors);
        let Some(next) = end.next else {
            self.found.push(Piece {
                first: self.at,
                shape: Shape { sectors: end.sectors, turn, skew: 0.0 },
                tracks: 1,
                angle: self.angle,
                copy: None,
            });
            self.at += end.sectors;
            return Ok(None);
        };
        let shape = Shape { sectors: end.sectors, turn, skew: wrap(next - self.angle) };
        if self.found.is_empty() {
            if shape.gap().abs() < 2.0 * self.prober.tolerance() {
                return Err(LatticeError::NoSkew { lbn: self.prober.lbn(self.at) });
            }
            self.prober.resolve_gap(shape.gap());
        }
        Ok(Some(Alignment::new(PeriodicPattern::of_track(shape), 0, self.at, self.angle)))
    }

    /// Corrects a measured rate of a track of this number of sectors: equal to it within the measurement's uncertainty, and rounded if whole
    /// numbers can be distinguished. A single spare sector matters on short tracks.
    fn whole(&self, turn: f64, sectors: u64) -> f64 {
        let uncertain = 1.5 * self.prober.tolerance() * turn;
        if (turn - sectors as f64).abs() < uncertain.max(0.4) {
            return sectors as f64;
        }
        if uncertain < 0.5 { libm::round(turn) } else { turn }
    }

    /// Sectors of a turn, and the end of the track that begins here.
    async fn measured(&mut self) -> Result<(f64, IrregularTrack), LatticeError> {
        let known = self.turns();
        let mut turn = match known.first() {
            Some(last) => self.rate(*last, &known).await?,
            None => self.first_rate().await?,
        };
        let mut end = self.locate_track_end(Shape::of_turn(turn), None).await?;
        for known in known {
            if end.breaks {
                break;
            }
            (turn, end) = (known, self.locate_track_end(Shape::of_turn(known), None).await?);
        }
        Ok((turn, end))
    }

    /// Takes the angle here from the next sectors, if those are consistent with each other but not with this one: it is
    /// remapped.
    async fn begins_at_neighbour(&mut self, turn: f64) -> Result<bool, LatticeError> {
        let (near, far) = (self.along(2).await?, self.along(4).await?);
        let Some((near, far)) = near.zip(far) else { return Ok(false) };
        let tolerance = self.prober.tolerance();
        let continues = wrap(far - near - 2.0 / turn).abs() <= 1.5 * tolerance;
        let off = wrap(near - 2.0 / turn);
        if !continues || off.abs() <= 2.0 * tolerance {
            return Ok(false);
        }
        self.angle = wrap(self.angle + off);
        Ok(true)
    }

    /// The rate without a hypothesis.
    async fn first_rate(&mut self) -> Result<f64, LatticeError> {
        let lbn = self.prober.lbn(self.at);
        let turn = self.doubled().await?.ok_or(LatticeError::NoSectors { lbn })?;
        self.rate(turn, &[turn]).await
    }

    /// The rate by doubling the distance up to half a turn; `None` if angles do not change.
    async fn doubled(&mut self) -> Result<Option<f64>, LatticeError> {
        let (mut far, mut angle) = (1u64, 0.0);
        let within = 4.0 * self.prober.tolerance();
        let mut known = false;
        while far < self.end - self.at && angle < 0.42 {
            let Some(found) = self.along(far).await? else { break };
            let off = wrap(found - 2.0 * angle);
            if known && off.abs() > within.max(0.1 * angle) {
                break;
            }
            angle = 2.0 * angle + off;
            known = true;
            far *= 2;
        }
        Ok((angle > within.max(0.02)).then(|| (far / 2) as f64 / angle))
    }

    /// Known rates: first that of the pattern's next part, then those of the last runs.
    fn turns(&self) -> Vec<f64> {
        let next = self.expected().into_iter().map(|part| part.shape.turn);
        let runs = self.found.iter().rev().take(4 * LONGEST).filter(|piece| piece.tracks > 2);
        let mut turns: Vec<f64> = Vec::new();
        for turn in next.chain(runs.chain(self.found.last()).map(|piece| piece.shape.turn)) {
            if turns.len() < TURNS && !turns.iter().any(|known| (known - turn).abs() < 0.002 * turn) {
                turns.push(turn);
            }
        }
        turns
    }

    /// The rate, given an estimate and the known rates.
    async fn rate(&mut self, turn: f64, known: &[f64]) -> Result<f64, LatticeError> {
        let mut rates = Vec::new();
        // Over most of the track; if that includes slipped sectors or the track's end, over less.
        for scale in [1.0, 0.5] {
            let mut marks = vec![(0.0, 0.0)];
            for share in [0.22 * scale, 0.46 * scale, 0.7 * scale] {
                let far = (turn * share) as u64;
                if far == 0 || self.at + far >= self.end {
                    break;
                }
                if let Some(angle) = self.along(far).await? {
                    marks.push((far as f64, wrap_from(share - 0.4, angle)));
                }
            }
            let Some((far, angle)) = marks.last().filter(|_| marks.len() > 2) else { return Ok(turn) };
            let seen =
                marks.windows(2).map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1).max(1e-6));
            let seen: Vec<f64> = seen.filter(|rate| *rate > 0.45 * turn && *rate < 2.0 * turn).collect();
            let most = seen.iter().copied().fold(0.0, f64::max);
            let least = seen.iter().copied().fold(f64::MAX, f64::min);
            let noise = 2.0 * self.prober.tolerance() / (0.22 * scale);
            if seen.len() + 1 == marks.len() && most < (1.0 + noise.max(0.03)) * least {
                return Ok(far / angle);
            }
            rates.extend(seen);
        }
        // Slipped sectors or the track's end lie between: take a known rate that some part of it shows.
        let is_seen = |known: &&f64| rates.iter().any(|rate| (rate / **known - 1.0).abs() < 0.02);
        match known.iter().find(is_seen) {
            Some(known) => Ok(*known),
            None => Ok(self.doubled().await?.unwrap_or(turn)),
        }
    }

    /// Turns from here to a sector, counted from here.
    async fn along(&mut self, sector: u64) -> Result<Option<f64>, LatticeError> {
        Ok(self.prober.angle(self.at + sector).await?.map(|angle| wrap(angle - self.angle)))
    }
}
