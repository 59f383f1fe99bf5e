//! The comparison as a table: each run's figures, and how they differ from the first run's.

use super::{Comparison, Ran};
use crate::failure::Failure;
use crate::report::Table;
use crate::sim::text::half_width;
use crate::units::{grouped, significant};
use headstack_sim::stats::{Confidence, Interval};
use std::io::Write;

/// Prints the comparison.
pub(super) fn print(comparison: &Comparison, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(partial) = &comparison.partial {
        writeln!(out, "{}", partial.line(comparison.ran.len()))?;
    }
    let Some(first) = comparison.ran.first() else { return Ok(()) };
    writeln!(
        out,
        "{}, {} requests, seed {}\n",
        comparison.load,
        grouped(first.figures.requests),
        comparison.seed
    )?;
    write!(out, "{}", of(comparison).to_text())?;
    writeln!(out, "\n{NOTE}")?;
    Ok(())
}

/// What the signs in the table mean.
pub(super) const NOTE: &str =
    "±: 95 % confidence by batch means. Differences are to the first line; ≈ is one that chance explains.";

/// The table: a line a run.
pub(super) fn of(comparison: &Comparison) -> Table {
    let with_rig = comparison.rigs.len() > 1;
    let mut columns: Vec<&str> = Vec::new();
    columns.extend(with_rig.then_some("rig"));
    columns.extend(comparison.varied.iter().map(super::grid::Varied::short));
    let words = columns.len();
    columns.extend([
        "IOPS", "±", "diff", "MB/s", "mean ms", "±", "diff", "p50 ms", "p99 ms", "max ms", "arm", "hits",
    ]);
    let mut table = Table::new("Runs", &columns);
    table.words = words;
    let first = &comparison.ran[0];
    for ran in &comparison.ran {
        let mut row: Vec<String> = Vec::new();
        row.extend(with_rig.then(|| ran.cell.rig_name.clone()));
        row.extend(ran.cell.settings.iter().map(|(_, value)| value.clone()));
        row.extend(figures(ran, first));
        table.row(row);
    }
    table
}

fn figures(ran: &Ran, first: &Ran) -> Vec<String> {
    let (own, others) = (&ran.figures, &first.figures);
    let figure = |value: f64| significant(value, 4);
    let share = |value: f64| format!("{:.1} %", 100.0 * value);
    let width = |pick: fn(&Confidence) -> &Interval| {
        own.confidence.as_ref().map_or("–".to_string(), |found| half_width(pick(found)))
    };
    let difference = |value: f64, base: f64, pick: fn(&Confidence) -> &Interval| {
        if std::ptr::eq(ran, first) || base <= 0.0 {
            return String::new();
        }
        let both = own.confidence.as_ref().zip(others.confidence.as_ref());
        let by_chance = both.is_some_and(|(own, others)| !pick(own).differs_from(pick(others)));
        format!("{}{:+.1} %", if by_chance { "≈ " } else { "" }, 100.0 * (value / base - 1.0))
    };
    vec![
        figure(own.iops),
        width(|found| &found.iops),
        difference(own.iops, others.iops, |found| &found.iops),
        figure(own.mb_s),
        figure(own.mean_ms),
        width(|found| &found.response_ms),
        difference(own.mean_ms, others.mean_ms, |found| &found.response_ms),
        figure(own.p50_ms),
        figure(own.p99_ms),
        figure(own.max_ms),
        share(own.utilisation),
        share(own.hit_share),
    ]
}
