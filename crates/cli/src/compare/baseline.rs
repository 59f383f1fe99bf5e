//! `--baseline`: the run to which the others are compared.

use super::grid::Cell;
use crate::failure::Failure;

/// The index of the cell that `text` names: its number from 1, its label, or its settings.
///
/// *Errors:* there is none, or more than one.
pub(super) fn find(cells: &[Cell], text: &str) -> Result<usize, Failure> {
    let fault = |what: String| Failure::Input(format!("--baseline {text}: {what}"));
    if let Ok(number) = text.parse::<usize>() {
        let index = number.checked_sub(1).filter(|index| *index < cells.len());
        return index.ok_or_else(|| fault(format!("there are runs 1 to {}", cells.len())));
    }
    let wanted: Vec<&str> = text.split_whitespace().collect();
    let is_named = |cell: &Cell| {
        let label = cell.label();
        let words: Vec<&str> = label.split_whitespace().collect();
        let names = wanted.iter().all(|word| words.contains(word));
        names && !wanted.is_empty()
    };
    let mut found = cells.iter().enumerate().filter(|(_, cell)| is_named(cell)).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (Some(one), Some(other)) => {
            let (one, other) = (cells[one].label(), cells[other].label());
            Err(fault(format!(
                "several runs are called so, `{one}` and `{other}` among them; name more keys"
            )))
        }
        (None, _) => Err(fault(format!(
            "no run is called so; give the number of its line or its label, such as `{}`",
            cells[0].label()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::ran;
    use super::*;

    #[test]
    fn baseline_is_found_by_number_label_and_keys() {
        let cell = |order: &str, depth: &str| {
            ran(&[("drive.order", order), ("drive.queue_depth", depth)], &[1.0]).cell
        };
        let cells = [cell("fcfs", "1"), cell("fcfs", "8"), cell("sptf", "1"), cell("sptf", "8")];
        let index = |text: &str| find(&cells, text).map_err(|failure| failure.to_string());
        assert_eq!(index("3"), Ok(2));
        assert_eq!(index("atlas-10k drive.order=fcfs drive.queue_depth=8"), Ok(1));
        assert_eq!(index("drive.queue_depth=8 drive.order=sptf"), Ok(3));
        assert_eq!(index("5"), Err("--baseline 5: there are runs 1 to 4".to_string()));
        assert!(
            index("drive.order=fcfs").is_err_and(|reported| reported.contains("several runs are called so"))
        );
        assert!(index("drive.order=look").is_err_and(|reported| reported.contains("no run is called so")));
    }
}
