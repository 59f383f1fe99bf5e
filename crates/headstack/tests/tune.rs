//! The law of advice: it is never worse than the best single change of the present system, run at full length.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack::tune::{
    KNOBS, SettingChoice, TuneFigures, TuneGoal, TuneMetric, TuneTrial, UncountedJobs, candidates, run_trial,
    search,
};
use headstack::{NoFiles, Rig, Workload, load_rig};
use std::thread;

/// Shipped rigs with shipped jobs, and the requests of a whole run.
const CASES: [(&str, &str, u64); 4] = [
    ("workstation", BUFFERED, 20_000),
    ("workstation", "mixed-oltp.fio", 600),
    ("workstation", "streams-writers.fio", 2_000),
    ("raid5", "sequential-100-streams.fio", 2_000),
];

/// The job of which short runs end while its programs wait for their first read-ahead, and settings that are good for it.
const BUFFERED: &str = "streams-buffered.fio";
const LARGE_READ_AHEAD: [(&str, &str); 3] =
    [("queue_depth", "1"), ("read_ahead_kb", "4096"), ("max_sectors_kb", "4096")];

/// Seeds of the comparison, which no search uses.
const SEEDS: std::ops::Range<u64> = 1000..1003;

/// What chance leaves between two settings, as a logarithm: the seeds of the comparison are not those of the search.
const CHANCE: f64 = 0.02;

/// Least gain for which data are moved, as a logarithm: a smaller one is not advised.
const LEAST_GAIN_OF_A_REBUILD: f64 = 0.095;

fn choice(name: &str, text: &str) -> SettingChoice {
    let knob = KNOBS.iter().position(|knob| knob.name == name).expect("it is a knob");
    let value = KNOBS[knob].values.iter().position(|value| *value == text).expect("it is tried");
    SettingChoice { knob, value }
}

struct Case {
    rig: Rig,
    job: String,
    requests: u64,
}

impl Case {
    fn new(rig: &str, job: &str, requests: u64) -> Case {
        let path = format!("{}/../../jobs/{job}", env!("CARGO_MANIFEST_DIR"));
        let job = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Case { rig: load_rig(rig, &NoFiles).expect("it ships"), job, requests }
    }

    fn figures(&self, trial: &TuneTrial) -> TuneFigures {
        let workload = Workload::fio_job(&self.job, "job.fio", &NoFiles).expect("it is well formed");
        let found = run_trial(&self.rig, workload, trial, self.requests, None, &|| false);
        found.expect("it fits on the rig").expect("requests count")
    }

    /// The figures of trials, on two threads.
    fn all_figures(&self, trials: &[TuneTrial]) -> Vec<TuneFigures> {
        let of = |trials: &[TuneTrial]| trials.iter().map(|trial| self.figures(trial)).collect::<Vec<_>>();
        let (first, second) = trials.split_at(trials.len() / 2);
        thread::scope(|scope| {
            let first = scope.spawn(|| of(first));
            let second = of(second);
            let mut all = first.join().expect("no run fails");
            all.extend(second);
            all
        })
    }

    /// Mean score of settings over the seeds of the comparison, in whole runs.
    fn scores(&self, goal: &TuneGoal, settings: &[Vec<SettingChoice>]) -> Vec<f64> {
        let trial = |choices: &Vec<SettingChoice>, seed| TuneTrial {
            choices: choices.clone(),
            seed,
            parts: TuneTrial::WHOLE,
        };
        let trials: Vec<TuneTrial> =
            settings.iter().flat_map(|choices| SEEDS.map(move |seed| trial(choices, seed))).collect();
        let figures = self.all_figures(&trials);
        let seeds = SEEDS.count();
        figures
            .chunks(seeds)
            .map(|runs| runs.iter().map(|run| goal.score(run)).sum::<f64>() / seeds as f64)
            .collect()
    }
}

#[test]
fn advice_is_never_worse_than_the_best_single_change_at_full_length() {
    let goal = TuneGoal { metric: TuneMetric::Throughput, bounds: Vec::new(), job: None };
    for (rig, job, requests) in CASES {
        let case = Case::new(rig, job, requests);
        let tried = candidates(&case.rig, UncountedJobs::None);
        let mut run = |trials: &[TuneTrial]| Ok(case.all_figures(trials));
        let outcome = search(&goal, &tried, 0, &mut run).expect("no run fails");
        let mut settings = vec![outcome.advised.iter().map(|advised| advised.choice).collect::<Vec<_>>()];
        settings[0].sort_unstable();
        settings.extend(tried.iter().map(|choice| vec![*choice]));
        if job == BUFFERED {
            settings.push(LARGE_READ_AHEAD.map(|(knob, value)| choice(knob, value)).to_vec());
        }
        let scores = case.scores(&goal, &settings);
        if job == BUFFERED {
            let named = scores[scores.len() - 1];
            assert!(scores[0] >= named - CHANCE, "{scores:?} without the read-ahead of 4 MiB");
        }
        for (choice, score) in tried.iter().zip(&scores[1..]) {
            let knob = &KNOBS[choice.knob];
            let least = if knob.is_rebuild() { LEAST_GAIN_OF_A_REBUILD } else { 0.0 };
            let advised = scores[0];
            let (text, advice) = (choice.text(), outcome.advised_values(&case.rig));
            assert!(
                advised >= score - least - CHANCE,
                "{rig} {job}: {}={text} {score}, advised {advice:?} {advised}",
                knob.name
            );
        }
    }
}
