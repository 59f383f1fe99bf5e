//! Suggestions for XFS, which aligns all data to one length.

use crate::common::{json, printed, refused};
use crate::device::{Loop, Mount};
use crate::exclude::{map_of, text};
use crate::tools::{attempt, folder, have_loops_and, run};
use headstack_prerequisites::skip;
use serde_json::Value;
use std::fs::File;

/// The first zone of the Atlas 10K II, `START,LEN` in sectors. All of its tracks have 528 sectors.
const FIRST_ZONE: &str = "0,5340720";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn unit_is_one_track_only_if_all_tracks_are_equal() {
    let (_folder, map) = map_of("atlas-10k-ii");
    let hints = |span: &str| json(&["layout", "hints", "xfs", text(&map), "--partition", span, "--json"]);
    let zone = hints(FIRST_ZONE);
    assert_eq!((number(&zone["su"]), number(&zone["sw"]), number(&zone["extsize"])), (270_336, 1, 270_336));
    assert_eq!(number(&zone["allocsize"]), 524_288);
    let best = &zone["units"][0];
    assert_eq!((&best["tracks_fit"], &best["tracks"]), (&10_115.into(), &10_115.into()));
    assert_eq!(best["crossings_a_request"], 0.0);
    assert_eq!((&zone["begins_a_track"], &zone["is_worth_it"]), (&true.into(), &true.into()));

    // One sector later, no block begins on a track boundary.
    let moved = hints("1,5340719");
    assert_eq!((&moved["begins_a_track"], &moved["is_worth_it"]), (&false.into(), &false.into()));
    let output = printed(&["layout", "hints", "xfs", text(&map), "--partition", "1,5340719"]);
    assert!(
        output.contains("too little to be worth it") && output.contains("does not begin with a track"),
        "{output}"
    );

    let disk = json(&["layout", "hints", "xfs", text(&map), "--json"]);
    let best = &disk["units"][0];
    assert!(number(&best["tracks_fit"]) < number(&best["tracks"]) / 5, "one length fits one zone: {best}");
}

#[test]
fn unit_that_xfs_rejects_is_rejected() {
    let (_folder, map) = map_of("atlas-10k-ii");
    let hints = |more: [&str; 2]| refused(&["layout", "hints", "xfs", text(&map), more[0], more[1]], 2);
    for block in ["3000", "256", "128K"] {
        assert!(hints(["--block", block]).contains("power of two"), "{block}");
    }
    for unit in ["5000", "1T"] {
        assert!(hints(["--unit", unit]).contains("whole blocks"), "{unit}");
    }
    assert!(hints(["--partition", "0,99999999"]).contains("beyond the map"));
}

#[test]
fn xfs_accepts_the_hints_and_starts_files_on_a_unit() {
    if !have_loops_and(&["mkfs.xfs", "xfs_io"]) {
        return;
    }
    let (_folder, map) = map_of("atlas-10k-ii");
    let output = json(&["layout", "hints", "xfs", text(&map), "--partition", FIRST_ZONE, "--json"]);
    let [su, extsize, allocsize] = ["su", "extsize", "allocsize"].map(|key| number(&output[key]).to_string());
    let folder = folder();
    let image = folder.path().join("image");
    // The image is as long as the whole disk; the loop device is the first zone.
    let made = File::create(&image).and_then(|file| file.set_len(35_860_910 * 512));
    made.expect("there is room for a file of holes");
    let device = Loop::part(&image, 0, 5_340_720 * 512);
    run("mkfs.xfs", &["-q", "-d", &format!("su={su},sw=1"), "-l", "su=32768", device.device()]);
    let mount = match Mount::attempt("xfs", device.device()) {
        Ok(mount) => mount,
        Err(error) => return skip(format_args!("this kernel mounts no xfs: {error}")),
    };
    let path = text(mount.path());
    run("mount", &["-o", &format!("remount,allocsize={allocsize}"), path]);
    run("xfs_io", &["-c", &format!("extsize {extsize}"), path]);
    for name in ["one", "two", "three"] {
        let write = format!("if=/dev/zero of={path}/{name} bs=270336 count=9");
        run("dd", &write.split(' ').collect::<Vec<_>>());
    }
    run("sync", &["-f", path]);
    let shown = json(&["layout", "show", text(&map), path, "--json"]);
    assert_eq!(shown["partition"]["sectors"], 5_340_720);
    let total = &shown["total"];
    assert_eq!((&total["files"], &total["bytes"]), (&3.into(), &(27 * 270_336).into()));
    assert_eq!(total["extents_on_track"], total["extents"], "{shown:#}");
    // Each file is nine whole tracks and touches no other track.
    assert_eq!(number(&total["tracks"]), 27, "{shown:#}");
    mount.unmount();
    attempt("xfs_repair", &["-n", device.device()]).map_or_else(|error| panic!("{error}"), drop);
}
