//! The row of a cell: its names, and the figures of its run or its error.

use crate::columns::{COUNTS, FIGURES};
use crate::plan::{SweepCell, SweepPlan};
use headstack::Results;
use serde_json::Value;

/// The row of a cell. The same key has the same row, byte for byte: nothing in it depends on the machine or the time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweepRow {
    pub(crate) key: String,
    pub(crate) rig: String,
    pub(crate) load: String,
    /// In the order of the plan's keys.
    pub(crate) settings: Vec<Option<String>>,
    pub(crate) seed: u64,
    pub(crate) error: Option<String>,
    pub(crate) counts: [Option<i64>; COUNTS.len()],
    pub(crate) figures: [Option<f64>; FIGURES.len()],
    /// What layers and devices counted, by name.
    pub(crate) reported: Vec<(String, f64)>,
    /// The distribution of the response times: the largest time of each bucket, and its count. Empty unless the sweep wants it.
    pub(crate) histogram: Vec<(i64, i64)>,
}

/// The part of a finished cell's row that is read to continue a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FinishedCell {
    pub(crate) error: Option<String>,
    /// Its figure in the column that decides when settings get no more seeds.
    pub(crate) figure: Option<f64>,
}

impl SweepRow {
    fn named(plan: &SweepPlan, cell: &SweepCell) -> SweepRow {
        SweepRow {
            key: cell.key.clone(),
            rig: plan.rig_name(cell).to_string(),
            load: plan.load_name(cell).to_string(),
            settings: plan.setting_values(cell).map(|value| value.map(str::to_string)).collect(),
            seed: cell.seed,
            error: None,
            counts: [None; COUNTS.len()],
            figures: [None; FIGURES.len()],
            reported: Vec::new(),
            histogram: Vec::new(),
        }
    }

    /// The row of a cell that failed.
    pub(crate) fn failed(plan: &SweepPlan, cell: &SweepCell, error: String) -> SweepRow {
        SweepRow { error: Some(error), ..SweepRow::named(plan, cell) }
    }

    /// The part of the row that is read to continue a sweep, with the figure in the given column.
    pub(crate) fn finished(self, column: Option<&str>) -> FinishedCell {
        let place = FIGURES.iter().position(|(name, _)| Some(*name) == column);
        FinishedCell { error: self.error, figure: place.and_then(|place| self.figures[place]) }
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
        SweepRow { counts, figures, reported: results.reported(), histogram, ..SweepRow::named(plan, cell) }
    }
}
