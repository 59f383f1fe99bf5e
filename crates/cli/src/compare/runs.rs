//! Runs the cells of a comparison on all cores.

use super::figures::{Figures, Metric, Ran};
use super::grid::{Cell, FailedCell};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::sim::Run;
use crate::sim::load::LoadArgs;
use headstack::PairedLooks;
use indicatif::{MultiProgress, ProgressBar};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) name: &'a str,
    pub(super) options: &'a LoadArgs,
    /// The first seed, and their number.
    pub(super) seed: u64,
    pub(super) seeds: u64,
    /// Output files, each with its option.
    pub(super) outputs: &'a [(&'a str, Option<&'a Path>)],
}

/// The outcomes of the cells.
#[derive(Default)]
pub(super) struct EndedCells {
    /// Those that ran, in their order.
    pub(super) ran: Vec<Ran>,
    /// Those that failed, in their order.
    pub(super) failed: Vec<FailedCell>,
}

/// A cell with its runs so far, or the first failure among them; none once a run was interrupted.
struct RepeatedCell {
    cell: Cell,
    runs: Option<Result<Vec<Figures>, Failure>>,
    is_clear: bool,
}

/// Runs all cells with every seed, until `interrupt` stops them. With `stop`, which also has the index of the baseline, the seeds run in
/// rounds. After a round, a cell whose difference from the baseline is clear gets no more seeds.
pub(super) fn run_all(
    cells: Vec<Cell>,
    load: Load<'_>,
    stop: Option<(UntilClear, usize)>,
    interrupt: &Interrupt,
) -> EndedCells {
    let bars = MultiProgress::new();
    let style = crate::progress::style("{bar:30} {pos}/{len} runs, {elapsed}");
    let all = bars.add(ProgressBar::new(cells.len() as u64 * load.seeds).with_style(style));
    let start = |cell| RepeatedCell { cell, runs: Some(Ok(Vec::new())), is_clear: false };
    let mut repeated: Vec<RepeatedCell> = cells.into_iter().map(start).collect();
    let mut first = 0;
    let looks = PairedLooks::new(load.seeds);
    for end in stop.map_or(vec![load.seeds], |_| looks.looks()) {
        let wanted: Vec<(usize, u64)> = (0..repeated.len())
            .filter(|index| !repeated[*index].is_clear && matches!(repeated[*index].runs, Some(Ok(_))))
            .flat_map(|index| (first..end).map(move |seed| (index, seed)))
            .collect();
        let one = |(index, seed): &(usize, u64)| {
            let done = run(&repeated[*index].cell, load, load.seed.wrapping_add(*seed), interrupt, &bars);
            all.inc(1);
            done
        };
        let done: Vec<Option<Result<Figures, Failure>>> = wanted.par_iter().map(one).collect();
        for ((index, _), done) in wanted.into_iter().zip(done) {
            repeated[index].add(done);
        }
        if let Some((stop, baseline)) = &stop {
            stop.mark_clear(&mut repeated, *baseline, looks);
        }
        first = end;
    }
    all.finish_and_clear();
    let mut ended = EndedCells::default();
    for RepeatedCell { cell, runs, .. } in repeated {
        match runs {
            Some(Ok(runs)) => ended.ran.push(Ran { cell, runs }),
            Some(Err(failure)) => ended.failed.push(FailedCell { label: cell.label(), failure }),
            None => {}
        }
    }
    ended
}

impl RepeatedCell {
    /// Adds the outcome of a run. After a failure or an interruption, ignores further outcomes.
    fn add(&mut self, done: Option<Result<Figures, Failure>>) {
        self.runs = match (self.runs.take(), done) {
            (Some(Ok(mut runs)), Some(Ok(figures))) => {
                runs.push(figures);
                Some(Ok(runs))
            }
            (Some(Ok(_)), done) => done.map(|done| done.map(|_| Vec::new())),
            (ended, _) => ended,
        };
    }

    fn values(&self, metric: Metric) -> Option<Vec<f64>> {
        let runs = self.runs.as_ref()?.as_ref().ok()?;
        Some(runs.iter().map(|run| run.value(metric)).collect())
    }
}

/// The rule for an early stop: a cell needs no more seeds once its difference from the baseline in this metric exceeds chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UntilClear(pub(super) Metric);

impl UntilClear {
    /// Marks the cells whose difference from the baseline is clear, and the baseline once all others are.
    fn mark_clear(self, repeated: &mut [RepeatedCell], baseline: usize, looks: PairedLooks) {
        let Some(base) = repeated.get(baseline).and_then(|base| base.values(self.0)) else { return };
        for cell in repeated.iter_mut().filter(|cell| !cell.is_clear) {
            let Some(values) = cell.values(self.0) else { continue };
            cell.is_clear = looks.is_clear(&values, &base);
        }
        repeated[baseline].is_clear = false;
        let is_over = |(index, cell): (usize, &RepeatedCell)| index == baseline || cell.is_clear;
        repeated[baseline].is_clear = repeated.iter().enumerate().all(is_over);
    }
}

/// Runs a cell with a seed; none if interrupted.
fn run(
    cell: &Cell,
    load: Load<'_>,
    seed: u64,
    interrupt: &Interrupt,
    bars: &MultiProgress,
) -> Option<Result<Figures, Failure>> {
    if interrupt.received().is_some() {
        return None;
    }
    let label = match load.seeds {
        1 => cell.label(),
        _ => format!("{}, seed {seed}", cell.label()),
    };
    let run = Run {
        rig: &cell.rig,
        rig_name: &cell.rig_name,
        load: load.name,
        load_options: load.options,
        seed,
        outputs: load.outputs,
    };
    let mut progress = Progress::among(bars, &label);
    let ended = catch_unwind(AssertUnwindSafe(|| run.simulate(interrupt, &mut progress, None)));
    match ended {
        Ok(Ok((_, Some(_)))) => None,
        Ok(Ok((results, None))) => Some(Ok(Figures::new(&results))),
        Ok(Err(failure)) => Some(Err(failure.within(&cell.label()))),
        // The message was printed on standard error already.
        Err(_) => {
            let label = cell.label();
            Some(Err(Failure::Input(format!(
                "{label}: the simulator panicked, which is a fault in it: please report it with the lines above"
            ))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::ran;
    use super::*;

    fn repeated(p99_ms: &[f64]) -> RepeatedCell {
        let Ran { cell, runs } = ran(&[], p99_ms);
        RepeatedCell { cell, runs: Some(Ok(runs)), is_clear: false }
    }

    #[test]
    fn cell_with_a_clear_difference_gets_no_more_seeds() {
        let (stop, looks) = (UntilClear(Metric::P99Ms), PairedLooks::new(20));
        let base = [10.0, 20.0, 40.0];
        let slower = [11.0, 21.01, 41.02];
        let similar = [10.2, 19.9, 40.1];
        let mut all = [&base, &slower, &similar].map(|values| repeated(values));
        stop.mark_clear(&mut all, 0, looks);
        assert_eq!(all.each_ref().map(|cell| cell.is_clear), [false, true, false]);
        let mut all = [&base, &slower].map(|values| repeated(values));
        stop.mark_clear(&mut all, 0, looks);
        assert_eq!(all.each_ref().map(|cell| cell.is_clear), [true, true], "nothing is left to compare");
    }

    #[test]
    fn first_failure_of_a_cell_stays_its_outcome() {
        let mut cell = repeated(&[10.0]);
        let figures = || ran(&[], &[1.0]).runs.swap_remove(0);
        cell.add(Some(Err(Failure::Input("no room".to_string()))));
        cell.add(Some(Ok(figures())));
        assert!(matches!(&cell.runs, Some(Err(failure)) if failure.to_string() == "no room"));
        let mut cell = repeated(&[10.0]);
        cell.add(None);
        cell.add(Some(Ok(figures())));
        assert!(cell.runs.is_none(), "an interrupted cell is not compared");
    }
}
