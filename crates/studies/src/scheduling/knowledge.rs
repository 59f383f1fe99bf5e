//! The value of knowing the mapping and the cache, on the drive of the 1994 study that asked this.
//!
//! The traces of Worthington, Ganger and Patt are not public. Their findings are compared with random reads and with readers of short runs,
//! whose requests arrive without waiting for each other.

use super::queue::{Case, Grid};
use super::zoned::{MAPPED, saved};
use crate::judge::Measured;
use crate::runs;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series};
use headstack_model::{DriveSpec, Nanos, drives};
use headstack_sim::DeviceOptions;
use headstack_workload::process::{Processes, SyntheticSpec};
use headstack_workload::{Distribution, VolumeInfo};

/// The drive of the study, with which its authors also validated their simulator.
const DRIVE: &str = "hp-c2247a";

/// Queue lengths at which knowledge of the mapping is judged.
const LENGTHS: [u32; 2] = [10, 100];

/// The orders that only reduce seeks, as that study compares them: by LBN, starting with C-LOOK, and by cylinder.
const BY_LBN: [&str; 3] = ["c-look", "look-lbn", "sstf-lbn"];
const BY_CYLINDER: [&str; 1] = ["vr"];

/// The orders that know more.
const BY_POSITION: [&str; 3] = ["sptf", "spctf", "aspctf"];

/// All orders that are run.
fn orders() -> impl Iterator<Item = &'static str> {
    ["fcfs"].into_iter().chain(BY_LBN).chain(BY_CYLINDER).chain(BY_POSITION)
}

/// Arrival rates in requests per second, and the one that is judged.
const RATES: [u32; 5] = [20, 40, 60, 80, 100];
const JUDGED: u32 = 60;

/// Requests of a run that count, and warm-up requests before them.
const COUNT: u64 = 100_000;
const WARM_UP: u64 = 2_000;

/// Number of readers, blocks per request, and the share of the requests that continue the reader's last one.
const READERS: u32 = 8;
const SECTORS: u32 = 16;
const SEQUENTIAL: f64 = 0.75;

/// Time from a request to the one that continues it.
const STEP: Nanos = Nanos(1_000_000);

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drives::load(DRIVE)?;
    let mut measured = mapping(setting, &spec)?;
    let readers = Readers::run(setting, &spec)?;
    measured.extend(readers.measured());
    Ok(Findings { measured, sections: vec![readers.section()] })
}

/// What each order saves by knowing the cylinders.
fn mapping(setting: &Setting<'_>, spec: &DriveSpec) -> Result<Vec<Measured>, StudyError> {
    let orders = MAPPED.iter().flat_map(|(_, by_lbn, by_cylinder)| [*by_lbn, *by_cylinder]);
    let case = |(order, length): (&'static str, u32)| Case { order, form: order.to_string(), length };
    let cases = orders.flat_map(|order| LENGTHS.map(|length| case((order, length))));
    let grid = Grid::run(setting, spec, cases.collect())?;
    let metrics = MAPPED.iter().flat_map(|names| LENGTHS.map(|length| (names, length)));
    let one = |((name, by_lbn, by_cylinder), length): (&(&str, &str, &str), u32)| {
        let percent = saved(&grid, by_lbn, by_cylinder, length)?;
        Some(Measured::new(format!("wgp94.mapping.{name}.q{length}_percent"), percent))
    };
    Ok(metrics.filter_map(one).collect())
}

/// Mean responses to readers of short runs, by order and rate.
struct Readers(Vec<(&'static str, u32, f64)>);

impl Readers {
    fn run(setting: &Setting<'_>, spec: &DriveSpec) -> Result<Readers, StudyError> {
        let count = setting.length.pick(COUNT, COUNT / 10);
        let rates = setting.length.pick(&RATES[..], &[JUDGED]);
        let cases: Vec<(&str, u32)> =
            orders().flat_map(|order| rates.iter().map(move |rate| (order, *rate))).collect();
        let means = setting.map(&cases, |(order, rate)| mean_ms(spec, order, *rate, count))?;
        Ok(Readers(cases.into_iter().zip(means).map(|((order, rate), mean)| (order, rate, mean)).collect()))
    }

    fn mean_ms(&self, order: &str) -> f64 {
        let found = self.0.iter().find(|(known, rate, _)| *known == order && *rate == JUDGED);
        found.map_or(f64::NAN, |(_, _, mean)| *mean)
    }

    fn measured(&self) -> [Measured; 5] {
        let [c_look, others @ ..] = BY_LBN.map(|order| self.mean_ms(order));
        let best = others.into_iter().fold(f64::INFINITY, f64::min);
        let [vr, sptf, spctf] = ["vr", "sptf", "spctf"].map(|order| self.mean_ms(order));
        let metric = |name: &str, value| Measured::new(format!("wgp94.read-sequential.{name}"), value);
        [
            metric("c-look", c_look / best),
            metric("c-look-over-vr", c_look / vr),
            metric("spctf-over-sptf", spctf / sptf),
            metric("sptf-over-c-look", sptf / c_look),
            metric("spctf-over-c-look", spctf / c_look),
        ]
    }

    fn section(&self) -> Section {
        let lines = orders().enumerate().map(|(family, order)| {
            let here = self.0.iter().filter(|(known, ..)| *known == order);
            let points = here.map(|(_, rate, mean)| (f64::from(*rate), *mean));
            Series::new(order, family, points).with_dashes(family > 4)
        });
        Section::new("HP C2247A: orders and the cache")
            .with_text(format!(
                "{READERS} readers, whose requests of 8 KiB continue the last one after a millisecond three times out of four; none waits for another. The rates are of all readers together; rows are judged at {JUDGED} a second."
            ))
            .with_chart(Chart::new("Mean response over the rate", Axis::linear("requests a second"), Axis::log("ms"), lines))
    }
}

/// Readers that together issue `rate` requests per second.
fn readers(rate: u32) -> SyntheticSpec {
    let each = f64::from(READERS) * 1e3 / f64::from(rate);
    let gap_ms = (each - SEQUENTIAL * STEP.as_ms()) / (1.0 - SEQUENTIAL);
    SyntheticSpec {
        processes: READERS,
        volumes: Vec::new(),
        capacity_sectors: None,
        blocking_sectors: SECTORS,
        sequential_share: SEQUENTIAL,
        local_share: 0.0,
        read_share: 1.0,
        critical_share: 0.0,
        limited_share: 0.0,
        urgent_waits: false,
        size_sectors: Distribution::Constant(f64::from(SECTORS)),
        local_distance_sectors: Distribution::Constant(0.0),
        gap: Distribution::Exponential { base: Nanos::ZERO, mean: Nanos((gap_ms * 1e6) as u64) },
        sequential_gap: Distribution::Constant(STEP),
        local_gap: Distribution::default(),
        time_limit: Distribution::default(),
    }
}

fn mean_ms(spec: &DriveSpec, order: &str, rate: u32, count: u64) -> Result<f64, StudyError> {
    let options = DeviceOptions { seed: 1, depth: Some(1024), order: Some(order.to_string()) };
    let volume = VolumeInfo {
        name: spec.name.clone(),
        sectors: spec.capacity_sectors,
        sector_bytes: spec.sector_bytes,
        zones: None,
    };
    let mut load = Processes::synthetic(&[readers(rate)], &[volume], WARM_UP + count, 1)?;
    let (mut met, mut sum) = (0, 0.0);
    runs::run_load(spec, &options, &mut load, |finished| {
        met += 1;
        if met > WARM_UP {
            sum += finished.completion.response().as_ms();
        }
    })?;
    Ok(sum / count as f64)
}
