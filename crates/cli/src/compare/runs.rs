//! Runs the cells of a comparison on all cores.

use super::figures::{Figures, Ran};
use super::grid::Cell;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::sim::Run;
use crate::sim::load::LoadArgs;
use indicatif::{MultiProgress, ProgressBar};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
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

/// A cell that did not run to its end.
pub(super) struct FailedCell {
    pub(super) label: String,
    pub(super) failure: Failure,
}

/// Runs all cells with every seed; returns those that ran and those that failed, both in their order, without those that `interrupt` prevented.
pub(super) fn run_all(
    cells: Vec<Cell>,
    load: Load<'_>,
    interrupt: &Interrupt,
) -> (Vec<Ran>, Vec<FailedCell>) {
    let (bars, seeds) = (MultiProgress::new(), load.seeds as usize);
    let style = crate::progress::style("{bar:30} {pos}/{len} runs, {elapsed}");
    let all = bars.add(ProgressBar::new((cells.len() * seeds) as u64).with_style(style));
    let one = |index: usize| {
        let seed = load.seed.wrapping_add((index % seeds) as u64);
        let done = run(&cells[index / seeds], load, seed, interrupt, &bars);
        all.inc(1);
        done
    };
    let mut done: Vec<Option<Result<Figures, Failure>>> =
        (0..cells.len() * seeds).into_par_iter().map(one).collect();
    all.finish_and_clear();
    let (mut ran, mut failed) = (Vec::new(), Vec::new());
    for cell in cells {
        let runs: Option<Result<Vec<_>, Failure>> = done.drain(..seeds).collect();
        match runs {
            Some(Ok(runs)) => ran.push(Ran { cell, runs }),
            Some(Err(failure)) => failed.push(FailedCell { label: cell.label(), failure }),
            None => {}
        }
    }
    (ran, failed)
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
    match run.simulate(interrupt, &mut progress, None) {
        Ok((_, Some(_))) => None,
        Ok((results, None)) => Some(Ok(Figures::new(&results))),
        Err(failure) => Some(Err(failure.within(&cell.label()))),
    }
}
