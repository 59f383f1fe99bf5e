//! What may come next: a cell that came before, a shape that came before, or something new.

use super::LatticeError;
use super::cell::{Cell, Shape, Thread, wrap, wrap_from};
use super::walk::{Piece, Walk};

/// Runs of tracks in a cell, at most.
const LONGEST: usize = 64;
/// Parts of a cell, and shapes of tracks, that are tried where a track begins.
const TRIED: usize = 3;

impl Walk {
    /// What came before and does again; with the number of the track that begins here.
    pub(super) async fn hypothesis(&mut self) -> Result<Option<(Thread, u64)>, LatticeError> {
        if let Some(cell) = self.repeated() {
            let thread = Thread::new(cell.clone(), 0, self.at, self.angle);
            if self.begins(&thread, cell.parts[0].tracks).await? {
                (self.cell, self.expected, self.strangers) = (Some(cell), 0, 0);
                return Ok(Some((thread, 0)));
            }
        }
        if let Some(found) = self.resumed().await? {
            self.strangers = 0;
            return Ok(Some(found));
        }
        for shape in self.shapes() {
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

    /// The last cell, from one of its parts on.
    async fn resumed(&mut self) -> Result<Option<(Thread, u64)>, LatticeError> {
        let Some(cell) = self.cell.clone() else { return Ok(None) };
        let (count, expected) = (cell.parts.len(), self.expected);
        for part in (0..count.min(TRIED)).map(|more| (expected + more) % count) {
            let from = cell.parts[part].track;
            let thread = Thread::new(cell.clone(), from, self.at, self.angle);
            if self.begins(&thread, from + cell.parts[part].tracks).await? {
                return Ok(Some((thread, from)));
            }
        }
        Ok(None)
    }

    /// Shapes of tracks that may come next.
    fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        let expected = self.cell.iter().map(|cell| cell.parts[self.expected % cell.parts.len()].shape);
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
        let runs = &found[found.len() - count..];
        let cell = Cell::new(
            runs.iter().map(|run| (run.shape, run.tracks, wrap(run.angle - runs[0].angle))),
            wrap(self.angle - runs[0].angle),
        );
        // The same as it is already known to break here.
        let is_new = self
            .cell
            .as_ref()
            .is_none_or(|known| !known.parts.iter().zip(&cell.parts).all(|(a, b)| a.shape.is_like(&b.shape)));
        (is_new && (count > 1 || runs[0].tracks > 1)).then_some(cell)
    }

    /// Whether the last so many runs are like as many before; a run alone has to have come three times.
    fn repeats(&self, count: usize) -> bool {
        let need = (2 * count).max(3);
        let Some(first) = self.found.len().checked_sub(need) else { return false };
        let window = &self.found[first..];
        window.iter().zip(&window[count..]).all(|(a, b)| a.tracks == b.tracks && a.shape.is_like(&b.shape))
    }

    /// Learns the track that begins here from nothing; `None` where it is the last.
    pub(super) async fn learn(&mut self) -> Result<Option<Thread>, LatticeError> {
        self.strangers += 1;
        let turn = match self.found.last() {
            Some(last) => self.rate(last.shape.turn).await?,
            None => self.first_rate().await?,
        };
        let guess = Shape { sectors: (libm::round(turn) as u64).max(2), turn, skew: 0.0 };
        let odd = self.odd(guess, None).await?;
        let full = (turn - odd.sectors as f64).abs() < 0.008 * turn + 0.6;
        let turn = if full { odd.sectors as f64 } else { turn };
        let Some(next) = odd.next else {
            self.found.push(Piece {
                first: self.at,
                shape: Shape { sectors: odd.sectors, turn, skew: 0.0 },
                tracks: 1,
                angle: self.angle,
                repeats: false,
            });
            self.at += odd.sectors;
            return Ok(None);
        };
        let shape = Shape { sectors: odd.sectors, turn, skew: wrap(next - self.angle) };
        if self.found.is_empty() && shape.gap().abs() < 2.0 * self.prober.tolerance() {
            return Err(LatticeError::NoSkew { lbn: self.prober.lbn(self.at) });
        }
        self.prober.tell_apart(shape.gap());
        Ok(Some(Thread::new(Cell::of_track(shape), 0, self.at, self.angle)))
    }

    /// Sectors of a turn, where nothing is known of them: twice as far and twice again, up to half a turn.
    async fn first_rate(&mut self) -> Result<f64, LatticeError> {
        let (mut far, mut angle) = (1u64, 0.0);
        let within = 4.0 * self.prober.tolerance();
        let mut known = false;
        while far < self.end - self.at && angle < 0.42 {
            let found = self.along(far).await?;
            let Some(found) = found else { break };
            let off = wrap(found - 2.0 * angle);
            if known && off.abs() > within.max(0.1 * angle) {
                break;
            }
            angle = 2.0 * angle + off;
            known = true;
            far *= 2;
        }
        let turn = (far / 2) as f64 / angle.max(1e-6);
        self.rate(turn).await
    }

    /// Sectors of a turn, where about so many are expected.
    async fn rate(&mut self, turn: f64) -> Result<f64, LatticeError> {
        let mut marks = vec![(0.0, 0.0)];
        for share in [0.22, 0.46, 0.7] {
            let far = (turn * share) as u64;
            if far == 0 || self.at + far >= self.end {
                break;
            }
            if let Some(angle) = self.along(far).await? {
                marks.push((far as f64, wrap_from(share - 0.4, angle)));
            }
        }
        let Some((far, angle)) = marks.last().filter(|_| marks.len() > 1) else { return Ok(turn) };
        let pieces: Vec<f64> = marks
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1).max(1e-6))
            .collect();
        let most = pieces.iter().copied().fold(0.0, f64::max);
        let least = pieces.iter().copied().fold(f64::MAX, f64::min);
        // Slipped sectors make the way longer in angle, never shorter.
        Ok(if most < 1.03 * least { far / angle } else { most })
    }

    /// Turns from here to the so-manieth sector.
    async fn along(&mut self, sector: u64) -> Result<Option<f64>, LatticeError> {
        Ok(self.prober.angle(self.at + sector).await?.map(|angle| wrap(angle - self.angle)))
    }
}
