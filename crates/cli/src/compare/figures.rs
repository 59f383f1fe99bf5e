//! The figures of a cell's runs, one run per seed, and the comparison of cells by them.

use super::grid::Cell;
use crate::sim::page::{self as one, PARTS};
use headstack::{JobResult, KindResult, Results};
use headstack_model::spec::nearest;
use headstack_sim::stats::{Batches, Confidence, Direction, Interval};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Iops,
    MbS,
    MeanMs,
    P50Ms,
    P99Ms,
    MaxMs,
    /// Share of the time in which an arm works, over the devices.
    Arm,
    /// Share of the reads that need no access of their own, over the devices.
    Hits,
    /// Hours in which all spares would be rebuilt at the mean rate of the run; NaN where no array has spares.
    RebuildH,
}

impl Metric {
    pub(super) const ALL: [Metric; 9] = [
        Metric::Iops,
        Metric::MbS,
        Metric::MeanMs,
        Metric::P50Ms,
        Metric::P99Ms,
        Metric::MaxMs,
        Metric::Arm,
        Metric::Hits,
        Metric::RebuildH,
    ];

    const NAMES: [&'static str; Metric::ALL.len()] =
        ["iops", "mb_s", "mean_ms", "p50_ms", "p99_ms", "max_ms", "arm_share", "hit_share", "rebuild_h"];

    /// The metrics that each job and kind of request also has.
    pub(super) const OF_JOBS: [Metric; 6] =
        [Metric::Iops, Metric::MbS, Metric::MeanMs, Metric::P50Ms, Metric::P99Ms, Metric::MaxMs];

    /// The metric of this name.
    ///
    /// *Errors:* a message with the names.
    pub(super) fn parse(name: &str) -> Result<Metric, String> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let hint = nearest(name, Metric::NAMES).map_or_else(
                || format!("one of {}", Metric::NAMES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            format!("no metric is called `{name}`; {hint}")
        })
    }

    /// Its name on the command line and in JSON.
    pub(super) fn name(self) -> &'static str {
        Metric::NAMES[self as usize]
    }

    /// Its confidence interval from the batches of one run. Only throughput and the mean response time have one.
    fn within(self, confidence: &Confidence) -> Option<Interval> {
        match self {
            Metric::Iops => Some(confidence.iops),
            Metric::MbS => Some(confidence.mb_s),
            Metric::MeanMs => Some(confidence.response_ms),
            _ => None,
        }
    }

    /// The metric over several runs: their mean, or for a maximum the maximum.
    pub(super) fn over_runs(self, values: &[f64]) -> f64 {
        match self {
            Metric::MaxMs => values.iter().copied().fold(0.0, f64::max),
            _ => mean(values),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Maximum number of batches kept per run. 20 pairs remain when one run has a tenth of the other's requests.
const BATCHES_KEPT: usize = 400;

/// The figures of a run: small, because there may be thousands of runs.
pub(super) struct Figures {
    pub(super) requests: u64,
    values: [f64; Metric::ALL.len()],
    pub(super) parts_ms: [f64; PARTS],
    confidence: Option<Confidence>,
    /// The run as at most [`BATCHES_KEPT`] batches, which are compared with those of the baseline.
    batches: Batches,
    pub(super) distribution: Vec<(f64, f64)>,
    pub(super) jobs: Vec<JobFigures>,
    /// What decides about the figures, as a line.
    pub(super) setup: Option<String>,
    pub(super) notes: Vec<String>,
    pub(super) object: Value,
}

/// The figures of one job and kind of request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobFigures {
    /// Job and kind: `wal write`.
    pub(super) name: String,
    pub(super) requests: u64,
    /// In the order of [`Metric::OF_JOBS`].
    pub(super) values: [f64; 6],
}

impl JobFigures {
    fn new(name: &str, kind: &KindResult<'_>) -> JobFigures {
        let Direction { responses, .. } = kind.statistics;
        let values = [
            kind.iops(),
            kind.mb_s(),
            responses.mean_ms(),
            responses.p50().as_ms(),
            responses.p99().as_ms(),
            responses.max().as_ms(),
        ];
        JobFigures { name: format!("{name} {}", kind.name), requests: responses.count(), values }
    }
}

impl Figures {
    pub(super) fn value(&self, metric: Metric) -> f64 {
        self.values[metric as usize]
    }

    pub(super) fn new(results: &Results) -> Figures {
        let totals = results.totals();
        let times = &totals.responses;
        let mut object = results.to_object();
        for key in ["rig", "timeline"] {
            object.as_object_mut().map(|object| object.remove(key));
        }
        let figures_of =
            |job: JobResult<'_>| job.kinds().map(|kind| JobFigures::new(job.name, &kind)).collect::<Vec<_>>();
        let jobs = results.jobs().flat_map(figures_of);
        Figures {
            requests: results.counted(),
            values: [
                results.iops(),
                results.bandwidth_mb_s(),
                times.mean_ms(),
                times.p50().as_ms(),
                times.p99().as_ms(),
                times.max().as_ms(),
                results.mean_over_devices(|device| results.utilisation(device)),
                results.mean_over_devices(|device| device.activity.read_hit_share()),
                results.rebuild_hours().unwrap_or(f64::NAN),
            ],
            parts_ms: totals.parts_ms(),
            confidence: results.confidence(),
            batches: results.statistics.batches().clone().joined(BATCHES_KEPT),
            distribution: one::distribution("", 0, times).points,
            jobs: jobs.collect(),
            setup: results.setup.line(),
            notes: results.notes().into_iter().map(|note| note.text).collect(),
            object,
        }
    }
}

pub(super) struct Ran {
    pub(super) cell: Cell,
    /// A run per seed, in the order of the seeds; at least one.
    pub(super) runs: Vec<Figures>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// As a share of the baseline.
    pub(super) share: f64,
    /// Half the width of its 95 % interval, over the seeds or over the batches of one, as a share of the baseline; none if unknown.
    pub(super) half_width: Option<f64>,
    /// Whether chance can explain it, because the interval contains 0; none if unknown.
    pub(super) by_chance: Option<bool>,
}

impl Ran {
    fn values(&self, metric: Metric) -> Vec<f64> {
        self.runs.iter().map(|run| run.value(metric)).collect()
    }

    pub(super) fn value(&self, metric: Metric) -> f64 {
        metric.over_runs(&self.values(metric))
    }

    /// The 95 % confidence interval of a metric: from the seeds if there are several, else from the batches of the run.
    pub(super) fn interval(&self, metric: Metric) -> Option<Interval> {
        match &self.runs[..] {
            [run] => metric.within(run.confidence.as_ref()?),
            _ if metric == Metric::MaxMs => None,
            _ => Interval::of_values(&self.values(metric)),
        }
    }

    /// The difference of a metric from the baseline's; none unless that is above 0. The same seed gives the same requests, so the differences
    /// are taken in pairs: seed by seed, or with one seed batch by batch.
    pub(super) fn difference(&self, base: &Ran, metric: Metric) -> Option<Difference> {
        let from = base.value(metric);
        if from.is_nan() || from <= 0.0 {
            return None;
        }
        let share = self.value(metric) / from - 1.0;
        if self.runs.len() > 1 {
            let interval = Interval::of_values(&self.paired(base, metric));
            let half_width = interval.map(|found| found.half_width / from);
            let by_chance = interval.map(|found| !found.excludes_zero());
            return Some(Difference { share, half_width, by_chance });
        }
        let (half_width, by_chance) = self.within_run(base, metric).unzip();
        Some(Difference { share, half_width, by_chance })
    }

    /// The differences for each seed with which both cells ran.
    fn paired(&self, base: &Ran, metric: Metric) -> Vec<f64> {
        let pairs = self.values(metric).into_iter().zip(base.values(metric));
        pairs.map(|(own, other)| own - other).collect()
    }

    /// With one seed: half the width of the difference's interval as a share of the baseline, and whether chance can explain the difference.
    fn within_run(&self, base: &Ran, metric: Metric) -> Option<(f64, bool)> {
        let (own, other) = (self.runs.first()?, base.runs.first()?);
        let found = own.batches.paired_differences(&other.batches)?;
        let (value, from) = (self.value(metric), base.value(metric));
        let (interval, half_width) = match metric {
            Metric::MeanMs => (found.response_ms, found.response_ms.half_width / from),
            // A rate is the reciprocal of a time, so a small change of it is that of the time, multiplied by the square of the rate.
            Metric::Iops => (found.s_per_request, found.s_per_request.half_width * value * value / from),
            Metric::MbS => {
                let time = found.s_per_mb?;
                (time, time.half_width * value * value / from)
            }
            _ => return None,
        };
        Some((half_width, !interval.excludes_zero()))
    }

    pub(super) fn requests(&self) -> (u64, u64) {
        let each = || self.runs.iter().map(|run| run.requests);
        (each().min().unwrap_or(0), each().max().unwrap_or(0))
    }

    pub(super) fn parts_ms(&self) -> [f64; PARTS] {
        let mut parts = [0.0; PARTS];
        for (part, mean) in parts.iter_mut().enumerate() {
            let values: Vec<f64> = self.runs.iter().map(|run| run.parts_ms[part]).collect();
            *mean = self::mean(&values);
        }
        parts
    }

    /// Each job and kind over all seeds, in the order of the load.
    pub(super) fn jobs(&self) -> Vec<JobFigures> {
        let mut all: Vec<JobFigures> = Vec::new();
        for job in self.runs.iter().flat_map(|run| &run.jobs) {
            if !all.iter().any(|known| known.name == job.name) {
                all.push(self.job(&job.name));
            }
        }
        all
    }

    fn job(&self, name: &str) -> JobFigures {
        let met: Vec<&JobFigures> =
            self.runs.iter().filter_map(|run| run.jobs.iter().find(|job| job.name == name)).collect();
        let mut values = [0.0; 6];
        for (metric, value) in Metric::OF_JOBS.into_iter().zip(&mut values) {
            let each: Vec<f64> = met.iter().map(|job| job.values[metric as usize]).collect();
            *value = metric.over_runs(&each);
        }
        let requests = met.iter().map(|job| job.requests).sum::<u64>() / met.len().max(1) as u64;
        JobFigures { name: name.to_string(), requests, values }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use headstack_sim::rig::shipped;

    /// A cell with a run for each of these response times.
    pub(in crate::compare) fn ran(settings: &[(&str, &str)], p99_ms: &[f64]) -> Ran {
        let run = |p99_ms: &f64| Figures {
            requests: 1000,
            values: [100.0, 0.4, p99_ms / 2.0, p99_ms / 3.0, *p99_ms, p99_ms * 2.0, 0.5, 0.0, f64::NAN],
            parts_ms: [0.0; PARTS],
            confidence: None,
            batches: Batches::new(),
            distribution: Vec::new(),
            jobs: Vec::new(),
            object: Value::Null,
            setup: None,
            notes: Vec::new(),
        };
        let settings = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let rig = shipped::load("atlas-10k").expect("the drive ships");
        let cell = Cell { rig_name: "atlas-10k".to_string(), rig_index: 0, rig, settings };
        Ran { cell, runs: p99_ms.iter().map(run).collect() }
    }

    #[test]
    fn metrics_are_averaged_over_seeds_except_the_maximum() {
        let ran = ran(&[], &[10.0, 20.0, 30.0]);
        assert_eq!((ran.value(Metric::P99Ms), ran.value(Metric::MaxMs)), (20.0, 60.0));
        let interval = ran.interval(Metric::P99Ms).expect("there are three seeds");
        assert!((interval.half_width - 4.303 * 10.0 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(ran.interval(Metric::MaxMs), None);
    }

    #[test]
    fn difference_is_judged_seed_by_seed() {
        // Each seed is 5 % slower, though the seeds differ far more from each other.
        let base = ran(&[], &[10.0, 20.0, 40.0]);
        let slower = ran(&[], &[10.51, 21.0, 42.01]);
        let found = slower.difference(&base, Metric::P99Ms).expect("the baseline is not 0");
        assert!((found.share - 0.0503).abs() < 1e-3, "{found:?}");
        assert_eq!(found.by_chance, Some(true), "the differences are 0.5 to 2 ms over three seeds");
        let always = ran(&[], &[11.0, 21.1, 41.05]);
        let found = always.difference(&base, Metric::P99Ms).expect("the baseline is not 0");
        assert_eq!(found.by_chance, Some(false), "each seed differs by 1 ms");
    }
}
