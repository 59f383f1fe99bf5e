//! What repeats on a disk: tracks, runs of equal tracks, and sequences of runs.
//!
//! A [`PeriodicPattern`] is a sequence of [`Part`]s, each a run of equal tracks, and repeats with the same step
//! of angle: one track of a surface, a cylinder of a disk that changes heads first, or a band over all surfaces. All that
//! is learned is that the next boundaries lie where a repeated pattern predicts them ([`Alignment`]), or where it no longer matches.

/// Wraps turns to between −0.5 and 0.5.
pub(super) fn wrap(turns: f64) -> f64 {
    turns - libm::round(turns)
}

/// Wraps turns to between `least` and `least` + 1.
pub(super) fn wrap_from(least: f64, turns: f64) -> f64 {
    turns - libm::floor(turns - least)
}

/// Maximum difference of equal tracks, of densities as a share and of skews in turns: more than the measurement error, less than
/// the difference between surfaces or zones. By trial.
const LIKE: f64 = 0.01;
/// Spare sectors, beyond those of the fullest track, with which a track can absorb slips: one, and half a sector of error.
const SPARE: f64 = 1.5;

/// A track and the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Physical sectors that hold blocks.
    pub(super) sectors: u64,
    /// Physical sectors of a whole turn.
    pub(super) turn: f64,
    /// Turns from the start of a track to that of the next, without whole turns.
    pub(super) skew: f64,
}

impl Shape {
    /// A track that fills its turn.
    pub(super) fn of_turn(turn: f64) -> Shape {
        Shape { sectors: (libm::round(turn) as u64).max(2), turn, skew: 0.0 }
    }

    /// Turns between the end of a track's last sector and the first sector of the next.
    pub(super) fn gap(&self) -> f64 {
        wrap(self.skew - self.sectors as f64 / self.turn)
    }

    pub(super) fn is_like(&self, other: &Shape) -> bool {
        self.sectors == other.sectors
            && (self.turn - other.turn).abs() < LIKE * self.turn
            && wrap(self.skew - other.skew).abs() < LIKE
    }
}

/// Tracks of one shape within a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) shape: Shape,
    pub(super) tracks: u64,
    /// Index within the pattern of its first sector and track, and its angle relative to the pattern's first track.
    pub(super) sector: u64,
    pub(super) track: u64,
    pub(super) angle: f64,
}

#[derive(Clone, Debug)]
pub(super) struct PeriodicPattern {
    pub(super) parts: Vec<Part>,
    pub(super) sectors: u64,
    pub(super) tracks: u64,
    /// Turns from one repetition to the next.
    pub(super) step: f64,
    /// Its number among the learned patterns.
    pub(super) number: u64,
}

impl PeriodicPattern {
    pub(super) fn of_track(shape: Shape) -> PeriodicPattern {
        PeriodicPattern::new([(shape, 1, 0.0)], shape.skew)
    }

    /// Runs of tracks, each with its angle.
    pub(super) fn new(runs: impl IntoIterator<Item = (Shape, u64, f64)>, step: f64) -> PeriodicPattern {
        let (mut sector, mut track) = (0, 0);
        let mut parts = Vec::new();
        for (shape, tracks, angle) in runs {
            parts.push(Part { shape, tracks, sector, track, angle });
            sector += shape.sectors * tracks;
            track += tracks;
        }
        PeriodicPattern { parts, sectors: sector, tracks: track, step, number: 0 }
    }

    pub(super) fn part_of(&self, track: u64) -> usize {
        self.parts.partition_point(|part| part.track <= track % self.tracks) - 1
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) sector: u64,
    pub(super) angle: f64,
    pub(super) shape: Shape,
}

impl Start {
    /// The predicted angle of the track's last sector.
    pub(super) fn last(&self) -> f64 {
        wrap(self.angle + (self.shape.sectors - 1) as f64 / self.shape.turn)
    }
}

/// A pattern at a position on the disk, repeated.
#[derive(Clone, Debug)]
pub(super) struct Alignment {
    pub(super) pattern: PeriodicPattern,
    /// Its first sector; slips may move it before the disk.
    sector: i64,
    angle: f64,
}

impl Alignment {
    /// Aligns a pattern so that its track `track` begins at a sector and an angle.
    pub(super) fn new(pattern: PeriodicPattern, track: u64, sector: u64, angle: f64) -> Alignment {
        let mut alignment = Alignment { pattern, sector: 0, angle: 0.0 };
        let begin = alignment.start(track);
        alignment.sector = sector as i64 - begin.sector as i64;
        alignment.angle = angle - begin.angle;
        alignment
    }

    pub(super) fn start(&self, track: u64) -> Start {
        let part = &self.pattern.parts[self.pattern.part_of(track)];
        let (times, inside) = (track / self.pattern.tracks, track % self.pattern.tracks - part.track);
        let sector = times * self.pattern.sectors + part.sector + inside * part.shape.sectors;
        let angle = times as f64 * self.pattern.step + part.angle + inside as f64 * part.shape.skew;
        Start {
            sector: (self.sector + sector as i64).max(0) as u64,
            angle: wrap(self.angle + angle),
            shape: part.shape,
        }
    }

    /// The part that holds a track, and the number of the track after the part.
    pub(super) fn part(&self, track: u64) -> (usize, u64) {
        let index = self.pattern.part_of(track);
        let part = &self.pattern.parts[index];
        (index, track - track % self.pattern.tracks + part.track + part.tracks)
    }

    pub(super) fn begins_part(&self, track: u64) -> bool {
        self.part(track).1 - self.part_of(track).tracks == track
    }

    /// The track behind one and the following ones of equal length, over parts, but within one repetition: an alignment that is
    /// off by some tracks misses a boundary there.
    pub(super) fn end_of_equal_tracks(&self, track: u64) -> u64 {
        let sectors = self.part_of(track).shape.sectors;
        let (_, mut end) = self.part(track);
        while end < track + self.pattern.tracks && self.part_of(end).shape.sectors == sectors {
            end = self.part(end).1;
        }
        end
    }

    /// Of `from` and the first tracks of the parts between it and `to`, those with more spare sectors than the tracks with the fewest. Sectors
    /// slipped before such a track use up its spare sectors, so that nothing behind it moves.
    pub(super) fn hidden(&self, from: u64, to: u64) -> Vec<u64> {
        let spare = |part: &Part| part.shape.turn - part.shape.sectors as f64;
        let least = self.pattern.parts.iter().map(spare).fold(f64::MAX, f64::min);
        let mut hidden = Vec::new();
        let mut track = from;
        while track < to && self.pattern.parts.iter().any(|part| spare(part) > least + SPARE) {
            if spare(&self.part_of(track)) > least + SPARE {
                hidden.push(track);
            }
            track = self.part(track).1;
        }
        hidden
    }

    pub(super) fn part_of(&self, track: u64) -> Part {
        self.pattern.parts[self.pattern.part_of(track)]
    }

    pub(super) fn last_before(&self, sector: u64) -> u64 {
        let rest = (sector as i64 - 1 - self.sector).max(0) as u64;
        let (times, rest) = (rest / self.pattern.sectors, rest % self.pattern.sectors);
        let part = &self.pattern.parts[self.pattern.parts.partition_point(|part| part.sector <= rest) - 1];
        times * self.pattern.tracks + part.track + (rest - part.sector) / part.shape.sectors
    }

    /// Moves it back by slipped sectors.
    pub(super) fn slip(&mut self, sectors: i64) {
        self.sector -= sectors;
    }

    /// Corrects the skew within a part so that a track of it begins `off` turns later, and one before stays where it is.
    pub(super) fn refine_part(&mut self, from: u64, to: u64, off: f64) {
        let (index, end) = self.part(from);
        if to >= end || to <= from || self.pattern.tracks == 1 {
            return;
        }
        let part = &mut self.pattern.parts[index];
        // Over a few of many tracks it would be less certain than before.
        if 2 * (to - from) < part.tracks {
            return;
        }
        let more = off / (to - from) as f64;
        part.shape.skew += more;
        self.angle -= (from % self.pattern.tracks - part.track) as f64 * more;
    }

    /// Corrects the step of angle so that a track begins `off` turns later, and one before stays where it is.
    pub(super) fn refine(&mut self, from: u64, to: u64, off: f64) {
        let times = to / self.pattern.tracks - from / self.pattern.tracks;
        if times == 0 {
            return;
        }
        let more = off / times as f64;
        self.pattern.step += more;
        self.angle -= (from / self.pattern.tracks) as f64 * more;
        if let [part] = &mut self.pattern.parts[..]
            && part.tracks == 1
        {
            part.shape.skew = self.pattern.step;
        }
    }
}
