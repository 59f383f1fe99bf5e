//! The turn of the spindle on the host's clock.

use super::cell::wrap;
use headstack_model::Nanos;
use std::collections::VecDeque;

/// Readings of the reference that the line is laid through: enough to average the noise, few enough to follow a drift.
const READINGS: usize = 48;
/// Spindle speeds, in turns a second, that disks have had and more.
const SPEEDS: (f64, f64) = (38.0, 340.0);

/// Times at which one place came by, and the line through them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Time of turn 0 and of a turn, in nanoseconds.
    origin: f64,
    pub(super) period: f64,
    /// Standard deviation of a reading, in turns.
    pub(super) sigma: f64,
    /// Turn and time.
    readings: VecDeque<(f64, f64)>,
}

impl Clock {
    /// Lays the line through readings of one place, given about how long a turn is.
    ///
    /// *Errors:* how many of them lie on a line, where that is fewer than `needed`.
    pub(super) fn of_readings(ends: &[Nanos], period: f64, needed: usize) -> Result<Clock, usize> {
        let origin = ends[0].0 as f64;
        let mut clock = Clock { origin, period, sigma: 0.02, readings: VecDeque::new() };
        // A late one would have all others off, were it the first.
        let chains = (0..ends.len().min(8)).map(|first| clock.clone().chain(&ends[first..]));
        let (turned, mut steady) = chains.max_by_key(|(_, steady)| steady.len()).expect("there are readings");
        clock = turned;
        if steady.len() < needed {
            return Err(steady.len());
        }
        clock.lay(&steady);
        let mut off: Vec<f64> = ends.iter().map(|end| wrap(clock.turns(*end)).abs()).collect();
        off.sort_by(f64::total_cmp);
        // Of a normal distribution, half lies within 0.6745 deviations. What hosts cannot resolve counts as noise.
        clock.sigma = (off[off.len() / 2] / 0.6745).max(500.0 / clock.period);
        steady.retain(|(turn, at)| ((at - clock.origin) / clock.period - turn).abs() < 4.0 * clock.sigma);
        clock.lay(&steady);
        clock.readings = steady.iter().step_by(8).copied().collect();
        Ok(clock)
    }

    /// The readings at whole turns after the first, and the line through them.
    fn chain(mut self, ends: &[Nanos]) -> (Clock, Vec<(f64, f64)>) {
        self.origin = ends[0].0 as f64;
        let mut steady = vec![(0.0, self.origin)];
        // From one to the next the turns are certain while the period is not, so the line grows from reading to reading.
        for end in &ends[1..] {
            let (turn, at) = steady[steady.len() - 1];
            let turns = (end.0 as f64 - at) / self.period;
            if wrap(turns).abs() < 0.03 {
                steady.push((turn + libm::round(turns), end.0 as f64));
                if steady.len() > 8 {
                    self.lay(&steady);
                }
            }
        }
        (self, steady)
    }

    /// The time most often between two readings, which is a turn where one follows the other.
    pub(super) fn usual_gap(ends: &[Nanos]) -> f64 {
        let mut apart: Vec<f64> = ends.windows(2).map(|pair| pair[1].since(pair[0]).0 as f64).collect();
        apart.sort_by(f64::total_cmp);
        apart[apart.len() / 2].max(1.0)
    }

    /// The longest turn of which all times of a place are multiples, where many turns lie between them.
    pub(super) fn common_turn(ends: &[Nanos]) -> f64 {
        let span = (ends[ends.len() - 1] - ends[0]).as_secs();
        // At a frequency of which all times are multiples they pull to one side. A step is so short that no peak is lost.
        let pull = |frequency: f64| {
            let (mut x, mut y) = (0.0, 0.0);
            for end in ends {
                let angle = std::f64::consts::TAU * wrap((*end - ends[0]).as_secs() * frequency);
                (x, y) = (x + libm::cos(angle), y + libm::sin(angle));
            }
            x * x + y * y
        };
        let step = 1.0 / (span * 8.0);
        let steps = ((SPEEDS.1 - SPEEDS.0) / step) as usize;
        // The best within a step of a frequency, and how much it pulls.
        let best_near = |frequency: f64| {
            let near = (-8..=8).map(|part| frequency + f64::from(part) * step / 8.0);
            near.map(|frequency| (frequency, pull(frequency))).max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let frequency = |number: usize| SPEEDS.0 + number as f64 * step;
        let pulls: Vec<f64> = (0..=steps).map(|number| pull(frequency(number))).collect();
        let most = pulls.iter().copied().fold(0.0, f64::max);
        // Times that lie about equally far apart nearly agree with frequencies beside the true one, so that the best is taken.
        let high = (0..=steps).filter(|number| pulls[*number] > 0.9 * most);
        let best = high.filter_map(|number| best_near(frequency(number))).max_by(|a, b| a.1.total_cmp(&b.1));
        let (best, most) = best.unwrap_or((SPEEDS.0, 0.0));
        // A multiple of the true one pulls as much as it.
        let parts = (2..).map(|part| best / f64::from(part)).take_while(|part| *part >= SPEEDS.0);
        let turn = parts.filter_map(best_near).filter(|(_, pull)| *pull > 0.8 * most).last();
        1e9 / turn.map_or(best, |(frequency, _)| frequency)
    }

    /// The line of least squares through readings.
    fn lay(&mut self, readings: &[(f64, f64)]) {
        let count = readings.len() as f64;
        let turn = readings.iter().map(|reading| reading.0).sum::<f64>() / count;
        let at = readings.iter().map(|reading| reading.1).sum::<f64>() / count;
        let (mut both, mut square) = (0.0, 0.0);
        for reading in readings {
            both += (reading.0 - turn) * (reading.1 - at);
            square += (reading.0 - turn) * (reading.0 - turn);
        }
        if square > 0.0 {
            self.period = both / square;
            self.origin = at - turn * self.period;
        }
    }

    fn turns(&self, at: Nanos) -> f64 {
        (at.0 as f64 - self.origin) / self.period
    }

    /// The angle, from that of the reference, at which a time finds the disk.
    pub(super) fn angle(&self, at: Nanos) -> f64 {
        wrap(self.turns(at))
    }

    /// Takes note of when the reference came by.
    pub(super) fn correct(&mut self, at: Nanos) {
        if self.readings.len() >= READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back((libm::round(self.turns(at)), at.0 as f64));
        let readings = self.readings.make_contiguous().to_vec();
        self.lay(&readings);
    }
}
