//! The rows that are off, run again with one parameter changed, to find what they depend on. Nothing here is judged.

use super::loads::{LoadCase, RearrangedLoad, ServerShape};
use super::seeks::{SavedSeeks, measure, saved};
use super::{BLOCKS, Key};
use crate::study::{Length, Setting, StudyError};
use headstack::report::{Section, Table};

/// One thing that differs from the study's runs.
struct ShapeTrial {
    name: &'static str,
    shape: ServerShape,
    blocks: &'static str,
    keys: &'static [Key],
}

const UNCHANGED: ShapeTrial =
    ShapeTrial { name: "nothing", shape: ServerShape::STUDY, blocks: "1000", keys: &[] };

/// A quarter of the study's day.
const QUARTER: &[Key] = &[("rearrange.period_s", "800")];

static TRIALS: [ShapeTrial; 9] = [
    UNCHANGED,
    ShapeTrial {
        name: "one block in 20 used",
        shape: ServerShape { spread: 20, ..ServerShape::STUDY },
        ..UNCHANGED
    },
    ShapeTrial {
        name: "exponent 1.2",
        shape: ServerShape { exponent: 1.2, ..ServerShape::STUDY },
        ..UNCHANGED
    },
    ShapeTrial {
        name: "one block in 20 used, exponent 1.2",
        shape: ServerShape { spread: 20, exponent: 1.2, ..ServerShape::STUDY },
        ..UNCHANGED
    },
    ShapeTrial {
        name: "one block in 20 used, four periods a day",
        shape: ServerShape { spread: 20, ..ServerShape::STUDY },
        keys: QUARTER,
        ..UNCHANGED
    },
    ShapeTrial { name: "4,000 blocks reserved", blocks: "4000", ..UNCHANGED },
    ShapeTrial { name: "four periods a day", keys: QUARTER, ..UNCHANGED },
    ShapeTrial {
        name: "400,000 requests a day",
        shape: ServerShape { day_requests: 400_000, ..ServerShape::STUDY },
        ..UNCHANGED
    },
    ShapeTrial {
        name: "50 ms between requests",
        shape: ServerShape { gap_ms: 50.0, ..ServerShape::STUDY },
        ..UNCHANGED
    },
];

/// The runs of a trial, in the order of [`ShapeTrial::variants`].
const RUNS: usize = 8;

impl ShapeTrial {
    fn variants(&self) -> [Vec<(&'static str, String)>; RUNS] {
        let blocks: u64 = self.blocks.parse().expect("the trials have numbers of blocks");
        let with = |keys: &[(&'static str, String)]| {
            let base = self.keys.iter().map(|(key, value)| (*key, (*value).to_string()));
            let blocks = ("rearrange.blocks", blocks.to_string());
            base.chain([blocks]).chain(keys.iter().cloned()).collect()
        };
        let counters = |counters: u64| ("rearrange.counters", counters.to_string());
        let first_come = ("rearrange.replacement", "first-come".to_string());
        [
            with(&[("rearrange.least_references", "1000000000".to_string())]),
            with(&[]),
            with(&[("rearrange.replacement", "exact".to_string())]),
            with(&[counters(blocks)]),
            with(&[counters(blocks), first_come]),
            with(&[counters(2 * blocks)]),
            with(&[("drive.queue.order", "look".to_string())]),
            with(&[("drive.queue.order", "c-look".to_string())]),
        ]
    }
}

/// The file servers under each trial.
///
/// *Errors:* as of a run.
pub(super) fn section(setting: &Setting<'_>) -> Result<Section, StudyError> {
    let servers = || RearrangedLoad::ALL.into_iter().filter(|load| !load.is_trace());
    let cases = || servers().flat_map(|load| TRIALS.iter().map(move |trial| (load, trial)));
    let mut runs = Vec::new();
    for (load, trial) in cases() {
        runs.extend(trial.variants().map(|keys| (LoadCase { load, shape: trial.shape }, keys)));
    }
    let seeks = setting.map(&runs, |(case, keys)| {
        let keys: Vec<(&str, &str)> = keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        // The quick form has half as many days. Only the first day differs from the others.
        measure(case, None, &keys, Length::Quick)
    })?;
    let columns = [
        "load",
        "changed",
        "saved %",
        "hits %",
        "N counters less than exact",
        "N first-come",
        "2 N",
        "4 N",
        "SCAN saves %",
        "C-SCAN saves %",
        "copying %",
        "mean queue",
    ];
    let mut table = Table::new("One thing changed", columns).with_words(2);
    for ((load, trial), runs) in cases().zip(seeks.chunks(RUNS)) {
        table.named_row([load.name(), trial.name], figures(runs));
    }
    let text = format!(
        "Three days of each server with one thing changed. N counters are as many as blocks are reserved, {BLOCKS} but for one \
         line. What fewer counters save less than a counter for each block is in points of seek time; SCAN and C-SCAN, which turn at the last request, save mean response."
    );
    Ok(Section::new("What moves the rows").with_text(text).with_table(table))
}

fn figures(runs: &[SavedSeeks]) -> [f64; 10] {
    let [plain, organ_pipe, exact, counters, first_come, double, scan, c_scan] = runs else {
        unreachable!("each variant has a run")
    };
    let faster = |of: &SavedSeeks| 100.0 * (1.0 - of.response_ms / organ_pipe.response_ms);
    let less = |of: &SavedSeeks| saved(exact, plain) - saved(of, plain);
    [
        saved(organ_pipe, plain),
        100.0 * organ_pipe.hits,
        less(counters),
        less(first_come),
        less(double),
        less(organ_pipe),
        faster(scan),
        faster(c_scan),
        100.0 * organ_pipe.copying,
        organ_pipe.mean_queue,
    ]
}
