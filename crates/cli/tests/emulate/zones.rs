//! Disks with zones: the write pointers survive a stop and a kill of the emulator.

use crate::emulator::{Emulator, Setup};
use crate::tools::{folder, output, text};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a zone.
const ZONE: u64 = 1 << 20;

/// A rig file whose disk has a write cache and zones of 1 MiB, the first two of them conventional.
fn rig(folder: &Path) -> PathBuf {
    let path = folder.join("rig.toml");
    let zones = "{ model = \"host-managed\", zone_sectors = 2048, conventional = 2, open_max = 8, full_at_first = false }";
    let rig = format!("title = \"Zones\"\n[drive]\npreset = \"wd800jd\"\nzones = {zones}\n");
    fs::write(&path, rig).expect("the folder is writable");
    path
}

/// The states and the written bytes of the first ten zones in a disk's data file, from `headstack zones`.
fn stored(rig: &Path, image: &Path) -> (Vec<String>, Vec<u64>) {
    let fixed = ["zones", text(rig), "--data", text(image), "--json", "--from", "0", "--count", "10"];
    let done = output(env!("CARGO_BIN_EXE_headstack"), &fixed);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
    let listed = found["disks"][0]["listed"].as_array().expect("zones are listed");
    let number = |zone: &serde_json::Value, key: &str| zone[key].as_u64().expect("it is a number");
    let state = |zone: &serde_json::Value| zone["state"].as_str().expect("it is a word").to_string();
    let written = |zone| 512 * (number(zone, "write_pointer") - number(zone, "start"));
    (listed.iter().map(state).collect(), listed.iter().map(written).collect())
}

#[test]
fn write_pointers_survive_stops_and_kills() {
    let folder = folder();
    let (rig, image) = (rig(folder.path()), folder.path().join("image"));
    let setup = || Setup { rig: text(&rig), data: Some(&image), ..Setup::default() };
    let data = vec![7; 1 << 16];
    let emulator = Emulator::start(&setup());
    let mut client = emulator.client();
    client.write(3 * ZONE, &data, false).expect("it is at the write pointer");
    (0..16).for_each(|part| client.write(4 * ZONE + (part << 16), &data, false).expect("the zone is filled"));
    client.write(3 * ZONE, &data, false).expect_err("it is not at the write pointer");
    drop(client);
    emulator.stop();
    let (states, written) = stored(&rig, &image);
    assert_eq!(states[2..6], ["empty", "closed", "full", "empty"]);
    assert_eq!(written[2..6], [0, 1 << 16, ZONE, 0]);

    // The second run continues at the stored write pointers. A kill loses at most the data that were not flushed.
    let mut emulator = Emulator::start(&setup());
    let mut client = emulator.client();
    client.write(3 * ZONE, &data, false).expect_err("that was the write pointer of the first run");
    client.write(3 * ZONE + (1 << 16), &data, false).expect("this is the write pointer");
    client.flush().expect("it runs");
    client.write(3 * ZONE + (2 << 16), &data, false).expect("this is the next one");
    client.write(5 * ZONE, &data, true).expect("it is forced to the media");
    emulator.signal("KILL");
    emulator.ended();
    let (_, written) = stored(&rig, &image);
    assert!((2 << 16..=3 << 16).contains(&written[3]), "{} bytes of zone 3", written[3]);
    assert_eq!(written[4..6], [ZONE, 1 << 16]);

    let emulator = Emulator::start(&setup());
    let mut client = emulator.client();
    assert_eq!(client.read(3 * ZONE, written[3] as u32).expect("it runs"), vec![7; written[3] as usize]);
    client.write(3 * ZONE + written[3], &data, false).expect("this is the write pointer");
    drop(client);
    emulator.stop();
}

#[test]
fn file_with_the_write_pointers_of_other_zones_is_refused() {
    let folder = folder();
    let (rig, image) = (rig(folder.path()), folder.path().join("image"));
    let headstack = |command: &str, options: &[&str]| {
        let fixed = [command, text(&rig), "--data", text(&image)];
        let done = output(env!("CARGO_BIN_EXE_headstack"), &[&fixed[..], options].concat());
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(headstack("emulate", &["--", "true"]).0, Some(0));
    let other = ["--set", "drive.zones.zone_sectors=4096"];
    for (command, more) in [("emulate", &["--", "true"][..]), ("zones", &[])] {
        let (code, said) = headstack(command, &[&other[..], more].concat());
        assert!(code == Some(2) && said.contains("it does not hold write pointers of these zones"), "{said}");
    }
    let (code, said) = headstack("zones", &["--set", "drive.zones.conventional=3"]);
    assert!(code == Some(2) && said.contains("it does not hold write pointers of these zones"), "{said}");
}
