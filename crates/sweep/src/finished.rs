//! Which cells of a plan have rows.

use crate::row::SweepRow;
use crate::table::SweepTable;
use std::collections::BTreeMap;

/// The cells that have rows, by their numbers in the plan: a bit each, and what is needed to continue a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FinishedCells {
    done: Vec<u64>,
    pub(crate) errors: BTreeMap<usize, String>,
    /// Their figures in the column that decides when settings get no more seeds.
    figures: BTreeMap<usize, f64>,
}

impl FinishedCells {
    /// None of this number of cells.
    pub(crate) fn new(cells: usize) -> FinishedCells {
        FinishedCells { done: vec![0; cells.div_ceil(64)], ..FinishedCells::default() }
    }

    /// Adds cells with the table of their rows, in which `column` decides.
    pub(crate) fn add(&mut self, cells: &[usize], table: &SweepTable, column: Option<&str>) {
        let errors = table.texts("error");
        let figures = column.map_or(&[][..], |column| table.numbers(column));
        for (row, cell) in cells.iter().copied().enumerate() {
            let error = errors.get(row).cloned().flatten().map(|error| error.to_string());
            self.insert(cell, error, figures.get(row).copied().flatten());
        }
    }

    /// Adds the cell of a row.
    pub(crate) fn add_row(&mut self, row: &SweepRow, column: Option<&str>) {
        self.insert(row.index, row.error.clone(), column.and_then(|column| row.figure(column)));
    }

    fn insert(&mut self, cell: usize, error: Option<String>, figure: Option<f64>) {
        // A cell beyond the plan can only be in a file that another program wrote.
        let Some(word) = self.done.get_mut(cell / 64) else { return };
        *word |= 1 << (cell % 64);
        self.errors.extend(error.map(|error| (cell, error)));
        self.figures.extend(figure.map(|figure| (cell, figure)));
    }

    pub(crate) fn has(&self, cell: usize) -> bool {
        self.done.get(cell / 64).is_some_and(|word| word >> (cell % 64) & 1 == 1)
    }

    pub(crate) fn figure(&self, cell: usize) -> Option<f64> {
        self.figures.get(&cell).copied()
    }

    /// Number of cells with rows.
    pub(crate) fn count(&self) -> usize {
        self.done.iter().map(|word| word.count_ones() as usize).sum()
    }
}
