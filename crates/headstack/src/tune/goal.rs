//! What a tuned system should be good at.

use crate::numbers::ratio;
use crate::results::Results;
use headstack_sim::stats::TimeHistogram;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneMetric {
    /// Requests a second.
    Iops,
    /// MB a second.
    Throughput,
    /// Mean response time in ms.
    Mean,
    /// 99th percentile of the response times in ms.
    P99,
}

impl TuneMetric {
    /// All of them.
    pub const ALL: [TuneMetric; 4] =
        [TuneMetric::Iops, TuneMetric::Throughput, TuneMetric::Mean, TuneMetric::P99];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TuneMetric::Iops => "iops",
            TuneMetric::Throughput => "throughput",
            TuneMetric::Mean => "mean",
            TuneMetric::P99 => "p99",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            TuneMetric::Iops => "IOPS",
            TuneMetric::Throughput => "MB/s",
            TuneMetric::Mean | TuneMetric::P99 => "ms",
        }
    }

    /// Whether more is better.
    pub fn grows(self) -> bool {
        matches!(self, TuneMetric::Iops | TuneMetric::Throughput)
    }
}

/// The figures of a run that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneFigures([f64; TuneMetric::ALL.len()]);

impl TuneFigures {
    /// Those of a run.
    pub fn from_results(results: &Results) -> TuneFigures {
        let response = results.response();
        TuneFigures([results.iops(), results.bandwidth_mb_s(), response.mean_ms(), response.p99().as_ms()])
    }

    /// Those of a job of a run, all its clones together; none if none of its requests counted.
    pub fn of_job(results: &Results, job: &str) -> Option<TuneFigures> {
        let statistics = results.jobs().find(|found| found.name == job)?.statistics?;
        let mut response = TimeHistogram::new();
        let mut bytes = 0;
        for direction in [&statistics.reads, &statistics.writes, &statistics.flushes].into_iter().flatten() {
            response.merge(&direction.responses);
            bytes += direction.bytes;
        }
        let seconds = statistics.last().since(statistics.begins).as_secs();
        let rate = |amount: f64| ratio(amount, seconds);
        let (iops, mb_s) = (rate(response.count() as f64), rate(bytes as f64 / 1e6));
        (response.count() > 0).then(|| TuneFigures([iops, mb_s, response.mean_ms(), response.p99().as_ms()]))
    }

    /// Those that another program measured.
    pub fn measured(iops: f64, mb_s: f64, mean_ms: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures([iops, mb_s, mean_ms, p99_ms])
    }

    /// One of them.
    pub fn get(&self, metric: TuneMetric) -> f64 {
        self.0[metric as usize]
    }

    /// The mean of each over several runs; there is at least one.
    pub fn mean(runs: &[TuneFigures]) -> TuneFigures {
        let of = |index: usize| runs.iter().map(|figures| figures.0[index]).sum::<f64>() / runs.len() as f64;
        TuneFigures(std::array::from_fn(of))
    }

    #[cfg(test)]
    pub(super) fn for_test(iops: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures([iops, iops, p99_ms / 2.0, p99_ms])
    }
}

/// A limit that a setting must keep: at least for a figure of which more is better, else at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneBound {
    /// The figure.
    pub metric: TuneMetric,
    /// Its limit, in the figure's unit.
    pub limit: f64,
}

/// What is to be as good as possible, within limits.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneGoal {
    /// The figure to improve.
    pub metric: TuneMetric,
    /// Limits of other figures.
    pub bounds: Vec<TuneBound>,
    /// The job whose figures these are; without one they are of the whole load.
    pub job: Option<String>,
}

/// The logarithm of a figure as a gain: it grows where the figure gets better.
fn log(metric: TuneMetric, value: f64) -> f64 {
    let log = value.max(f64::MIN_POSITIVE).ln();
    if metric.grows() { log } else { -log }
}

/// Weight of the relative excess over a limit against the goal's relative gain: an excess of 1 % outweighs a gain of 100 %.
const PENALTY: f64 = 100.0;

impl TuneGoal {
    /// A score of which differences are relative gains (0.1 is some 10 %). A violated limit costs a hundred times its relative excess.
    pub fn score(&self, figures: &TuneFigures) -> f64 {
        log(self.metric, figures.get(self.metric)) - PENALTY * self.excess(figures)
    }

    /// The logarithms by which the figures exceed the limits, summed; 0 if they keep all.
    pub(super) fn excess(&self, figures: &TuneFigures) -> f64 {
        let one = |bound: &TuneBound| {
            let over = log(bound.metric, bound.limit) - log(bound.metric, figures.get(bound.metric));
            over.max(0.0)
        };
        self.bounds.iter().map(one).sum()
    }

    /// Whether the figures keep all limits.
    pub fn is_kept_by(&self, figures: &TuneFigures) -> bool {
        self.excess(figures) == 0.0
    }
}

/// By how much the second figure is better than the first, as the logarithm of their ratio.
pub(super) fn log_gain(metric: TuneMetric, before: &TuneFigures, after: &TuneFigures) -> f64 {
    log(metric, after.get(metric)) - log(metric, before.get(metric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violated_limit_outweighs_the_gain_for_which_it_was_violated() {
        let bounds = vec![TuneBound { metric: TuneMetric::P99, limit: 100.0 }];
        let goal = TuneGoal { metric: TuneMetric::Iops, bounds, job: None };
        let (slow, fast) = (TuneFigures::for_test(100.0, 90.0), TuneFigures::for_test(120.0, 130.0));
        assert!(goal.is_kept_by(&slow) && !goal.is_kept_by(&fast));
        assert!(goal.score(&slow) > goal.score(&fast));
        let unbound = TuneGoal { metric: TuneMetric::Iops, bounds: Vec::new(), job: None };
        assert!((unbound.score(&fast) - unbound.score(&slow) - 1.2f64.ln()).abs() < 1e-12);
        assert!((log_gain(TuneMetric::P99, &slow, &fast) - (90.0f64 / 130.0).ln()).abs() < 1e-12);
    }
}
