//! What a starvation guard at the host does to the longest response, and what it costs.
//!
//! The load always keeps 32 reads of 4 KiB outstanding, nine in ten of them in the first tenth of the disk. The requests are the same with
//! and without a guard, so that the rates compare the same work.

use super::{HostRun, SMALL, first, play, rig, with_ncq};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::{DriveSpec, Instant, Request, drives};
use headstack_workload::{Closed, Pattern, Pick, Region, Requests, Shape, ShapeError};

/// The study's disk (with NCQ) comes first.
const DRIVES: [&str; 3] = ["samsung-hd400ld", "exos-x16", "atlas-10k-ii"];

/// Orders that can starve a request.
const ORDERS: [&str; 2] = ["sptf", "sstf"];

const DEPTH: u32 = 32;

/// The number of times that the counting guard lets a command be overtaken: four full queues.
const THRESHOLD: u32 = 128;

/// Thresholds of the trade-off.
const THRESHOLDS: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];

/// Costs of the trade-off, as shares of the throughput.
const COSTS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];

/// Nine requests in the first tenth of the disk, then one anywhere.
struct Corner {
    corner: Requests,
    anywhere: Requests,
    picked: u64,
}

impl Corner {
    fn new(spec: &DriveSpec) -> Result<Corner, ShapeError> {
        let pattern = Pattern::Random;
        let source = |region, seed| {
            Requests::new(Shape { region, pattern, sectors: SMALL, alignment: SMALL, read_share: 1.0 }, seed)
        };
        let (corner, all) = (first(spec, 0.1), Region::whole(spec.capacity_sectors));
        Ok(Corner { corner: source(corner, 1)?, anywhere: source(all, 2)?, picked: 0 })
    }
}

impl Pick for Corner {
    fn pick(&mut self, now: Instant) -> Request {
        self.picked += 1;
        if self.picked.is_multiple_of(10) { self.anywhere.pick(now) } else { self.corner.pick(now) }
    }
}

#[derive(Clone, Copy)]
enum Guarded {
    Never,
    Counting(u32),
    Adaptive(f64),
}

/// A drive with an order, and a guard before it.
struct Case {
    drive: &'static str,
    order: &'static str,
    guarded: Guarded,
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let count = setting.length.pick(100_000, 25_000);
    let mut cases = Vec::new();
    for drive in DRIVES {
        for order in ORDERS {
            let ways = [Guarded::Never, Guarded::Counting(THRESHOLD), Guarded::Adaptive(0.05)];
            cases.extend(ways.map(|guarded| Case { drive, order, guarded }));
        }
    }
    let outcomes = setting.map(&cases, |case| case.play(count))?;
    let mut measured = Vec::new();
    let columns = [
        "drive",
        "order",
        "guard",
        "IOPS",
        "of that without %",
        "longest ms",
        "of that without %",
        "most overtaken",
    ];
    let mut table = Table::new("With and without a guard", columns).with_words(3);
    for (cases, outcomes) in cases.chunks(3).zip(outcomes.chunks(3)) {
        let free = &outcomes[0];
        for (case, outcome) in cases.iter().zip(outcomes) {
            let (rate, longest) =
                (left(outcome, free, HostRun::iops), left(outcome, free, HostRun::longest_ms));
            measured.extend(case.metrics(outcome, rate, longest));
            table.named_row(
                [case.drive, case.order, case.guarded.name()],
                [
                    Some(outcome.iops()),
                    Some(100.0 * rate),
                    Some(outcome.longest_ms()),
                    Some(100.0 * longest),
                    outcome.worst_overtaken.map(f64::from),
                ],
            );
        }
    }
    let section = Section::new("A guard against starvation")
        .with_text("32 reads of 4 KiB outstanding, nine in ten of them in the first tenth of the disk. The guard stands at the host: it \
             cannot choose, only hold back. Thresholds of 8 to 512 overtakings, and stated costs of 1 to 20 %; age weighed \
             in the drive for comparison.")
        .with_chart(trade_off(setting, DRIVES[0], count)?)
        .with_chart(trade_off(setting, DRIVES[1], count)?)
        .with_table(table);
    Ok(Findings::new(measured, [section]))
}

/// A figure of one run, as a share of the same figure of another run.
fn left(outcome: &HostRun, of: &HostRun, figure: fn(&HostRun) -> f64) -> f64 {
    figure(outcome) / figure(of)
}

impl HostRun {
    fn iops(&self) -> f64 {
        self.responses.rate()
    }

    fn longest_ms(&self) -> f64 {
        self.responses.quantile_ms(1.0)
    }
}

impl Guarded {
    fn name(self) -> &'static str {
        match self {
            Guarded::Never => "none",
            Guarded::Counting(_) => "counting",
            Guarded::Adaptive(_) => "adaptive",
        }
    }

    fn keys(self) -> Vec<(&'static str, String)> {
        let guard = ("host.queue.guard", self.name().to_string());
        match self {
            Guarded::Never => Vec::new(),
            Guarded::Counting(threshold) => {
                vec![guard, ("host.queue.guard_threshold", threshold.to_string())]
            }
            Guarded::Adaptive(cost) => vec![guard, ("host.queue.guard_cost", cost.to_string())],
        }
    }
}

impl Case {
    fn play(&self, count: u64) -> Result<HostRun, StudyError> {
        let mut spec = if self.drive == DRIVES[0] { with_ncq()? } else { drives::load(self.drive)? };
        spec.queue.order = self.order.to_string();
        spec.queue.depth = DEPTH;
        spec.queue.window = None;
        let guard = self.guarded.keys();
        // The row has the kind of guard in words before its numbers.
        let keys: Vec<(&str, &str)> = guard.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let mut load = Closed::from_pick(Corner::new(&spec)?, DEPTH, count)?;
        play(&rig(&spec, &keys)?, &mut load)
    }

    fn metrics(&self, outcome: &HostRun, rate: f64, longest: f64) -> Vec<Measured> {
        let kind = self.guarded.name();
        let metric = |what: &str, value: f64| {
            Measured::new(format!("guard.{}.{}.{kind}.{what}", self.drive, self.order), value)
        };
        let mut all = match self.guarded {
            Guarded::Never => return Vec::new(),
            _ => vec![metric("throughput_left", rate), metric("longest_left", longest)],
        };
        if let (Guarded::Counting(_), Some(worst)) = (self.guarded, outcome.worst_overtaken) {
            all.push(metric("overtaken", f64::from(worst)));
        }
        all
    }
}

/// Throughput against the longest response.
fn trade_off(setting: &Setting<'_>, drive: &'static str, count: u64) -> Result<Chart, StudyError> {
    let points = |order: &'static str, ways: Vec<Guarded>| {
        let cases: Vec<Case> = ways.into_iter().map(|guarded| Case { drive, order, guarded }).collect();
        let outcomes = setting.map(&cases, |case| case.play(count))?;
        Ok::<_, StudyError>(outcomes.iter().map(|one| (one.longest_ms(), one.iops())).collect::<Vec<_>>())
    };
    let line = |name: &str, family, look, points| Series::new(name, family, points).with_draw(look);
    let aged = ["wstf(1000)", "wstf(2000)", "wstf(4000)"].map(|order| points(order, vec![Guarded::Never]));
    let mut weighed = Vec::new();
    for found in aged {
        weighed.extend(found?);
    }
    let mut lines = vec![
        line("counting", 0, Draw::Points, points("sptf", THRESHOLDS.map(Guarded::Counting).to_vec())?),
        line("adaptive", 1, Draw::Marks, points("sptf", COSTS.map(Guarded::Adaptive).to_vec())?),
        line("age in the drive (wstf)", 2, Draw::Points, weighed),
        line("none", 3, Draw::Marks, points("sptf", vec![Guarded::Never])?),
    ];
    for line in &mut lines {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    Ok(Chart::new(
        format!("Throughput and longest response under SPTF: {drive}"),
        Axis::log("longest response (ms)"),
        Axis::linear("IOPS"),
        lines,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_in_ten_lies_anywhere_on_the_disk() {
        let spec = with_ncq().expect("it is shipped");
        let corner = first(&spec, 0.1).sectors;
        let mut picks = Corner::new(&spec).expect("it fits");
        let far = (0..10_000).filter(|_| picks.pick(Instant::ZERO).lbn.0 >= corner).count();
        // One in ten of the requests sent anywhere falls into the first tenth as well.
        assert!((870..930).contains(&far), "{far}");
    }
}
