//! The goal of a search: a metric to improve, and limits on others.

use super::knobs::UncountedJobs;
use crate::load::Workload;
use crate::numbers::ratio;
use crate::results::{JobResult, KindResult, Results};
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

/// The figures of a run that are compared.
///
/// A write and the flush that its job waits for are one commit: the mean is the time for which jobs waited for a read or write, flushes
/// included, and the 99th percentile is that of the flushes where it is longer. Rates are those of reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneFigures {
    /// In the order of [`TuneMetric::ALL`]; `Others` is 0 where all jobs count.
    values: [f64; TuneMetric::ALL.len()],
    /// Each job's reads, writes and flushes; empty where another program measured.
    pub jobs: Vec<TuneJob>,
    /// Each job as a whole, for limits: its name, and figures as in `values` up to `Others`. A job that completes nothing is left out.
    by_job: Vec<(String, [f64; JOB_METRICS])>,
}

/// The figures that a job has: those of [`TuneMetric::OF_WHOLE_LOAD`].
const JOB_METRICS: usize = TuneMetric::OF_WHOLE_LOAD.len();

/// The figures of a job's reads, writes or flushes.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneJob {
    /// The job and the kind: `wal flush`.
    pub name: String,
    /// Requests a second.
    pub iops: f64,
    /// MB a second.
    pub mb_s: f64,
    /// Mean response in ms.
    pub mean_ms: f64,
    /// 99th percentile of the response times in ms.
    pub p99_ms: f64,
    /// Whether these are writes with flushes after them, which is where the job waits for them.
    pub is_flushed: bool,
}

/// Response times of reads and writes together, and of flushes.
struct CommitTimes {
    transfers: TimeHistogram,
    flushes: TimeHistogram,
}

impl CommitTimes {
    fn mean_ms(&self) -> f64 {
        let sum = |times: &TimeHistogram| times.count() as f64 * times.mean_ms();
        ratio(sum(&self.transfers) + sum(&self.flushes), self.transfers.count() as f64)
    }

    fn p99_ms(&self) -> f64 {
        self.transfers.p99().max(self.flushes.p99()).as_ms()
    }
}

impl TuneFigures {
    /// The figures of all jobs of a run.
    pub fn from_results(results: &Results) -> TuneFigures {
        let flushes = results.flushes().map_or_else(TimeHistogram::new, |flushes| flushes.responses);
        let waits = CommitTimes { transfers: results.response(), flushes };
        let values = [results.iops(), results.bandwidth_mb_s(), waits.mean_ms(), waits.p99_ms(), 0.0];
        TuneFigures { values, jobs: jobs(results), by_job: by_job(results) }
    }

    /// The figures of one job of a run, its clones together; none if none of its reads and writes counted.
    pub fn of_job(results: &Results, job: &str) -> Option<TuneFigures> {
        let (own, bytes) = own_figures(&results.jobs().find(|found| found.name == job)?)?;
        let of_others = results.bandwidth_mb_s() - ratio(bytes as f64 / 1e6, results.counted_s());
        let [iops, mb_s, mean_ms, p99_ms] = own;
        let values = [iops, mb_s, mean_ms, p99_ms, of_others];
        Some(TuneFigures { values, jobs: jobs(results), by_job: by_job(results) })
    }

    /// Figures that another program measured.
    pub fn measured(iops: f64, mb_s: f64, mean_ms: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures { values: [iops, mb_s, mean_ms, p99_ms, 0.0], jobs: Vec::new(), by_job: Vec::new() }
    }

    /// The figure of this metric.
    pub fn get(&self, metric: TuneMetric) -> f64 {
        self.values[metric as usize]
    }

    /// The figure of this metric of a job; none for a job that completes nothing.
    pub fn get_of_job(&self, job: &str, metric: TuneMetric) -> Option<f64> {
        let (_, values) = self.by_job.iter().find(|(name, _)| name == job)?;
        values.get(metric as usize).copied()
    }

    /// The mean of each figure over several runs; there is at least one. A job that completes nothing in one of them is left out, so that no limit of
    /// its figures is kept.
    pub fn mean(runs: &[TuneFigures]) -> TuneFigures {
        let of =
            |index: usize| runs.iter().map(|figures| figures.values[index]).sum::<f64>() / runs.len() as f64;
        let jobs = runs[0].jobs.iter().map(|job| job.mean_over(runs)).collect();
        let of_job = |(name, _): &(String, _)| {
            let all: Option<Vec<[f64; JOB_METRICS]>> =
                runs.iter().map(|run| run.values_of_job(name)).collect();
            let all = all?;
            let mean = |index| all.iter().map(|values| values[index]).sum::<f64>() / all.len() as f64;
            Some((name.clone(), std::array::from_fn(mean)))
        };
        let by_job = runs[0].by_job.iter().filter_map(of_job).collect();
        TuneFigures { values: std::array::from_fn(of), jobs, by_job }
    }

    fn values_of_job(&self, job: &str) -> Option<[f64; JOB_METRICS]> {
        self.by_job.iter().find(|(name, _)| name == job).map(|(_, values)| *values)
    }

    #[cfg(test)]
    pub(super) fn for_test(iops: f64, p99_ms: f64) -> TuneFigures {
        TuneFigures::measured(iops, iops, p99_ms / 2.0, p99_ms)
    }

    #[cfg(test)]
    pub(super) fn with_job_for_test(mut self, job: &str, iops: f64) -> TuneFigures {
        self.by_job.push((job.to_string(), [iops, iops, 1.0, 1.0]));
        self
    }
}

/// The figures of a job and its bytes; none if none of its reads and writes counted.
fn own_figures(job: &JobResult<'_>) -> Option<([f64; JOB_METRICS], u64)> {
    let statistics = job.statistics?;
    let mut waits = CommitTimes { transfers: TimeHistogram::new(), flushes: TimeHistogram::new() };
    let mut bytes = 0;
    for direction in [&statistics.reads, &statistics.writes].into_iter().flatten() {
        waits.transfers.merge(&direction.responses);
        bytes += direction.bytes;
    }
    if let Some(flushes) = &statistics.flushes {
        waits.flushes.merge(&flushes.responses);
    }
    let seconds = statistics.last().since(statistics.begins).as_secs();
    let rate = |amount: f64| ratio(amount, seconds);
    let (iops, mb_s) = (rate(waits.transfers.count() as f64), rate(bytes as f64 / 1e6));
    (waits.transfers.count() > 0).then(|| ([iops, mb_s, waits.mean_ms(), waits.p99_ms()], bytes))
}

fn by_job(results: &Results) -> Vec<(String, [f64; JOB_METRICS])> {
    let one = |job: JobResult<'_>| own_figures(&job).map(|(figures, _)| (job.name.to_string(), figures));
    results.jobs().filter_map(one).collect()
}

impl TuneJob {
    /// The same job without a completed request.
    pub(super) fn starved(&self) -> TuneJob {
        TuneJob { iops: 0.0, mb_s: 0.0, mean_ms: 0.0, p99_ms: 0.0, ..self.clone() }
    }

    /// The mean over the runs in which the job completed something of the kind.
    fn mean_over(&self, runs: &[TuneFigures]) -> TuneJob {
        let same: Vec<&TuneJob> =
            runs.iter().flat_map(|run| run.jobs.iter().filter(|job| job.name == self.name)).collect();
        let mean =
            |figure: fn(&TuneJob) -> f64| ratio(same.iter().map(|job| figure(job)).sum(), same.len() as f64);
        TuneJob {
            name: self.name.clone(),
            iops: mean(|job| job.iops),
            mb_s: mean(|job| job.mb_s),
            mean_ms: mean(|job| job.mean_ms),
            p99_ms: mean(|job| job.p99_ms),
            is_flushed: self.is_flushed,
        }
    }
}

fn jobs(results: &Results) -> Vec<TuneJob> {
    let of_job = |job: JobResult<'_>| {
        let flushes = job.statistics.is_some_and(|statistics| statistics.flushes.is_some());
        let one = move |kind: KindResult<'_>| TuneJob {
            name: format!("{} {}", job.name, kind.name),
            iops: kind.iops(),
            mb_s: kind.mb_s(),
            mean_ms: kind.statistics.responses.mean_ms(),
            p99_ms: kind.statistics.responses.p99().as_ms(),
            is_flushed: flushes && kind.name == "write",
        };
        job.kinds().map(one).collect::<Vec<_>>()
    };
    results.jobs().flat_map(of_job).collect()
}

/// A limit that settings must keep: a minimum for a metric that should be large, else a maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneBound {
    /// The job whose figure it limits; none for the figures that count.
    pub job: Option<String>,
    /// The figure.
    pub metric: TuneMetric,
    /// Its limit, in the figure's unit.
    pub limit: f64,
}

impl TuneBound {
    /// A limit of a figure that counts.
    pub fn new(metric: TuneMetric, limit: f64) -> TuneBound {
        TuneBound { job: None, metric, limit }
    }

    /// The limited figure; none where it is that of a job that completes nothing.
    pub fn value_in(&self, figures: &TuneFigures) -> Option<f64> {
        match &self.job {
            Some(job) => figures.get_of_job(job, self.metric),
            None => Some(figures.get(self.metric)),
        }
    }

    /// The logarithm by which the figures exceed it; 0 if they keep it. A job that completes nothing keeps no limit.
    fn excess(&self, figures: &TuneFigures) -> f64 {
        let worst = if self.metric.grows() { 0.0 } else { f64::MAX };
        let value = self.value_in(figures).unwrap_or(worst);
        (log(self.metric, self.limit) - log(self.metric, value)).max(0.0)
    }

    /// Whether the figures keep it.
    pub fn is_kept_by(&self, figures: &TuneFigures) -> bool {
        self.excess(figures) == 0.0
    }
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

/// Checks that a load has the named job.
///
/// *Errors:* it has none; the message has the nearest.
fn check_job(jobs: &[&str], job: &str) -> Result<(), String> {
    if !jobs.contains(&job) {
        let known = match jobs.len() {
            0 => "; only the jobs of a fio job file have names".to_string(),
            _ => did_you_mean(job, jobs.iter().copied()),
        };
        return Err(format!("no job is called `{job}`{known}"));
    }
    Ok(())
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
    /// *Errors:* the load has no job of the goal's name or a limit's (the message suggests the nearest); the throughput of other jobs is the goal,
    /// or is limited where there are none.
    pub fn uncounted_jobs(&self, workload: &Workload<'_>) -> Result<UncountedJobs, String> {
        if self.metric == TuneMetric::Others {
            return Err(
                "others is no goal, only a limit of the throughput of the jobs that do not count".to_string()
            );
        }
        let jobs = workload.job_names();
        let named = self.job.iter().chain(self.bounds.iter().filter_map(|bound| bound.job.as_ref()));
        named.into_iter().try_for_each(|job| check_job(&jobs, job))?;
        let limits_others = self.bounds.iter().any(|bound| bound.metric == TuneMetric::Others);
        let counted = self.job.as_deref();
        let others: Vec<&str> = match counted {
            Some(counted) => jobs.into_iter().filter(|job| *job != counted).collect(),
            None => Vec::new(),
        };
        if others.is_empty() && limits_others {
            return Err("a limit of others is for a load with a job that counts and other jobs".to_string());
        }
        Ok(if others.is_empty() {
            UncountedJobs::None
        } else if limits_others || others.iter().all(|job| self.keeps_rate_of(job)) {
            UncountedJobs::Bounded
        } else {
            UncountedJobs::Unbounded
        })
    }

    /// Whether a limit says what rate a job must keep.
    fn keeps_rate_of(&self, job: &str) -> bool {
        self.bounds.iter().any(|bound| bound.job.as_deref() == Some(job) && bound.metric.grows())
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
        self.bounds.iter().map(|bound| bound.excess(figures)).sum()
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
            let bounds = if limited { vec![TuneBound::new(TuneMetric::Others, 5.0)] } else { Vec::new() };
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
    fn limit_of_a_job_names_one_of_the_load_and_says_what_the_others_keep() {
        let job = "[global]\nrw=randread\nbs=4k\nsize=1g\n[reader]\n[backup]\n[scan]\n";
        let of = |bounds: &[&str]| {
            let workload = Workload::fio_job(job, "job.fio", &NoFiles).expect("it is well formed");
            let bounds = bounds.iter().map(|bound| bound.parse().expect("it is a limit")).collect();
            let goal = TuneGoal { metric: TuneMetric::Mean, bounds, job: Some("reader".to_string()) };
            goal.uncounted_jobs(&workload)
        };
        assert_eq!(of(&["backup.iops>5"]), Ok(UncountedJobs::Unbounded));
        assert_eq!(of(&["backup.iops>5", "scan.throughput>1"]), Ok(UncountedJobs::Bounded));
        assert_eq!(of(&["backup.p99<5", "scan.p99<5"]), Ok(UncountedJobs::Unbounded));
        let nearest = "no job is called `bakup`; did you mean `backup`?";
        assert_eq!(of(&["bakup.iops>5"]), Err(nearest.to_string()));
    }

    #[test]
    fn job_that_completes_nothing_keeps_no_limit() {
        let kept = |limit: &str, figures: &TuneFigures| {
            limit.parse::<TuneBound>().expect("a limit").is_kept_by(figures)
        };
        let with = |iops| TuneFigures::for_test(100.0, 90.0).with_job_for_test("batch", iops);
        assert!(kept("batch.iops>5", &with(6.0)) && !kept("batch.iops>5", &with(4.0)));
        assert!(kept("batch.p99<5", &with(6.0)));
        let starved = TuneFigures::for_test(100.0, 90.0);
        assert!(!kept("batch.iops>5", &starved) && !kept("batch.p99<5", &starved));
        // Nor where it completes nothing in one of several runs.
        assert!(!kept("batch.p99<5", &TuneFigures::mean(&[with(6.0), starved])));
    }

    #[test]
    fn violated_limit_outweighs_the_gain_for_which_it_was_violated() {
        let bounds = vec![TuneBound::new(TuneMetric::P99, 100.0)];
        let goal = TuneGoal { metric: TuneMetric::Iops, bounds, job: None };
        let (slow, fast) = (TuneFigures::for_test(100.0, 90.0), TuneFigures::for_test(120.0, 130.0));
        assert!(goal.is_kept_by(&slow) && !goal.is_kept_by(&fast));
        assert!(goal.score(&slow) > goal.score(&fast));
        let unbound = TuneGoal { metric: TuneMetric::Iops, bounds: Vec::new(), job: None };
        assert!((unbound.score(&fast) - unbound.score(&slow) - 1.2f64.ln()).abs() < 1e-12);
        assert!((log_gain(TuneMetric::P99, &slow, &fast) - (90.0f64 / 130.0).ln()).abs() < 1e-12);
    }
}
