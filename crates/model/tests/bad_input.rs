//! Drive files with one error: the message is one line that names the key and its line in the file.
//!
//! In several drive files each key in turn is missing, negative, of another type, misspelt, or has another unit.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod spoil;

use headstack_model::spec::Tagging;
use headstack_model::{DriveSpec, Geometry, SpecError, drives};
use spoil::{Kind, Spoilt, leaves, line_of};
use std::ops::Range;

/// A drive file with the layout `extents`, so that the tests do not need a shipped one.
const EXTENTS: &str = r#"name = "tiny"
title = "Tiny"
evidence = "derived"
capacity_sectors = 40
[geometry]
heads = 2
cylinders = 2
layout = "extents"
[geometry.extents]
tracks = [[0, 10, 10]]
groups = [
  [[0, 0, 2, 0, 1, 0.0, 0.1], [1, 0, 2, 1, -1, 0.2, 0.1]],
]
[mechanics]
rpm = 7200
head_switch_ms = 0.5
[mechanics.seek]
pieces = [{ up_to_cylinders = 1, constant_ms = 1.0 }, { constant_ms = 1.0, sqrt_ms = 0.1, linear_ms = 0.01 }]
[mechanics.retries]
probability = 0.1
turns_max = 3
[mechanics.recalibration]
interval_s = 10.0
duration_ms = 40.0
[[mechanics.slow_periods]]
from_s = 1.0
length_s = 2.0
every_s = 3.0
share = 0.5
delay_ms = 100.0
[zones]
model = "host-aware"
zone_sectors = 8
conventional = 1
open_max = 1
active_max = 1
full_at_first = false
[queue.duration_limits]
performance_percent = 20.0
reads = [{ inactive_ms = 30.0, inactive_policy = "continue", active_ms = 40.0, active_policy = "abort", guideline_ms = 50.0, guideline_policy = "complete-earliest" }]
writes = [{ guideline_ms = 500.0 }]
[bus]
read_us_per_sector = 1
write_us_per_sector = 1
[bus.write_disconnect]
command_ms = 0.1
disconnect_ms = 0.1
away_ms = 0.1
second_disconnect_ms = 0.1
seek_delay_ms = 0.1
"#;

/// The files into which errors are put. Their layouts are zoned, serpentine, banded and extents; their seeks are tables, pieces and the
/// physical curve.
fn files() -> Vec<(&'static str, &'static str)> {
    let shipped = ["atlas-10k", "cheetah-4lp", "hp-c2247a", "hp-97560", "wd800jd", "exos-x16", "wd40efax"];
    let known = drives::all().iter().filter(|(name, _)| shipped.contains(name)).copied();
    known.chain([("tiny", EXTENTS)]).collect()
}

fn parse(text: &str) -> Result<DriveSpec, SpecError> {
    DriveSpec::parse(text, "x.toml")
}

/// Asserts that the file is refused with a message of one line that has one of these line numbers and contains `names`.
#[track_caller]
fn refused(text: &str, what: &str, lines: Range<usize>, names: &str) {
    let spoilt = Spoilt { text: text.to_string(), what: what.to_string(), lines, names: names.to_string() };
    spoilt.must_be_refused(parse(text));
}

/// Asserts that every file with an error is refused.
#[track_caller]
fn all_refused(spoilt: impl Fn(&str, &str) -> Vec<Spoilt>) {
    let spoilt: Vec<Spoilt> = files().into_iter().flat_map(|(file, text)| spoilt(file, text)).collect();
    spoil::all_refused(&spoilt, parse);
}

#[test]
fn every_unspoilt_file_is_accepted() {
    for (name, text) in files() {
        DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert!(leaves(text).len() > 15, "{name}");
    }
}

#[test]
fn value_of_wrong_type_is_rejected_by_key_and_line() {
    all_refused(spoil::other_types);
}

/// Keys whose values may be negative.
const SIGNED: [&str; 10] = [
    "write_settle_ms",
    "track_skew_sectors",
    "cylinder_skew_sectors",
    "track_skew_turns",
    "head_skew_turns",
    "rpm_deviation_percent",
    "constant_ms",
    "sqrt_ms",
    "linear_ms",
    "groups",
];

#[test]
fn negative_number_is_rejected_by_key_and_line() {
    all_refused(|file, text| spoil::negative(file, text, &SIGNED));
}

#[test]
fn nan_or_huge_number_is_rejected_by_key_and_line() {
    all_refused(spoil::beyond_numbers);
}

#[test]
fn misspelt_key_is_rejected_with_the_right_name() {
    all_refused(spoil::misspelt);
}

#[test]
fn key_with_wrong_unit_is_rejected_with_the_right_name() {
    let units = [
        ("_ms", "_us"),
        ("_us_per_sector", "_ns_per_sector"),
        ("_sectors", "_bytes"),
        ("_turns", "_degrees"),
    ];
    let mut judged = 0;
    for (file, text) in files() {
        for leaf in leaves(text) {
            let Some((right, wrong)) = units.iter().find(|(unit, _)| leaf.name.ends_with(unit)) else {
                continue;
            };
            let wrong = leaf.name.replace(right, wrong);
            let spoilt = leaf.renamed(file, text, &wrong);
            spoilt.must_be_refused(parse(&spoilt.text));
            judged += 1;
        }
    }
    assert!(judged > 150, "only {judged} keys judged");
}

/// Keys that are required in each table in which they occur.
const NEEDED: [&str; 14] = [
    "name",
    "title",
    "evidence",
    "capacity_sectors",
    "heads",
    "cylinders",
    "layout",
    "first_cylinder",
    "last_cylinder",
    "sectors_per_track",
    "rpm",
    "head_switch_ms",
    "read_us_per_sector",
    "write_us_per_sector",
];

#[test]
fn missing_required_key_is_rejected_at_its_table() {
    for (file, text) in files() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind != Kind::Table) {
            let spoilt = leaf.left_out(file, text);
            if NEEDED.contains(&leaf.name.as_str()) {
                spoilt.must_be_refused(parse(&spoilt.text))
            } else {
                spoilt.may_be_missed(parse(&spoilt.text))
            }
        }
    }
}

/// One of [`files`] in which `from` is replaced by `to`.
fn changed(file: &str, from: &str, to: &str) -> String {
    let text = files().iter().find(|(name, _)| *name == file).expect("the file is among them").1;
    assert!(text.contains(from), "{file} has no `{from}`");
    text.replacen(from, to, 1)
}

#[test]
fn overlapping_zones_are_rejected_at_the_second() {
    let text = changed("atlas-10k", "first_cylinder =  433", "first_cylinder =  432");
    let at = line_of(&text, text.find("=  432, last_cylinder =   848").expect("it was put there"));
    refused(&text, "zones", at..at + 1, "geometry.zones[1].first_cylinder");
    let text = changed("wd800jd", "first_cylinder = 3600", "first_cylinder = 17");
    let at = line_of(&text, text.find("first_cylinder = 17,").expect("it was put there"));
    refused(&text, "bands", at..at + 1, "geometry.band_zones[1].first_cylinder");
}

#[test]
fn zone_with_impossible_last_cylinder_is_rejected() {
    let text = changed("atlas-10k", "last_cylinder =   848", "last_cylinder =   40");
    refused(&text, "zones", 1..60, "geometry.zones[1].last_cylinder");
    let text = changed("atlas-10k", "last_cylinder = 10041", "last_cylinder = 10042");
    refused(&text, "zones", 1..60, "geometry.zones[23].last_cylinder");
}

#[test]
fn capacity_beyond_the_layout_is_rejected_at_its_line() {
    for (file, text) in files() {
        let leaf =
            leaves(text).into_iter().find(|leaf| leaf.path == "capacity_sectors").expect("it is needed");
        let spec = DriveSpec::parse(text, file).unwrap_or_else(|error| panic!("{error}"));
        let places = spec.capacity_sectors * 2 + 1;
        let spoilt = leaf.set(file, text, &places.to_string());
        spoilt.must_be_refused(parse(&spoilt.text));
    }
}

#[test]
fn tagging_of_another_interface_is_rejected_at_its_line() {
    let said = |file: &str, tagging: &str| {
        let text = changed(file, "[queue]", &format!("[queue]\ntagging = \"{tagging}\""));
        let at = line_of(&text, text.find("tagging = ").expect("it was put there"));
        let error = parse(&text).expect_err("the tags are another interface's");
        assert_eq!(error.line, at, "{error}");
        format!("{}: {}", error.key, error.message)
    };
    assert_eq!(
        said("exos-x16", "tcq"),
        "queue.tagging: \"tcq\": bus.interface is \"sata\", whose tags are \"ncq\"; leave queue.tagging out, or \
         correct bus.interface"
    );
    assert!(said("atlas-10k", "ncq").contains("bus.interface is \"scsi\", whose tags are \"tcq\""));
    let sure = changed("exos-x16", "[queue]", "[queue]\ntagging = \"ncq\"");
    assert!(parse(&sure).is_ok());
    let open = changed("exos-x16", "interface = ", "# interface = ");
    assert_eq!(parse(&open).expect("the interface may be absent").tagging(), Tagging::Tcq);
}

#[test]
fn sata_queue_depth_above_32_is_rejected() {
    let text = changed("exos-x16", "depth = 32", "depth = 33");
    let at = line_of(&text, text.find("depth = 33").expect("it was put there"));
    refused(&text, "tags", at..at + 1, "queue.depth");
}

#[test]
fn capacity_error_hints_at_tracks_in_physical_sectors() {
    let physical = changed("wd800jd", "physical_sector_bytes = 512", "physical_sector_bytes = 4096");
    let said = |capacity: u64| {
        let text = physical.replacen("156301488", &capacity.to_string(), 1);
        parse(&text).expect_err("the zones hold less").message
    };
    let hint =
        "sectors_per_track counts sectors of 512 bytes (sector_bytes), of which a physical one holds 8";
    assert!(said(8 * 156_301_488).contains(hint), "{}", said(8 * 156_301_488));
    assert!(!said(16 * 156_301_488).contains("sectors_per_track"), "{}", said(16 * 156_301_488));
}

#[test]
fn write_cache_without_a_size_is_rejected_at_its_key() {
    let text = changed("atlas-10k", "write_cache = \"segment\"", "write_cache = \"full\"");
    let at = line_of(&text, text.find("write_cache = \"full\"").expect("it was put there"));
    refused(&text, "write cache", at..at + 1, "dirty_max_sectors");
}

/// Keys and lines of the notes on a file.
fn noted(text: &str) -> Vec<(String, usize)> {
    let spec = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let geometry = Geometry::new(&spec).unwrap_or_else(|error| panic!("{error}"));
    spec.notes(&geometry, text, "x.toml").into_iter().map(|note| (note.key, note.line)).collect()
}

#[test]
fn valid_but_unusual_values_are_noted() {
    let shipped = changed("exos-x16", "[queue]", "[queue]");
    assert_eq!(noted(&shipped), []);
    let keys = |from: &str, to: &str| {
        noted(&changed("exos-x16", from, to)).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(keys("interface = ", "# interface = "), ["bus.interface"]);
    assert_eq!(keys("capacity_sectors = 31251759104", "capacity_sectors = 3906469888"), ["capacity_sectors"]);
    let bare: String = shipped
        .lines()
        .filter(|line| !line.starts_with("read_ahead") && !line.starts_with("firmware"))
        .map(|line| format!("{line}\n"))
        .collect();
    let at = line_of(&bare, bare.find("[cache]").expect("the table is there"));
    assert_eq!(noted(&bare), [("cache".to_string(), at)]);
}

#[test]
fn curve_contradicting_its_data_sheet_is_noted() {
    let noted_with = |sheet: &str| {
        let text = changed("atlas-10k", "[mechanics.seek]\n", &format!("[mechanics.seek]\n{sheet}\n"));
        noted(&text).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    // The measured curve's mean is 5.57 ms, and a write settles 0.487 ms longer.
    let agrees = "sheet = { single_track_ms = 1.2, average_ms = 5.5, write_average_ms = 6.0 }";
    assert_eq!(noted_with(agrees), Vec::<String>::new());
    let reads = "sheet = { single_track_ms = 1.2, average_ms = 5.0 }";
    assert_eq!(noted_with(reads), ["mechanics.seek.sheet.average_ms"]);
    let writes = "sheet = { single_track_ms = 1.2, average_ms = 5.5, write_average_ms = 7.0 }";
    assert_eq!(noted_with(writes), ["mechanics.seek.sheet.write_average_ms"]);
}

#[test]
fn impossible_data_sheet_figures_are_rejected() {
    let key = |sheet: &str| {
        let text = changed("atlas-10k", "[mechanics.seek]\n", &format!("[mechanics.seek]\n{sheet}\n"));
        parse(&text).expect_err("no drive is so").key
    };
    for (name, sheet) in [
        ("average_ms", "single_track_ms = 1.2, average_ms = 5.5, full_stroke_ms = 6.0"),
        ("average_ms", "single_track_ms = 1.2, average_ms = 5.5, full_stroke_ms = 20.0"),
        ("single_track_ms", "single_track_ms = 6.0, average_ms = 5.5"),
        ("write_average_ms", "single_track_ms = 1.2, average_ms = 5.5, write_average_ms = 5.0"),
        ("write_single_track_ms", "single_track_ms = 1.2, average_ms = 5.5, write_single_track_ms = 1.3"),
        (
            "write_single_track_ms",
            "single_track_ms = 1.2, average_ms = 5.5, write_single_track_ms = 1.1, write_average_ms = 6.0",
        ),
    ] {
        assert_eq!(key(&format!("sheet = {{ {sheet} }}")), format!("mechanics.seek.sheet.{name}"), "{sheet}");
    }
}

#[test]
fn invalid_lost_turns_shares_are_rejected() {
    for shares in ["[[0, 0.1]]", "[[2, 0.1], [2, 0.05]]", "[[1, 0.1], [2, 0.2]]", "[[1, 0.6]]", "[[1, 0.0]]"]
    {
        let text = changed(
            "atlas-10k",
            "[overhead.after_read]",
            &format!("[mechanics.lost_turns]\nturns_shares = {shares}\n\n[overhead.after_read]"),
        );
        let error = parse(&text).expect_err("no distribution is so");
        assert_eq!(error.key, "mechanics.lost_turns.turns_shares", "{shares}");
    }
}

#[test]
fn duration_limit_out_of_range_is_rejected_by_key() {
    let error = |limits: &str| {
        let text = changed("wd800jd", "[queue]", &format!("[queue.duration_limits]\n{limits}\n[queue]"));
        let error = parse(&text).expect_err("no drive has such limits");
        format!("{}: {}", error.key, error.message)
    };
    let place = "queue.duration_limits.";
    for (limits, said) in [
        ("performance_percent = 101.0", "performance_percent: 101 is outside 0 to 100 %"),
        ("reads = [{ guideline_ms = 10.0 }]", "reads[0].guideline_ms: 10 is outside 20 to 655350 ms"),
        ("writes = [{}, { inactive_ms = 1e6 }]", "writes[1].inactive_ms: 1000000 is outside 20 to 655350 ms"),
        ("reads = [{}, {}, {}, {}, {}, {}, {}, {}]", "reads: 8 is outside 0 to 7 entries"),
    ] {
        assert_eq!(error(limits), format!("{place}{said}"));
    }
}

#[test]
fn syntax_error_is_rejected_with_its_line() {
    all_refused(spoil::no_toml);
}

#[test]
fn truncated_file_gives_at_most_a_one_line_error() {
    for (file, text) in files() {
        for part in spoil::cut_off(text) {
            if let Err(error) = parse(part) {
                assert!(spoil::is_one_line(&error), "{file} up to byte {}: {error}", part.len());
            }
        }
    }
}
