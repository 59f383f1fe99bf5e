//! What may come next: a cell that came before, a shape that came before, or something new.

use super::LatticeError;
use super::cell::{Cell, Part, Shape, Thread, wrap, wrap_from};
use super::odd::Odd;
use super::walk::{Piece, ROUNDS, Walk};

/// Runs of tracks in a cell, at most.
const LONGEST: usize = 64;
/// Parts of a cell, and shapes of tracks, that are tried where a track begins.
const TRIED: usize = 3;
/// Sectors of a turn that are tried.
const TURNS: usize = 12;

impl Walk {
    /// What came before and does again; with the number of the track that begins here.
    pub(super) async fn hypothesis(&mut self) -> Result<Option<(Thread, u64)>, LatticeError> {
        let since = self.tracks - self.came_round;
        if self.cell.as_ref().is_some_and(|cell| since > ROUNDS * cell.tracks) {
            // Slips of adjacent tracks looked like one.
            self.cell = None;
        }
        for mut cell in [self.repeated_over(), self.repeated()].into_iter().flatten() {
            self.cells += 1;
            cell.number = self.cells;
            let thread = Thread::new(cell.clone(), 0, self.at, self.angle);
            if self.begins(&thread, thread.alike_to(0)).await? {
                (self.cell, self.before_cell, self.strangers) = (Some(cell), self.tracks, 0);
                self.came_round = self.tracks;
                return Ok(Some((thread, 0)));
            }
        }
        if let Some(found) = self.resumed().await? {
            self.strangers = 0;
            if found.1 == 0 {
                self.begun = [self.begun[1], self.begun[2], self.tracks];
            }
            return Ok(Some(found));
        }
        // A stranger has none of the shapes that came before, but may be the beginning of what repeats.
        let shapes = if self.stranger { Vec::new() } else { self.shapes() };
        for shape in shapes {
            let thread = Thread::new(Cell::of_track(shape), 0, self.at, self.angle);
            if self.begins(&thread, 1).await? {
                self.strangers = 0;
                return Ok(Some((thread, 0)));
            }
        }
        Ok(None)
    }

    async fn begins(&mut self, thread: &Thread, track: u64) -> Result<bool, LatticeError> {
        let begin = thread.start(track);
        Ok(begin.sector < self.end && self.conforms(thread, track).await?.is_some())
    }

    /// The last cell: from where counting tracks has it, or else from one of its parts on, where that and the beginning of the next show
    /// that it is this one.
    async fn resumed(&mut self) -> Result<Option<(Thread, u64)>, LatticeError> {
        let Some(cell) = self.cell.clone() else { return Ok(None) };
        let counted = self.counted(&cell);
        if self.goes_on().await? {
            return Ok(Some((Thread::new(cell, counted, self.at, self.angle), counted)));
        }
        let (count, expected) = (cell.parts.len(), cell.part_of(counted));
        for part in (0..count.min(TRIED)).map(|more| (expected + more) % count) {
            let from = cell.parts[part].track;
            if from == counted {
                continue;
            }
            let thread = Thread::new(cell.clone(), from, self.at, self.angle);
            let other = thread.alike_to(from);
            if self.begins(&thread, other).await? && self.begins(&thread, other + 1).await? {
                self.before_cell = self.tracks.wrapping_sub(from);
                return Ok(Some((thread, from)));
            }
        }
        Ok(None)
    }

    /// Whether the last cell goes on here where counting tracks has it.
    pub(super) async fn goes_on(&mut self) -> Result<bool, LatticeError> {
        let Some(cell) = self.cell.clone() else { return Ok(false) };
        let counted = self.counted(&cell);
        let thread = Thread::new(cell, counted, self.at, self.angle);
        self.begins(&thread, counted + 1).await
    }

    /// The track of the cell that begins here if none was missed since.
    fn counted(&self, cell: &Cell) -> u64 {
        (self.tracks.wrapping_sub(self.before_cell) as i64).rem_euclid(cell.tracks as i64) as u64
    }

    /// Its part.
    fn expected(&self) -> Option<Part> {
        self.cell.as_ref().map(|cell| cell.parts[cell.part_of(self.counted(cell))])
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

    /// The runs that end here, where they have repeated, or are so many and as long as those that repeated before.
    fn repeated(&self) -> Option<Cell> {
        let found = &self.found[..];
        let tracks = |pieces: &[Piece]| pieces.iter().map(|piece| piece.tracks).collect::<Vec<_>>();
        let before =
            self.cell.as_ref().map(|cell| cell.parts.iter().map(|part| part.tracks).collect::<Vec<_>>());
        let known = before.filter(|before| {
            let last = found.len().checked_sub(before.len()).map(|first| tracks(&found[first..]));
            last.is_some_and(|last| {
                (0..last.len()).any(|turn| [&last[turn..], &last[..turn]].concat() == *before)
            })
        });
        let count =
            known.map(|known| known.len()).or_else(|| (1..=LONGEST).find(|count| self.repeats(*count)))?;
        let cell = self.cell_of(&found[found.len() - count..]);
        // The same as before is already known to break here.
        let off = 0.6 * self.prober.tolerance();
        let is_new = self.cell.as_ref().is_none_or(|known| {
            let is_same = |a: &Part, b: &Part| {
                a.shape.is_like(&b.shape)
                    && wrap(a.angle - b.angle).abs() < off
                    && (a.shape.skew - b.shape.skew).abs() * (a.tracks as f64) < off
            };
            wrap(known.step - cell.step).abs() > off
                || !known.parts.iter().zip(&cell.parts).all(|(a, b)| is_same(a, b))
        });
        (is_new && cell.tracks > 1).then_some(cell)
    }

    /// A cell of runs that end here.
    fn cell_of(&self, runs: &[Piece]) -> Cell {
        Cell::new(
            runs.iter().map(|run| (run.shape, run.tracks, wrap(run.angle - runs[0].angle))),
            wrap(self.angle - runs[0].angle),
        )
    }

    /// What repeats over the last cell, where that broke as often after as many tracks: bands of surfaces that are all alike.
    fn repeated_over(&self) -> Option<Cell> {
        let (known, [first, second, third]) = (self.cell.as_ref()?, self.begun);
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
        let is_other = |cell: &Cell| {
            let step = (cell.tracks / known.tracks) as f64 * known.step;
            wrap(cell.step - step).abs() > self.prober.tolerance()
        };
        let mut runs = self.found[self.found.len() - run - 1..].to_vec();
        // The first may have gone on from what came before.
        let before = passed - tracks;
        let begin = runs[0].start(before);
        runs[0] =
            Piece { first: begin.sector, angle: begin.angle, tracks: runs[0].tracks - before, ..runs[0] };
        Some(self.cell_of(&runs)).filter(is_other)
    }

    /// Whether the last so many runs are like as many before; a run alone has to have come three times.
    fn repeats(&self, count: usize) -> bool {
        let need = (2 * count).max(3);
        let Some(first) = self.found.len().checked_sub(need) else { return false };
        let window = &self.found[first..];
        window.iter().zip(&window[count..]).all(|(a, b)| a.tracks == b.tracks && a.shape.is_like(&b.shape))
    }

    /// Learns the track that begins here from nothing, by angles as exact as counting its sectors needs; `None` where it is the last.
    pub(super) async fn learn(&mut self) -> Result<Option<Thread>, LatticeError> {
        self.strangers += 1;
        if self.prober.be_exact() {
            let within = 2.0 * self.prober.tolerance() + self.prober.usual_tolerance();
            let again = self.prober.angle(self.at).await?;
            // Where its first sector is remapped elsewhere, it begins where it was said to.
            self.angle = again.filter(|again| wrap(again - self.angle).abs() < within).unwrap_or(self.angle);
        }
        let mut learned = self.learn_exactly().await;
        // A small skew shows only in more readings than the first angles took, and late answers that agree by chance hide the sectors.
        while let Err(LatticeError::NoSkew { .. } | LatticeError::NoSectors { .. }) = learned
            && self.prober.look_closer()
        {
            self.angle = self.prober.angle(self.at).await?.unwrap_or(self.angle);
            learned = self.learn_exactly().await;
        }
        self.prober.be_usual();
        learned
    }

    async fn learn_exactly(&mut self) -> Result<Option<Thread>, LatticeError> {
        let (mut turn, mut odd) = self.measured().await?;
        if odd.sectors <= 2 && self.begins_beside(turn).await? {
            (turn, odd) = self.measured().await?;
        }
        let turn = self.whole(turn, odd.sectors);
        let Some(next) = odd.next else {
            self.found.push(Piece {
                first: self.at,
                shape: Shape { sectors: odd.sectors, turn, skew: 0.0 },
                tracks: 1,
                angle: self.angle,
                copy: None,
            });
            self.at += odd.sectors;
            return Ok(None);
        };
        let shape = Shape { sectors: odd.sectors, turn, skew: wrap(next - self.angle) };
        if self.found.is_empty() {
            if shape.gap().abs() < 2.0 * self.prober.tolerance() {
                return Err(LatticeError::NoSkew { lbn: self.prober.lbn(self.at) });
            }
            self.prober.tell_apart(shape.gap());
        }
        Ok(Some(Thread::new(Cell::of_track(shape), 0, self.at, self.angle)))
    }

    /// Sectors of a turn that were measured, of a track of so many: as many as it has where angles tell no difference, and a whole number where
    /// they tell one from the next. One spare sector makes a difference on short tracks.
    fn whole(&self, turn: f64, sectors: u64) -> f64 {
        let uncertain = 1.5 * self.prober.tolerance() * turn;
        if (turn - sectors as f64).abs() < uncertain.max(0.4) {
            return sectors as f64;
        }
        if uncertain < 0.5 { libm::round(turn) } else { turn }
    }

    /// Sectors of a turn, and the end of the track that begins here.
    async fn measured(&mut self) -> Result<(f64, Odd), LatticeError> {
        let known = self.turns();
        let mut turn = match known.first() {
            Some(last) => self.rate(*last, &known).await?,
            None => self.first_rate().await?,
        };
        let mut odd = self.odd(Shape::of_turn(turn), None).await?;
        for known in known {
            if odd.breaks {
                break;
            }
            (turn, odd) = (known, self.odd(Shape::of_turn(known), None).await?);
        }
        Ok((turn, odd))
    }

    /// Takes the angle here from the sectors behind, where they go on from one to the next but not from this: it is
    /// remapped elsewhere.
    async fn begins_beside(&mut self, turn: f64) -> Result<bool, LatticeError> {
        let (near, far) = (self.along(2).await?, self.along(4).await?);
        let Some((near, far)) = near.zip(far) else { return Ok(false) };
        let tolerance = self.prober.tolerance();
        let goes_on = wrap(far - near - 2.0 / turn).abs() <= 1.5 * tolerance;
        let off = wrap(near - 2.0 / turn);
        if !goes_on || off.abs() <= 2.0 * tolerance {
            return Ok(false);
        }
        self.angle = wrap(self.angle + off);
        Ok(true)
    }

    /// Sectors of a turn, where nothing is known of them.
    async fn first_rate(&mut self) -> Result<f64, LatticeError> {
        let lbn = self.prober.lbn(self.at);
        let turn = self.doubled().await?.ok_or(LatticeError::NoSectors { lbn })?;
        self.rate(turn, &[turn]).await
    }

    /// Sectors of a turn by going twice as far and twice again, up to half a turn; `None` where angles stay the same.
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

    /// Sectors of a turn of the tracks before: of those that come next in the cell first, then of the last ones.
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

    /// Sectors of a turn, where about so many are expected, and such were before.
    async fn rate(&mut self, turn: f64, known: &[f64]) -> Result<f64, LatticeError> {
        let mut rates = Vec::new();
        // Over most of the track, and if that holds slipped sectors or the track's end, over less.
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
        // Slipped sectors, or the end of the track, lie between: what was known before and is seen in some part of it.
        let is_seen = |known: &&f64| rates.iter().any(|rate| (rate / **known - 1.0).abs() < 0.02);
        match known.iter().find(is_seen) {
            Some(known) => Ok(*known),
            None => Ok(self.doubled().await?.unwrap_or(turn)),
        }
    }

    /// Turns from here to the so-manieth sector.
    async fn along(&mut self, sector: u64) -> Result<Option<f64>, LatticeError> {
        Ok(self.prober.angle(self.at + sector).await?.map(|angle| wrap(angle - self.angle)))
    }
}
