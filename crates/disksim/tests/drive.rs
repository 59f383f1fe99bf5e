//! The importer: a made-up drive in full, every reference file, and broken files.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod reference;

use headstack_disksim::{Imported, import};
use headstack_model::spec::{Layout, Repeated, Sparing, SpecError, TrackKind, WriteCache, ZeroLatency};
use proptest::prelude::*;
use reference::import_file;
use std::path::{Path, PathBuf};

const DISKSPECS: &str = include_str!("small/drive.diskspecs");
const MODEL: &str = include_str!("small/drive.model");
const SEEK: &str = include_str!("small/drive.seek");
const RIG: &str = include_str!("small/rig.parv");

/// Imports a text among the files of the made-up drive, of which one may be replaced.
fn import_with(text: &str, origin: &str, replaced: (&str, &str)) -> Result<Imported, SpecError> {
    import(text, origin, |name| match name {
        _ if name == replaced.0 => Ok(replaced.1.to_string()),
        "drive.diskspecs" => Ok(DISKSPECS.to_string()),
        "drive.model" => Ok(MODEL.to_string()),
        "drive.seek" => Ok(SEEK.to_string()),
        _ => Err("no such file".to_string()),
    })
}

fn diskspecs(text: &str) -> Imported {
    import_with(text, "drive.diskspecs", ("", "")).unwrap_or_else(|error| panic!("{error}"))
}

fn model(text: &str) -> Imported {
    import_with(text, "drive.model", ("", "")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn whole_drive_is_imported() {
    let spec = diskspecs(DISKSPECS).spec;
    assert_eq!((spec.name.as_str(), spec.title.as_str()), ("small", "SMALL_validate"));
    assert_eq!((spec.geometry.heads, spec.geometry.cylinders), (2, 20));
    assert_eq!((spec.geometry.layout, spec.geometry.sparing), (Layout::Cylinder, Sparing::SectorsPerZone));
    // 20 tracks of 120 and 20 of 80, without a front gap of 7 and spares of 5 and 20.
    assert_eq!(spec.capacity_sectors, 20 * 120 - 7 - 5 + 20 * 80 - 20);
    assert_eq!(spec.geometry.zones[0].slips, [17, 900]);
    assert_eq!(spec.geometry.zones[0].remaps, [(33, 2398)]);
    assert_eq!(spec.mechanics.seek.points_cylinders_ms, [(1, 1.25), (5, 2.5), (19, 5.0)]);
    assert_eq!((spec.mechanics.rpm, spec.mechanics.head_switch_ms), (6000.0, 0.9));
    assert_eq!(spec.overhead.after_write.read_hit_ms, 0.2);
    assert_eq!((spec.bus.read_us_per_sector, spec.bus.write_us_per_sector), (20.0, 20.0));
    assert_eq!((spec.bus.buffer_full_ratio, spec.bus.buffer_empty_ratio), (0.5, 0.25));
    assert_eq!(spec.bus.write_disconnect.map(|extra| extra.seek_delay_ms), Some(0.15));
    assert_eq!(spec.bus.write_start_sectors, 10);
    assert_eq!((spec.queue.depth, spec.queue.order.as_str()), (4, "c-look"));
}

#[test]
fn failed_seek_measurements_are_left_out() {
    let seek = |text: &str| import_with(DISKSPECS, "drive.diskspecs", ("drive.seek", text));
    let imported =
        seek("1, 1.0\n2, 1.2\n5, 0.5\n8, 1.6\n12, 2.0\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.spec.mechanics.seek.points_cylinders_ms, [(1, 1.0), (2, 1.2), (8, 1.6), (12, 2.0)]);
    assert!(imported.not_carried.iter().any(|note| note.key == "5 cylinders" && note.why.contains("0.5 ms")));
    // Noise stays, and so do the ends, which nothing stands on one side of.
    let imported =
        seek("1, 0.2\n2, 1.2\n5, 1.4\n8, 1.2\n12, 9.0\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.spec.mechanics.seek.points_cylinders_ms.len(), 5);
}

#[test]
fn bounded_read_ahead_runs_past_the_requested_blocks() {
    let key = "Read-ahead over requested = 0";
    assert!(DISKSPECS.contains(key));
    for (most, over) in [("0", false), ("16", true)] {
        let text = with_value("Maximum read-ahead (blks)", most);
        assert_eq!(diskspecs(&text).spec.cache.read_ahead_over_requested, over, "at most {most}");
    }
}

/// The made-up drive with another value of a key.
fn with_value(key: &str, value: &str) -> String {
    let line = DISKSPECS.lines().find(|line| line.trim().starts_with(key)).expect("the drive has the key");
    DISKSPECS.replace(line, &format!("{key} = {value},"))
}

#[test]
fn writes_get_the_overhead_of_their_write_cache() {
    for (level, cache, ms) in
        [("0", WriteCache::None, 0.7), ("1", WriteCache::Segment, 0.5), ("2", WriteCache::Segment, 0.5)]
    {
        let text = DISKSPECS.replace("Fast write level = 0", &format!("Fast write level = {level}"));
        let imported = diskspecs(&text);
        assert_eq!(imported.spec.cache.write_cache, cache);
        assert_eq!(imported.spec.overhead.after_read.write_ms, ms);
        let left = if level == "0" { "Write hit over. after read" } else { "Write miss over. after read" };
        assert!(imported.not_carried.iter().any(|note| note.key == left), "{left} is not listed");
    }
}

#[test]
fn overheads_include_per_request_time_and_are_scaled() {
    let text = DISKSPECS.replace("Per-request overhead time = 0.0", "Per-request overhead time = 1.0");
    let spec = diskspecs(&text.replace("overheads = 1.0", "overheads = 2.0")).spec;
    assert_eq!(spec.overhead.after_read.read_hit_ms, 2.0 * (1.0 + 0.1));
    assert_eq!(spec.overhead.after_write.write_ms, 2.0 * (1.0 + 0.8));
    assert_eq!(spec.overhead.data_preparation_ms, 0.06);
    assert_eq!(spec.bus.reconnect_first_ms, 0.08);
    assert_eq!(spec.bus.read_us_per_sector, 20.0);
}

#[test]
fn transfer_takes_the_slowest_of_disk_controller_and_bus() {
    let imported = import_with(RIG, "rig.parv", ("", "")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((imported.spec.bus.read_us_per_sector, imported.spec.bus.write_us_per_sector), (50.0, 30.0));
    let left: Vec<&str> = imported.not_carried.iter().map(|note| note.key.as_str()).collect();
    assert!(left.contains(&"disksim_bus BUS0") && left.contains(&"disksim_global Global"), "{left:?}");
}

#[test]
fn model_alone_is_noted_as_lacking_electronics() {
    let imported = model(MODEL);
    assert_eq!(imported.spec.name, "small");
    assert_eq!(imported.spec.mechanics.zero_latency_read, ZeroLatency::None);
    assert!(imported.not_carried.iter().any(|note| note.why.contains("no electronics")));
}

#[test]
fn every_kind_of_seek_curve_is_imported() {
    let seek = |kind: &str| model(&MODEL.replace("= extracted", &format!("= {kind}"))).spec.mechanics.seek;
    let hpl = seek("hpl");
    assert_eq!(hpl.points_cylinders_ms, []);
    assert_eq!(hpl.pieces.iter().map(|piece| piece.up_to_cylinders).collect::<Vec<_>>(), [Some(11), None]);
    assert_eq!((hpl.pieces[0].constant_ms, hpl.pieces[0].sqrt_ms), (1.0, 0.5));
    assert_eq!((hpl.pieces[1].constant_ms, hpl.pieces[1].linear_ms), (2.0, 0.1));
    let with_ten = seek("hplplus10");
    assert_eq!(with_ten.points_cylinders_ms[9], (10, 2.0));
    assert_eq!(with_ten.pieces, hpl.pieces);
    assert_eq!(seek("linear").points_cylinders_ms, [(1, 1.0), (6, 3.0), (19, 5.0)]);
    assert_eq!(seek("constant").pieces[0].constant_ms, 2.0);
    let single = model(&MODEL.replace("= extracted", "= hpl").replace("0.1, -1.0", "0.1, 0.7")).spec;
    assert_eq!(single.mechanics.seek.points_cylinders_ms, [(1, 0.7)]);
}

#[test]
fn three_point_seek_curve_meets_its_three_points() {
    // On a long arm, where one cylinder more or less does not show: Lee and Katz fit the mean over random seeks.
    let text = MODEL.replace("= extracted", "= curve").replace("cylinders = 20", "cylinders = 3000");
    let points = model(&text).spec.mechanics.seek.points_cylinders_ms;
    assert_eq!(points[0], (1, 1.0));
    let (last, full) = points[points.len() - 1];
    assert!(last == 2999 && (full - 5.0).abs() < 0.01, "{last}: {full} ms");
    let mean = mean_of_random_seeks(&points, 3000);
    assert!((mean - 3.0).abs() < 0.01, "mean {mean} ms");
}

/// The mean seek time between two random cylinders: a distance d has the weight (n - d).
fn mean_of_random_seeks(points: &[(u32, f64)], cylinders: u32) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for pair in points.windows(2) {
        let ((d0, t0), (d1, t1)) = (pair[0], pair[1]);
        for distance in d0..d1 {
            let time = t0 + (t1 - t0) * f64::from(distance - d0) / f64::from(d1 - d0);
            sum += time * f64::from(cylinders - distance);
            weight += f64::from(cylinders - distance);
        }
    }
    sum / weight
}

#[test]
fn write_seek_curve_is_read_from_the_fourth_column() {
    let dual = "1, 1.0, 0.1, 1.5\n9, 2.0, 0.1, 2.5\n";
    let imported =
        import_with(MODEL, "drive.model", ("drive.seek", dual)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.spec.mechanics.seek.points_cylinders_ms, [(1, 1.0), (9, 2.0)]);
    assert_eq!(imported.spec.mechanics.seek.write_points_cylinders_ms, [(1, 1.5), (9, 2.5)]);
    assert!(imported.not_carried.iter().any(|note| note.why.contains("standard deviations")));
    for (broken, line) in [
        ("1, 1.0\n1, 2.0\n", 2),
        ("1, 1.0\n2, 2.0, 0.1, 3.0\n", 1),
        ("1\n", 1),
        ("x, 1.0\n", 1),
        ("1.5, 1.0\n", 1),
        ("1, nan\n", 1),
        ("", 1),
    ] {
        let error = import_with(MODEL, "drive.model", ("drive.seek", broken)).expect_err(broken);
        assert_eq!((error.origin.as_str(), error.line), ("drive.seek", line), "{broken}: {error}");
    }
}

#[test]
fn skews_in_revolutions_become_sectors() {
    let text =
        MODEL.replace("Rangesize", "Skew units = revolutions,\n Rangesize").replace("= 3.0,", "= 0.5,");
    let text = text.replace("= 12.0,", "= 0.1,").replace("= 8.0,", "= 0.1,");
    let zones = model(&text.replace("= 20.0,", "= 0.25,").replace("= 14.0,", "= 0.25,")).spec.geometry.zones;
    assert_eq!(zones[0].first_sector_offset_sectors, 60.0);
    assert_eq!((zones[0].track_skew_sectors, zones[1].track_skew_sectors), (12.0, 8.0));
    assert_eq!((zones[0].cylinder_skew_sectors, zones[1].cylinder_skew_sectors), (30.0, 20.0));
}

/// A layout of two kinds of tracks: a group of four, which comes three times, and one track more.
const GRAMMAR: &str = "dm_layout_g4 { TP = [ 0, 9, 10, 1, 8, 9 ],
    IDX = [
        [ 0, 1, 0.25, 10, 1, 0.5, 20, -2, TRACK, 0, 0, 20, 0, 0.0, 8, 1, 0.5, 16, 2, TRACK, 1, 1 ],
        [ 0, 0, 0.0, 36, 2, 0.125, 108, 6, IDX, 0, 108, 6, 0.5, 10, 1, 0.7, 10, 1, TRACK, 0, 0 ]
    ],
    Slips = [ 5, 1, 40, 2 ],
    Remaps = [ 3, 1, 0, 1, 0, 9 ] }";

/// The made-up model with another layout.
fn model_with_layout(layout: &str) -> String {
    let (before, rest) = MODEL.split_once("dm_layout_g1").expect("the model has a layout");
    let (_, after) = rest.split_once("Mechanical").expect("the model has mechanics");
    format!("{before}{layout},\nMechanical{after}")
}

#[test]
fn layout_of_repeated_runs_is_imported() {
    let imported = model(&model_with_layout(GRAMMAR));
    assert_eq!(imported.spec.capacity_sectors, 118 - 3);
    let extents = imported.spec.geometry.extents.expect("the layout has extents");
    let kind = TrackKind { first_sector: 1, sectors: 8, sectors_per_track: 9 };
    assert_eq!(extents.tracks[1], kind);
    let run = extents.groups[0][0];
    assert_eq!((run.of, run.times), (Repeated::Track { head: 0, kind: 0 }, 2));
    assert_eq!((run.cylinder, run.cylinder_step), (1, -1));
    assert_eq!((run.angle_turns, run.angle_step_turns), (0.25, 0.5));
    let groups = extents.groups[1][0];
    assert_eq!((groups.of, groups.times, groups.cylinder_step), (Repeated::Group(0), 3, 2));
    assert_eq!((extents.groups[1][1].times, extents.groups[1][1].cylinder_step), (1, 0));
    assert_eq!(extents.slips, [(5, 1), (40, 2)]);
    assert_eq!(extents.remaps.iter().map(|remap| (remap.lbn, remap.head)).collect::<Vec<_>>(), [(3, 1)]);
}

#[test]
fn contradictory_layout_is_rejected_with_its_place() {
    for (from, to, why) in [
        (
            "20, 0, 0.0, 8",
            "21, 0, 0.0, 8",
            "group 0: entry 1: begins at 21, but the entry before it ends at 20",
        ),
        ("0.0, 36, 2", "0.0, 35, 2", "group 1: entry 0: is 35 long, but what it repeats is 36"),
        ("0.125, 108", "0.125, 100", "group 1: entry 0: 100 is no multiple"),
        ("20, -2", "20, -3", "group 0: entry 0: covers 2 cylinders, not -3"),
        ("IDX, 0, 108", "IDX, 1, 108", "group 1: entry 0: repeats something that does not stand before it"),
        ("TRACK, 1, 1", "TRACK, 1", "group 0: entry 1: needs eight numbers"),
        ("TRACK, 1, 1", "TRACK, 2, 1", "group 0: entry 1: repeats something"),
        ("9, 10, 1, 8, 9", "9, 10, 1, 7, 9", "group 0: entry 1: is 8 long, but what it repeats is 7"),
        ("9, 10, 1, 8, 9", "9, 10, 9, 8, 9", "the last sector of a kind lies before its first"),
        ("40, 2 ]", "40 ]", "needs pairs"),
        ("40, 2 ]", "40, 200 ]", "leave no block"),
        ("0, 9 ]", "0 ]", "needs six numbers"),
    ] {
        assert!(GRAMMAR.contains(from), "{from}");
        let text = model_with_layout(&GRAMMAR.replacen(from, to, 1));
        let error = import_with(&text, "drive.model", ("", "")).expect_err(to);
        assert!(error.message.starts_with(why), "{to}: {error}");
    }
}

/// Lines of a text that give a key a number, and the text with another number there.
fn changed_numbers(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.lines().filter_map(move |line| {
        let (key, value) = line.trim().trim_end_matches(',').split_once(" = ")?;
        let number: f64 = value.parse().ok()?;
        let other = if number == 0.0 { 1.0 } else { number - 1.0_f64.min(number) };
        let shown = if value.contains('.') { format!("{other:?}") } else { format!("{other:.0}") };
        let changed = line.replace(&format!("= {value}"), &format!("= {shown}"));
        Some((key, text.replacen(line, &changed, 1)))
    })
}

#[test]
fn every_numeric_key_is_carried_over_or_listed() {
    let mut keys = 0;
    for (text, origin) in [(DISKSPECS, "drive.diskspecs"), (MODEL, "drive.model")] {
        let same = import_with(text, origin, ("", "")).unwrap_or_else(|error| panic!("{error}"));
        for (key, changed) in changed_numbers(text) {
            keys += 1;
            let Ok(imported) = import_with(&changed, origin, ("", "")) else { continue };
            let listed = same.not_carried.iter().chain(&imported.not_carried).any(|note| note.key == key);
            assert!(listed || imported.spec != same.spec, "{key} changes nothing, unsaid");
        }
    }
    assert!(keys > 80, "only {keys} keys were tried");
}

#[test]
fn unknown_key_is_listed_as_not_carried_over() {
    let imported = diskspecs(&DISKSPECS.replace("Print stats", "Paint stats"));
    let note = imported.not_carried.iter().find(|note| note.key == "Paint stats").expect("it is listed");
    assert_eq!(note.to_string(), "drive.diskspecs:23: Paint stats: is not a key known for this block");
}

#[test]
fn every_import_error_names_its_file_line_and_key() {
    for (from, to, place) in [
        ("Fast write level = 0", "Fast write level = 3", "drive.diskspecs:50: Fast write level"),
        ("Fast write level = 0", "Fast write level = x", "drive.diskspecs:50: Fast write level"),
        ("Scheduling policy = 3", "Scheduling policy = 99", "drive.diskspecs:5: Scheduling policy"),
        ("Never disconnect = 0", "Never disconnect = 2", "drive.diskspecs:35: Never disconnect"),
        ("= source drive.model", "= source gone.model", "drive.diskspecs:3: source: gone.model"),
        ("= source drive.model", "= 5", "drive.diskspecs:3: Model"),
        (
            "Low (write) water mark = 0.25",
            "Low (write) water mark = 25",
            "drive.diskspecs:2: bus.buffer_empty_ratio",
        ),
    ] {
        assert!(DISKSPECS.contains(from), "{from}");
        let error = import_with(&DISKSPECS.replace(from, to), "drive.diskspecs", ("", "")).expect_err(to);
        assert!(error.to_string().starts_with(place), "{to}: {error}");
    }
    for (from, to, place) in [
        ("Blocks per track = 120", "Blocks per track = 0", "drive.model:13: Blocks per track"),
        ("Blocks per track = 120", "Blocks per track = 1.5", "drive.model:13: Blocks per track"),
        ("First cylinder number = 0", "First cylinder number = 11", "drive.model:12: Last cylinder number"),
        ("slips = [ 17, 900 ]", "slips = [ -1 ]", "drive.model:19: slips"),
        ("defects = [ 33, 2398 ]", "defects = [ 33 ]", "drive.model:20: defects"),
        ("Seek type = extracted", "Seek type = guessed", "drive.model:38: Seek type"),
        ("Full seek curve = drive.seek", "Full seek curve = gone", "drive.model:43: Full seek curve: gone"),
        ("dm_layout_g1 {", "dm_layout_g2 {", "drive.model:5: Layout Model"),
        ("Zones = [", "Bones = [", "drive.model:5: Zones: is missing"),
        ("Rotation speed (in rpms) = 6000", "Rotation speed (in rpms) = 0", "drive.model:1: mechanics.rpm"),
    ] {
        assert!(MODEL.contains(from), "{from}");
        let error = import_with(&MODEL.replace(from, to), "drive.model", ("", "")).expect_err(to);
        assert!(error.to_string().starts_with(place), "{to}: {error}");
    }
}

proptest! {
    #[test]
    fn damaged_file_never_panics_the_importer(at in 0..RIG.len() + DISKSPECS.len() + MODEL.len(), kind in 0..4, with in any::<char>()) {
        let damage = |text: &str, at: usize| {
            let (left, right) = text.split_at(at);
            match kind {
                0 => left.to_string(),
                1 => format!("{left}{with}{right}"),
                2 => format!("{left}{}", right.get(1..).unwrap_or("")),
                _ => right.to_string(),
            }
        };
        let whole = |name: &str| match name {
            "drive.diskspecs" => DISKSPECS,
            "drive.model" => MODEL,
            _ => SEEK,
        };
        let (name, text) = if at < RIG.len() {
            ("rig.parv", damage(RIG, at))
        } else if at < RIG.len() + DISKSPECS.len() {
            ("drive.diskspecs", damage(DISKSPECS, at - RIG.len()))
        } else {
            ("drive.model", damage(MODEL, at - RIG.len() - DISKSPECS.len()))
        };
        let top = if name == "rig.parv" { text.as_str() } else { RIG };
        let result = import(top, "rig.parv", |asked| {
            Ok(if asked == name { text.clone() } else { whole(asked).to_string() })
        });
        if let Err(error) = result {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the reference has this folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == ending));
    files.sort();
    assert!(!files.is_empty(), "no .{ending} in {}", folder.display());
    files
}

/// Files of which no drive can be made, and why.
const NO_DRIVE: [(&str, &str); 2] =
    [("maxtor300g-layout.model", "no drive here"), ("synthsimpledisk.parv", "no drive here")];

#[test]
fn every_reference_file_with_a_drive_is_imported() {
    let Some(folder) = reference::disksim() else { return };
    for (part, ending) in [("specs", "diskspecs"), ("specs", "model"), ("rigs", "parv")] {
        for path in files(&folder.join(part), ending) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let expected = NO_DRIVE.iter().find(|(file, _)| *file == name);
            match (import_file(&folder, &path), expected) {
                (Ok(imported), None) => {
                    imported.spec.check().unwrap_or_else(|error| panic!("{name}: {error}"));
                    for note in imported.not_carried {
                        assert!(!note.why.contains("not a key known"), "{name}: {note}");
                    }
                }
                (Err(error), Some((_, why))) => assert!(error.message.contains(why), "{name}: {error}"),
                (Ok(_), Some(_)) => panic!("{name}: no error"),
                (Err(error), None) => panic!("{name}: {error}"),
            }
        }
    }
}
