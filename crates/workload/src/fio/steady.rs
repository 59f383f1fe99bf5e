//! `steadystate`: a job, or with `group_reporting` its group, ends once its results are steady.
//!
//! Once a second the requests or bytes that completed since the last time are a sample. The results are steady if over a number of
//! samples the largest deviation from their mean, or the slope of a line through them, is less than the limit.
//!
//! *Source:* `steadystate_check` of fio 3.33.

use std::collections::{BTreeMap, VecDeque};

use headstack_model::{Instant, Nanos};

use super::settings::{SteadyRules, SteadyTarget};

const SECOND: u64 = 1_000_000_000;

/// What watches the clones of a load, if any job has `steadystate`.
#[derive(Debug, Default)]
pub(super) struct SteadyWatch {
    monitors: Vec<Monitor>,
    /// The monitor of each clone.
    of_clone: Vec<Option<usize>>,
    /// The bytes of outstanding requests.
    out: BTreeMap<u64, u64>,
    next: Option<Instant>,
}

#[derive(Debug)]
struct Monitor {
    rules: SteadyRules,
    group: u32,
    clones: Vec<u32>,
    running: usize,
    /// When the first of its clones began.
    began: Option<Instant>,
    sampled: Instant,
    done: u64,
    samples: VecDeque<u64>,
    is_over: bool,
}

impl SteadyWatch {
    /// The monitors of clones with these rules, groups, and whether results are per group.
    pub(super) fn new(clones: impl Iterator<Item = (SteadyRules, u32, bool)>) -> SteadyWatch {
        let mut watch = SteadyWatch::default();
        for (source, (rules, group, by_group)) in clones.enumerate() {
            if rules.seconds == 0 {
                watch.of_clone.push(None);
                continue;
            }
            let known = watch.monitors.iter().rposition(|monitor| monitor.group == group);
            let at = known.filter(|_| by_group).unwrap_or_else(|| {
                watch.monitors.push(Monitor::new(rules, group));
                watch.monitors.len() - 1
            });
            watch.monitors[at].clones.push(source as u32);
            watch.of_clone.push(Some(at));
        }
        watch
    }

    /// Whether no job ends that way.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.monitors.is_empty()
    }

    fn monitor(&mut self, source: usize) -> Option<&mut Monitor> {
        let at = (*self.of_clone.get(source)?)?;
        self.monitors.get_mut(at)
    }

    pub(super) fn start(&mut self, now: Instant, source: usize) {
        if let Some(monitor) = self.monitor(source) {
            monitor.running += 1;
            if monitor.began.is_none() {
                (monitor.began, monitor.sampled) = (Some(now), now);
            }
            self.next.get_or_insert(now + Nanos(SECOND));
        }
    }

    pub(super) fn end(&mut self, source: usize) {
        if let Some(monitor) = self.monitor(source) {
            monitor.running -= 1;
        }
        if self.monitors.iter().all(|monitor| monitor.running == 0) {
            self.next = None;
        }
    }

    pub(super) fn issued(&mut self, id: u64, bytes: u64) {
        self.out.insert(id, bytes);
    }

    pub(super) fn completed(&mut self, source: usize, id: u64) {
        let bytes = self.out.remove(&id).unwrap_or(0);
        if let Some(monitor) = self.monitor(source).filter(|_| bytes > 0) {
            monitor.done += if monitor.rules.target.by_bytes { bytes } else { 1 };
        }
    }

    /// When the next sample is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Takes the samples that are due; returns the clones whose results are steady.
    pub(super) fn sample(&mut self, now: Instant) -> Vec<u32> {
        let Some(due) = self.next.filter(|next| *next <= now) else { return Vec::new() };
        self.next = Some(due + Nanos(SECOND));
        let mut steady = Vec::new();
        for monitor in self.monitors.iter_mut().filter(|monitor| monitor.running > 0 && !monitor.is_over) {
            if monitor.sample(now) {
                monitor.is_over = true;
                steady.extend_from_slice(&monitor.clones);
            }
        }
        steady
    }
}

impl Monitor {
    fn new(rules: SteadyRules, group: u32) -> Monitor {
        Monitor {
            rules,
            group,
            clones: Vec::new(),
            running: 0,
            began: None,
            sampled: Instant::ZERO,
            done: 0,
            samples: VecDeque::new(),
            is_over: false,
        }
    }

    /// Adds a sample; returns whether the results are steady.
    fn sample(&mut self, now: Instant) -> bool {
        let Some(began) = self.began else { return false };
        let elapsed = now.since(self.sampled).0.max(1);
        let rate = u128::from(std::mem::take(&mut self.done)) * u128::from(SECOND) / u128::from(elapsed);
        self.sampled = now;
        let ramp = self.rules.ramp;
        // The sample in which the ramp time ends does not count.
        if ramp > Nanos::ZERO && now.since(began) < ramp + Nanos(SECOND) {
            return false;
        }
        self.samples.push_back(rate as u64);
        if self.samples.len() as u64 > self.rules.seconds {
            self.samples.pop_front();
        }
        self.samples.len() as u64 == self.rules.seconds && is_steady(&self.samples, self.rules.target)
    }
}

/// Whether samples, one a second, meet the target.
fn is_steady(samples: &VecDeque<u64>, target: SteadyTarget) -> bool {
    let count = samples.len() as f64;
    let mean = samples.iter().map(|sample| *sample as f64).sum::<f64>() / count;
    let off = |sample: &u64| *sample as f64 - mean;
    let found = if target.slope {
        let middle = (count - 1.0) / 2.0;
        let from_middle = (0..samples.len()).map(|at| at as f64 - middle);
        let products: f64 = from_middle.clone().zip(samples).map(|(at, sample)| at * off(sample)).sum();
        products / from_middle.map(|at| at * at).sum::<f64>()
    } else {
        samples.iter().map(|sample| off(sample).abs()).fold(0.0, f64::max)
    };
    let found = if target.percent { 100.0 * found / mean } else { found };
    found.abs() < target.limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(slope: bool, limit: f64, percent: bool) -> SteadyTarget {
        SteadyTarget { by_bytes: false, slope, limit, percent }
    }

    #[test]
    fn deviation_is_the_largest_distance_from_the_mean() {
        let samples = VecDeque::from([90, 100, 110]);
        assert!(is_steady(&samples, target(false, 10.1, false)));
        assert!(!is_steady(&samples, target(false, 10.0, false)), "the limit itself is not less");
        assert!(is_steady(&samples, target(false, 10.1, true)));
    }

    #[test]
    fn slope_is_that_of_a_line_through_the_samples() {
        let samples = VecDeque::from([90, 100, 110]);
        assert!(is_steady(&samples, target(true, 10.1, false)));
        assert!(!is_steady(&samples, target(true, 9.9, true)));
        assert!(is_steady(&VecDeque::from([90, 110, 90]), target(true, 0.01, true)));
    }
}
