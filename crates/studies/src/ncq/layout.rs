//! Ordering by LBN against ordering by true cylinder, at a host with ten outstanding requests.
//!
//! The study's trace, a thousand requests of Filebench, cannot be obtained. It is replaced by random reads of 128 KiB over a file in the
//! first quarter of the disk. Linux's read-ahead splits the reads of a file into this size, and the study's loads for elevators have it.
//! The size of the file follows from the study's arm movement: by cylinder the arm moved 3,148 cylinders per request. With ten waiting
//! requests and a one-way sweep, that is a tenth of the file's cylinders, which makes the file a quarter of the HD400LD.

use super::{first, play, random, rig};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::spec::{BandZone, Layout, Zone};
use headstack_model::{DriveSpec, drives};

const DRIVES: [&str; 4] = ["samsung-hd400ld", "wd2500jb", "st3300007lw", "st3146707lw"];

/// Requests outstanding at the host, one of them in the drive.
const QUEUE: u32 = 10;

/// Requests of a run, as in the study.
const REQUESTS: u64 = 1000;

/// Sectors of 128 KiB, Linux's read-ahead (`read_ahead_kb`). *Source:* inferred from the HD400LD's time by LBN: reads of 8 KiB take
/// 2 ms less than published.
const SECTORS: u32 = 256;

/// Share of the disk that the file occupies.
const SHARE: f64 = 0.25;

/// Parts with equal numbers of cylinders, into which a disk is divided to give it another layout.
const QUARTERS: u32 = 4;

const COLUMNS: [&str; 8] = [
    "layout",
    "cylinders by LBN",
    "by cylinder",
    "left %",
    "ms by LBN",
    "by cylinder",
    "left %",
    "by position",
];

/// Band widths for the figure: consecutive tracks on one surface.
const WIDTHS: [u32; 8] = [32, 100, 320, 1000, 3200, 6400, 12_800, 30_000];

/// A host's order and what it knows.
#[derive(Clone, Copy)]
struct By {
    order: &'static str,
    knows: &'static str,
}

const LBN: By = By { order: "c-look", knows: "lbn" };
const CYLINDER: By = By { order: "c-look-cylinder", knows: "cylinder" };
const POSITION: By = By { order: "sptf", knows: "position" };

/// Means over all runs.
#[derive(Clone, Copy, Default)]
struct Found {
    cylinders: f64,
    service_ms: f64,
    wait_ms: f64,
}

/// The same load under three orders.
#[derive(Clone, Copy)]
struct Three {
    lbn: Found,
    cylinder: Found,
    position: Found,
}

impl Three {
    fn distance_left(&self) -> f64 {
        100.0 * self.cylinder.cylinders / self.lbn.cylinders
    }

    fn service_left(&self) -> f64 {
        100.0 * self.cylinder.service_ms / self.lbn.service_ms
    }

    /// The numbers of a table row.
    fn numbers(&self) -> [f64; 7] {
        let Three { lbn, cylinder, position } = self;
        [
            lbn.cylinders,
            cylinder.cylinders,
            self.distance_left(),
            lbn.service_ms,
            cylinder.service_ms,
            self.service_left(),
            position.service_ms,
        ]
    }
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let runs = setting.length.pick(16, 2);
    let threes = setting.map(&DRIVES, |drive| three(&drives::load(drive)?, runs))?;
    let mut measured = Vec::new();
    let mut table = Table::new("A request at queue 10: by LBN, by cylinder, by the whole position", COLUMNS);
    for (drive, found) in DRIVES.into_iter().zip(&threes) {
        measured.extend(metrics(drive, found));
        table.named_row([drive], found.numbers());
    }
    let section = Section::new("Ordering by LBN and by true position")
        .with_text("Random reads of 128 KiB over the first quarter of the disk, ten of them waiting at the host, one in the drive. \
             The drives are laid out as the study's table says: each surface of a quarter of the cylinders before the next surface.")
        .with_chart(widths(setting)?)
        .with_table(table)
        .with_table(layouts(setting)?);
    Ok(Findings::new(measured, [section]))
}

fn metrics(name: &str, found: &Three) -> Vec<Measured> {
    let metric = |what: &str, value: f64| Measured::new(format!("{name}.{what}"), value);
    let mut all = vec![
        metric("distance_left", found.distance_left()),
        metric("service_left", found.service_left()),
        metric("service_by_lbn", 1e3 * found.lbn.service_ms),
    ];
    if name == DRIVES[0] {
        all.extend([
            metric("distance_by_lbn", found.lbn.cylinders * REQUESTS as f64),
            metric("wait_over_service_by_lbn", found.lbn.wait_ms / found.lbn.service_ms),
            metric("wait_over_service_by_cylinder", found.cylinder.wait_ms / found.cylinder.service_ms),
        ]);
    }
    all
}

fn three(spec: &DriveSpec, runs: u64) -> Result<Three, StudyError> {
    let [lbn, cylinder, position] = [LBN, CYLINDER, POSITION].map(|by| found(spec, by, runs));
    Ok(Three { lbn: lbn?, cylinder: cylinder?, position: position? })
}

fn found(spec: &DriveSpec, by: By, runs: u64) -> Result<Found, StudyError> {
    let keys = [("host.queue.depth", "1"), ("host.queue.order", by.order), ("host.queue.knows", by.knows)];
    let rig = rig(spec, &keys)?;
    let mut sum = Found::default();
    for seed in 0..runs {
        let mut load = random(first(spec, SHARE), SECTORS, QUEUE, REQUESTS, seed)?;
        let outcome = play(&rig, &mut load)?;
        sum.cylinders += outcome.cylinders as f64 / REQUESTS as f64;
        sum.service_ms += 1e3 / outcome.responses.rate();
        sum.wait_ms += outcome.responses.mean_ms();
    }
    let mean = |sum: f64| sum / runs as f64;
    Ok(Found { cylinders: mean(sum.cylinders), service_ms: mean(sum.service_ms), wait_ms: mean(sum.wait_ms) })
}

/// The remaining arm movement of ordering by cylinder, in percent of that by LBN, over the number of consecutive tracks on one surface.
fn widths(setting: &Setting<'_>) -> Result<Chart, StudyError> {
    let mut lines = Vec::new();
    for (family, drive) in [DRIVES[3], DRIVES[0], DRIVES[2]].into_iter().enumerate() {
        let spec = drives::load(drive)?;
        let runs = setting.length.pick(8, 1);
        let left = setting.map(&WIDTHS, |width| Ok(three(&banded(&spec, *width), runs)?.distance_left()))?;
        let points = WIDTHS.iter().map(|width| f64::from(*width)).zip(left);
        let name = format!("{drive}, {} surfaces", spec.geometry.heads);
        lines.push(Series::new(name, family, points));
    }
    Ok(Chart::new(
        "Arm movement by cylinder, of that by LBN",
        Axis::log("tracks of a surface in a row").with_ticks([32.0, 320.0, 3200.0, 30_000.0]),
        Axis::linear("distance left (%)"),
        lines,
    ))
}

/// The HD400LD with other layouts, some of them with surfaces of different density.
fn layouts(setting: &Setting<'_>) -> Result<Table, StudyError> {
    let spec = drives::load(DRIVES[0])?;
    let ways = [
        ("cylinder", by_cylinder(&spec, Layout::Cylinder)),
        ("cylinder serpentine", by_cylinder(&spec, Layout::Serpentine)),
        ("bands of 700", banded(&spec, 700)),
        ("surface serpentine, a quarter of the disk", dense(by_surface(&spec, Layout::Af, u32::MAX))),
        ("hybrid serpentine, bands of 700", dense(by_surface(&spec, Layout::Aa, 700))),
        ("hybrid serpentine, bands of 7,000", dense(by_surface(&spec, Layout::Aa, 7000))),
    ];
    let runs = setting.length.pick(8, 1);
    let threes = setting.map(&ways, |(_, spec)| three(spec, runs))?;
    let mut table = Table::new(
        "The HD400LD laid out otherwise; serpentines over surfaces 10 % apart in density",
        COLUMNS,
    );
    for ((name, _), found) in ways.iter().zip(&threes) {
        table.named_row([*name], found.numbers());
    }
    Ok(table)
}

/// The same disk in bands of `tracks` tracks. A band is at most a quarter of the cylinders.
fn banded(spec: &DriveSpec, tracks: u32) -> DriveSpec {
    by_surface(spec, spec.geometry.layout, tracks)
}

/// The quarters of a disk: first and last cylinder, and mean sectors per track.
fn quarters(spec: &DriveSpec) -> Vec<(u32, u32, u32)> {
    let cylinders = spec.geometry.cylinders;
    let edge = |quarter: u32| (u64::from(cylinders) * u64::from(quarter) / u64::from(QUARTERS)) as u32;
    let mean = |from: u32, to: u32| {
        let overlap =
            |zone: &BandZone| (zone.last_cylinder + 1).min(to).saturating_sub(zone.first_cylinder.max(from));
        let zones = spec.geometry.band_zones.iter();
        let sum: u64 =
            zones.map(|zone| u64::from(overlap(zone)) * u64::from(zone.sectors_per_track[0])).sum();
        (sum / u64::from(to - from)) as u32
    };
    (0..QUARTERS)
        .map(|quarter| (edge(quarter), edge(quarter + 1), mean(edge(quarter), edge(quarter + 1))))
        .map(|(from, to, sectors)| (from, to - 1, sectors))
        .collect()
}

fn by_surface(spec: &DriveSpec, layout: Layout, tracks: u32) -> DriveSpec {
    let usual = &spec.geometry.band_zones[0];
    let zone = |(first, last, sectors): (u32, u32, u32)| BandZone {
        first_cylinder: first,
        last_cylinder: last,
        band_tracks: tracks.min(last + 1 - first),
        sectors_per_track: vec![sectors],
        spares: 0,
        slips: Vec::new(),
        ..usual.clone()
    };
    let mut spec = spec.clone();
    spec.geometry.band_zones = quarters(&spec).into_iter().map(zone).collect();
    spec.geometry.layout = layout;
    spec.capacity_sectors = places(&spec);
    spec
}

/// The same disk with every other surface 5 % denser than the mean, and the rest 5 % less dense.
fn dense(mut spec: DriveSpec) -> DriveSpec {
    let heads = spec.geometry.heads;
    for zone in &mut spec.geometry.band_zones {
        let mean = zone.sectors_per_track[0];
        let of = |head: u32| if head.is_multiple_of(2) { mean + mean / 20 } else { mean - mean / 20 };
        zone.sectors_per_track = (0..heads).map(of).collect();
    }
    spec.capacity_sectors = places(&spec);
    spec
}

fn by_cylinder(spec: &DriveSpec, layout: Layout) -> DriveSpec {
    let usual = &spec.geometry.band_zones[0];
    let zone = |(first, last, sectors): (u32, u32, u32)| Zone {
        first_cylinder: first,
        last_cylinder: last,
        sectors_per_track: sectors,
        first_sector_offset_sectors: 0.0,
        track_skew_sectors: (usual.head_skew_turns * f64::from(sectors)).round(),
        cylinder_skew_sectors: (usual.track_skew_turns * f64::from(sectors)).round(),
        front_gap_sectors: 0,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    let mut other = spec.clone();
    other.geometry.zones = quarters(spec).into_iter().map(zone).collect();
    other.geometry.band_zones = Vec::new();
    other.geometry.layout = layout;
    let tracks = |zone: &Zone| {
        u64::from(zone.last_cylinder + 1 - zone.first_cylinder) * u64::from(spec.geometry.heads)
    };
    other.capacity_sectors =
        other.geometry.zones.iter().map(|zone| tracks(zone) * u64::from(zone.sectors_per_track)).sum();
    other
}

/// Sectors of a disk in bands without spares.
fn places(spec: &DriveSpec) -> u64 {
    let heads = spec.geometry.heads as usize;
    let of = |zone: &BandZone| {
        let cylinders = u64::from(zone.last_cylinder + 1 - zone.first_cylinder);
        let all = zone.sectors_per_track.iter().cycle().take(heads.max(zone.sectors_per_track.len()));
        cylinders * all.map(|sectors| u64::from(*sectors)).sum::<u64>()
    };
    spec.geometry.band_zones.iter().map(of).sum()
}
