//! What the runs of a comparison had, and what is suspicious in them, as lines.

use super::Comparison;
use super::figures::Ran;

/// Most lines about setups, and most about notes.
const LINES: usize = 8;

/// The setup of the runs: a line if all have the same one, else one for each that is met, with the first run that has it.
pub(super) fn setups(comparison: &Comparison) -> Vec<String> {
    let of_run = |ran: &Ran| ran.runs.first().and_then(|run| run.setup.clone());
    let mut met: Vec<(String, String)> = Vec::new();
    for ran in &comparison.ran {
        if let Some(setup) = of_run(ran).filter(|setup| met.iter().all(|(_, other)| other != setup)) {
            met.push((ran.cell.label(), setup));
        }
    }
    match &met[..] {
        [(_, only)] => vec![only.clone()],
        all => limited(all.iter().map(|(label, setup)| format!("{label}: {setup}")).collect()),
    }
}

/// The notes on each run, once each.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut all = Vec::new();
    for ran in &comparison.ran {
        let mut own: Vec<&String> = ran.runs.iter().flat_map(|run| &run.notes).collect();
        // Runs with other seeds say the same with other numbers.
        own.truncate(ran.runs.first().map_or(0, |run| run.notes.len()));
        all.extend(own.into_iter().map(|note| format!("{}: {note}", ran.cell.label())));
    }
    limited(all)
}

fn limited(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("… and {more} more (--json has all)"));
    }
    lines
}
