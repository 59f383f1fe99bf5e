//! Two schedulers in series: elevators with the drive's own queue off and on.
//!
//! The loads are the study's: p = 16 processes read s bytes in sequence, r times, each time at a random place. The study does not say which
//! drive it measured; here it is the study's HD400LD with NCQ. A process reads 128 KiB at a time, the size of the requests that Linux's
//! read-ahead sends to a disk. A third load is 32 random readers, as in a published measurement of a 500 GB disk of 7,200 rpm.
//!
//! The firmware is that of the ST2000DM006, whose order was measured. It does not read ahead after queued reads, as some drives of the time
//! did not (WD Raptor, about 2007). NCQ off is a queue depth of 1, at which Linux sends unqueued commands.
//! *Source:* `drives/st2000dm006.toml`; Wikipedia, "Native Command Queuing", performance; libata FAQ, disabling NCQ.

use super::{SMALL, play, random, rig, with_ncq};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::{QueueSpec, Tagging};
use headstack_model::{DriveSpec, Op, drives};
use headstack_workload::process::{BurstShape, Processes};
use headstack_workload::{Load, Region};

const ELEVATORS: [&str; 5] = ["noop", "deadline", "anticipatory", "cfq", "bfq"];

/// The elevators that the study tried.
const JUDGED: [&str; 2] = ["deadline", "anticipatory"];

const PROCESSES: u32 = 16;

/// A load of the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// (16, 4,000, 100).
    Random,
    /// (16, 10,000,000, 1).
    Sequential,
    /// 32 readers of 4 KiB all over the disk.
    Readers,
}

impl Which {
    const ALL: [Which; 3] = [Which::Random, Which::Sequential, Which::Readers];

    fn title(self) -> &'static str {
        match self {
            Which::Random => "p = 16, s = 4,000, r = 100",
            Which::Sequential => "p = 16, s = 10,000,000, r = 1",
            Which::Readers => "32 random readers",
        }
    }

    fn load(self, spec: &DriveSpec, count: u64, seed: u64) -> Result<Box<dyn Load>, StudyError> {
        let region = Region::whole(spec.capacity_sectors);
        let bytes = u64::from(spec.sector_bytes);
        let burst = |run_bytes: u64, sectors: u32, times: u64| BurstShape {
            region,
            processes: PROCESSES,
            run: run_bytes.div_ceil(bytes),
            times,
            sectors,
            alignment: SMALL,
            op: Op::Read,
        };
        Ok(match self {
            Which::Random => Box::new(Processes::bursts(&burst(4000, SMALL, 100), u64::MAX, seed)?),
            Which::Sequential => Box::new(Processes::bursts(&burst(10_000_000, 256, 1), u64::MAX, seed)?),
            Which::Readers => Box::new(random(region, SMALL, 32, count, seed)?),
        })
    }
}

/// An elevator before the drive. It sends one command at a time, or fills the drive's tags.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Case {
    which: Which,
    elevator: &'static str,
    ncq: bool,
}

/// The HD400LD's mechanics with the firmware of the ST2000DM006, which does not read ahead after queued reads.
fn with_firmware() -> Result<DriveSpec, StudyError> {
    let measured = drives::load("st2000dm006")?.queue;
    let queue = QueueSpec { read_ahead: false, ..measured };
    Ok(DriveSpec { queue, ..with_ncq()? })
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = with_firmware()?;
    let mut cases = Vec::new();
    for which in Which::ALL {
        for elevator in ELEVATORS {
            cases.extend([false, true].map(|ncq| Case { which, elevator, ncq }));
        }
    }
    let runs = setting.length.pick(8, 4);
    let rates = setting.map(&cases, |case| rate(&spec, case, runs))?;
    let rate = |which, elevator, ncq| {
        let case = Case { which, elevator, ncq };
        cases.iter().zip(&rates).find(|(other, _)| **other == case).map_or(f64::NAN, |(_, rate)| *rate)
    };
    Ok(Findings::new(metrics(&rate), [section(&rate)]))
}

fn rate(spec: &DriveSpec, case: &Case, runs: u64) -> Result<f64, StudyError> {
    let mut spec = spec.clone();
    spec.queue.depth = if case.ncq { Tagging::NCQ_TAGS } else { 1 };
    let depth = spec.queue.depth.to_string();
    let rig = rig(&spec, &[("host.queue.elevator", case.elevator), ("host.queue.depth", &depth)])?;
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for seed in 0..runs {
        let mut load = case.which.load(&spec, 2000, seed)?;
        let outcome = play(&rig, load.as_mut())?;
        bytes += outcome.bytes as f64;
        seconds += outcome.responses.seconds();
    }
    Ok(bytes / 1e6 / seconds)
}

/// MB/s of a load with an elevator, NCQ off or on.
type Rates<'a> = &'a dyn Fn(Which, &'static str, bool) -> f64;

fn metrics(rate: Rates<'_>) -> Vec<Measured> {
    let mut all = Vec::new();
    let mut both = |name: &str, which, elevator| {
        let both = rate(which, elevator, true);
        let metric = |by: &str, value: f64| Measured::new(format!("{name}.{elevator}.both_by_{by}"), value);
        all.extend([
            metric("elevator", both / rate(which, elevator, false)),
            metric("ncq", both / rate(which, "noop", true)),
        ]);
    };
    JUDGED.iter().for_each(|elevator| both("random", Which::Random, elevator));
    both("sequential", Which::Sequential, "anticipatory");
    let readers = |elevator, ncq| rate(Which::Readers, elevator, ncq);
    let (neither, elevator, ncq) =
        (readers("noop", false), readers("deadline", false), readers("noop", true));
    all.extend([
        Measured::new("readers.elevator_by_neither", elevator / neither),
        Measured::new("readers.ncq_by_elevator", ncq / elevator),
        Measured::new("readers.both_by_better", readers("deadline", true) / elevator.max(ncq)),
    ]);
    all
}

fn section(rate: Rates<'_>) -> Section {
    let mut table = Table::new("Throughput (MB/s)", ["load", "elevator", "NCQ off", "NCQ on"]).with_words(2);
    let mut figures = Vec::new();
    for which in Which::ALL {
        let of = |ncq| ELEVATORS.map(|elevator| rate(which, elevator, ncq));
        for (elevator, (off, on)) in ELEVATORS.iter().zip(of(false).into_iter().zip(of(true))) {
            table.named_row([which.title(), *elevator], [off, on]);
        }
        let marks = |name: &str, family, ncq| {
            Series::new(name, family, of(ncq).into_iter().enumerate().map(|(at, rate)| (at as f64, rate)))
                .with_draw(Draw::Marks)
        };
        figures.push(Chart::new(
            which.title().to_string(),
            Axis::of_names("elevator", ELEVATORS.map(str::to_string)),
            Axis::linear("MB/s"),
            [marks("NCQ off", 0, false), marks("NCQ on", 1, true)],
        ));
    }
    Section::new("Elevators before a drive that reorders")
        .with_text("The HD400LD's mechanics behind NCQ, with the ST2000DM006's order. Off, the drive gets one command at a time and reads \
             ahead; on, it gets as many as it has tags and does not read ahead.")
        .with_charts(figures)
        .with_table(table)
}
