//! Partitions that begin and end on track boundaries.

use crate::common::{json, printed, refused};
use crate::exclude::{map_of, text};

/// First sectors of the tracks of a shipped drive.
fn firsts(drive: &str) -> Vec<u64> {
    let (folder, _) = map_of(drive);
    let path = folder.path().join("text");
    printed(&["drive", "map", drive, "--text", "-o", text(&path)]);
    let tracks = std::fs::read_to_string(&path).expect("it was written");
    let lines = tracks.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

#[test]
fn aligned_partition_is_the_largest_on_track_boundaries() {
    let (_folder, map) = map_of("atlas-10k-ii");
    let firsts = firsts("atlas-10k-ii");
    let is_first = |sector: u64| firsts.binary_search(&sector).is_ok();
    for more in [&[][..], &["--multiple", "8"], &["--partition", "1000001,2000000", "--multiple", "3"]] {
        let found = json(&[&["layout", "align", text(&map), "--json"], more].concat());
        let number = |key: &str| found[key].as_u64().unwrap_or_else(|| panic!("no {key} in {found}"));
        let (start, end) = (number("start"), number("start") + number("sectors"));
        assert!(is_first(start) && is_first(end), "{start} to {end}");
        let tracks = firsts.iter().filter(|first| (start..end).contains(*first)).count();
        assert_eq!(number("tracks"), tracks as u64);
        // The partition cannot be larger: less than one track is left behind it, and less than eight tracks before it. With `--multiple 8`, only
        // one of up to eight tracks begins at a multiple.
        let longest = 528;
        assert!(number("left_behind") < longest && number("left_before") < 8 * longest, "{found}");
    }
    let found = json(&["layout", "align", text(&map), "--json"]);
    assert!(found["start"].as_u64() >= Some(2048), "partition tables have room: {found}");
}

#[test]
fn align_prints_sfdisk_and_parted_syntax() {
    let (_folder, map) = map_of("atlas-10k-ii");
    let align = |more: &[&str]| printed(&[&["layout", "align", text(&map)], more].concat());
    let span = align(&[]);
    let (start, sectors) = span.trim().split_once(',').expect("START,LEN");
    assert_eq!(align(&["--sfdisk"]), format!("start={start}, size={sectors}\n"));
    let last = start.parse::<u64>().expect("a number") + sectors.parse::<u64>().expect("a number") - 1;
    assert_eq!(align(&["--parted"]), format!("unit s mkpart data {start} {last}\n"));
    // The printed span is valid as `--partition` and is aligned already.
    assert_eq!(align(&["--partition", span.trim()]), span);
}

#[test]
fn span_without_a_track_is_rejected() {
    let (_folder, map) = map_of("atlas-10k-ii");
    let align = |span: &str| refused(&["layout", "align", text(&map), "--partition", span], 2);
    assert!(align("5,0").contains("1 sector at least"));
    assert!(align("34,100").contains("no track begins"), "{}", align("34,100"));
    assert!(align("35860000,9999").contains("reaches beyond the map"));
    assert!(align("18446744073709551615,2").contains("reaches beyond the map"));
    assert!(align("1-2").contains("START,LEN"));
    assert!(refused(&["layout", "align", "no-such.map"], 2).contains("no-such.map"));
    assert!(refused(&["layout", "align", env!("CARGO_MANIFEST_PATH")], 2).contains("Cargo.toml"));
}
