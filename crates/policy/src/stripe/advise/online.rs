//! The on-line advisor: observes one request after the other, and changes the unit once the gain exceeds the cost of the change.
//!
//! It keeps decaying statistics of sizes and of the number of other requests that a request met, and lets [`ForkJoin`] predict the
//! response with every unit. It accumulates, request by request, the extra cost of the current unit over each other one; when that
//! reaches the cost of a change, the unit is changed. So an alternating load does not cause a change each time, and the total cost
//! is at most three times that of a choice with knowledge of the future.
//!
//! *Source:* the rule when to change: the on-line restriping rule that is 3-competitive, restripe once the delay suffered equals
//! the cost of restriping.

use super::fork_join::{Size, exponent, largest_of_the_best};
use super::{DiskTimes, ForkJoin, Observed, Others};
use headstack_model::Nanos;

/// Requests between two evaluations of the units.
const PERIOD: u32 = 32;

/// The weight of a period one period later.
const FADING: f64 = 0.75;

const POWERS: usize = 32;

/// A sum in which older observations count less.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Seen {
    fn add(&mut self, value: f64) {
        self.weight += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn fade(&mut self) {
        (self.weight, self.sum, self.squares) =
            (self.weight * FADING, self.sum * FADING, self.squares * FADING);
    }

    fn mean(&self) -> f64 {
        self.sum / self.weight
    }
}

/// Chooses the stripe unit while requests arrive.
#[derive(Clone, Debug)]
pub struct OnLine {
    advisor: ForkJoin,
    unit: u64,
    cost: f64,
    /// Sizes, by the power of two that covers them.
    sizes: [Seen; POWERS],
    others: Seen,
    since: u32,
    /// The accumulated extra cost of the current unit over each power of two, in ns.
    regrets: [f64; POWERS],
    changes: u64,
    /// A buffer for the input of the advisor.
    classes: Vec<Size>,
    responses: Vec<(u64, f64)>,
}

impl OnLine {
    /// An advisor for an array of `disks` of these disks, with `unit` blocks as the first unit. A change costs `cost` of the
    /// requests' time.
    pub fn new(disk: DiskTimes, disks: u32, unit: u64, cost: Nanos) -> OnLine {
        OnLine {
            advisor: ForkJoin::new(disk, disks),
            unit: unit.max(1),
            cost: cost.0 as f64,
            sizes: [Seen::default(); POWERS],
            others: Seen::default(),
            since: 0,
            regrets: [0.0; POWERS],
            changes: 0,
            classes: Vec::with_capacity(POWERS),
            responses: Vec::with_capacity(POWERS),
        }
    }

    /// The unit in force, in blocks.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// How often it was changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Observes a request of `sectors` blocks that meets `others` others.
    pub fn observe(&mut self, sectors: u64, others: u32) {
        let power = (exponent(sectors as f64) as usize).min(POWERS - 1);
        self.sizes[power].add(sectors as f64);
        self.others.add(f64::from(others));
        self.since += 1;
        if self.since == PERIOD {
            self.since = 0;
            self.evaluate();
        }
    }

    /// Compares the units, and changes the one in force once that pays.
    fn evaluate(&mut self) {
        self.predict();
        let in_force = self.responses.pop().map_or(0.0, |(_, response)| response);
        for ((_, response), regret) in self.responses.iter().zip(&mut self.regrets) {
            *regret = (*regret + (in_force - response) * f64::from(PERIOD)).max(0.0);
        }
        let best = largest_of_the_best(&self.responses).unwrap_or(self.unit);
        let (_, response) = self.responses[best.trailing_zeros() as usize];
        let regret = self.regrets[best.trailing_zeros() as usize];
        self.sizes.iter_mut().for_each(Seen::fade);
        self.others.fade();
        if best != self.unit && response < in_force && regret >= self.cost {
            self.unit = best;
            self.changes += 1;
            self.regrets = [0.0; POWERS];
            // The number of requests met with the old unit does not apply to the new one.
            self.others = Seen::default();
        }
    }

    /// The responses with all units that differ, followed by that of the current one.
    fn predict(&mut self) {
        let total: f64 = self.sizes.iter().map(|seen| seen.weight).sum();
        // A hundredth of the requests does not decide.
        let counts = self.sizes.iter().filter(|seen| seen.weight > 0.01 * total);
        let kept: f64 = counts.clone().map(|seen| seen.weight).sum();
        self.classes.clear();
        self.classes.extend(counts.map(|seen| Size { sectors: seen.mean(), share: seen.weight / kept }));
        let largest = self.classes.iter().map(|size| exponent(size.sectors)).max().unwrap_or(0);
        self.responses.clear();
        self.responses.extend((0..=largest).map(|power| (1 << power, 0.0)));
        self.responses.push((self.unit, 0.0));
        let mean = self.others.mean();
        let variance = (self.others.squares / self.others.weight - mean * mean).max(0.0);
        let load = Observed { sizes: &self.classes, others: Others { mean, variance }, unit: self.unit };
        self.advisor.predict_all(&load, &mut self.responses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    fn on_line(cost: Nanos) -> OnLine {
        let spec = drives::load("ultrastar-dfhc-2gb").expect("the drive is shipped");
        let disk = DiskTimes::from_spec(&spec).expect("shipped drives hold");
        OnLine::new(disk, 4, 2048, cost)
    }

    #[test]
    fn online_unit_follows_the_load() {
        let mut on_line = on_line(Nanos::from_secs(1));
        (0..1000).for_each(|_| on_line.observe(2048, 0));
        assert_eq!(on_line.unit(), 512, "alone, a megabyte is quickest over all four disks");
        (0..1000).for_each(|_| on_line.observe(128, 15));
        assert!(on_line.unit() >= 128, "in a crowd, 64 KiB go to one disk: {}", on_line.unit());
        assert_eq!(on_line.changes(), 2);
    }

    #[test]
    fn costly_change_waits_until_it_has_paid() {
        let requests = |cost| {
            let mut on_line = on_line(cost);
            (1..100_000u32).find(|_| {
                on_line.observe(2048, 0);
                on_line.changes() > 0
            })
        };
        let [cheap, dear] = [1, 100].map(|seconds| requests(Nanos::from_secs(seconds)).expect("it pays"));
        // A request saves about 100 ms: a second takes ten or so, and a hundred of them a hundred times as many.
        assert_eq!(cheap, PERIOD);
        assert!((500..2000).contains(&dear), "{dear} requests");
    }

    #[test]
    fn alternating_load_changes_the_unit_at_most_twice() {
        let mut on_line = on_line(Nanos::from_secs(20));
        for _ in 0..50 {
            (0..PERIOD).for_each(|_| on_line.observe(2048, 0));
            (0..PERIOD).for_each(|_| on_line.observe(64, 15));
        }
        assert!(on_line.changes() <= 2, "{} changes", on_line.changes());
    }
}
