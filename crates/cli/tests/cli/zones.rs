//! `headstack zones`, and loads on a disk with zones.

use crate::common::{json, printed, refused};
use std::fs;

/// A fio job that writes a zone and the half of another, in a folder that stays as long as the first value.
fn job(rw: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log.fio");
    let text = format!("[log]\nrw={rw}\nbs=1m\nioengine=libaio\niodepth=4\noffset=131g\nsize=384m\n");
    fs::write(&file, text).expect("the folder is writable");
    let file = file.to_str().expect("the path is text").to_string();
    (folder, file)
}

#[test]
fn zones_are_counted_by_state_and_listed_after_a_load() {
    let table = printed(&["zones", "ultrastar-hc620"]);
    assert!(table.contains("conventional     524\nfull          55,356\n"), "{table}");
    let (_folder, file) = job("write");
    let listed = printed(&["zones", "ultrastar-hc620", &file, "--from", "524", "--count", "2"]);
    assert!(listed.contains("524   full"), "{listed}");
    assert!(listed.contains("525   implicitly open") && listed.contains("50.0 %"), "{listed}");
    let found =
        json(&["zones", "ultrastar-hc620", &file, "--json", "--set", "drive.zones.full_at_first=false"]);
    let disk = &found["disks"][0];
    assert_eq!((&disk["states"]["empty"], &disk["open"]), (&55_354.into(), &1.into()));
}

#[test]
fn random_writes_to_a_host_managed_disk_are_refused_in_one_line() {
    let (_folder, at_random) = job("randwrite");
    let (_second, with_gaps) = job("write:1m");
    for command in ["sim", "zones"] {
        let error = refused(&[command, "ultrastar-hc620", &at_random], 2);
        assert!(error.contains("log.fio:2: rw: writes at random, which `disk0` refuses"), "{error}");
        let error = refused(&[command, "ultrastar-hc620", &with_gaps], 2);
        assert!(
            error.contains("the disk refused ") && error.contains("write each zone in sequence"),
            "{error}"
        );
    }
    printed(&["sim", "ultrastar-hc620", &at_random, "--set", "drive.zones.model=host-aware"]);
}

#[test]
fn zone_mode_of_fio_writes_at_random_among_the_zones() {
    // The file has one whole zone of 256 MiB, which the job writes once and then to its half.
    let (_folder, file) = job("randwrite\nzonemode=zbd\ndirect=1\nnorandommap\nio_size=384m");
    let found = json(&["zones", "ultrastar-hc620", &file, "--json"]);
    let states = &found["disks"][0]["states"];
    assert_eq!((&states["full"], &states["implicitly open"]), (&55_355.into(), &1.into()), "{states}");
}

#[test]
fn disk_without_zones_is_named() {
    let error = refused(&["zones", "exos-x18"], 2);
    assert!(error.contains("exos-x18: no disk of it has zones"), "{error}");
}
