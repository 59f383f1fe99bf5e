//! The turn of the spindle on the host's clock.

use super::pattern::wrap;
use headstack_model::Instant;
use std::collections::VecDeque;

/// Reference readings that the line is fitted to: enough to average the noise, few enough to follow a drift.
const MARKS: usize = 48;
/// Number of latest marks that show a drift.
const LAST: usize = 6;
/// Standard deviations of the mean of these marks that show a drift. Noise exceeds them in 1.2 % of the readings; the line then only has
/// fewer marks.
const DRIFTED: f64 = 2.5;
/// First readings that are averaged to one mark.
const TOGETHER: usize = 8;
/// Number of first readings that are tried as the line's origin, in case some are late, and from which on the line is fitted to a chain.
const ORIGINS: usize = 8;
/// Distance from whole turns, in turns, within which readings must lie; the second if too few lie within the first. A turn of 8 ms leaves
/// 240 µs, thirty times a usual host's noise.
const NEAR: [f64; 2] = [0.03, 0.1];
/// Distance from the line, in turns, of most readings if there is a rotation: of evenly distributed times only a tenth would lie within.
const EVEN: f64 = 0.05;
/// Number of times that the line is fitted again without outliers.
const LAID: usize = 3;
/// Standard deviations from the line beyond which a reading counts as late: of normal noise one in 16,000.
const LATE: f64 = 4.0;
/// Standard deviations of a normal distribution within which half of it lies.
const MEDIAN: f64 = 0.6745;
/// Minimum standard deviation of a reading, in nanoseconds: the resolution of hosts' clocks counts as noise.
const RESOLUTION: f64 = 500.0;
/// Spindle speeds, in turns per second, with a margin: 2,400 to 15,000 rpm are 40 to 250.
const SPEEDS: (f64, f64) = (38.0, 340.0);
/// Frequencies that are tried per width of a peak, which is the inverse of the span of the readings.
const STEPS: f64 = 8.0;
/// Share of the highest peak from which on a peak is a candidate, because a step may miss a peak's top.
const HIGH_PEAK: f64 = 0.9;
/// Share of the highest peak from which on a fraction of its frequency is the true speed.
const TRUE_PEAK: f64 = 0.8;

/// The time at which a sector passed the head: the mean of some readings.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Turns from turn 0.
    turn: f64,
    /// On the host's clock, in nanoseconds.
    at: f64,
    readings: f64,
}

/// Times at which one sector passed the head, and the line through them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Time of turn 0, and the length of a turn, in nanoseconds.
    origin: f64,
    pub(super) period: f64,
    /// Standard deviation of a reading, in turns.
    pub(super) sigma: f64,
    marks: VecDeque<Mark>,
    /// Readings of all marks, their mean turn, and the sum of the squared deviations from it.
    readings: f64,
    middle: f64,
    spread: f64,
}

impl Clock {
    /// Fits the line to readings of one sector, given an approximate turn.
    ///
    /// *Errors:* the number of readings on a line, if it is less than `needed`.
    pub(super) fn of_readings(ends: &[Instant], period: f64, needed: usize) -> Result<Clock, usize> {
        let origin = ends[0].0 as f64;
        let (marks, readings) = (VecDeque::new(), 0.0);
        let start = Clock { origin, period, sigma: 0.02, marks, readings, middle: 0.0, spread: 0.0 };
        // A late first reading would make all others deviate.
        let chains = |near: f64| {
            let chains = (0..ends.len().min(ORIGINS)).map(|first| start.clone().chain(&ends[first..], near));
            chains.max_by_key(|(_, steady)| steady.len()).expect("there are readings")
        };
        let (mut clock, mut steady) = chains(NEAR[0]);
        if steady.len() < needed {
            (clock, steady) = chains(NEAR[1]);
        }
        if steady.len() < needed {
            return Err(steady.len());
        }
        for _ in 0..LAID {
            clock.lay(&steady);
            let mut off: Vec<f64> = ends.iter().map(|end| clock.angle(*end).abs()).collect();
            off.sort_by(f64::total_cmp);
            clock.sigma = (off[off.len() / 2] / MEDIAN).max(RESOLUTION / clock.period);
            let near = ends.iter().filter(|end| clock.angle(**end).abs() < LATE * clock.sigma);
            steady = near.map(|end| clock.mark(end.0 as f64, 1.0)).collect();
        }
        clock.lay(&steady);
        let even = ends.iter().filter(|end| clock.angle(**end).abs() < EVEN).count();
        if even < needed {
            return Err(even);
        }
        clock.marks = steady.chunks(TOGETHER).map(mean).collect();
        Ok(clock)
    }

    /// The readings at whole turns after the first, and the line through them.
    fn chain(mut self, ends: &[Instant], near: f64) -> (Clock, Vec<Mark>) {
        self.origin = ends[0].0 as f64;
        let mut steady = vec![Mark { turn: 0.0, at: self.origin, readings: 1.0 }];
        // While the period is uncertain, only the number of turns between successive readings is certain, so the line grows
        // reading by reading.
        for end in &ends[1..] {
            let last = steady[steady.len() - 1];
            let turns = (end.0 as f64 - last.at) / self.period;
            if wrap(turns).abs() < near {
                steady.push(Mark { turn: last.turn + libm::round(turns), at: end.0 as f64, readings: 1.0 });
                if steady.len() > ORIGINS {
                    self.lay(&steady);
                }
            }
        }
        (self, steady)
    }

    /// The most frequent time between two readings, which is a turn if one follows the other.
    pub(super) fn usual_gap(ends: &[Instant]) -> f64 {
        let mut apart: Vec<f64> = ends.windows(2).map(|pair| pair[1].since(pair[0]).0 as f64).collect();
        apart.sort_by(f64::total_cmp);
        apart[apart.len() / 2].max(1.0)
    }

    /// The longest turn of which all times of a sector are multiples, with many turns between them.
    pub(super) fn common_turn(ends: &[Instant]) -> f64 {
        let span = (ends[ends.len() - 1] - ends[0]).as_secs();
        // At a frequency of which all times are multiples, the phases agree. The step is so short that no peak is missed.
        let pull = |frequency: f64| {
            let (mut x, mut y) = (0.0, 0.0);
            for end in ends {
                let angle = std::f64::consts::TAU * wrap((*end - ends[0]).as_secs() * frequency);
                (x, y) = (x + libm::cos(angle), y + libm::sin(angle));
            }
            x * x + y * y
        };
        let step = 1.0 / (span * STEPS);
        let steps = ((SPEEDS.1 - SPEEDS.0) / step) as usize;
        // The best frequency within a step of one, and its peak.
        let best_near = |frequency: f64| {
            let near = (-8..=8).map(|part| frequency + f64::from(part) * step / STEPS);
            near.map(|frequency| (frequency, pull(frequency))).max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let frequency = |number: usize| SPEEDS.0 + number as f64 * step;
        let pulls: Vec<f64> = (0..=steps).map(|number| pull(frequency(number))).collect();
        let most = pulls.iter().copied().fold(0.0, f64::max);
        // Nearly equal intervals also agree with frequencies next to the true one, so the best is taken.
        let high = (0..=steps).filter(|number| pulls[*number] > HIGH_PEAK * most);
        let best = high.filter_map(|number| best_near(frequency(number))).max_by(|a, b| a.1.total_cmp(&b.1));
        let (best, most) = best.unwrap_or((SPEEDS.0, 0.0));
        // A multiple of the true frequency has an equal peak.
        let parts = (2..).map(|part| best / f64::from(part)).take_while(|part| *part >= SPEEDS.0);
        let turn = parts.filter_map(best_near).filter(|(_, pull)| *pull > TRUE_PEAK * most).last();
        1e9 / turn.map_or(best, |(frequency, _)| frequency)
    }

    /// Fits the line to marks by least squares.
    fn lay(&mut self, marks: &[Mark]) {
        let all = mean(marks);
        let (mut both, mut square) = (0.0, 0.0);
        for mark in marks {
            both += mark.readings * (mark.turn - all.turn) * (mark.at - all.at);
            square += mark.readings * (mark.turn - all.turn) * (mark.turn - all.turn);
        }
        if square > 0.0 {
            self.period = both / square;
            self.origin = all.at - all.turn * self.period;
        }
        (self.readings, self.middle, self.spread) = (all.readings, all.turn, square);
    }

    fn turns(&self, at: f64) -> f64 {
        (at - self.origin) / self.period
    }

    fn mark(&self, at: f64, readings: f64) -> Mark {
        Mark { turn: libm::round(self.turns(at)), at, readings }
    }

    /// The angle relative to the reference at a time.
    pub(super) fn angle(&self, at: Instant) -> f64 {
        wrap(self.turns(at.0 as f64))
    }

    /// Standard deviation of the line itself at a time, in turns.
    pub(super) fn uncertainty(&self, at: Instant) -> f64 {
        let from = self.turns(at.0 as f64) - self.middle;
        self.sigma * libm::sqrt(1.0 / self.readings.max(1.0) + from * from / self.spread.max(1.0))
    }

    /// Adds an angle of the reference: the mean of this number of readings, the last of them at this time.
    pub(super) fn correct(&mut self, end: Instant, angle: f64, readings: usize) {
        let turn = libm::round(self.turns(end.0 as f64));
        if self.marks.len() >= MARKS {
            self.marks.pop_front();
        }
        let at = self.origin + (turn + angle) * self.period;
        self.marks.push_back(Mark { turn, at, readings: readings as f64 });
        let marks = self.marks.make_contiguous().to_vec();
        self.lay(&marks);
        // Older marks are dropped, so that the line follows a spindle whose speed changes.
        if marks.len() > 2 * LAST && self.has_drifted(&marks[marks.len() - LAST..]) {
            self.marks.drain(..marks.len() / 2);
            self.lay(&marks[marks.len() / 2..]);
        } else if marks.len() == MARKS {
            self.sigma = self.deviation(&marks).max(RESOLUTION / self.period);
        }
    }

    fn has_drifted(&self, last: &[Mark]) -> bool {
        let last = mean(last);
        self.off(&last).abs() > DRIFTED * self.sigma / libm::sqrt(last.readings)
    }

    /// Turns by which a mark is later than the line.
    fn off(&self, mark: &Mark) -> f64 {
        self.turns(mark.at) - mark.turn
    }

    /// Standard deviation of a reading, from the fitted marks.
    fn deviation(&self, marks: &[Mark]) -> f64 {
        let squares = marks.iter().map(|mark| mark.readings * self.off(mark) * self.off(mark));
        libm::sqrt(squares.sum::<f64>() / (marks.len() - 2) as f64)
    }
}

fn mean(marks: &[Mark]) -> Mark {
    let sum = |of: fn(&Mark) -> f64| marks.iter().map(|mark| of(mark) * mark.readings).sum::<f64>();
    let readings = marks.iter().map(|mark| mark.readings).sum::<f64>();
    Mark { turn: sum(|mark| mark.turn) / readings, at: sum(|mark| mark.at) / readings, readings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;
    use std::f64::consts::TAU;

    /// A turn in nanoseconds, and a standard deviation of readings in turns.
    const TURN: f64 = 8e6;
    const SIGMA: f64 = 0.001;

    /// When a sector passes the head in this turn, without noise, with a spindle speed that varies by ±20 ppm over ten minutes.
    fn at(turn: f64) -> f64 {
        let seconds = turn * TURN / 1e9;
        1e9 + turn * TURN + 20e-6 * 600.0 / TAU * libm::sin(TAU * seconds / 600.0) * 1e9
    }

    /// The sum of twelve is nearly normally distributed.
    fn noise(random: &mut Pcg64Mcg, sigma: f64) -> f64 {
        ((0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0) * sigma
    }

    /// A clock fitted to the first 120 turns.
    fn clock(random: &mut Pcg64Mcg) -> Clock {
        let ends: Vec<Instant> = (0..120)
            .map(|turn| Instant((at(f64::from(turn)) + noise(random, SIGMA) * TURN) as u64))
            .collect();
        Clock::of_readings(&ends, Clock::usual_gap(&ends), 100).expect("it turns")
    }

    /// Reads the reference once a second for an hour; returns the largest error of the line a second later, in turns.
    fn followed(sigma: impl Fn(u32) -> f64) -> (Clock, f64) {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut clock = clock(&mut random);
        let (mut most, turns_a_second) = (0.0, 1e9 / TURN);
        for second in 1..3600 {
            let turn = libm::round(f64::from(second) * turns_a_second);
            let true_angle = clock.angle(Instant(at(turn) as u64));
            let end = Instant((at(turn) + noise(&mut random, sigma(second)) * TURN) as u64);
            let angle = clock.angle(end);
            most = f64::max(most, true_angle.abs());
            clock.correct(end, angle, 1);
        }
        (clock, most)
    }

    #[test]
    fn clock_follows_spindle_speed_changes() {
        let (_, most) = followed(|_| SIGMA);
        // Predicted angles may be off by five.
        assert!(most < 4.0 * SIGMA, "{most}");
    }

    #[test]
    fn noise_estimate_follows_noise_changes() {
        for now in [0.5 * SIGMA, 2.0 * SIGMA] {
            let (clock, _) = followed(|second| if second < 600 { SIGMA } else { now });
            assert!((clock.sigma / now - 1.0).abs() < 0.4, "{} of {now}", clock.sigma);
        }
    }

    #[test]
    fn clock_uncertainty_grows_since_last_reading() {
        let clock = clock(&mut Pcg64Mcg::seed_from_u64(1));
        let after = |seconds: f64| clock.uncertainty(Instant((at(0.0) + seconds * 1e9) as u64)) / clock.sigma;
        assert!(after(0.5) < 0.15 && after(2.0) > 3.0 * after(0.5), "{} {}", after(0.5), after(2.0));
    }
}
