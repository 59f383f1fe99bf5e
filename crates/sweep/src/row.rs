//! The row of a cell: its names, and the figures of its run or its error.

use crate::columns::{COUNTS, FIGURES};
use crate::plan::{SweepCell, SweepPlan};
use headstack::{JobResult, KindResult, Results};
use serde_json::Value;

/// The row of a cell. The same key has the same row, byte for byte: nothing in it depends on the machine or the time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweepRow {
    /// The number of its cell in the plan.
    pub(crate) index: usize,
    pub(crate) key: String,
    pub(crate) rig: String,
    pub(crate) load: String,
    /// In the order of the plan's keys.
    pub(crate) settings: Vec<Option<String>>,
    pub(crate) seed: u64,
    pub(crate) error: Option<String>,
    pub(crate) counts: [Option<i64>; COUNTS.len()],
    pub(crate) figures: [Option<f64>; FIGURES.len()],
    /// What layers and devices counted, and the figures of jobs if the sweep wants them, by name.
    pub(crate) extra: Vec<(String, f64)>,
    /// The distribution of the response times: the largest time of each bucket, and its count. Empty unless the sweep wants it.
    pub(crate) histogram: Vec<(i64, i64)>,
}

impl SweepRow {
    fn named(plan: &SweepPlan, cell: &SweepCell) -> SweepRow {
        SweepRow {
            index: cell.index,
            key: plan.key(cell),
            rig: plan.rig_name(cell).to_string(),
            load: plan.load_name(cell).to_string(),
            settings: plan.setting_values(cell),
            seed: cell.seed,
            error: None,
            counts: [None; COUNTS.len()],
            figures: [None; FIGURES.len()],
            extra: Vec::new(),
            histogram: Vec::new(),
        }
    }

    /// The row of a cell that failed.
    pub(crate) fn failed(plan: &SweepPlan, cell: &SweepCell, error: String) -> SweepRow {
        SweepRow { error: Some(error), ..SweepRow::named(plan, cell) }
    }

    /// Its figure in a column.
    pub(crate) fn figure(&self, column: &str) -> Option<f64> {
        let place = FIGURES.iter().position(|(name, _)| *name == column);
        place.and_then(|place| self.figures[place])
    }

    /// The row of a cell that ran to its end.
    pub(crate) fn of_results(plan: &SweepPlan, cell: &SweepCell, results: &Results) -> SweepRow {
        let object = results.to_object();
        let count = |(_, place): (&str, &str)| object.pointer(place).and_then(Value::as_i64);
        let figure = |(name, place): (&str, &str)| match name {
            "arm_share" => Some(results.mean_over_devices(|device| results.utilisation(device))),
            "hit_share" => Some(results.mean_over_devices(|device| device.activity.read_hit_share())),
            _ => object.pointer(place).and_then(Value::as_f64),
        };
        let buckets = if plan.has_histograms() { results.response().buckets() } else { Vec::new() };
        let histogram = buckets.into_iter().map(|(last, count)| (last.0 as i64, count as i64)).collect();
        let (counts, figures) = (COUNTS.map(count), FIGURES.map(figure));
        let mut extra = results.reported();
        if plan.has_jobs() {
            extra.extend(results.jobs().flat_map(|job| job_figures(&job)));
        }
        SweepRow { counts, figures, extra, histogram, ..SweepRow::named(plan, cell) }
    }
}

/// The figures of a job, such as `job.log.flush_p99_ms`.
fn job_figures(job: &JobResult<'_>) -> Vec<(String, f64)> {
    let name = job.name;
    let of_kind = |kind: KindResult<'_>| {
        let times = &kind.statistics.responses;
        let figures = [
            ("requests", times.count() as f64),
            ("iops", kind.iops()),
            ("mb_s", kind.mb_s()),
            ("mean_ms", times.mean_ms()),
            ("p50_ms", times.quantile(0.5).as_ms()),
            ("p99_ms", times.p99().as_ms()),
            ("max_ms", times.max().as_ms()),
        ];
        figures.map(|(figure, value)| (format!("job.{name}.{}_{figure}", kind.name), value))
    };
    job.kinds().flat_map(of_kind).collect()
}
