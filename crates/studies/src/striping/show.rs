//! Figures and tables of the striping study.

use super::cell::StripedRun;
use super::claims::{Grid, KIB, size};
use super::grid::{ALIKE, BUFFERED, Kind, Row};
use crate::study::Length;
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_policy::stripe::advise::{DiskTimes, ForkJoin};

/// Requests drawn as lines, in KiB.
const DRAWN: [u64; 6] = [2, 8, 128, 512, 1024, 4096];

fn mpls(rows: &[Row]) -> Vec<u32> {
    let mut all: Vec<u32> = rows.iter().map(|row| row.mpl).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn requests(rows: &[Row]) -> Vec<u64> {
    let mut all: Vec<u64> = rows.iter().map(|row| row.request).collect();
    all.dedup();
    all
}

fn find(rows: &[Row], request: u64, mpl: u32) -> Option<&Row> {
    rows.iter().find(|row| row.request == request && row.mpl == mpl)
}

/// Response over the unit, one line per size.
fn over_unit(title: String, rows: &[&Row], name: impl Fn(&Row) -> String) -> Chart {
    let line = |(family, row): (usize, &&Row)| {
        let mut runs: Vec<&StripedRun> = row.runs.iter().collect();
        runs.reverse();
        Series::new(
            name(row),
            family,
            runs.iter().map(|run| (run.point.unit() as f64 / KIB, run.response_ms)),
        )
        .with_errors(runs.iter().map(|run| run.half_width_ms))
    };
    Chart::new(
        title,
        Axis::log("stripe unit (KiB)"),
        Axis::log("mean response (ms)"),
        rows.iter().enumerate().map(line),
    )
}

/// Responses over units, sizes and MPL.
pub(super) fn responses(grid: &Grid, length: Length) -> Section {
    let rows = &grid.reads;
    let figure = |mpl: &u32| {
        let drawn: Vec<&Row> = DRAWN.iter().filter_map(|kib| find(rows, kib * 2, *mpl)).collect();
        over_unit(format!("MPL {mpl}"), &drawn, |row| size(row.request))
    };
    let mpls: &[u32] = length.pick(&[1, 8, 20], &[1, 8]);
    Section::new("Random reads without a pause")
        .with_text("A request of B bytes over d of four disks has a unit of B/d on each. The rightmost point of a line is the request on one disk, the leftmost that over four.")
        .with_charts(mpls.iter().map(figure))
}

/// The best units of each kind of load.
pub(super) fn best_units(kinds: &[Kind], grid: &Grid) -> Section {
    let named = kinds.iter().zip(grid.kinds());
    Section::new("The best unit")
        .with_text(format!(
            "Of units whose responses are within {:.0} % of the least, the largest.",
            ALIKE * 100.0
        ))
        .with_tables(named.map(|(kind, rows)| best_table(kind.name, rows)))
}

/// The best unit over size and MPL.
fn best_table(name: &str, rows: &[Row]) -> Table {
    let mpls = mpls(rows);
    let columns = std::iter::once("request".to_string()).chain(mpls.iter().map(|mpl| format!("MPL {mpl}")));
    let mut table = Table::new(format!("Best unit (KiB): {name}"), columns);
    for request in requests(rows) {
        let best = |mpl: &u32| Some(find(rows, request, *mpl)?.best().point.unit() as f64 / KIB);
        table.named_row([size(request)], mpls.iter().map(best));
    }
    table
}

/// The published rules that are made for arrays without parity.
const RULES: [&str; 3] = ["chen-patterson", "chen-patterson-any", "lee-katz"];

/// What the advisors choose, and what that costs.
pub(super) fn advisors(kinds: &[Kind], grid: &Grid, disk: &DiskTimes, advisor: &ForkJoin) -> Section {
    let mut columns = vec!["request", "MPL", "best KiB", "fork-join KiB", "costs %"];
    let headings: Vec<String> = RULES.iter().map(|rule| format!("{rule} KiB")).collect();
    for heading in &headings {
        columns.extend([heading.as_str(), "costs %"]);
    }
    let mut table = Table::new(
        "Random reads: what each advisor says, and how much longer than the best that is",
        columns,
    );
    for row in grid.reads.iter().filter(|row| row.request >= 64 && [1, 2, 8, 20].contains(&row.mpl)) {
        let best = row.best();
        let ours = row.ours(advisor, best);
        let unit_kib = row.request as f64 / f64::from(ours) / KIB;
        let own = [f64::from(row.mpl), best.point.unit() as f64 / KIB, unit_kib, 100.0 * row.regret(ours)];
        let rules = RULES.iter().flat_map(|rule| {
            let unit = row.rule(rule, disk);
            [unit / KIB, 100.0 * row.regret(row.across(unit))]
        });
        table.named_row([size(row.request)], own.into_iter().chain(rules));
    }
    let all: Vec<&Vec<Row>> = grid.kinds().collect();
    let named = kinds.iter().map(|kind| kind.name).zip(all.iter().map(|rows| rows.as_slice()));
    Section::new("The advisors")
        .with_text("Our advisor observes the sizes of requests, how many others each meets, and the variance of that number, with any unit in force. Its regret is the largest over all units that it may begin with, after it has observed its own choice. A published rule knows the MPL; its unit is rounded to the nearest power of two.")
        .with_chart(regrets_over_mpl(&grid.reads, disk, advisor))
        .with_table(regret_table(named.map(|(name, rows)| (name, rows, advisor)), disk))
        .with_table(table)
}

/// The largest regret over all sizes, by MPL.
fn regrets_over_mpl(rows: &[Row], disk: &DiskTimes, advisor: &ForkJoin) -> Chart {
    let worst = |mpl: &u32, regret: &dyn Fn(&Row) -> f64| {
        let these = rows.iter().filter(|row| row.mpl == *mpl);
        (f64::from(*mpl), 100.0 * these.map(regret).fold(0.0, f64::max))
    };
    let line = |family: usize, name: &str, regret: &dyn Fn(&Row) -> f64| {
        Series::new(name, family, mpls(rows).iter().map(|mpl| worst(mpl, regret))).with_draw(Draw::Points)
    };
    let mut lines = vec![line(0, "fork-join", &|row| row.our_regret(advisor)[1])];
    for (index, rule) in RULES.iter().enumerate() {
        lines.push(line(index + 1, rule, &|row| row.regret(row.across(row.rule(rule, disk)))));
    }
    Chart::new(
        "Random reads: the most that an advisor's unit costs, over all sizes",
        Axis::linear("MPL"),
        Axis::linear("longer than with the best unit (%)"),
        lines,
    )
}

/// Largest and mean regret of each kind of load.
fn regret_table<'a>(
    kinds: impl Iterator<Item = (&'a str, &'a [Row], &'a ForkJoin)>,
    disk: &DiskTimes,
) -> Table {
    let mut columns = vec!["load".to_string()];
    let names = ["fork-join at once", "fork-join"].into_iter().chain(RULES);
    columns.extend(names.flat_map(|name| [format!("{name}: worst %"), "mean %".to_string()]));
    let mut table =
        Table::new("How much longer responses are than with the best unit, over all sizes and MPLs", columns);
    for (name, rows, advisor) in kinds {
        let worst_and_mean = |regrets: &dyn Fn(&Row) -> f64| {
            let regrets: Vec<f64> = rows.iter().map(regrets).collect();
            let mean = regrets.iter().sum::<f64>() / regrets.len() as f64;
            [100.0 * regrets.iter().copied().fold(0.0, f64::max), 100.0 * mean]
        };
        let ours = [0, 1].map(|column| worst_and_mean(&|row| row.our_regret(advisor)[column]));
        let rules = RULES.map(|rule| worst_and_mean(&|row| row.regret(row.across(row.rule(rule, disk)))));
        table.named_row([name], ours.into_iter().chain(rules).flatten());
    }
    table
}

/// The effect of think times.
pub(super) fn thinking(grid: &Grid) -> Section {
    let request = 2048;
    let top = mpls(&grid.reads).last().copied().unwrap_or(1).min(8);
    let kinds: Vec<&Vec<Row>> = std::iter::once(&grid.reads).chain(&grid.thinking).collect();
    let mut rows: Vec<&Row> = kinds.iter().filter_map(|rows| find(rows, request, top)).collect();
    rows.extend(find(&grid.reads, request, 1));
    let name = |row: &Row| match row.runs[0].point.think.as_ms() {
        0.0 => format!("MPL {}, no pause", row.mpl),
        think => format!("MPL {}, {think:.0} ms", row.mpl),
    };
    Section::new("Think time")
        .with_text("Longer pauses act as fewer processes do: what counts is how many requests meet.")
        .with_chart(over_unit(format!("Random reads of {}", size(request)), &rows, name))
}

/// The effect of the drives' buffers.
pub(super) fn buffered(buffered: &[Vec<Row>], grid: &Grid, advisor: &ForkJoin) -> Section {
    // Without buffers, a sequential read differs from a random one only by the seek; the study has sequential writes only.
    let without = [&grid.reads, &grid.writes, &grid.reads, &grid.sequential];
    let columns = ["load", "same best unit %", "response, % of that without", "fork-join: worst %"];
    let mut table = Table::new("Read-ahead and write buffering on", columns);
    for ((kind, rows), plain) in BUFFERED.iter().zip(buffered).zip(without) {
        let pairs: Vec<(&Row, &Row)> =
            rows.iter().filter_map(|row| Some((row, find(plain, row.request, row.mpl)?))).collect();
        let count = pairs.len() as f64;
        let same = pairs.iter().filter(|(a, b)| a.best().point.across == b.best().point.across).count();
        let quicker = |(a, b): &(&Row, &Row)| a.best().response_ms / b.best().response_ms;
        table.named_row(
            [kind.name],
            [
                100.0 * same as f64 / count,
                100.0 * pairs.iter().map(quicker).sum::<f64>() / count,
                100.0 * rows.iter().map(|row| row.our_regret(advisor)[1]).fold(0.0, f64::max),
            ],
        );
    }
    let best = BUFFERED.iter().zip(buffered).map(|(kind, rows)| best_table(kind.name, rows));
    Section::new("What was left undone: buffers on")
        .with_text("Sequential reads are held against random ones without a buffer. The best units, as above, are within 2 % of the least response.")
        .with_tables(std::iter::once(table).chain(best))
}

/// Arrays of more disks.
pub(super) fn larger(kinds: &[Kind], all: &[Vec<Row>], disk: &DiskTimes) -> Section {
    let advisors: Vec<ForkJoin> = kinds.iter().map(|kind| ForkJoin::new(disk.clone(), kind.disks)).collect();
    let named = kinds.iter().zip(all).zip(&advisors);
    let regrets =
        regret_table(named.map(|((kind, rows), advisor)| (kind.name, rows.as_slice(), advisor)), disk);
    let best = kinds.iter().zip(all).map(|(kind, rows)| best_table(kind.name, rows));
    Section::new("What was left undone: more disks")
        .with_text("Chen and Patterson's rule was made for 16 disks.")
        .with_tables(std::iter::once(regrets).chain(best))
}
