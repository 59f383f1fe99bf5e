//! The host's time for threads and commands, varied on the cells whose best unit differs from the study's.
//!
//! *Source:* the kernel threads of Topaz took 948 µs from creation to end on a CVAX (T. E. Anderson et al., Scheduler activations, ACM
//! TOCS 10(1), 1992, table I). The study's host is a later and quicker RS/6000 with AIX, for which no time is known: that, a third and a
//! tenth of it are tried, and an adapter that takes 0.5 ms for each command (assumption).

use super::cell::{self, HostCosts, Point, StripedRun};
use super::claims::size;
use super::grid::{ALIKE, DISKS, READS};
use crate::study::{Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::Nanos;

/// The variants: a name, and the costs.
const COSTS: [(&str, HostCosts); 5] = [
    ("none", HostCosts::NONE),
    ("0.1 ms a thread", HostCosts { thread: Nanos(95_000), ..HostCosts::NONE }),
    ("0.3 ms a thread", HostCosts { thread: Nanos(316_000), ..HostCosts::NONE }),
    ("0.95 ms a thread", HostCosts { thread: Nanos(948_000), ..HostCosts::NONE }),
    ("0.95 ms a thread, adapter 0.5 ms a command", HostCosts { thread: Nanos(948_000), command_us: 500 }),
];

/// Requests in KiB with their MPLs, and the study's best unit in KiB.
const CELLS: [(u64, u32, u64); 6] =
    [(32, 1, 32), (128, 1, 128), (512, 1, 256), (512, 20, 512), (1024, 20, 512), (2048, 20, 1024)];

/// The best unit of each cell, for each cost.
pub(super) fn section(setting: &Setting<'_>, requests: u64) -> Result<Section, StudyError> {
    let cells: Vec<_> = COSTS.iter().flat_map(|(_, cost)| CELLS.map(|cell| (cell, *cost))).collect();
    let best = setting.map(&cells, |((kib, mpl, _), cost)| best_unit(*kib, *mpl, cost, requests))?;
    let head = CELLS.map(|(kib, mpl, _)| format!("{}, MPL {mpl}", size(2 * kib)));
    let columns: Vec<String> = ["best unit in KiB".to_string()].into_iter().chain(head).collect();
    let mut table = Table::new("The best unit, by the host's time", columns);
    table.named_row(["the study"], CELLS.map(|(.., unit)| unit as f64));
    for ((name, _), units) in COSTS.iter().zip(best.chunks(CELLS.len())) {
        table.named_row([*name], units.iter().copied());
    }
    Ok(Section::new("The host's time for threads")
        .with_text("One processor creates the threads of a request one after the other. The times are those of kernel threads on a computer of 1992, a third and a tenth of it; the study's computer is not described. No row is judged by these runs.")
        .with_table(table))
}

/// The best unit for random reads, in KiB; the largest of equal ones.
fn best_unit(kib: u64, mpl: u32, host: &HostCosts, requests: u64) -> Result<f64, StudyError> {
    let run = |across: u32| {
        let point = Point {
            disks: DISKS,
            buffer: READS.buffer,
            read_share: READS.read_share,
            sequential_share: READS.sequential_share,
            think: READS.think,
            mpl,
            request: 2 * kib,
            across,
        };
        cell::measure_with(&point, host, requests)
    };
    let runs = [1, 2, 4].map(run).into_iter().collect::<Result<Vec<StripedRun>, _>>()?;
    let least = runs.iter().map(|run| run.response_ms).fold(f64::INFINITY, f64::min);
    let best = runs.iter().find(|run| run.response_ms <= least * (1.0 + ALIKE));
    Ok(best.map_or(f64::NAN, |run| run.point.unit() as f64 / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_for_threads_never_favours_more_disks() {
        for (kib, mpl, _) in CELLS.into_iter().filter(|(_, mpl, _)| *mpl == 1) {
            let unit = |(_, host): &(&str, HostCosts)| {
                best_unit(kib, mpl, host, 400).unwrap_or_else(|error| panic!("{error}"))
            };
            let units: Vec<f64> = COSTS[..4].iter().map(unit).collect();
            assert!(units.is_sorted(), "{kib} KiB: {units:?} KiB by rising cost");
        }
    }
}
