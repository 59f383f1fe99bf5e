//! Numbers of cells as runs with a step: a part has every n-th cell, so that a file needs few.

use crate::settings::CELLS_MAX;

/// Numbers from `first` on, `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellRun {
    first: usize,
    step: usize,
    count: usize,
}

/// The runs of rising numbers.
pub(crate) fn runs(cells: &[usize]) -> Vec<CellRun> {
    let mut found: Vec<CellRun> = Vec::new();
    for cell in cells.iter().copied() {
        match found.last_mut() {
            Some(run) if run.count == 1 && cell > run.first => {
                (run.step, run.count) = (cell - run.first, 2);
            }
            Some(run) if run.count > 1 && cell == run.first + run.step * run.count => run.count += 1,
            _ => found.push(CellRun { first: cell, step: 1, count: 1 }),
        }
    }
    found
}

/// The runs as text: `FIRST+STEPxCOUNT`, separated by commas.
pub(crate) fn text_of_runs(runs: &[CellRun]) -> String {
    let one = |run: &CellRun| format!("{}+{}x{}", run.first, run.step, run.count);
    runs.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The numbers of a text; none if it is not one of runs, or has more than any plan.
pub(crate) fn runs_of_text(text: &str) -> Option<Vec<usize>> {
    let mut cells = Vec::new();
    for run in text.split(',').filter(|run| !run.is_empty()) {
        let (first, rest) = run.split_once('+')?;
        let (step, count) = rest.split_once('x')?;
        let (first, step, count): (usize, usize, usize) =
            (first.parse().ok()?, step.parse().ok()?, count.parse().ok()?);
        if cells.len().checked_add(count)? > CELLS_MAX {
            return None;
        }
        first.checked_add(step.checked_mul(count)?)?;
        cells.extend((0..count).map(|index| first + index * step));
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_read_back_as_they_were_written() {
        for cells in [vec![], vec![7], vec![3, 19, 35, 51], vec![0, 1, 2, 9, 10, 4, 5], vec![5, 9, 10, 11]] {
            let text = text_of_runs(&runs(&cells));
            assert_eq!(runs_of_text(&text), Some(cells), "{text}");
        }
        assert_eq!(text_of_runs(&runs(&[3, 19, 35, 51])), "3+16x4");
        for text in ["1", "1+2", "a+1x1", "0+1x99999999999", "1+18446744073709551615x2"] {
            assert_eq!(runs_of_text(text), None, "{text}");
        }
    }
}
