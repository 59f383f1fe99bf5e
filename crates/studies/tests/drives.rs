//! The drive files that ship: each can be read, and each of its numbers says where it comes from.

use headstack_model::{DriveSpec, Geometry};
use std::path::PathBuf;

fn files() -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../drives");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the repository has drives/")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a drive file is text");
            (path, text)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn can_every_drive_file_be_read() {
    for (path, text) in files() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("names are ASCII");
        let spec = DriveSpec::parse(&text, &path.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec.name, name, "a file is named after its drive");
        let geometry = Geometry::new(&spec).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(geometry.sectors(), spec.capacity_sectors, "{name}");
        assert!(!spec.sources.is_empty(), "{name} names its sources");
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
    for (path, text) in files() {
        let spec = DriveSpec::parse(&text, &path.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            unsourced(&spec, &text),
            Vec::<usize>::new(),
            "{}: lines without a source",
            path.display()
        );
    }
}
