//! The grid of runs: every rig with every combination of the varied values.

use crate::failure::Failure;
use crate::sim::setup;
use headstack_sim::rig::Rig;

/// Maximum runs of a comparison.
const MOST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Varied {
    pub(super) key: String,
    pub(super) values: Vec<String>,
}

impl Varied {
    /// `KEY=VALUE,VALUE …`
    pub(super) fn parse(text: &str) -> Result<Varied, Failure> {
        let fault = |what: &str| Failure::Input(format!("--vary {text}: {what}"));
        let (key, values) = setup::split(text)
            .ok_or_else(|| fault("must be KEY=VALUE,VALUE…, such as drive.order=fcfs,sptf"))?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_string()).collect();
        if values.iter().any(String::is_empty) {
            return Err(fault("one of the values is empty"));
        }
        for (index, value) in values.iter().enumerate() {
            if values[..index].contains(value) {
                return Err(fault(&format!("{value} is there twice")));
            }
        }
        Ok(Varied { key: key.to_string(), values })
    }

    /// The values as numbers, if all of them are numbers.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        let numbers =
            self.values.iter().map(|value| value.parse::<f64>().ok().filter(|number| number.is_finite()));
        numbers.collect()
    }

    /// The last word of the key, for tables and charts.
    pub(super) fn short(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }
}

/// A run: a rig and its settings.
pub(super) struct Cell {
    pub(super) rig_name: String,
    /// Index among the named rigs.
    pub(super) rig_index: usize,
    pub(super) rig: Rig,
    pub(super) settings: Vec<(String, String)>,
}

impl Cell {
    pub(super) fn label(&self) -> String {
        let settings = self.settings.iter().map(|(key, value)| format!(" {key}={value}"));
        format!("{}{}", self.rig_name, settings.collect::<String>())
    }
}

/// The cells of a grid, and the combinations that a rig refuses, both in the order of the grid.
pub(super) struct ComparisonGrid {
    pub(super) cells: Vec<Cell>,
    pub(super) refused: Vec<FailedCell>,
}

/// A cell that did not run to its end.
pub(super) struct FailedCell {
    pub(super) label: String,
    pub(super) failure: Failure,
}

/// Every rig with every combination of values; the last key changes fastest.
///
/// *Errors:* too many runs; a value that every rig refuses, which is a user error.
pub(super) fn grid(rigs: &[(String, Rig)], varied: &[Varied]) -> Result<ComparisonGrid, Failure> {
    for (index, one) in varied.iter().enumerate() {
        if varied[..index].iter().any(|other| other.key == one.key) {
            return Err(Failure::Input(format!("--vary {}: the key is varied twice", one.key)));
        }
    }
    let count = varied.iter().try_fold(rigs.len(), |count, one| count.checked_mul(one.values.len()));
    if count.is_none_or(|count| count > MOST) {
        return Err(Failure::Input(format!("--vary: more than {MOST} runs")));
    }
    let mut grid = ComparisonGrid { cells: Vec::new(), refused: Vec::new() };
    for (rig_index, (name, rig)) in rigs.iter().enumerate() {
        for settings in combinations(varied) {
            let bare = Cell { rig_name: name.clone(), rig_index, rig: rig.clone(), settings };
            let label = bare.label();
            match set(bare) {
                Ok(cell) => grid.cells.push(cell),
                Err(failure) => grid.refused.push(FailedCell { label, failure }),
            }
        }
    }
    let is_taken = |key: &String, value: &String| {
        let is_it = |(name, set): &(String, String)| name == key && set == value;
        grid.cells.iter().any(|cell| cell.settings.iter().any(is_it))
    };
    let is_mistaken = varied.iter().any(|one| one.values.iter().any(|value| !is_taken(&one.key, value)));
    if is_mistaken && !grid.refused.is_empty() {
        return Err(grid.refused.swap_remove(0).failure);
    }
    Ok(grid)
}

/// Every combination of the values.
fn combinations(varied: &[Varied]) -> Vec<Vec<(String, String)>> {
    varied.iter().fold(vec![Vec::new()], |before, one| {
        let with = |settings: &Vec<(String, String)>| {
            let settings = settings.clone();
            one.values.iter().map(move |value| [&settings[..], &[(one.key.clone(), value.clone())]].concat())
        };
        before.iter().flat_map(with).collect()
    })
}

/// The cell with its settings applied to the rig.
fn set(mut cell: Cell) -> Result<Cell, Failure> {
    let settings = cell.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    cell.rig.set_all(settings).map_err(|error| Failure::Input(format!("--vary: {error}")))?;
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_sim::rig::shipped;

    fn rigs() -> Vec<(String, Rig)> {
        ["atlas-10k", "wd800jd"]
            .map(|name| (name.to_string(), shipped::load(name).expect("the drive ships")))
            .into()
    }

    fn varied(text: &str) -> Varied {
        Varied::parse(text).expect("it is well formed")
    }

    #[test]
    fn grid_holds_every_combination_in_order() {
        let keys = [varied("drive.order=fcfs,sptf"), varied("drive.queue_depth=1,8")];
        let cells = grid(&rigs(), &keys).expect("the keys are there").cells;
        let labels: Vec<String> = cells.iter().map(Cell::label).collect();
        assert_eq!(labels.len(), 8);
        assert_eq!(labels[0], "atlas-10k drive.order=fcfs drive.queue_depth=1");
        assert_eq!(labels[1], "atlas-10k drive.order=fcfs drive.queue_depth=8");
        assert_eq!(labels[7], "wd800jd drive.order=sptf drive.queue_depth=8");
        assert_eq!(cells[3].rig.resolved().drive[0].spec.queue.depth, 8);
    }

    #[test]
    fn numeric_values_are_distinguished_from_words() {
        assert_eq!(varied("drive.queue_depth=1,8,32").numbers(), Some(vec![1.0, 8.0, 32.0]));
        assert_eq!(varied("drive.order=fcfs,1").numbers(), None);
        assert_eq!(varied("drive.order=fcfs").short(), "order");
    }

    #[test]
    fn value_that_some_rigs_refuse_fails_their_cells_alone() {
        let rigs =
            ["workstation", "raid5"].map(|name| (name.to_string(), shipped::load(name).expect("it ships")));
        // A single disk has no array.
        let found = grid(&rigs, &[varied("array.stripe_unit_sectors=64,128")]).expect("an array takes them");
        let labels: Vec<String> = found.cells.iter().map(Cell::label).collect();
        assert_eq!(labels, [64, 128].map(|unit| format!("raid5 array.stripe_unit_sectors={unit}")));
        let refused: Vec<&str> = found.refused.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(
            refused,
            ["workstation array.stripe_unit_sectors=64", "workstation array.stripe_unit_sectors=128"]
        );
        assert!(grid(&rigs[..1], &[varied("array.stripe_unit_sectors=64,128")]).is_err(), "no rig takes it");
    }

    #[test]
    fn oversized_grid_is_rejected() {
        let values: Vec<String> = (1..=150).map(|value| value.to_string()).collect();
        let key = |key: &str| varied(&format!("{key}={}", values.join(",")));
        let refused = grid(&rigs(), &[key("drive.queue_depth"), key("drive.rpm")]).err().expect("too many");
        assert_eq!(refused.to_string(), "--vary: more than 10000 runs");
    }
}
