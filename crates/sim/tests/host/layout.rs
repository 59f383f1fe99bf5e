//! What a host gains that knows where blocks lie, on each way of laying LBNs over tracks.

use crate::support::*;
use headstack_model::{DriveSpec, Lbn};
use headstack_sim::{Device, DeviceOptions};
use headstack_workload::{Closed, Pattern, Region, Shape};

/// Requests that wait or are served at a time.
const DEPTH: u32 = 10;

/// Cylinders of the drive.
const CYLINDERS: u64 = 2400;

/// A drive of four surfaces without electronics or cache that take time.
fn drive_of(layout: &str, tracks: &str, sectors: u64) -> DriveSpec {
    let text = format!(
        r#"
name = "made-up"
title = "Made up for the tests"
evidence = "derived"
capacity_sectors = {sectors}
[geometry]
heads = 4
cylinders = {CYLINDERS}
layout = "{layout}"
{tracks}
[mechanics]
rpm = 6000.0
head_switch_ms = 0.9
[mechanics.seek]
pieces = [{{ constant_ms = 0.8, sqrt_ms = 0.2 }}]
[cache]
enabled = false
[bus]
read_us_per_sector = 0.0
write_us_per_sector = 0.0
[queue]
depth = {DEPTH}
order = "fcfs"
"#
    );
    DriveSpec::parse(&text, "made-up.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Every cylinder after the one before it.
fn by_cylinder(layout: &str) -> DriveSpec {
    let zone = format!(
        "zones = [{{ first_cylinder = 0, last_cylinder = {}, sectors_per_track = 100, \
         track_skew_sectors = 10, cylinder_skew_sectors = 14 }}]",
        CYLINDERS - 1
    );
    drive_of(layout, &zone, 400 * CYLINDERS)
}

/// Bands of 600 tracks of a surface, the surfaces of different density.
fn by_surface(layout: &str) -> DriveSpec {
    let zone = format!(
        "band_zones = [{{ first_cylinder = 0, last_cylinder = {}, band_tracks = 600, \
         sectors_per_track = [110, 90, 120, 80], track_skew_turns = 0.12, head_skew_turns = 0.2 }}]",
        CYLINDERS - 1
    );
    drive_of(layout, &zone, 400 * CYLINDERS)
}

/// What a run took: time in ms and cylinders of arm movement, a request.
fn play(spec: &DriveSpec, order: &str, queue: &str) -> (f64, f64) {
    let options = DeviceOptions { seed: 1, order: Some(order.to_string()), ..DeviceOptions::default() };
    let device = Device::new(spec, &options).unwrap_or_else(|error| panic!("{error}"));
    let region = Region { first: Lbn(0), sectors: spec.capacity_sectors };
    let shape = Shape { region, pattern: Pattern::Random, sectors: 4, alignment: 4, read_share: 1.0 };
    let count = 4000;
    let mut load = Closed::new(shape, DEPTH, count, 5).expect("the load fits");
    let seen = run(vec![device], &host(queue), &mut load);
    let ways = seen.commands.iter().filter_map(|command| command.travel);
    let distance: u64 = ways.map(|way| u64::from(way.from.abs_diff(way.to))).sum();
    (seen.end().as_ms() / count as f64, distance as f64 / count as f64)
}

fn at_host(spec: &DriveSpec, order: &str, knows: &str) -> (f64, f64) {
    let queue = format!("queue = {{ depth = 1, order = \"{order}\", knows = \"{knows}\" }}");
    play(spec, "fcfs", &queue)
}

#[test]
fn host_with_track_map_matches_the_order_of_the_drive() {
    for spec in [by_cylinder("cylinder"), by_surface("aa")] {
        for (order, knows) in [("sstf", "cylinder"), ("look", "cylinder"), ("c-look-cylinder", "cylinder")]
            .into_iter()
            .chain([("sptf", "position"), ("gstf(40)", "position"), ("asptf", "position")])
        {
            let (ours, theirs) = (at_host(&spec, order, knows), play(&spec, order, ""));
            // The first ten come at one moment: the host sees them all, the drive takes the first at once. From there on
            // the two runs scatter.
            let name = format!("{:?} {order}: {ours:?}, the drive {theirs:?}", spec.geometry.layout);
            assert!((ours.0 / theirs.0 - 1.0).abs() < 0.01, "{name}");
            assert!((ours.1 / theirs.1 - 1.0).abs() < 0.03, "{name}");
        }
    }
}

#[test]
fn cylinders_add_nothing_where_lbns_follow_them() {
    for layout in ["cylinder", "serpentine"] {
        let spec = by_cylinder(layout);
        let (blind, mapped) =
            (at_host(&spec, "c-look", "lbn"), at_host(&spec, "c-look-cylinder", "cylinder"));
        assert!((mapped.1 / blind.1 - 1.0).abs() < 0.01, "{layout}: {} and {}", mapped.1, blind.1);
    }
}

#[test]
fn cylinder_order_shortens_seeks_on_seek_first_layouts() {
    for layout in ["ff", "af", "fa", "aa"] {
        let spec = by_surface(layout);
        let (blind, mapped) =
            (at_host(&spec, "c-look", "lbn"), at_host(&spec, "c-look-cylinder", "cylinder"));
        assert!(mapped.1 < 0.9 * blind.1 && mapped.0 < blind.0, "{layout}: {mapped:?} and {blind:?}");
        let whole = at_host(&spec, "sptf", "position");
        assert!(whole.0 < 0.95 * mapped.0, "{layout}: {whole:?} knowing all, {mapped:?}");
    }
}

#[test]
fn order_without_track_map_falls_back_to_lbns() {
    let spec = by_surface("ff");
    let at_host_without_map =
        |order: &str| play(&spec, "fcfs", &format!("queue = {{ depth = 1, order = \"{order}\" }}"));
    assert_eq!(at_host_without_map("sptf"), at_host(&spec, "sstf-lbn", "lbn"));
}
