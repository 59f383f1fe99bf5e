//! Drive files that are wrong in one place: the error is one line, which names the key and its line.
//!
//! Every key of several drive files is wrong in turn: missing, negative, of another type, misspelt, with another unit.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::{DriveSpec, SpecError, drives};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A drive file of the layout `extents`, which no shipped file has to be for this.
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

/// The files that are spoilt: zoned, serpentine, banded, extents; with tables of seeks, pieces and the physical curve.
fn files() -> Vec<(&'static str, &'static str)> {
    let shipped = ["atlas-10k", "cheetah-4lp", "hp-c2247a", "hp-97560", "wd800jd", "exos-x16"];
    let known = drives::all().iter().filter(|(name, _)| shipped.contains(name)).copied();
    known.chain([("tiny", EXTENTS)]).collect()
}

/// A key of a file and its value.
#[derive(Clone, Debug)]
struct Leaf {
    /// `geometry.zones[0].spares`.
    path: String,
    /// `spares`.
    name: String,
    key: Range<usize>,
    value: Range<usize>,
    /// The numbers in the value: itself, or the first and the last of an array.
    numbers: Vec<Range<usize>>,
    kind: Kind,
    /// Where the table begins that it stands in.
    table: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Flag,
    Array,
    Table,
}

fn leaves(text: &str) -> Vec<Leaf> {
    let document = DeTable::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    walk(text, document.get_ref(), "", 0, &mut found);
    found.retain(|leaf| !leaf.path.starts_with("sources."));
    found
}

fn walk(text: &str, table: &DeTable<'_>, prefix: &str, begins: usize, found: &mut Vec<Leaf>) {
    for (key, value) in table.iter() {
        let name = key.get_ref().to_string();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let mut numbers = Vec::new();
        scalars(value.get_ref(), value.span(), &mut numbers);
        let kind = match value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => Kind::Number,
            DeValue::String(_) => Kind::Text,
            DeValue::Boolean(_) => Kind::Flag,
            DeValue::Array(_) if !is_heading(text, key.span().start) => Kind::Array,
            _ => Kind::Table,
        };
        numbers.dedup();
        if numbers.len() > 2 {
            numbers = vec![numbers[0].clone(), numbers[numbers.len() - 1].clone()];
        }
        found.push(Leaf {
            path: path.clone(),
            name,
            key: key.span(),
            value: value.span(),
            numbers,
            kind,
            table: begins,
        });
        match value.get_ref() {
            DeValue::Table(table) => walk(text, table, &path, key.span().start, found),
            DeValue::Array(items) => {
                // The first, the second and the last stand for all.
                for (index, item) in items.iter().enumerate() {
                    let judged = index < 2 || index + 1 == items.len();
                    if let (true, Some(table)) = (judged, item.get_ref().as_table()) {
                        walk(text, table, &format!("{path}[{index}]"), item.span().start, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a key stands in the heading of a table.
fn is_heading(text: &str, key: usize) -> bool {
    let line = text[..key].rfind('\n').map_or(0, |at| at + 1);
    text[line..].starts_with('[')
}

fn scalars(value: &DeValue<'_>, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    match value {
        DeValue::Integer(_) | DeValue::Float(_) => found.push(span),
        DeValue::Array(items) => items.iter().for_each(|item| scalars(item.get_ref(), item.span(), found)),
        _ => {}
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// The file is refused in one line, at one of these lines, with this in it.
#[track_caller]
fn refused(text: &str, what: &str, lines: Range<usize>, names: &str) {
    let error = match DriveSpec::parse(text, "x.toml") {
        Ok(_) => panic!("{what}: taken"),
        Err(error) => error,
    };
    one_line(&error, what);
    let shown = error.to_string();
    assert!(lines.contains(&error.line), "{what}: line {} is not in {lines:?}: {shown}", error.line);
    assert!(shown.contains(names), "{what}: `{names}` is not named: {shown}");
}

#[track_caller]
fn one_line(error: &SpecError, what: &str) {
    let shown = error.to_string();
    assert!(!shown.contains('\n') && shown.len() < 1000, "{what}: {shown}");
    assert!(error.line > 0 && shown.starts_with(&format!("x.toml:{}: ", error.line)), "{what}: {shown}");
}

#[test]
fn are_the_files_right_to_begin_with() {
    for (name, text) in files() {
        DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert!(leaves(text).len() > 15, "{name}");
    }
}

#[test]
fn is_a_value_of_another_type_refused_by_name_and_line() {
    for (file, text) in files() {
        for leaf in leaves(text) {
            let wrongs: &[&str] = match leaf.kind {
                Kind::Number => &["\"many\"", "true", "[1]", "{ a = 1 }"],
                Kind::Text => &["7", "true", "[]"],
                Kind::Flag => &["1", "\"yes\""],
                Kind::Array => &["true", "\"some\"", "[true]"],
                // The heading of a table is no value that can be replaced.
                Kind::Table => continue,
            };
            let lines = line_of(text, leaf.key.start)..line_of(text, leaf.value.end) + 1;
            for wrong in wrongs {
                let bad = replaced(text, leaf.value.clone(), wrong);
                refused(&bad, &format!("{file}: {} = {wrong}", leaf.path), lines.clone(), &leaf.name);
            }
        }
    }
}

/// Keys whose values may be below zero.
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
fn is_a_negative_number_refused_by_name_and_line() {
    for (file, text) in files() {
        for leaf in leaves(text).iter().filter(|leaf| !SIGNED.contains(&leaf.name.as_str())) {
            // What is in a table is judged by its own key.
            let holds_tables = leaf.kind == Kind::Array && text[leaf.value.clone()].contains('{');
            for number in leaf.numbers.iter().filter(|_| !holds_tables) {
                let bad = replaced(text, number.clone(), "-3");
                let lines = line_of(text, leaf.key.start)..line_of(text, leaf.value.end) + 1;
                refused(&bad, &format!("{file}: {} = -3", leaf.path), lines, &leaf.name);
            }
        }
    }
}

#[test]
fn is_a_number_that_is_none_refused_by_name_and_line() {
    for (file, text) in files() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind == Kind::Number) {
            for wrong in ["nan", "inf", "1e300", "99999999999999999"] {
                let bad = replaced(text, leaf.value.clone(), wrong);
                let line = line_of(text, leaf.key.start);
                refused(&bad, &format!("{file}: {} = {wrong}", leaf.path), line..line + 1, &leaf.name);
            }
        }
    }
}

#[test]
fn does_a_misspelt_key_get_its_right_name() {
    for (file, text) in files() {
        for leaf in leaves(text) {
            if leaf.kind == Kind::Table && text.contains(&format!("[{}.", leaf.path)) {
                // The headings below it would name it rightly still.
                continue;
            }
            let line = line_of(text, leaf.key.start);
            // A letter twice, a letter lost, an underscore lost.
            let twice = format!("{}{}", leaf.name, &leaf.name[leaf.name.len() - 1..]);
            let lost = leaf.name[..leaf.name.len() - 1].to_string();
            for wrong in [twice, lost, leaf.name.replacen('_', "", 1)] {
                if wrong == leaf.name {
                    continue;
                }
                let bad = replaced(text, leaf.key.clone(), &wrong);
                let what = format!("{file}: {wrong} for {}", leaf.path);
                refused(&bad, &what, line..line + 1, &format!("did you mean `{}`", leaf.name));
            }
        }
    }
}

#[test]
fn does_a_key_with_another_unit_get_its_right_name() {
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
            let bad = replaced(text, leaf.key.clone(), &wrong);
            let line = line_of(text, leaf.key.start);
            let what = format!("{file}: {wrong} for {}", leaf.path);
            refused(&bad, &what, line..line + 1, &format!("did you mean `{}`", leaf.name));
            judged += 1;
        }
    }
    assert!(judged > 150, "only {judged} keys judged");
}

/// Keys without which no file can do, wherever they stand.
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
fn is_a_missing_key_named_with_the_table_that_lacks_it() {
    for (file, text) in files() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind != Kind::Table) {
            let rest = &text[leaf.value.end..];
            let comma = rest.trim_start().starts_with(',');
            let end = leaf.value.end + if comma { rest.find(',').map_or(0, |at| at + 1) } else { 0 };
            let what = format!("{file}: no {}", leaf.path);
            // Of a dotted key all parts go.
            let dotted = |c: char| c == '.' || c == '_' || c.is_ascii_alphanumeric();
            let start = text[..leaf.key.start].trim_end_matches(dotted).len();
            let bad = replaced(text, start..end, "");
            let table = line_of(text, leaf.table)..line_of(text, leaf.key.start) + 1;
            if NEEDED.contains(&leaf.name.as_str()) {
                refused(&bad, &what, table, &leaf.name);
            } else if let Err(error) = DriveSpec::parse(&bad, "x.toml") {
                // What has a default may be missed by what depends on it, and that is named then.
                one_line(&error, &what);
                let last = error.key.rsplit('.').next().unwrap_or("").split('[').next().unwrap_or("");
                let line = bad.lines().nth(error.line - 1).unwrap_or("");
                let known = error.to_string().contains(&leaf.name) || !last.is_empty() && line.contains(last);
                assert!(known, "{what}: {error}");
            }
        }
    }
}

/// A shipped file with one text in place of another.
fn changed(file: &str, from: &str, to: &str) -> String {
    let text = files().iter().find(|(name, _)| *name == file).expect("the file is among them").1;
    assert!(text.contains(from), "{file} has no `{from}`");
    text.replacen(from, to, 1)
}

#[test]
fn are_zones_that_overlap_refused_at_the_second_one() {
    let text = changed("atlas-10k", "first_cylinder =  433", "first_cylinder =  432");
    let at = line_of(&text, text.find("=  432, last_cylinder =   848").expect("it was put there"));
    refused(&text, "zones", at..at + 1, "geometry.zones[1].first_cylinder");
    let text = changed("wd800jd", "first_cylinder = 3600", "first_cylinder = 17");
    let at = line_of(&text, text.find("first_cylinder = 17,").expect("it was put there"));
    refused(&text, "bands", at..at + 1, "geometry.band_zones[1].first_cylinder");
}

#[test]
fn is_a_zone_that_ends_before_it_begins_or_beyond_the_disk_refused() {
    let text = changed("atlas-10k", "last_cylinder =   848", "last_cylinder =   40");
    refused(&text, "zones", 1..60, "geometry.zones[1].last_cylinder");
    let text = changed("atlas-10k", "last_cylinder = 10041", "last_cylinder = 10042");
    refused(&text, "zones", 1..60, "geometry.zones[23].last_cylinder");
}

#[test]
fn is_a_capacity_that_does_not_fit_refused_at_its_line() {
    for (file, text) in files() {
        let leaf =
            leaves(text).into_iter().find(|leaf| leaf.path == "capacity_sectors").expect("it is needed");
        let spec = DriveSpec::parse(text, file).unwrap_or_else(|error| panic!("{error}"));
        let line = line_of(text, leaf.key.start);
        let places = spec.capacity_sectors * 2 + 1;
        let bad = replaced(text, leaf.value, &places.to_string());
        refused(&bad, file, line..line + 1, "capacity_sectors");
    }
}

#[test]
fn is_a_syntax_error_told_by_its_line() {
    for (file, text) in files() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind == Kind::Number) {
            let line = line_of(text, leaf.key.start);
            for wrong in ["1.2.3", "0x", "12 34"] {
                let bad = replaced(text, leaf.value.clone(), wrong);
                refused(&bad, &format!("{file}: {} = {wrong}", leaf.path), line..line + 1, "x.toml");
            }
        }
    }
}

#[test]
fn does_a_file_cut_off_anywhere_only_give_an_error() {
    for (file, text) in files() {
        for end in (0..text.len()).step_by(61) {
            let Some(part) = text.get(..end) else { continue };
            if let Err(error) = DriveSpec::parse(part, "x.toml") {
                one_line(&error, &format!("{file} up to byte {end}"));
            }
        }
    }
}
