//! Inconsistent layouts: the error names the line, the key and what is wrong.

use headstack_model::DriveSpec;

/// A drive file with a `[geometry]`, which begins on line 6.
fn parse(capacity: u64, geometry: &str) -> Result<DriveSpec, (usize, String, String)> {
    let text = format!(
        "name = \"any\"\ntitle = \"Any\"\nevidence = \"derived\"\ncapacity_sectors = {capacity}\n\n{geometry}
[mechanics]
rpm = 7200
head_switch_ms = 0.5
seek.points_cylinders_ms = [[1, 1.0], [10, 5.0]]
[bus]
read_us_per_sector = 1
write_us_per_sector = 1
"
    );
    DriveSpec::parse(&text, "any.toml").map_err(|error| (error.line, error.key, error.message))
}

#[track_caller]
fn refused(capacity: u64, geometry: &str, line: usize, key: &str, reason: &str) {
    let (at, found, message) = parse(capacity, geometry).expect_err("it does not fit");
    assert_eq!((at, found.as_str()), (line, key), "{message}");
    assert!(message.contains(reason), "{message}");
}

fn zoned(sparing: &str, zone: &str) -> String {
    format!(
        "[geometry]
heads = 2
cylinders = 10
layout = \"cylinder\"
sparing = \"{sparing}\"
range_cylinders = 4
[[geometry.zones]]
first_cylinder = 0
last_cylinder = 4
sectors_per_track = 10
track_skew_sectors = 1
cylinder_skew_sectors = 1
spares = 1
[[geometry.zones]]
first_cylinder = 5
last_cylinder = 9
sectors_per_track = 8
track_skew_sectors = 1
cylinder_skew_sectors = 1
{zone}
"
    )
}

#[test]
fn excess_capacity_is_rejected_with_both_sector_counts() {
    assert!(parse(178, &zoned("sectors-per-zone", "spares = 1")).is_ok());
    refused(179, &zoned("sectors-per-zone", "spares = 1"), 4, "capacity_sectors", "179 sectors");
    refused(179, &zoned("sectors-per-zone", "spares = 1"), 4, "capacity_sectors", "room for 178");
}

#[test]
fn invalid_spares_and_slips_are_rejected_with_their_zone() {
    let (slips, spares) = ("geometry.zones[1].slips", "geometry.zones[1].spares");
    refused(1, &zoned("sectors-per-track", "spares = 8"), 25, spares, "8 spares fill their region of 8");
    refused(1, &zoned("sectors-per-cylinder", "spares = 16"), 25, spares, "of 16");
    refused(1, &zoned("tracks-per-zone", "spares = 10"), 25, spares, "of 80");
    refused(1, &zoned("sectors-per-track", "spares = 1\nslips = [16, 17]"), 26, slips, "2 slips at 16 to 17");
    refused(1, &zoned("sectors-per-range", "spares = 1\nslips = [3, 61]"), 26, slips, "has 1 spares");
    refused(1, &zoned("tracks-per-zone", "spares = 1\nslips = [3, 4]"), 26, slips, "2 slips at 3 to 4");
    assert!(
        parse(1, &zoned("sectors-per-range", "spares = 1\nslips = [3, 64, 65]")).is_ok(),
        "the last has none"
    );
    let text = zoned("none", "").replace("spares = 1", "slips = [5]");
    refused(1, &text, 18, "geometry.zones[0].slips", "has 0 spares");
    assert!(parse(1, &text.replace("range_cylinders = 4", "slip_to_end = true")).is_ok());
    refused(1, &zoned("none", ""), 18, "geometry.zones[0].spares", "`none`");
    let gap = "spares = 1\nfront_gap_sectors = 79";
    refused(1, &zoned("sectors-per-zone", gap), 26, "geometry.zones[1].front_gap_sectors", "79 sectors");
}

#[test]
fn remap_to_a_used_spare_is_rejected() {
    let key = "geometry.zones[1].remaps";
    let remapped =
        |remaps: &str| zoned("sectors-per-track", &format!("spares = 1\nslips = [23]\nremaps = {remaps}"));
    assert!(parse(160, &remapped("[[3, 7], [4, 15], [5, 5]]")).is_ok());
    refused(160, &remapped("[[3, 6]]"), 27, key, "6, the spare for 3, is not free");
    refused(160, &remapped("[[3, 7], [4, 7]]"), 27, key, "7, the spare for 4, is not free");
    refused(160, &remapped("[[3, 23]]"), 27, key, "not free");
    refused(160, &remapped("[[3, 7], [3, 15]]"), 27, key, "3 is remapped twice");
}

#[test]
fn bands_that_do_not_fit_are_rejected_with_their_key() {
    let banded = |zone: &str| {
        format!(
            "[geometry]
heads = 2
cylinders = 10
layout = \"aa\"
[[geometry.band_zones]]
first_cylinder = 0
last_cylinder = 9
band_tracks = 3
sectors_per_track = [4, 6]
track_skew_turns = 0.1
head_skew_turns = 0.2
{zone}
"
        )
    };
    assert!(parse(98, &banded("spares = 2\nslips = [5, 99]")).is_ok());
    refused(99, &banded("spares = 2\nslips = [5, 99]"), 4, "capacity_sectors", "room for 98");
    refused(1, &banded("spares = 100"), 17, "geometry.band_zones[0].spares", "of 100");
    refused(1, &banded("spares = 2\nslips = [5, 100]"), 18, "geometry.band_zones[0].slips", "below 100");
    refused(1, &banded("slips = [5]"), 17, "geometry.band_zones[0].slips", "has 0 spares");
    refused(
        1,
        &banded("").replace("\"aa\"", "\"aa\"\nsparing = \"sectors-per-zone\""),
        10,
        "geometry.sparing",
        "no use",
    );
}

const TRACKS: &str = "tracks = [[0, 8, 10], [2, 6, 8]]";
const GROUPS: &str = "groups = [\n[[0, 0, 5, 0, 1, 0, 0]],\n[[0, 2, 0, 5, 0, 0], [1, 1, 10, 0, 1, 0, 0]]\n]";

fn extents(tracks: &str, groups: &str, rest: &str) -> String {
    format!(
        "[geometry]\nheads = 2\ncylinders = 10\nlayout = \"extents\"\n[geometry.extents]\n{tracks}\n{groups}\n{rest}"
    )
}

#[test]
fn extents_that_do_not_fit_are_rejected_with_their_key() {
    assert!(parse(140, &extents(TRACKS, GROUPS, "")).is_ok());
    refused(141, &extents(TRACKS, GROUPS, ""), 4, "capacity_sectors", "room for 140");
    let kinds = extents("tracks = [[0, 8, 10], [3, 6, 8]]", GROUPS, "");
    refused(1, &kinds, 11, "geometry.extents.tracks[1]", "within the track");
    let run = "geometry.extents.groups[0][0]";
    refused(1, &extents(TRACKS, "groups = [\n[[2, 0, 5, 0, 1, 0, 0]]]", ""), 13, run, "head 2 of 2");
    refused(1, &extents(TRACKS, "groups = [\n[[0, 2, 5, 0, 1, 0, 0]]]", ""), 13, run, "no such kind");
    refused(1, &extents(TRACKS, "groups = [\n[[0, 2, 0, 5, 0, 0]]]", ""), 13, run, "no such group before");
    refused(1, &extents(TRACKS, "groups = [\n[[0, 0, 0, 0, 1, 0, 0]]]", ""), 13, run, "none or too many");
    refused(1, &extents(TRACKS, "groups = [\n[[0, 0, 2, 0, 0, 0, 0]]]", ""), 13, run, "upon itself");
    refused(1, &extents(TRACKS, "groups = [\n[[0, 0, 2, 0, 1, inf, 0]]]", ""), 13, run, "finite");
    refused(
        1,
        &extents(TRACKS, "groups = [[]]", ""),
        12,
        "geometry.extents.groups[0][0]",
        "a group has runs",
    );
    refused(1, &extents(TRACKS, "groups = []", ""), 12, "geometry.extents.groups", "the last is the disk");
    let below = extents(TRACKS, "groups = [[[0, 0, 2, 0, -1, 0, 0]]]", "");
    refused(1, &below, 12, "geometry.extents.groups", "cylinders -1 to 0");
    refused(
        1,
        &below.replace("-1", "10"),
        12,
        "geometry.extents.groups",
        "cylinders 0 to 10, the disk has 10",
    );
    let deep: String = (0..20).map(|group| format!("[[{group}, 1, 0, 0, 0, 0]],\n")).collect();
    let deep = extents(TRACKS, &format!("groups = [[[0, 0, 1, 0, 1, 0, 0]],\n{deep}]"), "");
    refused(1, &deep, 28, "geometry.extents.groups[16][0]", "16 levels");
    let wide = extents(
        TRACKS,
        &format!("groups = [[[0, 0, 5, 0, 1, 0, 0]],\n{}]", "[[0, 4294967295, 0, 1, 0, 0]]"),
        "",
    );
    refused(1, &wide, 12, "geometry.extents.groups", "the disk has 10");
}

#[test]
fn invalid_defects_of_extents_are_rejected_with_their_key() {
    let slipped = |slips: &str| extents(TRACKS, GROUPS, slips);
    assert!(parse(1, &slipped("slips = [[0, 3], [3, 1], [139, 1]]")).is_ok());
    for slips in ["slips = [[0, 3], [2, 1]]", "slips = [[139, 2]]", "slips = [[7, 0]]"] {
        refused(1, &slipped(slips), 16, "geometry.extents.slips", "slips must rise and lie below 140");
    }
    refused(1, &slipped("slips = [[0, 140]]"), 16, "geometry.extents.slips", "no block");
    let key = "geometry.extents.remaps[0]";
    let remapped = |remaps: &str| extents(TRACKS, GROUPS, &format!("remaps = [\n{remaps}]"));
    assert!(parse(140, &remapped("[0, 1, 3, 0, 9], [139, 1, 3, 1, 0], [20, 2, 4, 1, 0]")).is_ok());
    refused(140, &remapped("[139, 2, 3, 0, 8]"), 17, key, "not all below 140");
    refused(140, &remapped("[0, 1, 3, 0, 7]"), 17, key, "sector 7 of its track is not free");
    refused(140, &remapped("[0, 1, 3, 0, 10]"), 17, key, "not on their track");
    refused(140, &remapped("[0, 4294967295, 3, 0, 8]"), 17, key, "not all below");
    refused(140, &remapped("[0, 1, 10, 0, 8]"), 17, key, "its track is none of the layout");
    refused(140, &remapped("[0, 1, 3, 2, 8]"), 17, key, "its track is none of the layout");
    let twice = remapped("[0, 1, 3, 0, 8], [1, 1, 3, 0, 8]");
    refused(140, &twice, 17, "geometry.extents.remaps[1]", "not free");
    refused(
        140,
        &remapped("[0, 2, 3, 0, 8], [1, 1, 4, 0, 8]"),
        16,
        "geometry.extents.remaps",
        "block 1 is remapped twice",
    );
}
