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

    /// The values as numbers, if all are.
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

/// Every rig with every combination of values; the last key changes fastest.
///
/// *Errors:* a value that a rig refuses, or too many runs.
pub(super) fn cells(rigs: &[(String, Rig)], varied: &[Varied]) -> Result<Vec<Cell>, Failure> {
    for (index, one) in varied.iter().enumerate() {
        if varied[..index].iter().any(|other| other.key == one.key) {
            return Err(Failure::Input(format!("--vary {}: the key is varied twice", one.key)));
        }
    }
    let count = varied.iter().try_fold(rigs.len(), |count, one| count.checked_mul(one.values.len()));
    if count.is_none_or(|count| count > MOST) {
        return Err(Failure::Input(format!("--vary: more than {MOST} runs")));
    }
    let mut cells = Vec::new();
    for (rig_index, (name, rig)) in rigs.iter().enumerate() {
        let bare = Cell { rig_name: name.clone(), rig_index, rig: rig.clone(), settings: Vec::new() };
        let mut here = vec![bare];
        for one in varied {
            let mut next = Vec::with_capacity(here.len() * one.values.len());
            for cell in &here {
                for value in &one.values {
                    next.push(with(cell, &one.key, value)?);
                }
            }
            here = next;
        }
        cells.extend(here);
    }
    Ok(cells)
}

fn with(cell: &Cell, key: &str, value: &str) -> Result<Cell, Failure> {
    let mut rig = cell.rig.clone();
    rig.set(key, value).map_err(|error| Failure::Input(format!("--vary: {error}")))?;
    let mut settings = cell.settings.clone();
    settings.push((key.to_string(), value.to_string()));
    Ok(Cell { rig_name: cell.rig_name.clone(), rig_index: cell.rig_index, rig, settings })
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
        let cells = cells(&rigs(), &keys).expect("the keys are there");
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
    fn oversized_grid_is_rejected() {
        let values: Vec<String> = (1..=150).map(|value| value.to_string()).collect();
        let key = |key: &str| varied(&format!("{key}={}", values.join(",")));
        let refused = cells(&rigs(), &[key("drive.queue_depth"), key("drive.rpm")]).err().expect("too many");
        assert_eq!(refused.to_string(), "--vary: more than 10000 runs");
    }
}
