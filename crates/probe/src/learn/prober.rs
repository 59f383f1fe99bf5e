//! The least time from one track to another.
//!
//! With known angles, the time of a read also gives its number of turns. The arm reaches the track at some time after the command; a block
//! that passes before that is read a turn later. So each read bounds that time from above by its turns, and from below by one turn less;
//! and the next block, requested at the right time, bisects the interval. The clock's error only affects the fraction of a turn, which is
//! ignored: only whole turns decide.

use super::tracks::{Spot, turn_between};
use crate::{Answer, Disk, ProbeCommand};
use headstack_model::{Instant, Lbn, Nanos};

/// Bounds, in turns, of the time from a command to the first block that the arm reaches and on to its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Least {
    above: f64,
    most: f64,
}

impl Least {
    pub(super) fn turns(&self) -> f64 {
        (self.above + self.most) / 2.0
    }
}

/// Probes a disk whose angles are known.
#[derive(Debug)]
pub(super) struct Prober {
    disk: Disk,
    period: f64,
    /// Time at which a read ends at angle 0.
    zero: f64,
    /// How much later a write ends than a read at the same angle, in turns; none until that is learned.
    write_ends: Option<f64>,
    /// Mean square of the answers' deviation, in turns.
    square: f64,
    /// Blocks per probe.
    unit: u32,
}

/// Lower and upper limit, in turns, of the deviation up to which an answer counts.
const OFF: (f64, f64) = (0.01, 0.1);
/// That deviation in standard deviations.
const OFF_DEVIATIONS: f64 = 6.0;
/// Share of an answer's deviation by which the noise follows it: the mean of the last 50.
const NOISE_GAIN: f64 = 0.02;
/// Share of an answer's deviation by which the clock follows it: the mean of the last 10.
const CLOCK_GAIN: f64 = 0.1;
/// Number of reads whose median sets the clock.
const CLOCK_READS: u32 = 15;
/// Units from one of these reads to the next, so that they spread over the track.
const CLOCK_STEP: u32 = 7;
/// Standard deviation of a median over that of the values: √(π/2).
const MEDIAN_DEVIATION: f64 = 1.25;
/// Distance between the quartiles of a normal distribution, in standard deviations.
const QUARTILES: f64 = 1.35;
/// Standard deviations within which a count of sectors is certain.
const CERTAIN: f64 = 3.0;
/// Maximum reads of a bisection, late ones included.
const PATIENCE: u32 = 60;
/// Minimum and maximum pairs of reads that count the sectors of a turn.
const SAMPLES: (u32, u32) = (15, 120);
/// Standard deviation that they have to reach, in sectors.
const COUNTED: f64 = 0.12;
/// Maximum error of the clock, which follows many answers, in standard deviations of an answer.
const BLUR: f64 = 0.6;
/// Maximum number of times that a failed bound is searched again.
const SECOND_THOUGHTS: u32 = 4;

impl Prober {
    /// *Units:* period in nanoseconds.
    pub(super) fn new(disk: Disk, period: f64) -> Prober {
        let unit = disk.info().physical_sectors.max(1);
        Prober { disk, period, zero: 0.0, write_ends: None, square: 0.0, unit }
    }

    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Length of a turn in nanoseconds.
    pub(super) fn period(&self) -> f64 {
        self.period
    }

    /// Number of units in a track.
    fn units(&self, spot: &Spot) -> u32 {
        (spot.sectors / self.unit).max(1)
    }

    /// First block of such a unit, and the angle at its end.
    fn part(&self, spot: &Spot, unit: u32) -> (Lbn, f64) {
        let from = unit * self.unit;
        let end = f64::from((from + self.unit).min(spot.sectors));
        (spot.first + u64::from(from), spot.angle + end / f64::from(spot.sectors_per_track))
    }

    fn phase(&self, at: Instant) -> f64 {
        ((at.0 as f64 - self.zero) / self.period).rem_euclid(1.0)
    }

    fn most_off(&self) -> f64 {
        (OFF_DEVIATIONS * self.square.sqrt()).clamp(OFF.0, OFF.1)
    }

    /// Updates noise and clock by an answer's deviation; false if the answer is late.
    fn follow(&mut self, off: f64) -> bool {
        if off.abs() > self.most_off() {
            return false;
        }
        self.square += NOISE_GAIN * (off * off - self.square);
        // The clocks of the host and of the spindle drift apart.
        self.zero += CLOCK_GAIN * off * self.period;
        true
    }

    /// Sets the clock by reading a track's blocks.
    pub(super) async fn set_clock(&mut self, spot: &Spot) {
        let mut zeros = Vec::new();
        let units = self.units(spot);
        for round in 0..CLOCK_READS {
            let (lbn, angle) = self.part(spot, (round * CLOCK_STEP) % units);
            let ended = self.disk.read(lbn, self.unit).await.ended.0 as f64;
            zeros.push((ended / self.period) - angle);
        }
        let (middle, spread) = middle_and_spread(&zeros);
        self.zero = middle * self.period;
        self.square = spread * spread;
    }

    /// Standard deviation of recent answers, in turns.
    pub(super) fn noise(&self) -> f64 {
        self.square.sqrt()
    }

    /// Sectors of a whole turn, by the angle between a track's first and last; `spot`'s number if angles show no other.
    pub(super) async fn sectors_of_turn(&mut self, spot: &Spot) -> u32 {
        let last = self.units(spot) - 1;
        let said = f64::from(spot.sectors_per_track) / f64::from(self.unit);
        if last == 0 {
            return spot.sectors_per_track;
        }
        // Of a median of differences; if a turn is longer by a share, it has proportionally more sectors.
        let deviation =
            MEDIAN_DEVIATION * std::f64::consts::SQRT_2 * self.noise() * said * said / f64::from(last);
        let needed = (deviation / COUNTED) * (deviation / COUNTED);
        let samples = (needed.ceil() as u32).clamp(SAMPLES.0, SAMPLES.1);
        let expected = f64::from(last) / said;
        let mut between = Vec::new();
        for _ in 0..samples {
            let first = self.disk.read(self.part(spot, 0).0, self.unit).await;
            let second = self.disk.read(self.part(spot, last).0, self.unit).await;
            // Near a whole turn it may exceed one.
            between.push(turn_between(expected, self.phase(second.ended) - self.phase(first.ended)));
        }
        let units = f64::from(last) / (expected + middle_and_spread(&between).0);
        let certain = 0.5_f64.max(CERTAIN * deviation / f64::from(samples).sqrt());
        let held = f64::from(self.units(spot));
        if (units - held).abs() < certain {
            // The angles do not show that it has more.
            spot.sectors
        } else {
            ((units.round() as u32) * self.unit).max(spot.sectors)
        }
    }

    /// Learns how much later writes end than reads. Writes back the contents of the track.
    pub(super) async fn compare_writes(&mut self, spot: &Spot) {
        self.set_clock(spot).await;
        let mut later = Vec::new();
        let units = self.units(spot);
        for round in 0..CLOCK_READS {
            let (lbn, angle) = self.part(spot, (round * CLOCK_STEP) % units);
            let command = ProbeCommand::Write { lbn, sectors: self.unit, to_media: true };
            let answer = self.disk.execute(command).await;
            later.push(self.phase(answer.ended) - angle);
        }
        self.write_ends = Some(middle_and_spread(&later).0);
    }

    /// Moves the arm to a track, far from its end, where read-ahead keeps it for a while.
    async fn settle_on(&mut self, spot: &Spot) {
        let (lbn, angle) = self.part(spot, self.units(spot) / 5);
        let answer = self.disk.read(lbn, self.unit).await;
        let off = turn_between(angle, self.phase(answer.ended));
        self.follow(off);
    }

    /// Accesses a block of a track so that it ends `wanted` turns later; returns its turns, and the deviation of the answer.
    /// `None` if it is too late.
    async fn reach(&mut self, spot: &Spot, write: bool, wanted: f64) -> Option<(f64, f64)> {
        let now = self.disk.now();
        let units = self.units(spot);
        let ends_later = if write { self.write_ends.unwrap_or(0.0) } else { 0.0 };
        let at = self.phase(now) + wanted.fract() - ends_later;
        // The first block that ends no earlier than wanted, and the delay of its request.
        let along =
            (at - spot.angle).rem_euclid(1.0) * f64::from(spot.sectors_per_track) / f64::from(self.unit);
        let unit = (along - 1e-6).ceil().max(1.0) as u32 - 1;
        let unit = if unit < units { unit } else { 0 };
        let (lbn, angle) = self.part(spot, unit);
        let later = (angle - at).rem_euclid(1.0);
        let later = if later > 0.9999 { 0.0 } else { later * self.period };
        let command = if write {
            ProbeCommand::Write { lbn, sectors: self.unit, to_media: true }
        } else {
            ProbeCommand::Read { lbn, sectors: self.unit, from_media: true }
        };
        let ticket = self.disk.send(command, now + Nanos(later as u64));
        let answer = self.disk.answer(ticket).await;
        self.turns(&answer, angle + ends_later)
    }

    fn turns(&mut self, answer: &Answer, angle: f64) -> Option<(f64, f64)> {
        if !answer.is_done() {
            return None;
        }
        let lead = (angle - self.phase(answer.issued)).rem_euclid(1.0);
        let took = answer.took().0 as f64 / self.period;
        let turns = lead + (took - lead).round().max(0.0);
        self.follow(took - turns).then_some((turns, took - turns))
    }

    /// The least time from a track to another, until a block of the other is read (or written) and answered, without the time of
    /// the block itself; to a share of a turn, or as accurately as the clock allows.
    ///
    /// `None` if answers do not come from the media.
    pub(super) async fn least(&mut self, from: &Spot, to: &Spot, write: bool, share: f64) -> Option<Least> {
        let mut bounds: Option<Least> = None;
        let (mut doubts, mut wanted, mut is_sure) = (0, 0.5, false);
        let mut more = Vec::new();
        for _ in 0..PATIENCE {
            self.settle_on(from).await;
            let Some((turns, off)) = self.reach(to, write, wanted).await else { continue };
            more.push(off);
            // Times closer together than the clock's error are missed or reached by chance.
            let blur = BLUR * self.noise();
            let seen = Least { above: turns - 1.0, most: turns };
            let old = bounds.unwrap_or(seen);
            let mut new = Least { above: old.above.max(seen.above), most: old.most.min(seen.most) };
            if new.most <= new.above {
                // A reachable block was missed; one that was reached is stronger evidence.
                doubts += 1;
                if doubts > SECOND_THOUGHTS {
                    return None;
                }
                new = if seen.most < old.most { seen } else { old };
                is_sure = false;
            }
            bounds = Some(new);
            let is_close = new.most - new.above <= share.max(blur);
            if is_close && is_sure && seen.above >= new.above - 2.0 * blur {
                // The given angle of the track may be wrong; then all its answers deviate equally.
                let off = middle_and_spread(&more).0 - f64::from(self.unit) / f64::from(to.sectors_per_track);
                return Some(Least { above: new.above + off, most: new.most + off });
            }
            // A missed bound is tested again in the end, in case it was missed by chance.
            is_sure = is_close;
            wanted = if is_close { new.above - blur } else { (new.above + new.most) / 2.0 }.max(0.0);
        }
        None
    }
}

/// Median of angles and half of their spread, as a standard deviation.
fn middle_and_spread(angles: &[f64]) -> (f64, f64) {
    // Relative to the first, because they lie on a circle.
    let first = angles.first().copied().unwrap_or(0.0);
    let mut off: Vec<f64> = angles.iter().map(|angle| turn_between(first, *angle)).collect();
    off.sort_by(f64::total_cmp);
    let at = |share: usize| off.get(off.len() * share / 4).copied().unwrap_or(0.0);
    (first + at(2), (at(3) - at(1)) / QUARTILES)
}
