//! `headstack probe` on simulated drives: what it learns, what it keeps, what it refuses. Disks in real time are probed with the
//! emulator's tests.

use crate::common::{headstack, json, printed, refused};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// A drive of few tracks, in a folder.
fn small(folder: &Path) -> PathBuf {
    let path = folder.join("small.toml");
    fs::write(&path, include_str!("../small.toml")).expect("the folder is writable");
    path
}

#[test]
fn does_what_is_learned_of_a_drive_agree_with_its_file() {
    let folder = folder();
    let drive = small(folder.path());
    let [learned, map, page] =
        ["learned.toml", "small.map", "page.html"].map(|name| folder.path().join(name));
    let files = ["-o", text(&learned), "--map", text(&map), "--report", text(&page)];
    let found =
        json(&[&["probe", "--drive", text(&drive), "--check", "--writes", "--json"], &files[..]].concat());
    assert_eq!(found["check"]["agrees"], true, "{found:#}");
    assert_eq!(found["check"]["boundaries"], 399);
    assert_eq!((&found["check"]["missed"], &found["check"]["false"]), (&0.into(), &0.into()));
    assert_eq!((&found["mechanics"]["heads"], &found["mechanics"]["cylinders"]), (&2.into(), &200.into()));
    assert_eq!(found["electronics"]["cache"]["segments"], 4);
    assert!(found["probes"].as_u64().is_some_and(|probes| probes > 100), "{found:#}");
    assert!(found["simulated_s"].as_f64().is_some_and(|time| time > 1.0), "{found:#}");
    assert!(printed(&["drive", "check", text(&learned)]).contains("220,000 sectors on 400 tracks"));
    assert!(fs::metadata(&map).is_ok_and(|map| map.len() < 200));
    let page = fs::read_to_string(page).expect("it was written");
    for part in ["Zone map", "Seek curve", "Phases", "Electronics"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn is_the_same_seed_the_same_disk() {
    let folder = folder();
    let drive = small(folder.path());
    let told =
        |seed: &str| json(&["probe", "--drive", text(&drive), "--what", "tracks", "--seed", seed, "--json"]);
    assert_eq!(told("3"), told("3"));
    assert_ne!(told("3")["speed"], told("4")["speed"]);
}

#[test]
fn does_it_stop_in_time_and_go_on_from_its_journal() {
    let folder = folder();
    let (drive, journal) = (small(folder.path()), folder.path().join("journal"));
    let args = ["probe", "--drive", text(&drive), "--what", "tracks", "--json", "--journal", text(&journal)];
    let first = json(&[&args[..], &["--budget", "3s"]].concat());
    assert_eq!(first["left_open"], serde_json::json!(["tracks"]), "{first:#}");
    assert!(first["simulated_s"].as_f64().is_some_and(|time| (3.0..3.1).contains(&time)), "{first:#}");
    let there = refused(&args, 2);
    assert!(there.ends_with("it is there already: --resume goes on from it"), "{there}");
    // A last line that was cut off does no harm.
    let kept = fs::read(&journal).expect("it was written");
    fs::write(&journal, &kept[..kept.len() - 7]).expect("it is writable");
    let rest = json(&[&args[..], &["--resume", "--check"]].concat());
    assert_eq!(rest["check"]["agrees"], true, "{rest:#}");
    assert!(rest["probes"].as_u64() > first["probes"].as_u64(), "{rest:#}");
    // All of it is known now.
    assert_eq!(json(&[&args[..], &["--resume", "--check"]].concat()), rest);
    let other =
        ["probe", "--drive", "atlas-10k", "--what", "tracks", "--journal", text(&journal), "--resume"];
    let other = refused(&other, 2);
    assert!(other.contains("it is of disk `A small disk (220000 blocks of 512 bytes"), "{other}");
    let task = ["probe", "--drive", text(&drive), "--what", "speed", "--journal", text(&journal), "--resume"];
    let task = refused(&task, 2);
    assert!(task.ends_with("it is of task `lattice speed,tracks`, not of `lattice speed`"), "{task}");
}

#[test]
fn does_a_check_that_fails_end_with_1() {
    let folder = folder();
    let drive = small(folder.path());
    let done = headstack(&["probe", "--drive", text(&drive), "--what", "speed", "--check=wd800jd"]);
    assert_eq!((done.code, done.err.as_str()), (1, "headstack: what was learned is not what wd800jd says\n"));
    assert!(done.out.contains("DISAGREES with wd800jd: speed off by"), "{}", done.out);
    // So does one of which something is missing.
    let cut = headstack(&["probe", "--drive", text(&drive), "--what", "tracks", "--check", "--budget", "3s"]);
    assert_eq!(
        (cut.code, cut.err.as_str()),
        (1, "headstack: not all was learned that was to be compared\n"),
        "{}",
        cut.out
    );
}

#[test]
fn does_a_walk_over_places_go_on_where_it_ended() {
    let folder = folder();
    let (drive, journal) = (small(folder.path()), folder.path().join("journal"));
    let args = [
        "probe",
        "--drive",
        text(&drive),
        "--what",
        "tracks",
        "--method",
        "query",
        "--json",
        "--journal",
        text(&journal),
    ];
    let first = json(&[&args[..], &["--budget", "300ms"]].concat());
    assert_eq!(first["left_open"], serde_json::json!(["tracks"]), "{first:#}");
    let rest = json(&[&args[..], &["--resume", "--check"]].concat());
    assert_eq!(rest["check"]["agrees"], true, "{rest:#}");
    assert!(rest["probes"].as_u64() > first["probes"].as_u64(), "{rest:#}");
}

#[test]
fn is_what_cannot_be_probed_one_line() {
    let folder = folder();
    let drive = small(folder.path());
    let drive = text(&drive);
    for (args, told) in [
        (&["probe"][..], "DEVICE"),
        (&["probe", "/no/disk"], "/no/disk: No such file"),
        (&["probe", "/dev/null"], "/dev/null: it is neither a block device nor a file"),
        (&["probe", "--nbd", "disk"], "`disk` is no NBD URI: write nbd://"),
        (&["probe", "--nbd", "nbd+unix:///a?socket=/no/socket"], "/no/socket (export `a`): No such file"),
        (&["probe", "--drive", "wd800j"], "did you mean `wd800jd`?"),
        (&["probe", "--drive", drive, "/dev/sda"], "cannot be used with"),
        (&["probe", "--drive", drive, "--what", "track"], "tracks"),
        (&["probe", "--drive", drive, "--noise-us", "20000"], "must be 0 to 10000"),
        (
            &["probe", "--drive", drive, "--what", "tracks", "-o", "x.toml"],
            "--output needs seek among --what",
        ),
        (&["probe", "--drive", drive, "--what", "speed", "--map", "x"], "--map needs tracks among --what"),
        (&["probe", "--drive", drive, "--resume"], "--journal"),
        (&["probe", "--drive", drive, "--resume", "--journal", "/no/journal"], "/no/journal: No such file"),
        (&["probe", "/dev/null", "--check"], "--check=NAME names the drive file"),
    ] {
        let said = refused(args, 2);
        assert!(said.contains(told), "{args:?}: {said}");
    }
}

#[test]
fn do_all_methods_find_the_same_tracks() {
    let folder = folder();
    let drive = small(folder.path());
    for (method, has_speed) in [("lattice", true), ("timing", true), ("query", false), ("scsi", false)] {
        let args =
            ["probe", "--drive", text(&drive), "--what", "tracks", "--method", method, "--check", "--json"];
        let found = json(&args);
        assert_eq!(found["check"]["agrees"], true, "{method}: {found:#}");
        assert_eq!(found.get("speed").is_some(), has_speed, "{method}: {found:#}");
    }
    let seek = refused(&["probe", "--drive", text(&drive), "--what", "seek", "--method", "query"], 2);
    assert!(seek.ends_with("seeks are learned from angles, and --method query finds none"), "{seek}");
    // What tells no places is refused before anything is learned.
    let file = folder.path().join("file");
    fs::write(&file, vec![0; 4 << 20]).expect("there is room");
    let told = refused(&["probe", text(&file), "--method", "query", "--what", "tracks"], 2);
    assert!(told.contains("file: ") && told.ends_with("--method lattice does without"), "{told}");
}

#[test]
fn is_a_known_map_looked_at_and_mended() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    // With spares at the end of each zone, so that blocks move up to there when a defect grows.
    let spare = include_str!("../small.toml")
        .replace("layout = \"cylinder\"", "layout = \"cylinder\"\nsparing = \"sectors-per-zone\"")
        .replace("capacity_sectors = 220000", "capacity_sectors = 219980")
        .replace("cylinder_skew_sectors = 1", "spares = 10, cylinder_skew_sectors = 1");
    let (old, grown, map) = (path("old.toml"), path("grown.toml"), path("old.map"));
    fs::write(&old, &spare).expect("the folder is writable");
    let slips = spare.replacen("spares = 10,", "spares = 10, slips = [30000, 51234],", 1);
    assert_ne!(slips, spare);
    fs::write(&grown, slips).expect("the folder is writable");
    json(&["probe", "--drive", text(&old), "--what", "tracks", "--check", "--map", text(&map), "--json"]);
    let known =
        |drive: &Path| json(&["probe", "--drive", text(drive), "--known", text(&map), "--check", "--json"]);
    let (holds, mended) = (known(&old), known(&grown));
    assert_eq!((&holds["check"]["agrees"], &mended["check"]["agrees"]), (&true.into(), &true.into()));
    assert_eq!(holds["mended_at"], serde_json::json!([]));
    assert!(mended["mended_at"].as_array().is_some_and(|places| !places.is_empty()), "{mended:#}");
    let other = refused(&["probe", "--drive", "atlas-10k", "--known", text(&map)], 2);
    assert!(other.ends_with("is of a disk whose number of blocks is 219980; that of this one is 17966953"));
    let whole = fs::read(&map).expect("it was written");
    fs::write(&map, &whole[..40]).expect("it is writable");
    let cut = refused(&["probe", "--drive", text(&old), "--known", text(&map)], 2);
    assert!(cut.contains("byte 40: the track map ends here, and should have"), "{cut}");
}
