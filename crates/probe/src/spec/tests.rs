use super::*;
use crate::drive::ProbeTarget;
use crate::learn::tests::learn;
use crate::simulated::Noise;
use headstack_model::spec::Layout;
use headstack_model::{Instant, Lbn, Nanos, Request, drives};
use headstack_sim::stats::demerit;
use headstack_sim::{Device, DeviceOptions};
use headstack_tracks::{TrackMap, check};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The drive and its probed file, with the drive's own electronics.
fn probed(name: &str) -> (DriveSpec, DriveSpec) {
    let spec = drives::load(name).expect("it is shipped");
    let (learned, disk) = learn(&spec, Noise::USUAL);
    let mut file = mechanics_file(name, &disk.info(), &learned).expect("its tracks can be expressed");
    (file.overhead, file.cache) = (spec.overhead.clone(), spec.cache.clone());
    (file.bus, file.queue) = (spec.bus.clone(), spec.queue.clone());
    file.mechanics.zero_latency_read = spec.mechanics.zero_latency_read;
    file.mechanics.zero_latency_write = spec.mechanics.zero_latency_write;
    let again = DriveSpec::parse(&text(&file), "probed.toml").expect("what is written can be read");
    assert_eq!(again, file);
    (spec, file)
}

/// Largest difference of angles from those of the drive, in turns.
fn angle_off(spec: &DriveSpec, file: &DriveSpec) -> f64 {
    let (truth, found) = (Geometry::new(spec).expect("it holds"), Geometry::new(file).expect("it holds"));
    let off = |lbn: Lbn| {
        let units = found.locate(lbn).angle - truth.locate(lbn).angle;
        f64::from(units.0) / 4_294_967_296.0
    };
    let origin = off(Lbn(0));
    let step = (truth.sectors() / 20_011).max(1) as usize;
    (0..truth.sectors())
        .step_by(step)
        .map(|lbn| turn_between(origin, off(Lbn(lbn))).abs())
        .fold(0.0, f64::max)
}

#[test]
fn mechanics_file_reproduces_tracks_and_angles() {
    // Whole tracks slipped; single sectors slipped, whose places within their tracks are not learned; bands.
    for (name, layout, most_off) in [
        ("hp-c2247a", Layout::Cylinder, 5e-4),
        ("atlas-10k", Layout::Cylinder, 3.0 / 324.0),
        ("toshiba-x300", Layout::Af, 5e-4),
    ] {
        let (spec, file) = probed(name);
        assert_eq!(file.geometry.layout, layout, "{name}");
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let found = TrackMap::of_geometry(&Geometry::new(&file).expect("it holds"));
        assert_eq!(found, truth, "{name}");
        let off = angle_off(&spec, &file);
        assert!(off <= most_off, "{name}: angles off by up to {off} turns");
    }
}

/// Response times of consecutive requests: reads of a page, or reads and writes of several.
fn response_times(spec: &DriveSpec, is_mixed: bool) -> Vec<Nanos> {
    let mut device = Device::new(spec, &DeviceOptions::default()).expect("it holds");
    let mut random = Pcg64Mcg::seed_from_u64(20);
    let mut now = Instant::ZERO;
    (0..6000)
        .map(|_| {
            let sectors = if is_mixed { 8 * random.random_range(1..9) } else { 8 };
            let lbn = Lbn(random.random_range(0..(device.sectors() - 64) / 8) * 8);
            let is_write = is_mixed && random.random_bool(0.33);
            let request = if is_write { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
            now += Nanos(random.random_range(0..20_000_000));
            device.submit(now, request).expect("none is in flight");
            loop {
                if let Some(done) = device.poll_completion() {
                    now = now.max(done.completed);
                    return done.response();
                }
                now = now.max(device.poll_timeout().expect("one is in flight"));
                device.handle_timeout(now);
            }
        })
        .collect()
}

/// Distance between the response times of a drive and of its probed file, as a share of the mean.
fn demerit_share(spec: &DriveSpec, file: &DriveSpec, is_mixed: bool) -> f64 {
    let (truth, found) = (response_times(spec, is_mixed), response_times(file, is_mixed));
    let mean = truth.iter().map(|time| time.as_ms()).sum::<f64>() / truth.len() as f64;
    demerit::exact_ms(&truth, &found).expect("there are some") / mean
}

#[test]
fn mechanics_file_reproduces_service_times() {
    for name in ["hp-c2247a", "atlas-10k", "toshiba-x300"] {
        let (spec, file) = probed(name);
        for is_mixed in [false, true] {
            let share = demerit_share(&spec, &file, is_mixed);
            assert!(share < 0.03, "{name}, mixed: {is_mixed}: demerit {share}");
        }
    }
}

fn tiny(heads: u32, cylinders: u32) -> DriveSpec {
    let mut spec = drives::load("dec-rz26").expect("it is shipped");
    spec.geometry.sparing = headstack_model::spec::Sparing::None;
    spec.geometry.zones.truncate(1);
    let zone = &mut spec.geometry.zones[0];
    (zone.first_cylinder, zone.last_cylinder, zone.spares, zone.front_gap_sectors) = (0, cylinders - 1, 0, 0);
    zone.slips.clear();
    zone.remaps.clear();
    (spec.geometry.heads, spec.geometry.cylinders) = (heads, cylinders);
    spec.capacity_sectors = u64::from(heads * cylinders * zone.sectors_per_track);
    spec
}

#[test]
fn tiny_disks_yield_exact_mechanics_files() {
    for (heads, cylinders) in [(1, 1), (2, 1), (1, 2), (3, 1), (1, 3), (2, 2), (3, 2), (8, 1), (1, 8)] {
        let spec = tiny(heads, cylinders);
        let (learned, disk) = learn(&spec, Noise::USUAL);
        let case = format!("{heads} heads, {cylinders} cylinders");
        let file =
            mechanics_file("tiny", &disk.info(), &learned).unwrap_or_else(|error| panic!("{case}: {error}"));
        let file =
            DriveSpec::parse(&text(&file), "tiny.toml").unwrap_or_else(|error| panic!("{case}: {error}"));
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        assert_eq!(TrackMap::of_geometry(&Geometry::new(&file).expect("it holds")), truth, "{case}");
        let off = angle_off(&spec, &file);
        assert!(off < 5e-3, "{case}: angles off by {off}");
    }
}

#[test]
fn extents_file_is_checked_against_its_pieces() {
    let spec = drives::load("hp-c2247a").expect("it is shipped");
    let (mut learned, disk) = learn(&spec, Noise::USUAL);
    // No form of its class.
    learned.layout = Layout::Extents;
    let file = mechanics_file("hp", &disk.info(), &learned).expect("its tracks can be expressed");
    assert!(file.geometry.layout == Layout::Extents && agrees(&file, &learned.pieces, learned.noise));
    // Blocks between two tracks that lie on neither: an impossible disk.
    learned.pieces[5].tracks.run.first = learned.pieces[5].tracks.run.first + 1;
    let error = mechanics_file("hp", &disk.info(), &learned).expect_err("a block lies nowhere");
    assert_eq!(error, SpecError::Geometry { pieces: learned.pieces.len() });
}

#[test]
#[ignore = "a table of figures: make probe-full"]
fn figures_of_every_mechanics_file_are_printed() {
    for (name, _) in drives::all() {
        let (spec, file) = probed(name);
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let found = TrackMap::of_geometry(&Geometry::new(&file).expect("it holds"));
        println!(
            "{name}: {:?} as {:?} {:?} ({:?}), {:?}, angles off by {:.6} turns, {} bytes, demerit {:.2} % and {:.2} %",
            spec.geometry.layout,
            file.geometry.layout,
            file.geometry.sparing,
            spec.geometry.sparing,
            check::compare(&found, &truth),
            angle_off(&spec, &file),
            text(&file).len(),
            100.0 * demerit_share(&spec, &file, false),
            100.0 * demerit_share(&spec, &file, true),
        );
    }
}
