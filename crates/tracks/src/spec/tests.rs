use super::*;
use crate::learn::tests::learn;
use crate::simulated::Noise;
use crate::{TrackMap, check, drive::Answers};
use headstack_model::spec::Layout;
use headstack_model::{Lbn, drives};

/// The file that comes of a drive, with the electronics of its own.
fn probed(name: &str) -> (DriveSpec, DriveSpec) {
    let spec = drives::load(name).expect("it is shipped");
    let (learned, disk) = learn(&spec, Noise::USUAL);
    let electronics = Electronics {
        overhead: spec.overhead.clone(),
        cache: spec.cache.clone(),
        bus: spec.bus.clone(),
        queue: spec.queue.clone(),
        zero_latency_read: spec.mechanics.zero_latency_read,
        zero_latency_write: spec.mechanics.zero_latency_write,
    };
    let file = drive_file(name, &disk.facts(), &learned, electronics);
    let again = DriveSpec::parse(&text(&file), "probed.toml").expect("what is written can be read");
    assert_eq!(again, file);
    (spec, file)
}

/// Largest difference of angles against those of the drive, in turns.
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
fn does_the_file_have_every_track_where_it_lies() {
    // Whole tracks slipped; single sectors slipped, whose places within their tracks are not learned; bands.
    for (name, layout, most_off) in [
        ("hp-c2247a", Layout::Cylinder, 1e-6),
        ("atlas-10k", Layout::Extents, 3.0 / 324.0),
        ("toshiba-x300", Layout::Ff, 1e-6),
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

#[test]
#[ignore = "a table of figures: make probe-full"]
fn what_does_every_file_look_like() {
    for (name, _) in drives::all() {
        let (spec, file) = probed(name);
        let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let found = TrackMap::of_geometry(&Geometry::new(&file).expect("it holds"));
        println!(
            "{name}: {:?} as {:?} {:?} ({:?}), {:?}, angles off by {:.6} turns, {} bytes",
            spec.geometry.layout,
            file.geometry.layout,
            file.geometry.sparing,
            spec.geometry.sparing,
            check::compare(&found, &truth),
            angle_off(&spec, &file),
            text(&file).len()
        );
    }
}
