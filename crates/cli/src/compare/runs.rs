//! Runs the cells of a comparison on all cores.

use super::grid::Cell;
use super::{Figures, Ran};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::sim::Run;
use crate::sim::load::LoadArgs;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// What every cell runs.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) name: &'a str,
    pub(super) options: &'a LoadArgs,
    pub(super) seed: u64,
}

/// Runs all cells; what comes out is in their order, without those that were not done when `interrupt` stopped the rest.
///
/// *Errors:* that of the first cell in this order that fails.
pub(super) fn run_all(cells: Vec<Cell>, load: Load<'_>, interrupt: &Interrupt) -> Result<Vec<Ran>, Failure> {
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed}");
    let all = bars.add(ProgressBar::new(cells.len() as u64));
    all.set_style(style.expect("the template is well formed"));
    let one = |cell: &Cell| {
        let done = run(cell, load, interrupt, &bars);
        all.inc(1);
        done
    };
    let figures: Vec<Option<Result<Figures, Failure>>> = cells.par_iter().map(one).collect();
    all.finish_and_clear();
    let done = cells.into_iter().zip(figures).filter_map(|(cell, figures)| Some((cell, figures?)));
    done.map(|(cell, figures)| Ok(Ran { cell, figures: figures? })).collect()
}

/// Runs a cell; none where it is not done when it has to stop.
fn run(
    cell: &Cell,
    load: Load<'_>,
    interrupt: &Interrupt,
    bars: &MultiProgress,
) -> Option<Result<Figures, Failure>> {
    if interrupt.received().is_some() {
        return None;
    }
    let label = cell.label();
    let run = Run {
        rig: &cell.rig,
        rig_name: &cell.rig_name,
        load: load.name,
        load_options: load.options,
        seed: load.seed,
    };
    let mut progress = Progress::among(bars, &label);
    match run.simulate(interrupt, &mut progress, None) {
        Ok(outcome) if outcome.partial.is_some() => None,
        Ok(outcome) => Some(Ok(Figures::new(&outcome))),
        Err(failure) => Some(Err(failure.within(&label))),
    }
}
