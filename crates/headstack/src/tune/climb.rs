//! The first step of the search: passes over all values on short runs, then pairs of changes where no single change is better.
//!
//! A pass changes one setting at a time, so it misses changes that help only together: another scheduler may be better only with another
//! queue depth. The search therefore also tries each other scheduler together with each change of another setting.
//!
//! Short runs mislead where a setting needs long to show its effect: programs with a large read-ahead wait long for their first data. Each
//! single change therefore also runs at full length in the end, so that no advice is worse than one of them, and the climb begins again from the
//! best of them.

use super::knobs::{KNOBS, LEAST_GAIN, SCHEDULER};
use super::search::{SCREENING_SEEDS, SettingChoice, SettingSearch, TuneTrial, by_gain, with, without};
use std::collections::BTreeSet;

/// Passes of a climb over all values. Each further one costs about seven whole runs.
const PASSES_MAX: usize = 3;
/// The length of the runs of a pass and of pairs.
const SHORT: u64 = TuneTrial::WHOLE / 4;
/// Pairs of changes that run again for longer, the best first.
const PAIRS_CONFIRMED: usize = 2;
/// Settings from whose best single change the climb begins again.
const STARTS: usize = 2;
/// Single changes that run again on all seeds at full length, the best first.
const SINGLES_CONFIRMED: usize = 3;
/// A gain on a short run below which a pair is not followed: a logarithm, about 2 %.
const PAIR_GAIN: f64 = 0.02;

impl SettingSearch<'_> {
    /// The best settings that the search finds, on the seeds of the screening.
    pub(super) fn best(&mut self, candidates: &[SettingChoice]) -> Result<Vec<SettingChoice>, String> {
        if self.goal.bounds.is_empty() {
            return self.climb_with_pairs(Vec::new(), candidates);
        }
        // Two settings may keep a limit together that each of them breaks alone: so the search also starts from what is best without limits.
        // That itself is a finalist, because a limit that a short run breaks may be kept by a whole one.
        let limited = self.climb(Vec::new(), candidates)?;
        let bounds = std::mem::take(&mut self.goal.bounds);
        let free = self.climb_with_pairs(Vec::new(), candidates);
        self.goal.bounds = bounds;
        let free = free?;
        let adapted = self.climb(free.clone(), candidates)?;
        self.best_of_whole_runs(limited, &[adapted, free])
    }

    /// The best of these settings by whole runs; `first` unless another gains more than [`LEAST_GAIN`].
    fn best_of_whole_runs(
        &mut self,
        first: Vec<SettingChoice>,
        others: &[Vec<SettingChoice>],
    ) -> Result<Vec<SettingChoice>, String> {
        if others.is_empty() {
            return Ok(first);
        }
        let gains = self.screen(&first, others, SCREENING_SEEDS, TuneTrial::WHOLE)?;
        let best = others.iter().zip(gains).max_by(|(_, one), (_, other)| one.total_cmp(other));
        Ok(best.filter(|(_, gain)| *gain > LEAST_GAIN).map_or(first, |(other, _)| other.clone()))
    }

    /// The best, by whole runs, of these settings, each single change of the present system, and what climbs find from the best changes of two
    /// settings: one may lead to what no path over a better first change reaches.
    pub(super) fn best_with_single_steps(
        &mut self,
        best: Vec<SettingChoice>,
        candidates: &[SettingChoice],
    ) -> Result<Vec<SettingChoice>, String> {
        let mut steps = candidates.to_vec();
        steps.retain(|choice| self.is_active(&[], &SettingChange { knob: choice.knob, to: Some(*choice) }));
        let settings: Vec<Vec<SettingChoice>> = steps.iter().map(|choice| vec![*choice]).collect();
        let gains = by_gain(&steps, self.screen(&[], &settings, 1, TuneTrial::WHOLE)?);
        let is_worth = |choice: &SettingChoice, gain: f64| gain > KNOBS[choice.knob].least_gain();
        let mut starts: Vec<SettingChoice> = Vec::new();
        for (choice, gain) in &gains {
            if is_worth(choice, *gain) && starts.iter().all(|start| start.knob != choice.knob) {
                starts.push(*choice);
            }
        }
        let mut others = Vec::new();
        for start in starts.into_iter().take(STARTS).filter(|start| !best.contains(start)) {
            others.push(self.climb(vec![start], candidates)?);
        }
        let of_best = self.screen(&[], std::slice::from_ref(&best), 1, TuneTrial::WHOLE)?[0];
        let better = gains.into_iter().filter(|(choice, gain)| is_worth(choice, gain - of_best));
        others.extend(better.take(SINGLES_CONFIRMED).map(|(choice, _)| vec![choice]));
        self.best_of_whole_runs(best, &others)
    }

    /// Climbs; where a pair of changes is better than the result, climbs again from there.
    fn climb_with_pairs(
        &mut self,
        start: Vec<SettingChoice>,
        candidates: &[SettingChoice],
    ) -> Result<Vec<SettingChoice>, String> {
        let best = self.climb(start, candidates)?;
        match self.better_pair(&best, candidates)? {
            Some(better) => self.climb(better, candidates),
            None => Ok(best),
        }
    }

    /// Repeats passes over all values until one changes nothing. A later pass finds values that became better by earlier choices, and
    /// parameters of a scheduler that an earlier pass chose.
    fn climb(
        &mut self,
        start: Vec<SettingChoice>,
        candidates: &[SettingChoice],
    ) -> Result<Vec<SettingChoice>, String> {
        let mut best = start;
        for _ in 0..PASSES_MAX {
            let before = best.clone();
            best = self.pass(best, candidates)?;
            if best == before {
                break;
            }
        }
        Ok(best)
    }

    /// Tries each change to the settings chosen so far. Then adds the best change of each knob, largest gain first, where it improves the
    /// score.
    fn pass(
        &mut self,
        mut best: Vec<SettingChoice>,
        candidates: &[SettingChoice],
    ) -> Result<Vec<SettingChoice>, String> {
        let mut tried = Vec::new();
        for (change, gain) in self.ranked_by_halves(&best, candidates)? {
            if gain > LEAST_GAIN && !tried.contains(&change.knob) && self.is_active(&best, &change) {
                tried.push(change.knob);
                let with_change = self.changed(&best, change);
                if self.improves(&best, &with_change)? {
                    best = with_change;
                }
            }
        }
        Ok(best)
    }

    /// The better half of the changes with their gains, the best first: all run on one seed, the better half on all (successive halving).
    fn ranked_by_halves(
        &mut self,
        best: &[SettingChoice],
        candidates: &[SettingChoice],
    ) -> Result<Vec<(SettingChange, f64)>, String> {
        let first = self.ranked(best, candidates)?;
        let half: Vec<SettingChange> =
            first.iter().take(first.len().div_ceil(2)).map(|(change, _)| *change).collect();
        let settings: Vec<Vec<SettingChoice>> =
            half.iter().map(|change| self.changed(best, *change)).collect();
        let gains = self.screen(best, &settings, SCREENING_SEEDS, SHORT)?;
        Ok(by_gain(&half, gains))
    }

    /// All changes that can have an effect with these settings, with their gains on one seed, the best first.
    fn ranked(
        &mut self,
        best: &[SettingChoice],
        candidates: &[SettingChoice],
    ) -> Result<Vec<(SettingChange, f64)>, String> {
        let mut tried = changes(best, candidates);
        tried.retain(|change| self.is_active(best, change));
        let settings: Vec<Vec<SettingChoice>> =
            tried.iter().map(|change| self.changed(best, *change)).collect();
        let gains = self.screen(best, &settings, 1, SHORT)?;
        Ok(by_gain(&tried, gains))
    }

    fn improves(&mut self, best: &[SettingChoice], other: &[SettingChoice]) -> Result<bool, String> {
        let gains = self.screen(best, &[other.to_vec()], SCREENING_SEEDS, TuneTrial::WHOLE / 2)?;
        Ok(gains[0] > LEAST_GAIN)
    }

    /// Another scheduler with one other change, if both together are better than these settings, which no single change improves.
    fn better_pair(
        &mut self,
        best: &[SettingChoice],
        candidates: &[SettingChoice],
    ) -> Result<Option<Vec<SettingChoice>>, String> {
        let pairs = self.pairs(best, candidates);
        let gains = self.screen(best, &pairs, 1, SHORT)?;
        let places: Vec<usize> = (0..pairs.len()).collect();
        for (index, gain) in by_gain(&places, gains).into_iter().take(PAIRS_CONFIRMED) {
            if gain > PAIR_GAIN && self.improves(best, &pairs[index])? {
                return Ok(Some(pairs[index].clone()));
            }
        }
        Ok(None)
    }

    /// Settings with another scheduler and each other change.
    fn pairs(&self, best: &[SettingChoice], candidates: &[SettingChoice]) -> Vec<Vec<SettingChoice>> {
        let mut pairs = BTreeSet::new();
        for scheduler in changes(best, candidates).into_iter().filter(|change| is_scheduler(change.knob)) {
            let with_scheduler = self.changed(best, scheduler);
            for other in changes(&with_scheduler, candidates) {
                if !is_scheduler(other.knob) && self.is_active(&with_scheduler, &other) {
                    pairs.insert(self.changed(&with_scheduler, other));
                }
            }
        }
        pairs.into_iter().collect()
    }

    /// The settings with a change, without the parameters of a scheduler that they no longer have.
    fn changed(&self, best: &[SettingChoice], change: SettingChange) -> Vec<SettingChoice> {
        let mut changed = without(best, change.knob);
        if let Some(choice) = change.to {
            changed = with(&changed, choice);
        }
        let all = changed.clone();
        changed.retain(|choice| self.is_active(&all, &SettingChange { knob: choice.knob, to: None }));
        changed
    }

    /// Whether a change can have an effect with these settings: a parameter of one scheduler has none while another is set.
    fn is_active(&self, choices: &[SettingChoice], change: &SettingChange) -> bool {
        let chosen = choices.iter().find(|one| is_scheduler(one.knob));
        let scheduler = chosen.map(SettingChoice::text).or(self.scheduler_now);
        KNOBS[change.knob].scheduler.is_none_or(|wanted| scheduler.is_none_or(|name| name == wanted))
    }
}

/// A change of one setting: to a value, or back to that of the system.
#[derive(Clone, Copy)]
struct SettingChange {
    knob: usize,
    to: Option<SettingChoice>,
}

/// All changes of these settings: to each other value, and back to that of the system.
fn changes(best: &[SettingChoice], candidates: &[SettingChoice]) -> Vec<SettingChange> {
    let others = candidates.iter().filter(|choice| !best.contains(choice));
    let others = others.map(|choice| SettingChange { knob: choice.knob, to: Some(*choice) });
    others.chain(best.iter().map(|choice| SettingChange { knob: choice.knob, to: None })).collect()
}

fn is_scheduler(knob: usize) -> bool {
    KNOBS[knob].name == SCHEDULER
}
