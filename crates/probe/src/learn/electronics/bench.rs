//! A disk on the bench: asking it at chosen angles, and telling hits from misses.
//!
//! What an answer tells is when it ended. Two things can be read off that with a noisy clock: in which turn an access was
//! served (a turn is far longer than any noise), and the phase at which it ended, as the middle of several. Everything is
//! led back to these two.

use crate::{Answer, Disk, ProbeCommand};
use headstack_model::{Lbn, Nanos};
use headstack_tracks::{Track, TrackMap};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// When an access must be requested to be served in a given turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    /// From asking to the end, at the least: ns.
    pub(super) least: f64,
    /// The phase at which it ends.
    pub(super) phase: f64,
}

/// What a read from the cache takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hits {
    /// Without any data: ns.
    pub(super) base: f64,
    /// Each sector: ns.
    pub(super) sector: f64,
    /// How far a hit may lie off: ns.
    pub(super) tolerance: f64,
}

impl Hits {
    /// Whether the time of an answer is that of a hit.
    pub(super) fn fits(&self, answer: &Answer, sectors: u32) -> bool {
        let expected = self.base + self.sector * f64::from(sectors);
        (answer.took().0 as f64 - expected).abs() < self.tolerance
    }
}

/// A disk, its tracks and its turn.
#[derive(Debug)]
pub(super) struct Bench {
    disk: Disk,
    map: TrackMap,
    /// Time of a turn: ns.
    pub(super) turn: f64,
    /// Sectors of the tracks that are tried.
    size: u32,
    places: Cell<u64>,
    angles: Cell<usize>,
    probes: Cell<u64>,
}

/// Least time, in ns, by which an answer differs from a hit that is none: several times the noise of a usual host.
const TOLERANCE: f64 = 60_000.0;
/// Turns within which an answer must end from where it should; others are late, and are repeated.
const OFF: f64 = 0.08;
/// Tracks whose most frequent size is the one that is tried.
const SIZES: usize = 64;
/// Share of the disk at which places begin, and over which they spread: not the first and last tracks, which other programs read.
const SPREAD: (f64, f64) = (0.02, 0.9);
/// Tracks behind one that hold as much, so that a test may move on from it.
const EQUAL_TRACKS: usize = 5;
/// Tries for a track that is far enough away, and for one of the usual size.
const FAR_TRIES: usize = 1000;
const FRESH_TRIES: usize = 20_000;
/// Answers of which each is tried as the origin of the phase, in case some are late.
const ORIGINS: usize = 3;
/// Answers whose mean phase is that of a block.
const PHASE_READS: usize = 15;
/// Most turns that an access may have to be requested before its end.
const MOST_LEAD: f64 = 16.0;
/// Resolution of that time, in ns: less than a host's clock has.
const LEAD_RESOLUTION: f64 = 1_000.0;
/// Tries of an access that came late.
const LATE_TRIES: usize = 5;
/// Time between an answer and the next request, in ns, that a host needs at least.
const TURNAROUND: u64 = 20_000;
/// Medians of the deviation that a hit may differ by: of normal noise next to none does.
const HIT_MEDIANS: f64 = 10.0;
/// Share of a turn that such a tolerance may have: with more, angles would be no hits.
const MOST_TOLERANCE: f64 = 0.125;
/// Turns that reading a track takes at most, skew included.
pub(super) const TRACK_TURNS: f64 = 1.5;

impl Bench {
    pub(super) fn new(disk: Disk, map: TrackMap, turn: f64) -> Bench {
        let mut bench = Bench {
            disk,
            map,
            turn,
            size: 0,
            places: Cell::new(0),
            angles: Cell::new(0),
            probes: Cell::new(0),
        };
        let mut sizes: Vec<u32> = (0..SIZES).map(|_| bench.anywhere().sectors).collect();
        sizes.sort_unstable();
        // The size met most often.
        let often = sizes.chunk_by(|one, other| one == other).max_by_key(|equal| equal.len());
        bench.size = often.map_or(0, |equal| equal[0]);
        bench
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(super) fn probes(&self) -> u64 {
        self.probes.get()
    }

    /// Sectors that are accessed together.
    pub(super) fn unit(&self) -> u32 {
        self.disk.info().physical_sectors
    }

    pub(super) fn turns(&self, count: f64) -> Nanos {
        Nanos((count * self.turn) as u64)
    }

    /// When a phase comes up, not before a time.
    pub(super) fn upcoming(&self, phase: f64, after: Nanos) -> Nanos {
        let turns = after.0 as f64 / self.turn;
        let target = phase + libm::ceil(turns - phase);
        Nanos(libm::ceil(target * self.turn) as u64)
    }

    /// Asks at a time, or at once where that has passed, and waits for the answer.
    pub(super) async fn execute(&self, command: ProbeCommand, at: Nanos) -> Answer {
        let ticket = self.send(command, at);
        self.disk.answer(ticket).await
    }

    /// Asks at a time without waiting for the answer.
    pub(super) fn send(&self, command: ProbeCommand, at: Nanos) -> crate::Ticket {
        self.probes.set(self.probes.get() + 1);
        self.disk.send(command, at)
    }

    pub(super) async fn access(&self, kind: Kind, lbn: Lbn, sectors: u32, at: Nanos) -> Answer {
        let command = match kind {
            Kind::Read => ProbeCommand::Read { lbn, sectors, from_media: true },
            Kind::Write => ProbeCommand::Write { lbn, sectors, to_media: true },
        };
        self.execute(command, at).await
    }

    /// A read from wherever the disk likes.
    pub(super) async fn read(&self, lbn: Lbn, sectors: u32, at: Nanos) -> Answer {
        self.execute(ProbeCommand::Read { lbn, sectors, from_media: false }, at).await
    }

    /// A write that may stay in the cache.
    pub(super) async fn write(&self, lbn: Lbn, sectors: u32, at: Nanos) -> Answer {
        self.execute(ProbeCommand::Write { lbn, sectors, to_media: false }, at).await
    }

    pub(super) async fn flush(&self) -> Answer {
        self.execute(ProbeCommand::Flush, Nanos::ZERO).await
    }

    /// A track at least a third of the disk from a block.
    pub(super) fn far_from(&self, lbn: Lbn) -> Track {
        let is_far = |track: &Track| track.first.0.abs_diff(lbn.0) > self.map.end().0 / 3;
        let far = (0..FAR_TRIES).map(|_| self.anywhere()).find(is_far);
        far.unwrap_or_else(|| self.anywhere())
    }

    /// The track a number of tracks behind one, or before it, if it holds as much.
    pub(super) fn neighbour_track(&self, track: Track, tracks: i64) -> Option<Track> {
        let lbn = track.first.0 as i64 + tracks * i64::from(track.sectors);
        self.map.track_of(Lbn(u64::try_from(lbn).ok()?)).filter(|other| other.sectors == track.sectors)
    }

    /// A track at a share of the disk from another, if the disk has it.
    pub(super) fn away(&self, track: Track, share: f64) -> Option<Track> {
        let all = self.map.end().0 as f64;
        let lbn = track.first.0 as f64 + share * all;
        (0.0..all).contains(&lbn).then(|| self.map.track_of(Lbn(lbn as u64))).flatten()
    }

    /// An angle that differs from call to call, in turns.
    pub(super) fn next_angle(&self) -> f64 {
        self.angles.set(self.angles.get() + 1);
        angle(self.angles.get())
    }

    /// A track of any size, far from those of the calls before.
    pub(super) fn anywhere(&self) -> Track {
        // Steps of the golden section leave the places of many calls far from each other, whatever their number.
        const STEP: f64 = 0.618_033_988_749_894_9;
        let place = self.places.get() + 1;
        self.places.set(place);
        let share = SPREAD.0 + SPREAD.1 * (place as f64 * STEP).fract();
        let lbn = Lbn((share * self.map.end().0 as f64) as u64);
        self.map.track_of(lbn).expect("it lies on the disk")
    }

    /// A track of the size that is tried, among equal ones, far from those of the calls before.
    pub(super) fn fresh(&self) -> Track {
        let fits = |track: &Track| track.sectors == self.size && self.is_among_equals(*track);
        // A disk of few equal tracks is tried where it is.
        (0..FRESH_TRIES).map(|_| self.anywhere()).find(fits).unwrap_or_else(|| self.anywhere())
    }

    /// Whether the track before and those after hold as much.
    fn is_among_equals(&self, track: Track) -> bool {
        let neighbour = |lbn: Option<u64>| lbn.and_then(|lbn| self.map.track_of(Lbn(lbn)));
        let Some(mut other) = neighbour(track.first.0.checked_sub(1)) else { return false };
        for _ in 0..EQUAL_TRACKS {
            if other.sectors != track.sectors {
                return false;
            }
            let Some(next) = self.map.track_of(other.end()) else { return false };
            other = next;
        }
        true
    }

    /// The phase at which answers end that belong to one block: the middle one. `None` where most do not end in step.
    pub(super) fn phase_of(&self, ends: &[Nanos]) -> Option<f64> {
        let phase = |end: &Nanos| (end.0 as f64 / self.turn).fract();
        // Off from one of the first, in case that one was late.
        for first in ends.iter().take(ORIGINS).map(phase) {
            let mut off: Vec<f64> = ends.iter().map(|end| wrap(phase(end) - first)).collect();
            let middle = mid_mean(&mut off);
            if off.iter().filter(|off| (**off - middle).abs() < OFF).count() * 4 > off.len() * 3 {
                return Some((first + middle).rem_euclid(1.0));
            }
        }
        None
    }

    /// The least time from the request to the end of an access that follows one to the first unit of the same blocks; `None` where it is
    /// always late. Found by requesting later and later, until the disk needs another turn.
    pub(super) async fn lead(&self, before: Kind, kind: Kind, lbn: Lbn, sectors: u32) -> Option<Lead> {
        let mut ends = Vec::new();
        for _ in 0..PHASE_READS {
            self.access(before, lbn, self.unit(), Nanos::ZERO).await;
            ends.push(self.access(kind, lbn, sectors, Nanos::ZERO).await.ended);
        }
        let phase = self.phase_of(&ends)?;
        let probe = (before, kind, lbn, sectors, phase);
        let (mut low, mut high) = (0.0, 1.0);
        while !self.is_in_time(probe, high).await.0 {
            (low, high) = (high, high * 2.0);
            if high > MOST_LEAD {
                return None;
            }
        }
        while (high - low) * self.turn > LEAD_RESOLUTION {
            let (in_time, requested) = self.is_in_time(probe, (low + high) / 2.0).await;
            // Where the asking itself was late, the time that was tried is another.
            match in_time {
                true => high = requested.clamp(low, high),
                false => low = requested.clamp(low, high),
            }
            if requested <= low && in_time || requested >= high && !in_time {
                break;
            }
        }
        Some(Lead { least: (low + high) / 2.0 * self.turn, phase })
    }

    /// Whether an access requested a number of turns before its end is served by then, and the number of turns it really was.
    async fn is_in_time(&self, probe: (Kind, Kind, Lbn, u32, f64), turns: f64) -> (bool, f64) {
        let (before, kind, lbn, sectors, phase) = probe;
        let mut found = (false, turns);
        for _ in 0..LATE_TRIES {
            let ready = self.access(before, lbn, self.unit(), Nanos::ZERO).await.ended;
            let earliest = Nanos(ready.0 + (turns * self.turn) as u64 + TURNAROUND);
            let end = self.upcoming(phase, earliest);
            let answer = self.access(kind, lbn, sectors, Nanos(end.0 - (turns * self.turn) as u64)).await;
            let late = (answer.ended.0 as f64 - end.0 as f64) / self.turn;
            found = (libm::round(late) <= 0.0, (end.0 as f64 - answer.issued.0 as f64) / self.turn);
            if wrap(late).abs() < OFF {
                break;
            }
        }
        found
    }

    /// The time of reads behind another read, where they have been read ahead, and its tolerance.
    pub(super) async fn behind(&self, sectors: u32) -> Option<(f64, f64)> {
        self.steady(TRIES, async |step| {
            let lbn = self.fresh().first;
            let read = self.read(lbn, self.unit(), Nanos::ZERO).await.ended;
            let tracks = f64::from(sectors) / f64::from(self.size);
            // Not where the read before ended, which may be a case of its own.
            let next = lbn + u64::from(self.unit()) + 1;
            let at = read + self.turns(0.1 + TRACK_TURNS * tracks + angle(step) / 2.0);
            self.read(next, sectors, at).await
        })
        .await
    }

    /// What reading some blocks repeatedly takes, where they are kept, and how far that may be off.
    pub(super) async fn again(&self, lbn: Lbn, sectors: u32) -> Option<(f64, f64)> {
        self.read(lbn, sectors, Nanos::ZERO).await;
        let read = async |step| self.read(lbn, sectors, self.disk.now() + self.turns(angle(step))).await;
        self.steady(TRIES, read).await
    }

    /// The time that most of some probes take at many angles, and how far others may be off: ns. `None` where they wait for the media.
    pub(super) async fn steady(
        &self,
        tries: usize,
        probe: impl AsyncFn(usize) -> Answer,
    ) -> Option<(f64, f64)> {
        let mut times = Vec::with_capacity(tries);
        for step in 0..tries {
            times.push(probe(step).await.took().0 as f64);
        }
        let middle = mid_mean(&mut times);
        let mut off: Vec<f64> = times.iter().map(|time| (time - middle).abs()).collect();
        off.sort_by(f64::total_cmp);
        let tolerance = TOLERANCE.max(off[off.len() / 2] * HIT_MEDIANS);
        // Some come late.
        (off[off.len() * 4 / 5] < tolerance && tolerance < self.turn * MOST_TOLERANCE)
            .then_some((middle, tolerance))
    }
}

/// How often of some rounds a test holds.
pub(super) async fn times(rounds: usize, test: impl AsyncFn(usize) -> bool) -> usize {
    let mut held = 0;
    for round in 0..rounds {
        held += usize::from(test(round).await);
    }
    held
}

/// The bounds between which a test stops to hold, by doubling `high`, the first value tried; `None` where it holds up to `most`.
pub(super) async fn doubled(
    mut low: i64,
    mut high: i64,
    most: i64,
    holds: impl AsyncFn(i64) -> bool,
) -> Option<(i64, i64)> {
    while holds(high).await {
        (low, high) = (high, high * 2);
        if high > most {
            return None;
        }
    }
    Some((low, high))
}

/// Halves the distance between a value at which a test holds and one at which it does not, down to a unit.
pub(super) async fn halved(
    (mut low, mut high): (i64, i64),
    unit: i64,
    holds: impl AsyncFn(i64) -> bool,
) -> (i64, i64) {
    while high - low > unit {
        let middle = (low + high) / 2 / unit * unit;
        if holds(middle).await { low = middle } else { high = middle }
    }
    (low, high)
}

/// How often a time is taken.
pub(super) const TRIES: usize = 25;

/// One of the angles at which to try.
pub(super) fn angle(step: usize) -> f64 {
    0.137 * (step % 7 + 1) as f64
}

/// A difference of phases, from -½ to ½.
pub(super) fn wrap(turns: f64) -> f64 {
    turns - libm::round(turns)
}

/// The mean of the middle half: what comes late has no weight, and the rest more than in the median.
pub(super) fn mid_mean(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let cut = times.len() / 4;
    let middle = &times[cut..times.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}
