//! The drive files that ship: each can be built, and each of its numbers says where it comes from.

use headstack_model::{DriveSpec, Geometry, drives};

#[test]
fn does_every_drive_hold_its_capacity() {
    for (name, _) in drives::all() {
        let spec = drives::load(name).unwrap_or_else(|e| panic!("{e}"));
        let geometry = Geometry::new(&spec).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(geometry.sectors(), spec.capacity_sectors, "{name}");
    }
}

/// Lines with a number that no source stands beside: in a comment on the line or above it, or, for the whole of a table
/// of an array (`[[…]]`), on or above its heading. A source is a key of `[sources]`, `derived` or `assumption`.
fn unsourced(spec: &DriveSpec, text: &str) -> Vec<usize> {
    let sourced = |comment: &str| {
        let word: String =
            comment.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        spec.sources.contains_key(&word) || word == "derived" || word == "assumption"
    };
    let (mut above, mut table, mut lines) = (false, false, Vec::new());
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let code = code.trim();
        if code.is_empty() {
            above = sourced(comment) || above && !comment.is_empty();
            continue;
        }
        let here = sourced(comment) || above;
        above = false;
        if code.starts_with('[') {
            table = code.starts_with("[[") && here;
        }
        let value = code.split_once('=').map_or("", |(_, value)| value.trim());
        let number = value.starts_with(|c: char| c.is_ascii_digit() || "-+[".contains(c));
        if number && !code.starts_with(['{', '[']) && !here && !table {
            lines.push(index + 1);
        }
    }
    lines
}

#[test]
fn does_every_number_say_where_it_comes_from() {
    for (name, text) in drives::all() {
        let spec = drives::load(name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(unsourced(&spec, text), Vec::<usize>::new(), "drives/{name}.toml: lines without a source");
    }
}
