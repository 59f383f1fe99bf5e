//! The drives on which the laws are tested, and functions that run requests on them.

use headstack_model::spec::{BusSpec, CacheSpec, OverheadSpec, QueueSpec, ZeroLatency};
use headstack_model::{DriveSpec, Extent, Geometry, Instant, Lbn, Mechanics, Nanos, Request, drives};
use headstack_sim::{Completion, Device, DeviceOptions, Drive, DriveShape, Engine, Finished, Outcome};
use headstack_workload::{Closed, Load, Pattern, Region, Shape};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::sync::{Arc, LazyLock};

/// The head of every small drive's file. Head switch and seeks fit into the skews.
const SMALL: &str = r#"
name = "small"
title = "Made up for the tests"
evidence = "derived"
[bus]
read_us_per_sector = 20.0
write_us_per_sector = 20.0
[mechanics]
rpm = 6000.0
head_switch_ms = 0.9
write_settle_ms = 0.2
[mechanics.seek]
pieces = [
  { up_to_cylinders = 50, constant_ms = 0.8, sqrt_ms = 0.4 },
  { constant_ms = 2.6, linear_ms = 0.02 },
]
"#;

/// The layouts of the small drives: capacity and `[geometry]`.
const LAYOUTS: [(&str, u64, &str); 4] = [
    (
        "small-cylinder",
        4 * (60 * 120 + 60 * 90),
        r#"layout = "cylinder"
zones = [
  { first_cylinder = 0, last_cylinder = 59, sectors_per_track = 120, track_skew_sectors = 12, cylinder_skew_sectors = 20 },
  { first_cylinder = 60, last_cylinder = 119, sectors_per_track = 90, track_skew_sectors = 9, cylinder_skew_sectors = 15 },
]"#,
    ),
    (
        "small-serpentine",
        4 * (60 * 120 + 60 * 90) - 20,
        r#"layout = "serpentine"
sparing = "sectors-per-zone"
zones = [
  { first_cylinder = 0, last_cylinder = 59, sectors_per_track = 120, track_skew_sectors = 12, cylinder_skew_sectors = 20, spares = 10, slips = [5, 500] },
  { first_cylinder = 60, last_cylinder = 119, sectors_per_track = 90, track_skew_sectors = 9, cylinder_skew_sectors = 15, spares = 10 },
]"#,
    ),
    (
        "small-af",
        4 * (60 * 120 + 60 * 90),
        r#"layout = "af"
band_zones = [
  { first_cylinder = 0, last_cylinder = 59, band_tracks = 20, sectors_per_track = [120], track_skew_turns = 0.15, head_skew_turns = 0.12 },
  { first_cylinder = 60, last_cylinder = 119, band_tracks = 20, sectors_per_track = [90], track_skew_turns = 0.15, head_skew_turns = 0.12 },
]"#,
    ),
    (
        "small-extents",
        2 * 60 * (120 + 90),
        r#"layout = "extents"
[geometry.extents]
tracks = [[0, 120, 120], [0, 90, 90]]
groups = [
  [[0, 0, 30, 29, -1, 0.0, 0.15], [1, 1, 30, 0, 1, 0.3, 0.15]],
  [[0, 4, 0, 30, 0.0, 0.15]],
]"#,
    ),
];

/// A drive's specification, and the geometry and mechanics built from it.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) spec: DriveSpec,
    pub(crate) drive: Arc<Drive>,
}

impl Rig {
    pub(crate) fn new(spec: DriveSpec) -> Rig {
        let geometry = Geometry::new(&spec).unwrap_or_else(|error| panic!("{error}"));
        let drive = Arc::new(Drive { geometry, mechanics: Mechanics::new(&spec) });
        Rig { spec, drive }
    }

    /// The same drive with a changed specification.
    pub(crate) fn with(&self, change: impl FnOnce(&mut DriveSpec)) -> Rig {
        let mut spec = self.spec.clone();
        change(&mut spec);
        if spec.geometry != self.spec.geometry {
            return Rig::new(spec);
        }
        // The drive is reused where possible: most of its construction is the computation of the seek tables.
        let drive = if DriveShape::from(&spec) == DriveShape::from(&self.spec) {
            self.drive.clone()
        } else {
            let geometry = self.drive.geometry.clone();
            Arc::new(Drive { geometry, mechanics: Mechanics::new(&spec) })
        };
        Rig { spec, drive }
    }

    /// The same mechanics without a cache, and with electronics and a bus that take no time.
    pub(crate) fn plain(&self) -> Rig {
        self.with(|spec| {
            spec.cache = CacheSpec { enabled: false, ..CacheSpec::default() };
            spec.overhead = OverheadSpec::default();
            spec.bus = BusSpec::default();
            spec.queue = QueueSpec::default();
            spec.mechanics.retries = None;
            spec.mechanics.lost_turns = None;
            spec.media_cache = None;
            spec.shingled = None;
            spec.mechanics.recalibration = None;
            // With a negative settle, a write's seek would be shorter than a read's.
            spec.mechanics.write_settle_ms = spec.mechanics.write_settle_ms.max(0.0);
            spec.physical_sector_bytes = spec.sector_bytes;
        })
    }

    /// The same drive with this rule of zero-latency access for reads and writes.
    pub(crate) fn zero_latency(&self, rule: ZeroLatency) -> Rig {
        self.with(|spec| {
            spec.mechanics.zero_latency_read = rule;
            spec.mechanics.zero_latency_write = rule;
        })
    }

    pub(crate) fn device(&self) -> Device {
        self.device_with(&DeviceOptions::default())
    }

    pub(crate) fn device_with(&self, options: &DeviceOptions) -> Device {
        Device::with_drive(self.drive.clone(), &self.spec, options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A device with this queue depth and order.
    pub(crate) fn queued(&self, depth: u32, order: &str) -> Device {
        let order = Some(order.to_string());
        self.device_with(&DeviceOptions { seed: 1, depth: Some(depth), order })
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.drive.geometry
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.spec.capacity_sectors
    }

    /// A turn of the platter in ns, from the drive file.
    pub(crate) fn turn(&self) -> f64 {
        let mechanics = &self.spec.mechanics;
        60e9 / (mechanics.rpm * (1.0 + mechanics.rpm_deviation_percent / 100.0))
    }

    /// The time that is `turns` turns after `time`.
    pub(crate) fn after(&self, time: Instant, turns: f64) -> Instant {
        time + Nanos((turns * self.turn()).round() as u64)
    }

    /// `count` blocks, evenly spread over the disk.
    pub(crate) fn spread(&self, count: u64) -> impl Iterator<Item = Lbn> {
        let sectors = self.sectors();
        (0..count).map(move |index| {
            Lbn(((u128::from(2 * index + 1) * u128::from(sectors)) / u128::from(2 * count)) as u64)
        })
    }

    /// Up to `count` tracks, spread over the disk, that are one run of blocks without a spare or a defect.
    pub(crate) fn whole_tracks(&self, count: u64) -> Vec<Extent> {
        let runs = self.spread(4 * count).map(|lbn| self.geometry().extent_at(lbn));
        let whole = runs.filter(|run| {
            let track = self.geometry().track_at(run.first);
            run.sectors == run.sectors_per_track && track.first == run.first && track.sectors == run.sectors
        });
        whole.take(count as usize).collect()
    }
}

/// Every shipped drive, without a log on the media, shingled bands or zones: most laws assume that a write to any block goes directly to its
/// place.
pub(crate) fn shipped() -> Vec<Rig> {
    let plain =
        |rig: &Rig| rig.with(|spec| (spec.media_cache, spec.shingled, spec.zones) = (None, None, None));
    shipped_as_they_are().iter().map(plain).collect()
}

/// Every shipped drive with a log on the media, without zones.
pub(crate) fn shipped_with_logs() -> Vec<Rig> {
    let logs = shipped_as_they_are().iter().filter(|rig| rig.spec.media_cache.is_some());
    logs.map(|rig| rig.with(|spec| spec.zones = None)).collect()
}

/// Every shipped drive with shingled bands.
pub(crate) fn shipped_shingled() -> Vec<Rig> {
    let shingled = drives::all().iter().filter(|(_, text)| text.contains("[shingled]"));
    let load = |name: &str| Rig::new(drives::load(name).unwrap_or_else(|error| panic!("{error}")));
    shingled.map(|(name, _)| load(name)).collect()
}

/// Every shipped drive, built once for all tests.
fn shipped_as_they_are() -> &'static [Rig] {
    static SHIPPED: LazyLock<Vec<Rig>> = LazyLock::new(|| {
        let load = |name: &str| Rig::new(drives::load(name).unwrap_or_else(|error| panic!("{error}")));
        drives::all().iter().map(|(name, _)| load(name)).collect()
    });
    &SHIPPED
}

/// Small invented drives, one for each layout.
pub(crate) fn small() -> Vec<Rig> {
    LAYOUTS.iter().map(|(name, sectors, geometry)| Rig::new(small_spec(name, *sectors, geometry))).collect()
}

fn small_spec(name: &str, sectors: u64, geometry: &str) -> DriveSpec {
    let head = SMALL.replace("\"small\"", &format!("\"{name}\""));
    let (top, tables) = head.split_once("[bus]").expect("the text has a bus");
    let heads = if name == "small-extents" { 2 } else { 4 };
    let text = format!(
        "{top}capacity_sectors = {sectors}\n[bus]{tables}\n[geometry]\nheads = {heads}\ncylinders = 120\n{geometry}\n"
    );
    DriveSpec::parse(&text, name).unwrap_or_else(|error| panic!("{error}"))
}

/// Every shipped drive and the small ones.
pub(crate) fn all() -> Vec<Rig> {
    shipped().into_iter().chain(small()).collect()
}

/// All drives with their mechanics alone.
pub(crate) fn all_plain() -> Vec<Rig> {
    all().iter().map(Rig::plain).collect()
}

pub(crate) fn seeded(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// A random block that is followed by enough blocks for a request of `sectors` sectors.
pub(crate) fn any_lbn(random: &mut Pcg64Mcg, rig: &Rig, sectors: u32) -> Lbn {
    Lbn(random.random_range(0..=rig.sectors() - u64::from(sectors)))
}

/// Advances the device until a command completes.
pub(crate) fn next(device: &mut Device) -> Completion {
    loop {
        if let Some(completion) = device.poll_completion() {
            return completion;
        }
        let at = device.poll_timeout().expect("a command is outstanding");
        device.handle_timeout(at);
    }
}

/// Serves one request alone, which must succeed.
pub(crate) fn serve(device: &mut Device, at: Instant, request: Request) -> Completion {
    device.submit(at, request).expect("nothing else is outstanding");
    let completion = next(device);
    assert_eq!(completion.outcome, Outcome::Done);
    completion
}

/// Submits all requests at one time. Returns the completions in order.
pub(crate) fn serve_all(device: &mut Device, at: Instant, requests: &[Request]) -> Vec<Completion> {
    for request in requests {
        device.submit(at, *request).expect("the queue is deep enough");
    }
    requests.iter().map(|_| next(device)).collect()
}

/// Seek (with settle) and rotational latency, in ns.
pub(crate) fn positioning(completion: &Completion) -> u64 {
    completion.parts.seek.0 + completion.parts.rotational_latency.0
}

/// Runs a load on one device. Returns the finished requests and the time of the last completion.
pub(crate) fn run(device: Device, load: &mut dyn Load) -> (Vec<Finished>, Instant) {
    let mut engine = Engine::new(vec![device]);
    let mut finished = Vec::new();
    engine.run(load, &mut |one| finished.push(*one));
    let end = finished.iter().map(|one| one.completion.completed).max().unwrap_or(Instant::ZERO);
    (finished, end)
}

/// Random reads of single blocks of the whole disk.
pub(crate) fn random_blocks(rig: &Rig) -> Shape {
    let region = Region::whole(rig.sectors());
    Shape { region, pattern: Pattern::Random, sectors: 1, alignment: 1, read_share: 1.0 }
}

/// Requests per second of a closed load.
pub(crate) fn closed_rate(device: Device, shape: Shape, depth: u32, requests: u64) -> f64 {
    let mut load = Closed::new(shape, depth, requests, 7).expect("the load fits");
    let (finished, end) = run(device, &mut load);
    finished.len() as f64 / end.as_secs()
}

/// The angle under the heads when a command ends, minus the angle at which the sector `last` ends, in turns from −0.5 to 0.5. It is near zero
/// if that sector has just passed the head.
pub(crate) fn past_sector(rig: &Rig, completed: Instant, last: Lbn) -> f64 {
    let place = rig.geometry().locate(last);
    let spt = rig.geometry().extent_at(last).sectors_per_track;
    let end = place.angle.as_turns() + 1.0 / f64::from(spt);
    let turns = completed.0 as f64 / rig.turn();
    (turns - end + 0.5).rem_euclid(1.0) - 0.5
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard error of the mean of independent values.
pub(crate) fn standard_error(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0) / values.len() as f64).sqrt()
}

/// Asserts that two numbers differ by at most `tolerance`.
#[track_caller]
pub(crate) fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{what}: {found} where {expected} is expected, give or take {tolerance}"
    );
}
