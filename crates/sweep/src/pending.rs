//! Which cells still have to run: those without a row. Where settings are compared until the answer is clear, only those of them that the
//! rows so far leave undecided.

use crate::finished::FinishedCells;
use crate::plan::SweepPlan;
use headstack::PairedLooks;
use std::collections::BTreeMap;

/// Those of the given cells of the plan that are to run next; none once the sweep is complete.
///
/// With [`SweepPlan::until_clear`], the settings of each rig and load run in rounds of seeds, and a round begins when all rows of the
/// previous one are there. The result depends on the rows alone, so that any number of runs and workers make the same decisions.
pub(crate) fn pending(plan: &SweepPlan, cells: &[usize], finished: &FinishedCells) -> Vec<usize> {
    if plan.until_clear().is_none() {
        return without_row(cells.iter().copied(), finished);
    }
    let mut groups: BTreeMap<(usize, usize), BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for index in cells {
        let cell = plan.cell(*index);
        let group = groups.entry((cell.rig, cell.load)).or_default();
        group.entry(cell.settings).or_default().push(*index);
    }
    let looks = PairedLooks::new(plan.seeds());
    groups
        .into_values()
        .flat_map(|group| next_round(group.into_values().collect(), looks, finished))
        .collect()
}

fn without_row(cells: impl Iterator<Item = usize>, finished: &FinishedCells) -> Vec<usize> {
    cells.filter(|index| !finished.has(*index)).collect()
}

/// The cells to run next for one rig and load. `open` has the cells of each settings by seed; the first settings are the baseline.
fn next_round(mut open: Vec<Vec<usize>>, looks: PairedLooks, finished: &FinishedCells) -> Vec<usize> {
    // A run that failed has no figure, and its settings are not compared: all seeds of them run.
    let figures =
        |cells: &[usize]| -> Option<Vec<f64>> { cells.iter().map(|index| finished.figure(*index)).collect() };
    for count in looks.looks() {
        let until = |cells: &[usize]| cells.len().min(count as usize);
        let round = open.iter().flat_map(|cells| cells[..until(cells)].iter().copied());
        let missing = without_row(round, finished);
        if !missing.is_empty() {
            return missing;
        }
        let Some(baseline) = open.first().and_then(|cells| figures(&cells[..until(cells)])) else { continue };
        let mut is_baseline = true;
        open.retain(|cells| {
            let own = figures(&cells[..until(cells)]);
            std::mem::take(&mut is_baseline) || !own.is_some_and(|own| looks.is_clear(&own, &baseline))
        });
        if open.len() < 2 {
            break;
        }
    }
    Vec::new()
}
