//! Timed accesses to a disk: requests at chosen angles, and the distinction of hits from misses.
//!
//! A test only gets the time of an answer. A noisy clock still gives two quantities: the turn in which an access was served (a turn is far
//! longer than any noise), and the phase at which it ended, as the median of several. All other results derive from these.

use crate::{Answer, Disk, ProbeCommand};
use headstack_model::{Instant, Lbn, Nanos};
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
    /// Least time from the request to the end: ns.
    pub(super) least: f64,
    pub(super) phase: f64,
}

/// Time of a read hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hits {
    /// Without any data: ns.
    pub(super) base: f64,
    /// Each sector: ns.
    pub(super) sector: f64,
    /// Maximum deviation of a hit: ns.
    pub(super) tolerance: f64,
}

impl Hits {
    pub(super) fn fits(&self, answer: &Answer, sectors: u32) -> bool {
        let expected = self.base + self.sector * f64::from(sectors);
        (answer.took().0 as f64 - expected).abs() < self.tolerance
    }
}

#[derive(Debug)]
pub(super) struct Bench {
    disk: Disk,
    map: TrackMap,
    /// Time of a turn: ns.
    pub(super) turn: f64,
    /// Sectors of the tracks that the tests use.
    size: u32,
    places: Cell<u64>,
    angles: Cell<usize>,
    probes: Cell<u64>,
}

/// Minimum difference, in ns, between a hit and an answer that is none: several times the noise of a usual host.
const TOLERANCE: f64 = 60_000.0;
/// Maximum deviation of an answer's end from the expected angle, in turns; others are late, and are repeated.
const OFF: f64 = 0.08;
/// Number of tracks whose most frequent size the tests use.
const SIZES: usize = 64;
/// Share of the disk at which test places begin, and over which they spread: without the first and last tracks, which other programs read.
const SPREAD: (f64, f64) = (0.02, 0.9);
/// Number of tracks of equal size behind a test track, for tests that move on.
const EQUAL_TRACKS: usize = 5;
/// Tries to find a track that is far enough away.
const FAR_TRIES: usize = 1000;
/// Tries to find a track of the usual size.
const FRESH_TRIES: usize = 20_000;
/// Number of answers each tried as the origin of the phase, in case some are late.
const ORIGINS: usize = 3;
/// Number of answers whose mean phase is that of a block.
const PHASE_READS: usize = 15;
/// Maximum turns between a request and its end.
const MOST_LEAD: f64 = 16.0;
/// Resolution of that time, in ns: less than that of a host's clock.
const LEAD_RESOLUTION: f64 = 1_000.0;
const LATE_TRIES: usize = 5;
/// Minimum time in ns that a host needs between an answer and the next request.
const TURNAROUND: Nanos = Nanos(20_000);
/// Tolerance of a hit in median deviations: normal noise almost never exceeds it.
const HIT_MEDIANS: f64 = 10.0;
/// Maximum of that tolerance as a share of a turn: with more, media reads would count as hits.
const MOST_TOLERANCE: f64 = 0.125;
/// Maximum turns for reading a track, skew included.
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
        // The most frequent size.
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

    /// Sectors per access.
    pub(super) fn unit(&self) -> u32 {
        self.disk.info().physical_sectors
    }

    pub(super) fn turns(&self, count: f64) -> Nanos {
        Nanos((count * self.turn) as u64)
    }

    /// The first time of a phase that is not before `after`.
    pub(super) fn upcoming(&self, phase: f64, after: Instant) -> Instant {
        let turns = after.0 as f64 / self.turn;
        let target = phase + libm::ceil(turns - phase);
        Instant(libm::ceil(target * self.turn) as u64)
    }

    /// Executes a command at a time, or at once if that has passed.
    pub(super) async fn execute(&self, command: ProbeCommand, at: Instant) -> Answer {
        let ticket = self.send(command, at);
        self.disk.answer(ticket).await
    }

    /// Schedules a command without waiting for its answer.
    pub(super) fn send(&self, command: ProbeCommand, at: Instant) -> crate::Ticket {
        self.probes.set(self.probes.get() + 1);
        self.disk.send(command, at)
    }

    pub(super) async fn access(&self, kind: Kind, lbn: Lbn, sectors: u32, at: Instant) -> Answer {
        let command = match kind {
            Kind::Read => ProbeCommand::Read { lbn, sectors, from_media: true },
            Kind::Write => ProbeCommand::Write { lbn, sectors, to_media: true },
        };
        self.execute(command, at).await
    }

    /// A read that may come from the cache.
    pub(super) async fn read(&self, lbn: Lbn, sectors: u32, at: Instant) -> Answer {
        self.execute(ProbeCommand::Read { lbn, sectors, from_media: false }, at).await
    }

    /// A write that may stay in the cache.
    pub(super) async fn write(&self, lbn: Lbn, sectors: u32, at: Instant) -> Answer {
        self.execute(ProbeCommand::Write { lbn, sectors, to_media: false }, at).await
    }

    pub(super) async fn flush(&self) -> Answer {
        self.execute(ProbeCommand::Flush, Instant::ZERO).await
    }

    /// A track at least a third of the disk from a block.
    pub(super) fn far_from(&self, lbn: Lbn) -> Track {
        let is_far = |track: &Track| track.first.0.abs_diff(lbn.0) > self.map.end().0 / 3;
        let far = (0..FAR_TRIES).map(|_| self.anywhere()).find(is_far);
        far.unwrap_or_else(|| self.anywhere())
    }

    /// The track a number of tracks behind one, or before it, if it has the same size.
    pub(super) fn neighbour_track(&self, track: Track, tracks: i64) -> Option<Track> {
        let lbn = track.first.0 as i64 + tracks * i64::from(track.sectors);
        self.map.track_of(Lbn(u64::try_from(lbn).ok()?)).filter(|other| other.sectors == track.sectors)
    }

    pub(super) fn track_of(&self, lbn: Lbn) -> Option<Track> {
        self.map.track_of(lbn)
    }

    /// A track at a share of the disk from another, if the disk has it.
    pub(super) fn away(&self, track: Track, share: f64) -> Option<Track> {
        let all = self.map.end().0 as f64;
        let lbn = track.first.0 as f64 + share * all;
        (0.0..all).contains(&lbn).then(|| self.map.track_of(Lbn(lbn as u64))).flatten()
    }

    /// Turns of an angle that differs from call to call.
    pub(super) fn next_angle(&self) -> f64 {
        self.angles.set(self.angles.get() + 1);
        angle(self.angles.get())
    }

    /// A track of any size, far from those of the calls before.
    pub(super) fn anywhere(&self) -> Track {
        // Steps of the golden section keep the places of many calls far from each other, for any number of calls.
        const STEP: f64 = 0.618_033_988_749_894_9;
        let place = self.places.get() + 1;
        self.places.set(place);
        let share = SPREAD.0 + SPREAD.1 * (place as f64 * STEP).fract();
        let lbn = Lbn((share * self.map.end().0 as f64) as u64);
        self.map.track_of(lbn).expect("it lies on the disk")
    }

    /// A track of the tested size, among equal ones, far from those of earlier calls.
    pub(super) fn fresh(&self) -> Track {
        let fits = |track: &Track| track.sectors == self.size && self.is_among_equals(*track);
        // On a disk with few equal tracks, any track serves.
        (0..FRESH_TRIES).map(|_| self.anywhere()).find(fits).unwrap_or_else(|| self.anywhere())
    }

    /// Whether the previous track and the following ones have the same size.
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

    /// The median phase at which answers for one block end. `None` if most are out of phase.
    pub(super) fn phase_of(&self, ends: &[Instant]) -> Option<f64> {
        let phase = |end: &Instant| (end.0 as f64 / self.turn).fract();
        // Relative to one of the first, in case another was late.
        for first in ends.iter().take(ORIGINS).map(phase) {
            let mut off: Vec<f64> = ends.iter().map(|end| wrap(phase(end) - first)).collect();
            let middle = mid_mean(&mut off);
            if off.iter().filter(|off| (**off - middle).abs() < OFF).count() * 4 > off.len() * 3 {
                return Some((first + middle).rem_euclid(1.0));
            }
        }
        None
    }

    /// The least time from the request to the end of an access that follows one to the first unit of the same blocks; `None` if
    /// it is always late. Found by requesting later and later, until the disk needs another turn.
    pub(super) async fn lead(&self, before: Kind, kind: Kind, lbn: Lbn, sectors: u32) -> Option<Lead> {
        let mut ends = Vec::new();
        for _ in 0..PHASE_READS {
            self.access(before, lbn, self.unit(), Instant::ZERO).await;
            ends.push(self.access(kind, lbn, sectors, Instant::ZERO).await.ended);
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
            // If the request itself was late, its actual time is the bound.
            if in_time {
                high = requested.clamp(low, high)
            } else {
                low = requested.clamp(low, high)
            }
            if requested <= low && in_time || requested >= high && !in_time {
                break;
            }
        }
        Some(Lead { least: (low + high) / 2.0 * self.turn, phase })
    }

    /// Whether an access requested a number of turns before its end is served by then, and the actual number of turns.
    async fn is_in_time(&self, probe: (Kind, Kind, Lbn, u32, f64), turns: f64) -> (bool, f64) {
        let (before, kind, lbn, sectors, phase) = probe;
        let mut found = (false, turns);
        for _ in 0..LATE_TRIES {
            let ready = self.access(before, lbn, self.unit(), Instant::ZERO).await.ended;
            let earliest = ready + self.turns(turns) + TURNAROUND;
            let end = self.upcoming(phase, earliest);
            let answer = self.access(kind, lbn, sectors, end.saturating_sub(self.turns(turns))).await;
            let late = (answer.ended.0 as f64 - end.0 as f64) / self.turn;
            found = (libm::round(late) <= 0.0, (end.0 as f64 - answer.issued.0 as f64) / self.turn);
            if wrap(late).abs() < OFF {
                break;
            }
        }
        found
    }

    /// Time and tolerance of read hits on read-ahead data behind another read.
    pub(super) async fn behind(&self, sectors: u32) -> Option<(f64, f64)> {
        self.steady(TRIES, async |step| {
            let lbn = self.fresh().first;
            let read = self.read(lbn, self.unit(), Instant::ZERO).await.ended;
            let tracks = f64::from(sectors) / f64::from(self.size);
            // Not where the previous read ended, which may be a special case.
            let next = lbn + u64::from(self.unit()) + 1;
            let at = read + self.turns(0.1 + TRACK_TURNS * tracks + angle(step) / 2.0);
            self.read(next, sectors, at).await
        })
        .await
    }

    /// Time and tolerance of repeated reads of the same blocks, if they are cached.
    pub(super) async fn again(&self, lbn: Lbn, sectors: u32) -> Option<(f64, f64)> {
        self.read(lbn, sectors, Instant::ZERO).await;
        let read = async |step| self.read(lbn, sectors, self.disk.now() + self.turns(angle(step))).await;
        self.steady(TRIES, read).await
    }

    /// Time of most of some probes at many angles, and the tolerance of others: ns. `None` if they wait for the media.
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
        // Some answers are late.
        (off[off.len() * 4 / 5] < tolerance && tolerance < self.turn * MOST_TOLERANCE)
            .then_some((middle, tolerance))
    }
}

/// In how many of some rounds a test holds.
pub(super) async fn times(rounds: usize, test: impl AsyncFn(usize) -> bool) -> usize {
    let mut held = 0;
    for round in 0..rounds {
        held += usize::from(test(round).await);
    }
    held
}

/// The bounds between which a test stops holding, by doubling `high`, the first value tried; `None` if it holds up to `most`.
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

/// Bisects between a value at which a test holds and one at which it does not, down to a unit.
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

/// Number of measurements of a time.
pub(super) const TRIES: usize = 25;

/// One of several evenly spread angles.
pub(super) fn angle(step: usize) -> f64 {
    0.137 * (step % 7 + 1) as f64
}

/// A difference of phases, from -½ to ½.
pub(super) fn wrap(turns: f64) -> f64 {
    turns - libm::round(turns)
}

/// The mean of the middle half: late answers have no weight, and the others more than in the median.
pub(super) fn mid_mean(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let cut = times.len() / 4;
    let middle = &times[cut..times.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}
