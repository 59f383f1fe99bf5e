//! The goal of a search: a metric to improve, and limits on others.

use super::knobs::UncountedJobs;
use crate::load::Workload;
use crate::numbers::ratio;
use crate::results::Results;
use headstack_model::spec::did_you_mean;
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
    /// MB a second of the jobs whose figures do not count, together. It can be limited, but is no goal.
    Others,
}

impl TuneMetric {
    /// Every metric.
    pub const ALL: [TuneMetric; 5] =
        [TuneMetric::Iops, TuneMetric::Throughput, TuneMetric::Mean, TuneMetric::P99, TuneMetric::Others];
    /// Metrics of a load whose jobs all count.
    pub const OF_WHOLE_LOAD: [TuneMetric; 4] =
        [TuneMetric::Iops, TuneMetric::Throughput, TuneMetric::Mean, TuneMetric::P99];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TuneMetric::Iops => "iops",
            TuneMetric::Throughput => "throughput",
            TuneMetric::Mean => "mean",
            TuneMetric::P99 => "p99",
            TuneMetric::Others => "others",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            TuneMetric::Iops => "IOPS",
            TuneMetric::Throughput | TuneMetric::Others => "MB/s",
            TuneMetric::Mean | TuneMetric::P99 => "ms",
        }
    }

    /// Whether more is better.
    pub fn grows(self) -> bool {
        matches!(self, TuneMetric::Iops | TuneMetric::Throughput | TuneMetric::Others)
    }
}

/// The figures of a run that are compared, in the order of [`TuneMetric::ALL`]. `Others` is 0 where all jobs count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneFigures([f64; TuneMetric::ALL.len()]);

impl TuneFigures {
    /// The figures of all jobs of a run.
    pub fn from_results(results: &Results) -> TuneFigures {
        let response = results.response();
        TuneFigures([
            results.iops(),
            results.bandwidth_mb_s(),
            response.mean_ms(),
            response.p99().as_ms(),
            0.0,
        ])
    }

    /// The figures of one job of a run, its clones together; none if none of its requests counted.
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
        let of_others = results.bandwidth_mb_s() - ratio(bytes as f64 / 1e6, results.counted_s());
        let times = [response.mean_ms(), response.p99().as_ms()];
        (response.count() > 0).then(|| TuneFigures([iops, mb_s, times[0], times[1], of_others]))
    }

    /// Figures that another program measured.
    pub fn measured(iops: f64, mb_s: f64, mean_ms: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures([iops, mb_s, mean_ms, p99_ms, 0.0])
    }

    /// The figure of this metric.
    pub fn get(&self, metric: TuneMetric) -> f64 {
        self.0[metric as usize]
    }

    /// The mean of each figure over several runs; there is at least one.
    pub fn mean(runs: &[TuneFigures]) -> TuneFigures {
        let of = |index: usize| runs.iter().map(|figures| figures.0[index]).sum::<f64>() / runs.len() as f64;
        TuneFigures(std::array::from_fn(of))
    }

    #[cfg(test)]
    pub(super) fn for_test(iops: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures([iops, iops, p99_ms / 2.0, p99_ms, 0.0])
    }
}

/// A limit that settings must keep: a minimum for a metric that should be large, else a maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneBound {
    /// The figure.
    pub metric: TuneMetric,
    /// Its limit, in the figure's unit.
    pub limit: f64,
}

/// A metric to improve, and limits on others.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneGoal {
    /// The figure to improve.
    pub metric: TuneMetric,
    /// Limits of other figures.
    pub bounds: Vec<TuneBound>,
    /// The job whose figures count; none for the whole load.
    pub job: Option<String>,
}

/// Whether a load has other jobs than the named one.
///
/// *Errors:* the load has no such job; the message has the nearest.
fn has_other_jobs(workload: &Workload<'_>, job: &str) -> Result<bool, String> {
    let jobs = workload.job_names();
    if !jobs.contains(&job) {
        let known = match jobs.len() {
            0 => "; only the jobs of a fio job file have names".to_string(),
            _ => did_you_mean(job, jobs),
        };
        return Err(format!("no job is called `{job}`{known}"));
    }
    Ok(jobs.iter().any(|other| *other != job))
}

/// The logarithm of a figure, with the sign that lets it grow when the figure improves.
fn log(metric: TuneMetric, value: f64) -> f64 {
    let log = value.max(f64::MIN_POSITIVE).ln();
    if metric.grows() { log } else { -log }
}

/// Weight of the relative excess over a limit against the goal's relative gain: an excess of 1 % outweighs a gain of 100 %.
const PENALTY: f64 = 100.0;

impl TuneGoal {
    /// Whether the load has jobs whose figures do not count, and whether a limit says how much of their throughput must remain.
    ///
    /// *Errors:* the load has no job of the goal's name (the message suggests the nearest); the throughput of other jobs is the goal, or is
    /// limited where there are none.
    pub fn uncounted_jobs(&self, workload: &Workload<'_>) -> Result<UncountedJobs, String> {
        if self.metric == TuneMetric::Others {
            return Err(
                "others is no goal, only a limit of the throughput of the jobs that do not count".to_string()
            );
        }
        let is_bounded = self.bounds.iter().any(|bound| bound.metric == TuneMetric::Others);
        let has_others = self.job.as_deref().map_or(Ok(false), |job| has_other_jobs(workload, job))?;
        match (has_others, is_bounded) {
            (false, true) => {
                Err("a limit of others is for a load with a job that counts and other jobs".to_string())
            }
            (false, false) => Ok(UncountedJobs::None),
            (true, false) => Ok(UncountedJobs::Unbounded),
            (true, true) => Ok(UncountedJobs::Bounded),
        }
    }

    /// The metrics that a search compares.
    pub(super) fn metrics(&self) -> &'static [TuneMetric] {
        if self.job.is_some() { &TuneMetric::ALL } else { &TuneMetric::OF_WHOLE_LOAD }
    }

    /// A score whose differences are relative gains (0.1 is some 10 %). A violated limit costs a hundred times its relative excess.
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
    use crate::files::NoFiles;

    #[test]
    fn throughput_of_other_jobs_is_a_limit_only_and_needs_them() {
        let job = "[global]\nrw=randread\nbs=4k\nsize=1g\n[reader]\n[backup]\n";
        let of = |text: &str, metric, limited: bool, job: Option<&str>| {
            let workload = Workload::fio_job(text, "job.fio", &NoFiles).expect("it is well formed");
            let bound = TuneBound { metric: TuneMetric::Others, limit: 5.0 };
            let bounds = if limited { vec![bound] } else { Vec::new() };
            TuneGoal { metric, bounds, job: job.map(str::to_string) }.uncounted_jobs(&workload)
        };
        let mean = TuneMetric::Mean;
        assert_eq!(of(job, mean, true, Some("reader")), Ok(UncountedJobs::Bounded));
        assert_eq!(of(job, mean, false, Some("reader")), Ok(UncountedJobs::Unbounded));
        assert_eq!(of(job, mean, false, None), Ok(UncountedJobs::None));
        assert!(of(job, mean, true, None).is_err());
        assert!(of("[reader]\nrw=read\nsize=1g", mean, true, Some("reader")).is_err());
        assert!(of(job, TuneMetric::Others, false, Some("reader")).is_err());
    }

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
