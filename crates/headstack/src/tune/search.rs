//! The search: its trials and its outcome. It [climbs](super::climb) on short runs; then it [judges](super::judge) the chosen settings.
//!
//! All runs of a seed request the same blocks (common random numbers), so settings are compared by the differences within a seed.
//! *Source:* A. M. Law, "Simulation Modeling and Analysis", chapter 11; K. Jamieson and A. Talwalkar, "Non-stochastic best arm
//! identification and hyperparameter optimization" (2016), successive halving.

use super::goal::{TuneFigures, TuneGoal, TuneMetric, log_gain};
use super::knobs::{KNOBS, LEAST_GAIN, SCHEDULER};
use crate::numbers::confidence_interval;
use std::collections::BTreeMap;

/// A value of a knob, as indices in [`KNOBS`] and in the knob's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingChoice {
    /// The knob.
    pub knob: usize,
    /// Its value.
    pub value: usize,
}

impl SettingChoice {
    /// The value as text.
    pub fn text(&self) -> &'static str {
        KNOBS[self.knob].values[self.value]
    }
}

/// A run that the search requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneTrial {
    /// The settings that differ from the present system, by knob.
    pub choices: Vec<SettingChoice>,
    /// The seed.
    pub seed: u64,
    /// The share of the whole run, in parts of [`TuneTrial::WHOLE`].
    pub parts: u64,
}

impl TuneTrial {
    /// Parts of a whole run.
    pub const WHOLE: u64 = 4;
}

/// Runs trials, in any order, and returns their figures in the order of the trials.
pub type RunTuneTrials<'a> = dyn FnMut(&[TuneTrial]) -> Result<Vec<TuneFigures>, String> + 'a;

/// A relative gain with its interval. It is a logarithm: 0.1 is 10.5 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Mean of the logarithms of the ratios.
    pub log: f64,
    /// Half the width of its confidence interval.
    pub half_width: f64,
}

impl Gain {
    /// The gain from logarithms of paired ratios, at least two, with this confidence.
    pub(super) fn from_logs(logs: &[f64], confidence: f64) -> Gain {
        let (log, half_width) = confidence_interval(logs, confidence).expect("there are at least two");
        Gain { log, half_width }
    }

    /// The gain over pairs of runs, before and after, with a confidence of 95 %; none for fewer than two pairs, which have no interval.
    pub fn of_pairs(metric: TuneMetric, before: &[TuneFigures], after: &[TuneFigures]) -> Option<Gain> {
        let logs: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| log_gain(metric, before, after)).collect();
        (logs.len() > 1).then(|| Gain::from_logs(&logs, CONFIDENCE))
    }

    /// Whether the gain is larger than chance explains, and worth a change: more than half a percent.
    pub fn is_real(&self) -> bool {
        self.exceeds(LEAST_GAIN)
    }

    /// Whether the gain is larger than chance explains, and than `least`.
    pub(super) fn exceeds(&self, least: f64) -> bool {
        self.log - self.half_width > 0.0 && self.log > least
    }

    /// Whether all seeds gave the same: the load draws nothing at random, so that the runs say nothing about chance.
    pub fn is_without_chance(&self) -> bool {
        self.half_width <= 1e-12 * self.log.abs()
    }

    /// Whether it is a loss larger than chance explains, and more than half a percent.
    pub fn is_loss(&self) -> bool {
        self.log + self.half_width < 0.0 && self.log < -LEAST_GAIN
    }

    /// The change of the figure in percent, and the ends of its interval, the lower first. Negative where a response time improves.
    pub fn change_percent(&self, metric: TuneMetric) -> [f64; 3] {
        let log = if metric.grows() { self.log } else { -self.log };
        [log, log - self.half_width, log + self.half_width].map(|log| 100.0 * log.exp_m1())
    }
}

/// Seeds of the short runs, and of the finalists.
pub(super) const SCREENING_SEEDS: u64 = 2;
pub(super) const FINAL_SEEDS: u64 = 7;
/// Confidence of all of an answer's comparisons together (Bonferroni).
pub(super) const CONFIDENCE: f64 = 0.95;

/// A setting that is advised.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvisedSetting {
    /// The setting.
    pub choice: SettingChoice,
    /// Loss of the goal's figure without this setting, the other advised ones kept. Negative for a setting that keeps a limit at the figure's cost.
    pub gain: Gain,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOutcome {
    /// The advised settings, the one with the largest gain first; none where nothing is better than chance explains.
    pub advised: Vec<AdvisedSetting>,
    /// Gain of the goal's figure by all advised settings together.
    pub whole: Gain,
    /// Gain of each figure by all advised settings together.
    pub by_metric: Vec<(TuneMetric, Gain)>,
    /// Mean figures over the final seeds, without the advised settings.
    pub before: TuneFigures,
    /// Mean figures over the final seeds, with the advised settings.
    pub after: TuneFigures,
    /// Number of runs.
    pub runs: u64,
    /// The work of the runs, in whole runs.
    pub whole_runs: f64,
    /// Whole runs that all combinations of the tried values would take, with one seed each.
    pub combinations: f64,
}

pub(super) struct SettingSearch<'a> {
    pub(super) goal: TuneGoal,
    run: &'a mut RunTuneTrials<'a>,
    seed: u64,
    pub(super) runs: u64,
    pub(super) parts: u64,
    /// The scheduler that the system has now, if the search may change it.
    pub(super) scheduler_now: Option<&'static str>,
    /// Figures by settings, seed and length, so that no trial runs twice.
    known: BTreeMap<(Vec<SettingChoice>, u64, u64), TuneFigures>,
}

impl SettingSearch<'_> {
    /// The figures of each of these settings with each seed.
    pub(super) fn figures(
        &mut self,
        settings: &[Vec<SettingChoice>],
        seeds: std::ops::Range<u64>,
        parts: u64,
    ) -> Result<Vec<Vec<TuneFigures>>, String> {
        let key = |choices: &Vec<SettingChoice>, seed: u64| (choices.clone(), seed, parts);
        let mut trials = Vec::new();
        for seed in seeds.clone() {
            for choices in settings {
                let trial = TuneTrial { choices: choices.clone(), seed: self.seed.wrapping_add(seed), parts };
                if !self.known.contains_key(&key(choices, seed)) && !trials.contains(&(seed, trial.clone())) {
                    trials.push((seed, trial));
                }
            }
        }
        let (numbers, wanted): (Vec<u64>, Vec<TuneTrial>) = trials.into_iter().unzip();
        let found = (self.run)(&wanted)?;
        self.runs += wanted.len() as u64;
        self.parts += parts * wanted.len() as u64;
        for ((seed, trial), figures) in numbers.into_iter().zip(wanted).zip(found) {
            self.known.insert((trial.choices, seed, parts), figures);
        }
        let of = |choices: &Vec<SettingChoice>| {
            let one = |seed| self.known[&key(choices, seed)].clone();
            seeds.clone().map(one).collect()
        };
        Ok(settings.iter().map(of).collect())
    }

    /// Gains in score of each of `settings` over `base`, on the first `seeds` of the screening seeds.
    pub(super) fn screen(
        &mut self,
        base: &[SettingChoice],
        settings: &[Vec<SettingChoice>],
        seeds: u64,
        parts: u64,
    ) -> Result<Vec<f64>, String> {
        let mut all = vec![base.to_vec()];
        all.extend_from_slice(settings);
        let figures = self.figures(&all, 0..seeds, parts)?;
        let (base, others) = figures.split_first().expect("the base is the first");
        // Limits are kept on the mean over the seeds, not by each.
        let score = |runs: &Vec<TuneFigures>| self.goal.score(&TuneFigures::mean(runs));
        let before = score(base);
        Ok(others.iter().map(|runs| score(runs) - before).collect())
    }
}

/// Settings with one of them replaced or added.
pub(super) fn with(choices: &[SettingChoice], choice: SettingChoice) -> Vec<SettingChoice> {
    let mut changed: Vec<SettingChoice> =
        choices.iter().copied().filter(|one| one.knob != choice.knob).collect();
    changed.push(choice);
    changed.sort_unstable();
    changed
}

pub(super) fn without(choices: &[SettingChoice], knob: usize) -> Vec<SettingChoice> {
    choices.iter().copied().filter(|one| one.knob != knob).collect()
}

/// The scheduler that is not among the candidates, because the system has it. Unknown where more than one is missing.
fn scheduler_now(candidates: &[SettingChoice]) -> Option<&'static str> {
    let knob = KNOBS.iter().position(|knob| knob.name == SCHEDULER)?;
    let is_candidate = |value: &usize| candidates.contains(&SettingChoice { knob, value: *value });
    let mut missing = (0..KNOBS[knob].values.len()).filter(|value| !is_candidate(value));
    let now = missing.next().map(|value| KNOBS[knob].values[value]);
    now.filter(|_| missing.next().is_none())
}

/// The candidates with their gains, the largest gain first.
pub(super) fn by_gain<T: Copy>(candidates: &[T], gains: Vec<f64>) -> Vec<(T, f64)> {
    let mut sorted: Vec<(T, f64)> = candidates.iter().copied().zip(gains).collect();
    sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
    sorted
}

/// Searches among `candidates`, the values that the system can take and does not have. Seeds are `seed` and those after it.
///
/// *Errors:* the first run that fails.
pub fn search<'a>(
    goal: &TuneGoal,
    candidates: &[SettingChoice],
    seed: u64,
    run: &'a mut RunTuneTrials<'a>,
) -> Result<TuneOutcome, String> {
    let scheduler_now = scheduler_now(candidates);
    let (goal, known) = (goal.clone(), BTreeMap::new());
    let mut search = SettingSearch { goal, run, seed, runs: 0, parts: 0, scheduler_now, known };
    let best = search.best(candidates)?;
    let best = search.best_with_single_steps(best, candidates)?;
    search.judge(best, candidates)
}

#[cfg(test)]
mod tests {
    use super::super::goal::TuneBound;
    use super::*;

    fn goal() -> TuneGoal {
        TuneGoal { metric: TuneMetric::Iops, bounds: Vec::new(), job: None }
    }

    /// All values of some knobs but the first of each.
    fn candidates(knobs: &[usize]) -> Vec<SettingChoice> {
        let mut all = Vec::new();
        for knob in knobs {
            all.extend((1..KNOBS[*knob].values.len()).map(|value| SettingChoice { knob: *knob, value }));
        }
        all
    }

    /// A number from 0 to 1 that depends on all of these. *Source:* G. Steele and others, SplitMix64 (2014).
    fn drawn(numbers: impl IntoIterator<Item = u64>) -> f64 {
        let mix = |state: u64, number: u64| {
            let mut mixed = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        (numbers.into_iter().fold(0, mix) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Searches a made-up system by its effect on the logarithm of the rate. Noise of 0.2 is the same for all settings of a seed, and `noise` is
    /// each run's own.
    fn outcome_with(
        seed: u64,
        effect: fn(&[SettingChoice]) -> f64,
        knobs: &[usize],
        noise: f64,
    ) -> TuneOutcome {
        let mut run = |trials: &[TuneTrial]| {
            let one = |trial: &TuneTrial| {
                let choices =
                    trial.choices.iter().flat_map(|choice| [choice.knob as u64, choice.value as u64]);
                let own = drawn([trial.seed, trial.parts].into_iter().chain(choices)) - 0.5;
                let shared = drawn([trial.seed]) - 0.5;
                let rate = 100.0 * (effect(&trial.choices) + 0.2 * shared + noise * own).exp();
                TuneFigures::for_test(rate, 1000.0 / rate)
            };
            Ok(trials.iter().map(one).collect())
        };
        search(&goal(), &candidates(knobs), seed, &mut run).expect("no run fails")
    }

    fn outcome(effect: fn(&[SettingChoice]) -> f64, knobs: &[usize], noise: f64) -> TuneOutcome {
        outcome_with(5, effect, knobs, noise)
    }

    fn chosen(outcome: &TuneOutcome) -> Vec<(usize, usize)> {
        let mut all: Vec<_> = outcome.advised.iter().map(|one| (one.choice.knob, one.choice.value)).collect();
        all.sort_unstable();
        all
    }

    fn value_of(choices: &[SettingChoice], knob: usize) -> usize {
        choices.iter().find(|choice| choice.knob == knob).map_or(0, |choice| choice.value)
    }

    #[test]
    fn best_values_of_independent_knobs_are_found_in_an_eighth_of_the_runs() {
        let effect = |choices: &[SettingChoice]| {
            let depth = [0.0, 0.05, 0.1, 0.2, 0.15, 0.1][value_of(choices, 1)];
            let requests = [0.0, 0.0, 0.03, 0.0, 0.0, 0.0][value_of(choices, 2)];
            depth + requests - 0.01 * value_of(choices, 0) as f64
        };
        let outcome = outcome(effect, &[0, 1, 2, 4], 0.004);
        assert_eq!(chosen(&outcome), [(1, 3), (2, 2)]);
        assert!((outcome.whole.log - 0.23).abs() < 0.01, "{:?}", outcome.whole);
        assert!((outcome.advised[0].gain.log - 0.2).abs() < 0.01);
        assert_eq!(outcome.combinations, 576.0);
        assert!(outcome.whole_runs < outcome.combinations / 8.0, "{}", outcome.whole_runs);
    }

    #[test]
    fn advice_from_chance_alone_is_as_rare_as_the_confidence_says() {
        assert_eq!(chosen(&outcome(|_| 0.0, &[0, 1, 2], 0.0)), []);
        let is_advised = |seed: &u64| !outcome_with(1000 * seed, |_| 0.0, &[0, 1, 2], 0.1).advised.is_empty();
        let wrong = (0..400).filter(is_advised).count();
        // Half of the 5 % are losses, which are not advised; three standard deviations of 400 draws are 2.3 points.
        assert!(wrong <= 20, "{wrong} of 400");
    }

    #[test]
    fn gain_that_another_setting_makes_superfluous_is_dropped() {
        // Either of the two helps; both together help no more.
        let effect = |choices: &[SettingChoice]| {
            f64::from(u8::from(value_of(choices, 1) == 2 || value_of(choices, 2) == 1)) * 0.3
        };
        let outcome = outcome(effect, &[1, 2], 0.003);
        assert_eq!(outcome.advised.len(), 1, "{:?}", outcome.advised);
    }

    #[test]
    fn settings_that_are_better_only_together_are_found() {
        // With large read-ahead bfq helps a little, and the present scheduler with another queue depth a lot.
        let effect = |choices: &[SettingChoice]| {
            let (is_large, is_bfq) = (value_of(choices, 3) == 4, value_of(choices, 0) == 2);
            let is_shallow = value_of(choices, 1) == 1;
            f64::from(u8::from(is_large))
                + 0.07 * f64::from(u8::from(is_bfq))
                + 0.3 * f64::from(u8::from(is_large && is_shallow && value_of(choices, 0) == 0))
        };
        assert_eq!(chosen(&outcome(effect, &[0, 1, 3], 0.003)), [(1, 1), (3, 4)]);
    }

    #[test]
    fn parameter_of_a_scheduler_is_tried_with_the_scheduler_that_was_chosen() {
        // bfq helps, and without idling more.
        let effect = |choices: &[SettingChoice]| {
            let is_bfq = value_of(choices, 0) == 2;
            if is_bfq { 0.2 + 0.1 * f64::from(u8::from(value_of(choices, 7) == 1)) } else { 0.0 }
        };
        assert_eq!(chosen(&outcome(effect, &[0, 5, 7], 0.003)), [(0, 2), (7, 1)]);
    }

    #[test]
    fn setting_that_breaks_a_kept_limit_is_not_advised() {
        // A queue of 4 is faster than one of 2, and too late.
        let mut run = |trials: &[TuneTrial]| {
            let one = |trial: &TuneTrial| {
                let (rate, p99) =
                    [(100.0, 90.0), (110.0, 95.0), (200.0, 105.0)][value_of(&trial.choices, 1).min(2)];
                let noise = 1.0 + 0.001 * drawn([trial.seed, trial.parts]);
                TuneFigures::for_test(rate * noise, p99 * noise)
            };
            Ok(trials.iter().map(one).collect())
        };
        let bounds = vec![TuneBound::new(TuneMetric::P99, 100.0)];
        let goal = TuneGoal { bounds, ..goal() };
        let found = |candidates: &[SettingChoice], run: &mut RunTuneTrials<'_>| {
            let outcome = search(&goal, candidates, 1, run).expect("no run fails");
            assert!(goal.is_kept_by(&outcome.after), "{outcome:?}");
            chosen(&outcome)
        };
        let depths = [1, 2].map(|value| SettingChoice { knob: 1, value });
        assert_eq!(found(&depths, &mut run), [(1, 1)]);
        assert_eq!(found(&depths[1..], &mut run), []);
    }

    #[test]
    fn setting_that_starves_a_job_with_a_limit_is_not_advised() {
        // The fastest value leaves the batch nothing, the next one little, the third one enough.
        let mut run = |trials: &[TuneTrial]| {
            let one = |trial: &TuneTrial| {
                let value = value_of(&trial.choices, 1);
                let rate =
                    [100.0, 300.0, 200.0, 150.0][value] * (1.0 + 0.001 * drawn([trial.seed, trial.parts]));
                let figures = TuneFigures::for_test(rate, 10.0);
                let batch = [20.0, 0.0, 4.0, 8.0][value];
                if batch > 0.0 { figures.with_job_for_test("batch", batch) } else { figures }
            };
            Ok(trials.iter().map(one).collect())
        };
        let choices: Vec<SettingChoice> = (1..4).map(|value| SettingChoice { knob: 1, value }).collect();
        let mut advised = |bounds: &[&str]| {
            let bounds = bounds.iter().map(|bound| bound.parse().expect("it is a limit")).collect();
            let goal = TuneGoal { bounds, ..goal() };
            chosen(&search(&goal, &choices, 1, &mut run).expect("no run fails"))
        };
        assert_eq!(advised(&[]), [(1, 1)]);
        assert_eq!(advised(&["batch.iops>5"]), [(1, 3)]);
        assert_eq!(advised(&["batch.iops>3"]), [(1, 2)]);
    }

    #[test]
    fn failed_run_ends_the_search_with_its_error() {
        let mut run = |_: &[TuneTrial]| Err("disk1: no such volume".to_string());
        let goal = goal();
        let found = search(&goal, &candidates(&[0]), 1, &mut run);
        assert_eq!(found, Err("disk1: no such volume".to_string()));
    }

    #[test]
    fn interval_of_a_gain_is_students() {
        let gain = Gain::from_logs(&[0.04, 0.05, 0.06], 0.95);
        assert!((gain.log - 0.05).abs() < 1e-12);
        assert!((gain.half_width - 4.303 * 0.01 / 3f64.sqrt()).abs() < 1e-5, "{gain:?}");
        assert!(gain.is_real() && !gain.is_loss());
        let rounded = |metric| gain.change_percent(metric).map(|percent| (10.0 * percent).round() / 10.0);
        assert_eq!(rounded(TuneMetric::Iops), [5.1, 2.5, 7.8]);
        assert_eq!(rounded(TuneMetric::P99), [-4.9, -7.2, -2.5]);
    }
}
