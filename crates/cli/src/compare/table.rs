//! The comparison as tables: each cell's figures and their differences from the baseline; the same by job.

use super::Comparison;
use super::figures::{Metric, Ran};
use super::remarks;
use crate::failure::Failure;
use crate::report::Table;
use crate::sim::text::half_width;
use crate::units::{grouped, significant};
use std::io::Write;

/// Prints the comparison, limited to the `width` of a terminal.
pub(super) fn print(
    comparison: &Comparison,
    by_job: bool,
    width: Option<usize>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(partial) = &comparison.partial {
        writeln!(out, "{}", partial.line(comparison.ran.len()))?;
    }
    if comparison.ran.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}, {}, {}", comparison.load, requests(comparison), seeds(comparison))?;
    writeln!(out)?;
    let left_out = print_table(ranked(comparison), width, out)?;
    let jobs = jobs(comparison);
    let several = jobs.table.rows.len() > comparison.ran.len();
    if by_job {
        writeln!(out)?;
        print_table(jobs, width, out)?;
    }
    writeln!(out, "\n{}", note(comparison))?;
    if several && !by_job {
        writeln!(out, "--jobs shows the reads, writes and flushes of each job.")?;
    }
    if !left_out.is_empty() {
        writeln!(out, "Left out for a narrow terminal: {} (--json has all).", left_out.join(", "))?;
    }
    remarks::setups(comparison).iter().try_for_each(|line| writeln!(out, "Setup: {line}"))?;
    remarks::notes(comparison).iter().try_for_each(|line| writeln!(out, "Note: {line}"))?;
    if let Some(text) = goal_line(comparison) {
        writeln!(out, "{text}")?;
    }
    for cell in &comparison.failed {
        writeln!(out, "Failed: {}", cell.failure)?;
    }
    Ok(())
}

fn requests(comparison: &Comparison) -> String {
    let each = || comparison.ran.iter().map(Ran::requests);
    let fewest = each().map(|(fewest, _)| fewest).min().unwrap_or(0);
    let most = each().map(|(_, most)| most).max().unwrap_or(0);
    if fewest == most {
        format!("{} requests a run", grouped(most))
    } else {
        format!("{} to {} requests a run", grouped(fewest), grouped(most))
    }
}

pub(super) fn seeds(comparison: &Comparison) -> String {
    match comparison.seeds {
        1 => format!("seed {}", comparison.seed),
        count => format!("{count} seeds from {} on", comparison.seed),
    }
}

/// The seeds of the runs: fewer than wanted where `--until-clear` stopped.
fn seed_count(comparison: &Comparison, wanted: u64) -> String {
    let each = || comparison.ran.iter().map(|ran| ran.runs.len() as u64);
    match each().min() {
        Some(fewest) if fewest < wanted => format!("{fewest} to {} seeds", each().max().unwrap_or(wanted)),
        _ => format!("{wanted} seeds"),
    }
}

/// Explains the signs in the table.
pub(super) fn note(comparison: &Comparison) -> String {
    let (means, rule, paired) = match comparison.seeds {
        1 => (String::new(), "by batch means".to_string(), ""),
        count => (
            format!("Means over {}; max is that of all. ", seed_count(comparison, count)),
            "over the seeds".to_string(),
            ", seed by seed",
        ),
    };
    let base = match &comparison.baseline_label {
        Some(label) => label.as_str(),
        None => "the first line",
    };
    format!(
        "{means}±: 95 % confidence {rule}. Differences are to {base}{paired}; ≈ is one that chance explains."
    )
}

/// Which runs meet the goal, if there is one.
fn goal_line(comparison: &Comparison) -> Option<String> {
    let goal = comparison.goal?;
    let met: Vec<&Ran> = comparison.ran.iter().filter(|ran| goal.is_met(ran)).collect();
    let first = met.first()?;
    Some(format!(
        "{}: {} of {} runs, the first is {} with {}.",
        goal.text(),
        met.len(),
        comparison.ran.len(),
        first.cell.label(),
        significant(first.value(goal.metric), 4)
    ))
}

/// A table with optional columns: those of the highest rank are dropped first, those of rank 0 never.
pub(super) struct Ranked {
    pub(super) table: Table,
    ranks: Vec<u8>,
}

/// Prints a table, and returns the columns dropped to fit it into `width`.
fn print_table(ranked: Ranked, width: Option<usize>, out: &mut dyn Write) -> Result<Vec<String>, Failure> {
    let Ranked { mut table, mut ranks } = ranked;
    let mut left_out = Vec::new();
    let is_too_wide = |table: &Table| {
        let widest = table.to_text().lines().map(|line| line.chars().count()).max().unwrap_or(0);
        width.is_some_and(|width| widest > width)
    };
    while is_too_wide(&table) {
        let Some((index, _)) =
            ranks.iter().enumerate().max_by_key(|(_, rank)| **rank).filter(|(_, rank)| **rank > 0)
        else {
            break;
        };
        ranks.remove(index);
        left_out.push(table.remove_column(index));
    }
    write!(out, "{}", table.to_text())?;
    Ok(left_out)
}

pub(super) fn names(comparison: &Comparison) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    columns.extend((comparison.rigs.len() > 1 || comparison.varied.is_empty()).then_some("rig"));
    columns.extend(comparison.varied.iter().map(super::grid::Varied::short));
    columns
}

pub(super) fn words(comparison: &Comparison, ran: &Ran) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let with_rig = comparison.rigs.len() > 1 || comparison.varied.is_empty();
    words.extend(with_rig.then(|| ran.cell.rig_name.clone()));
    words.extend(ran.cell.settings.iter().map(|(_, value)| value.clone()));
    words
}

/// A column of the table of cells: its heading, its rank, and its text for a cell.
type Column<'a> = (&'a str, u8, Box<dyn Fn(&Ran) -> String + 'a>);

pub(super) fn ranked(comparison: &Comparison) -> Ranked {
    let figure = |metric: Metric| move |ran: &Ran| significant(ran.value(metric), 4);
    let share = |metric: Metric| move |ran: &Ran| format!("{:.1} %", 100.0 * ran.value(metric));
    let width = |metric: Metric| {
        move |ran: &Ran| ran.interval(metric).map_or("–".to_string(), |found| half_width(&found))
    };
    let difference = |metric: Metric| move |ran: &Ran| difference(comparison, ran, metric);
    let mut columns: Vec<Column<'_>> = vec![
        ("IOPS", 0, Box::new(figure(Metric::Iops))),
        ("±", 4, Box::new(width(Metric::Iops))),
        ("diff", 3, Box::new(difference(Metric::Iops))),
        ("MB/s", 7, Box::new(figure(Metric::MbS))),
        ("mean ms", 0, Box::new(figure(Metric::MeanMs))),
        ("±", 5, Box::new(width(Metric::MeanMs))),
        ("diff", 2, Box::new(difference(Metric::MeanMs))),
        ("p50 ms", 6, Box::new(figure(Metric::P50Ms))),
        ("p99 ms", 0, Box::new(figure(Metric::P99Ms))),
    ];
    if comparison.seeds > 1 {
        columns.push(("±", 5, Box::new(width(Metric::P99Ms))));
        columns.push(("diff", 1, Box::new(difference(Metric::P99Ms))));
    }
    columns.push(("max ms", 8, Box::new(figure(Metric::MaxMs))));
    columns.push(("arm", 9, Box::new(share(Metric::Arm))));
    columns.push(("hits", 10, Box::new(share(Metric::Hits))));
    if comparison.ran.iter().any(|ran| ran.value(Metric::RebuildH) > 0.0) {
        columns.push(("rebuild h", 0, Box::new(figure(Metric::RebuildH))));
    }
    if let Some(goal) = comparison.goal {
        let met = move |ran: &Ran| if goal.is_met(ran) { "met".to_string() } else { String::new() };
        columns.push(("goal", 0, Box::new(met)));
    }
    let names = names(comparison);
    let headings: Vec<&str> = names.iter().copied().chain(columns.iter().map(|(name, _, _)| *name)).collect();
    let mut table = Table::new("Runs", &headings).with_words(names.len());
    for ran in &comparison.ran {
        let figures = columns.iter().map(|(_, _, text)| text(ran));
        table.row(words(comparison, ran).into_iter().chain(figures));
    }
    let ranks = names.iter().map(|_| 0).chain(columns.iter().map(|(_, rank, _)| *rank)).collect();
    Ranked { table, ranks }
}

/// The difference from the baseline; empty for the baseline itself.
fn difference(comparison: &Comparison, ran: &Ran, metric: Metric) -> String {
    let base = comparison.baseline().filter(|base| !std::ptr::eq(*base, ran));
    base.and_then(|base| ran.difference(base, metric)).map_or(String::new(), |found| {
        let sign = if found.by_chance == Some(true) { "≈ " } else { "" };
        // With one seed only the JSON has the interval of the difference; the table has the intervals of the runs.
        let interval = found.half_width.filter(|_| comparison.seeds > 1);
        let interval = interval.map_or(String::new(), |width| format!(" ±{:.1}", 100.0 * width));
        format!("{sign}{:+.1}{interval} %", 100.0 * found.share)
    })
}

/// The table by job: the lines of a job and kind are adjacent, in the order of the cells.
pub(super) fn jobs(comparison: &Comparison) -> Ranked {
    let figures = ["requests", "IOPS", "MB/s", "mean ms", "p50 ms", "p99 ms", "max ms"];
    let names = names(comparison);
    let headings: Vec<&str> = ["job"].into_iter().chain(names.iter().copied()).chain(figures).collect();
    let mut table = Table::new("Jobs", &headings).with_words(1 + names.len());
    let mut met: Vec<String> = Vec::new();
    let each: Vec<_> = comparison.ran.iter().map(|ran| (ran, ran.jobs())).collect();
    for job in each.iter().flat_map(|(_, jobs)| jobs) {
        if !met.contains(&job.name) {
            met.push(job.name.clone());
        }
    }
    for name in met {
        for (ran, jobs) in &each {
            let Some(job) = jobs.iter().find(|job| job.name == name) else { continue };
            let mut row = vec![name.clone()];
            row.extend(words(comparison, ran));
            row.push(grouped(job.requests));
            row.extend(job.values.iter().map(|value| significant(*value, 4)));
            table.row(row);
        }
    }
    let ranks = [vec![0; table.words], vec![1, 0, 4, 0, 2, 0, 3]].concat();
    Ranked { table, ranks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_left_out_until_the_table_fits() {
        let ranked = || {
            let mut table = Table::new("Runs", &["order", "IOPS", "arm", "hits", "p99 ms"]);
            table.row(["fcfs", "210.7", "97.4 %", "0.0 %", "205.0"].map(String::from));
            Ranked { table, ranks: vec![0, 0, 1, 2, 0] }
        };
        let printed = |width: Option<usize>| {
            let mut out = Vec::new();
            let left_out = print_table(ranked(), width, &mut out).expect("memory takes it");
            (left_out, String::from_utf8(out).expect("it is UTF-8"))
        };
        assert_eq!(printed(None).0, Vec::<String>::new());
        let (left_out, text) = printed(Some(30));
        assert_eq!(left_out, ["hits"]);
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        assert_eq!(printed(Some(22)).0, ["hits", "arm"]);
        assert_eq!(printed(Some(5)).0, ["hits", "arm"], "the others are never left out");
    }
}
