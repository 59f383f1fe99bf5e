//! The last step of the search: tests the chosen settings on seeds that were not used to choose them.

use super::goal::{TuneFigures, log_gain};
use super::knobs::{KNOBS, LEAST_GAIN};
use super::search::{
    AdvisedSetting, CONFIDENCE, FINAL_SEEDS, Gain, SCREENING_SEEDS, SettingChoice, SettingSearch,
    TuneOutcome, TuneTrial, by_gain, with, without,
};

/// Number of final seeds after which a setting without a gain is dropped.
const FIRST_FINAL_SEEDS: u64 = 3;

impl SettingSearch<'_> {
    /// Compares the chosen settings with the present system, and with the same settings less each one, on seeds that were not used to choose them.
    /// Drops a setting whose removal loses no more than chance explains.
    pub(super) fn judge(
        &mut self,
        best: Vec<SettingChoice>,
        candidates: &[SettingChoice],
    ) -> Result<TuneOutcome, String> {
        let first = SCREENING_SEEDS;
        let (mut best, mut refused) = (best, Vec::new());
        loop {
            if let Some(index) = self.superfluous(&best)? {
                best.remove(index);
                continue;
            }
            let mut finalists = vec![Vec::new(), best.clone()];
            finalists.extend(best.iter().map(|choice| without(&best, choice.knob)));
            let figures = self.figures(&finalists, first..first + FINAL_SEEDS, TuneTrial::WHOLE)?;
            let comparisons = best.len() + 1;
            let confidence = 1.0 - (1.0 - CONFIDENCE) / comparisons as f64;
            let over = |runs: &[TuneFigures], gain: &dyn Fn(&TuneFigures, &TuneFigures) -> f64| {
                let pairs = runs.iter().zip(&figures[1]);
                Gain::from_logs(
                    &pairs.map(|(before, after)| gain(before, after)).collect::<Vec<_>>(),
                    confidence,
                )
            };
            let score =
                |before: &TuneFigures, after: &TuneFigures| self.goal.score(after) - self.goal.score(before);
            let of_goal =
                |before: &TuneFigures, after: &TuneFigures| log_gain(self.goal.metric, before, after);
            let scores: Vec<Gain> = figures[2..].iter().map(|runs| over(runs, &score)).collect();
            let least = (0..best.len())
                .filter(|index| !scores[*index].exceeds(KNOBS[best[*index].knob].least_gain()))
                .min_by(|one, other| scores[*one].log.total_cmp(&scores[*other].log));
            // A limit that the system keeps is not given up: the setting without which it is exceeded least goes.
            let excess = |runs: &Vec<TuneFigures>| self.goal.excess(&TuneFigures::mean(runs));
            let breaks_limit = excess(&figures[0]) == 0.0 && excess(&figures[1]) > 0.0;
            let breaker = (0..best.len())
                .filter(|_| breaks_limit)
                .min_by(|one, other| excess(&figures[2 + one]).total_cmp(&excess(&figures[2 + other])));
            if let Some(index) = breaker.or(least) {
                let dropped = best.remove(index);
                if breaker.is_some() {
                    refused.push(dropped);
                    best = self.with_other_value(best, dropped.knob, candidates, &refused)?;
                }
                continue;
            }
            let one = |(choice, runs): (&SettingChoice, &Vec<TuneFigures>)| AdvisedSetting {
                choice: *choice,
                gain: over(runs, &of_goal),
            };
            let mut advised: Vec<AdvisedSetting> = best.iter().zip(&figures[2..]).map(one).collect();
            advised.sort_by(|one, other| other.gain.log.total_cmp(&one.gain.log));
            let whole = over(&figures[0], &of_goal);
            return Ok(self.outcome(advised, whole, &figures, candidates));
        }
    }

    /// Index of the setting whose gain is smallest on the first final seeds, if it is too small to be worth a change; the other seeds need not run
    /// with it then. With limits all seeds decide, because a setting that violates one is replaced, not dropped.
    fn superfluous(&mut self, best: &[SettingChoice]) -> Result<Option<usize>, String> {
        if best.is_empty() || !self.goal.bounds.is_empty() {
            return Ok(None);
        }
        let mut settings = vec![best.to_vec()];
        settings.extend(best.iter().map(|choice| without(best, choice.knob)));
        let seeds = SCREENING_SEEDS..SCREENING_SEEDS + FIRST_FINAL_SEEDS;
        let figures = self.figures(&settings, seeds, TuneTrial::WHOLE)?;
        let score = |runs: &Vec<TuneFigures>| self.goal.score(&TuneFigures::mean(runs));
        let whole = score(&figures[0]);
        let gains = figures[1..].iter().map(|runs| whole - score(runs)).enumerate();
        let least = gains.min_by(|(_, one), (_, other)| one.total_cmp(other));
        Ok(least.filter(|(_, gain)| *gain < LEAST_GAIN).map(|(index, _)| index))
    }

    /// Adds the best other value of a knob whose value broke a limit, if it improves the score: a smaller value may keep the limit.
    fn with_other_value(
        &mut self,
        best: Vec<SettingChoice>,
        knob: usize,
        candidates: &[SettingChoice],
        refused: &[SettingChoice],
    ) -> Result<Vec<SettingChoice>, String> {
        let is_left = |choice: &SettingChoice| choice.knob == knob && !refused.contains(choice);
        let left: Vec<SettingChoice> = candidates.iter().copied().filter(is_left).collect();
        let settings: Vec<Vec<SettingChoice>> = left.iter().map(|choice| with(&best, *choice)).collect();
        // Whole runs, because the value was refused for what short ones did not show.
        let gains = self.screen(&best, &settings, SCREENING_SEEDS, TuneTrial::WHOLE)?;
        Ok(match by_gain(&left, gains).first() {
            Some((choice, gain)) if *gain > LEAST_GAIN => with(&best, *choice),
            _ => best,
        })
    }

    fn outcome(
        &self,
        advised: Vec<AdvisedSetting>,
        whole: Gain,
        figures: &[Vec<TuneFigures>],
        candidates: &[SettingChoice],
    ) -> TuneOutcome {
        let (before, after) = (&figures[0], &figures[1]);
        let of_metric = |metric| {
            let pairs = before.iter().zip(after);
            let logs: Vec<f64> = pairs.map(|(before, after)| log_gain(metric, before, after)).collect();
            (metric, Gain::from_logs(&logs, CONFIDENCE))
        };
        let of_knob = |knob: usize| 1 + candidates.iter().filter(|choice| choice.knob == knob).count();
        TuneOutcome {
            advised,
            whole,
            by_metric: self.goal.metrics().iter().copied().map(of_metric).collect(),
            before: TuneFigures::mean(before),
            after: TuneFigures::mean(after),
            runs: self.runs,
            whole_runs: self.parts as f64 / TuneTrial::WHOLE as f64,
            combinations: (0..KNOBS.len()).map(|knob| of_knob(knob) as f64).product(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::goal::{TuneBound, TuneGoal, TuneMetric};
    use super::super::search::search;
    use super::*;

    #[test]
    fn smaller_value_is_advised_where_a_larger_one_breaks_the_limit_in_whole_runs() {
        // Only whole runs are long enough to show the late requests of the largest value.
        let mut run = |trials: &[TuneTrial]| {
            let one = |trial: &TuneTrial| {
                let value = trial.choices.first().map_or(0, |choice| choice.value);
                let late = if trial.parts == TuneTrial::WHOLE { 120.0 } else { 80.0 };
                let noise = 1.0 + 0.001 * (trial.seed % 3) as f64;
                let (rate, p99) = [(100.0, 50.0), (150.0, 60.0), (170.0, 70.0), (200.0, late)][value];
                TuneFigures::for_test(rate * noise, p99)
            };
            Ok(trials.iter().map(one).collect())
        };
        let bounds = vec![TuneBound::new(TuneMetric::P99, 100.0)];
        let goal = TuneGoal { metric: TuneMetric::Iops, bounds, job: None };
        let candidates: Vec<SettingChoice> = (1..4).map(|value| SettingChoice { knob: 1, value }).collect();
        let outcome = search(&goal, &candidates, 1, &mut run).expect("no run fails");
        let advised: Vec<SettingChoice> = outcome.advised.iter().map(|one| one.choice).collect();
        assert_eq!(advised, [SettingChoice { knob: 1, value: 2 }], "{outcome:?}");
        assert!(goal.is_kept_by(&outcome.after));
    }
}
