//! What the study says, recomputed: the metrics of `expect.tsv`.

use super::cell::StripedRun;
use super::grid::Row;
use crate::judge::Measured;
use headstack_policy::stripe::advise::{DiskTimes, ForkJoin};

/// Blocks of a KiB.
pub(super) const KIB: f64 = 2.0;

/// Requests of the study's table of best units, in KiB, and the MPL that stands for its higher ones, whose figures are lost: 8 where
/// the best unit is the same at all MPLs, the highest of the grid where it changes at some MPL and then stays.
const TABLE: [(u64, u32); 9] =
    [(2, 8), (8, 8), (16, 8), (32, 8), (128, 8), (512, 20), (1024, 20), (2048, 20), (4096, 8)];

/// Requests for which Lee and Katz's rule is computed, in KiB.
const LEE_KATZ: [u64; 4] = [512, 1024, 2048, 4096];

/// The rows of each kind of load.
pub(super) struct Grid {
    pub reads: Vec<Row>,
    pub writes: Vec<Row>,
    pub sequential: Vec<Row>,
    /// By think time, rising.
    pub thinking: Vec<Vec<Row>>,
}

impl Grid {
    pub(super) fn kinds(&self) -> impl Iterator<Item = &Vec<Row>> {
        [&self.reads, &self.writes, &self.sequential].into_iter().chain(&self.thinking)
    }
}

fn row(rows: &[Row], kib: u64, mpl: u32) -> Option<&Row> {
    rows.iter().find(|row| row.request == kib * 2 && row.mpl == mpl)
}

/// The response over `first` disks as a share of that over `second`.
fn ratio(rows: &[Row], kib: u64, mpl: u32, [first, second]: [u32; 2]) -> Option<f64> {
    let row = row(rows, kib, mpl)?;
    let ms = |across| row.over(across).map(|run: &StripedRun| run.response_ms);
    Some(ms(first)? / ms(second)?)
}

/// The share of the rows for which both have the same best unit.
fn same_best<'a>(
    ours: impl Iterator<Item = &'a Row>,
    theirs: impl Fn(&Row) -> Option<&'a Row>,
) -> Option<f64> {
    let pairs: Vec<bool> =
        ours.filter_map(|row| Some(row.best().point.across == theirs(row)?.best().point.across)).collect();
    let same = pairs.iter().filter(|same| **same).count() as f64;
    (!pairs.is_empty()).then(|| same / pairs.len() as f64)
}

/// Mean response of one grid relative to the other, over all rows and numbers of disks.
fn mean_ratio(ours: &[Row], theirs: &[Row]) -> f64 {
    let runs = |rows: &[Row]| rows.iter().flat_map(|row| row.runs.clone()).collect::<Vec<_>>();
    let (ours, theirs) = (runs(ours), runs(theirs));
    let ratios = ours.iter().zip(&theirs).map(|(a, b)| a.response_ms / b.response_ms);
    ratios.sum::<f64>() / ours.len() as f64
}

pub(super) fn measure(grid: &Grid, disk: &DiskTimes, advisor: &ForkJoin) -> Vec<Measured> {
    let mut all = best_units(grid);
    all.extend(shapes(grid));
    all.extend(likenesses(grid));
    all.extend(lee_katz(grid, disk));
    let worst = |column: usize| {
        let regrets = grid.kinds().flatten().map(|row| row.our_regret(advisor)[column]);
        regrets.fold(0.0, f64::max)
    };
    all.push(Measured::new("our_worst_regret", worst(1)));
    all
}

fn best_units(grid: &Grid) -> Vec<Measured> {
    let one = |(kib, mpl): (u64, u32)| {
        let best = row(&grid.reads, kib, mpl)?.best().point.unit();
        Some(Measured::new(format!("best_unit_{}_mpl{mpl}", size(kib * 2)), best as f64 / KIB))
    };
    TABLE.iter().flat_map(|(kib, high)| [(*kib, 1), (*kib, *high)]).filter_map(one).collect()
}

/// How the response depends on the number of disks.
fn shapes(grid: &Grid) -> Vec<Measured> {
    let reads = &grid.reads;
    let gain = |mpl| ratio(reads, 4096, mpl, [4, 1]).map(|ratio| 100.0 * (1.0 - ratio));
    let sequential_gain = |kib| {
        let alone = |rows| Some(row(rows, kib, 1)?.over(1)?.response_ms);
        Some(alone(&grid.sequential)? / alone(&grid.writes)?)
    };
    let values = [
        ("gain_4M_mpl8", gain(8)),
        ("gain_4M_mpl1", gain(1)),
        ("two_disks_2K_mpl1", ratio(reads, 2, 1, [2, 1])),
        ("four_for_two_disks_2K_mpl1", ratio(reads, 2, 1, [4, 2])),
        ("four_disks_8K_mpl1", ratio(reads, 8, 1, [4, 1])),
        ("four_disks_8K_mpl8", ratio(reads, 8, 8, [4, 1])),
        ("sequential_2K_mpl1", sequential_gain(2)),
        ("sequential_4M_mpl1", sequential_gain(4096)),
    ];
    values.into_iter().filter_map(|(metric, value)| Some(Measured::new(metric, value?))).collect()
}

/// The response to requests of 2 KB over four disks of eight, divided by that over two.
pub(super) fn more_disks(eight: &[Row]) -> Option<Measured> {
    Some(Measured::new("eight_disks_2K_mpl1", ratio(eight, 2, 1, [4, 2])?))
}

/// Parameters that make no difference in the study.
fn likenesses(grid: &Grid) -> Vec<Measured> {
    let reads = |of: &Row| row(&grid.reads, of.request / 2, of.mpl);
    let alone = |of: &Row| row(&grid.reads, of.request / 2, 1);
    let two = grid.thinking.last().into_iter().flatten().filter(|row| row.mpl == 2);
    let values = [
        ("writes_same_best", same_best(grid.writes.iter(), reads)),
        ("writes_slower", Some(mean_ratio(&grid.writes, &grid.reads))),
        ("sequential_same_best", same_best(grid.sequential.iter(), reads)),
        ("think_1s_mpl2_as_alone", same_best(two, alone)),
    ];
    values.into_iter().filter_map(|(metric, value)| Some(Measured::new(metric, value?))).collect()
}

/// Lee and Katz's units in KiB, and the share of the cells in which they are below the best unit.
fn lee_katz(grid: &Grid, disk: &DiskTimes) -> Vec<Measured> {
    let cells = LEE_KATZ.iter().flat_map(|kib| [2, 8].map(|mpl| (*kib, mpl)));
    let rows: Vec<&Row> = cells.filter_map(|(kib, mpl)| row(&grid.reads, kib, mpl)).collect();
    let unit = |row: &Row| row.rule("lee-katz", disk);
    let mut all: Vec<Measured> = rows
        .iter()
        .map(|row| {
            let metric = format!("lee_katz_{}_mpl{}", size(row.request), row.mpl);
            Measured::new(metric, unit(row) / KIB)
        })
        .collect();
    if rows.len() == 8 {
        let below = rows.iter().filter(|row| unit(row) < row.best().point.unit() as f64).count();
        all.push(Measured::new("lee_katz_below_best", below as f64 / rows.len() as f64));
    }
    all
}

/// A size in blocks, as `512K` or `4M`.
pub(super) fn size(sectors: u64) -> String {
    match sectors {
        0..2 => "512".to_string(),
        2..2048 => format!("{}K", sectors / 2),
        _ => format!("{}M", sectors / 2048),
    }
}
