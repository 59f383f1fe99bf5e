//! The list of blocks that span a track boundary.

use crate::common::{headstack, json, printed, refused};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with the map of a shipped drive in it.
pub(crate) fn map_of(drive: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let map = folder.path().join("map");
    printed(&["drive", "map", drive, "-o", text(&map)]);
    (folder, map)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have names in UTF-8")
}

fn numbers(list: &str) -> Vec<u64> {
    list.lines().map(|line| line.parse().expect("a block a line")).collect()
}

#[test]
fn blocks_that_span_a_track_boundary_are_excluded() {
    let (folder, map) = map_of("atlas-10k");
    let tracks = folder.path().join("tracks");
    printed(&["drive", "map", "atlas-10k", "--text", "-o", text(&tracks)]);
    let tracks = fs::read_to_string(&tracks).expect("it was written");
    let lines = tracks.lines().filter(|line| !line.starts_with('#'));
    let firsts = lines.map(|line| line.split(' ').next().map(|first| first.parse::<u64>().expect("a block")));
    let firsts: Vec<u64> = firsts.map(|first| first.expect("a line has words")).collect();

    let done = headstack(&["layout", "exclude", text(&map), "--partition", "1003,200000"]);
    let inside = firsts.iter().filter(|first| (1004..201_000).contains(*first)).map(|first| first - 1003);
    let mut expected: Vec<u64> = inside.filter(|place| place % 8 > 0).map(|place| place / 8).collect();
    expected.dedup();
    assert!(expected.len() > 100);
    assert_eq!((done.code, numbers(&done.out)), (0, expected.clone()), "{}", done.err);
    assert!(
        done.err.starts_with(&format!("headstack: {} of 25,000 blocks of 4 KiB", expected.len())),
        "{}",
        done.err
    );

    let list = folder.path().join("list");
    let args = ["layout", "exclude", text(&map), "--partition", "1003,200000", "--json", "-o", text(&list)];
    assert_eq!(json(&args)["excluded_blocks"], expected.len());
    assert_eq!(numbers(&fs::read_to_string(&list).expect("it was written")), expected);
}

#[test]
fn blocks_ending_at_a_boundary_are_excluded_on_request_only() {
    let (folder, map) = map_of("st2000dm006");
    let list = folder.path().join("list");
    let count = |more: &[&str]| {
        let args =
            ["layout", "exclude", text(&map), "--partition", "0,80000000", "--json", "-o", text(&list)];
        json(&[&args[..], more].concat())["excluded_blocks"].as_u64().expect("it is counted")
    };
    let (spanned, every) = (count(&[]), count(&["--boundaries", "every"]));
    assert!(spanned < every && every > 10_000, "{spanned} and {every}");
}

#[test]
fn invalid_exclude_arguments_are_rejected() {
    let (folder, map) = map_of("atlas-10k");
    let output = refused(&["layout", "exclude", text(&map), "--block", "1000"], 2);
    assert!(output.contains("blocks of 1000 bytes are no whole sectors of 512 bytes"), "{output}");
    let output = refused(&["layout", "exclude", text(&map), "--partition", "17900000,100000"], 2);
    assert!(output.contains("reaches beyond"), "{output}");
    let nowhere = folder.path().join("no/list");
    let output = refused(&["layout", "exclude", text(&map), "-o", text(&nowhere)], 2);
    assert!(output.contains("No such file"), "{output}");
    let none = folder.path().join("none");
    fs::write(&none, "no map").expect("there is room");
    assert!(refused(&["layout", "exclude", text(&none)], 2).contains("is no track map"));
}
