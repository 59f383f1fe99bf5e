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
fn probed_drive_agrees_with_its_file() {
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
fn equal_seeds_probe_the_same_disk() {
    let folder = folder();
    let drive = small(folder.path());
    let reported =
        |seed: &str| json(&["probe", "--drive", text(&drive), "--what", "tracks", "--seed", seed, "--json"]);
    assert_eq!(reported("3"), reported("3"));
    assert_ne!(reported("3")["speed"], reported("4")["speed"]);
}

#[test]
fn probe_stops_at_its_budget_and_resumes_from_the_journal() {
    let folder = folder();
    let (drive, journal) = (small(folder.path()), folder.path().join("journal"));
    let args = ["probe", "--drive", text(&drive), "--what", "tracks", "--json", "--journal", text(&journal)];
    let first = json(&[&args[..], &["--budget", "1500ms"]].concat());
    assert_eq!(first["left_open"], serde_json::json!(["tracks"]), "{first:#}");
    assert!(first["simulated_s"].as_f64().is_some_and(|time| (1.5..1.6).contains(&time)), "{first:#}");
    let there = refused(&args, 2);
    assert!(there.ends_with("the journal exists already: --resume continues from it"), "{there}");
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

/// The small drive with other zones and another speed: of another make, by the same name, and as large.
fn stranger(folder: &Path) -> PathBuf {
    let path = folder.join("other.toml");
    let spec = include_str!("../small.toml").replace("rpm = 12000", "rpm = 10000");
    let spec = spec.replace("sectors_per_track = 600", "sectors_per_track = 540");
    let spec = spec.replace("sectors_per_track = 500", "sectors_per_track = 560");
    fs::write(&path, spec).expect("the folder is writable");
    path
}

#[test]
fn complete_journal_of_another_disk_is_rejected() {
    let folder = folder();
    let (drive, other) = (small(folder.path()), stranger(folder.path()));
    for method in ["lattice", "query"] {
        let journal = folder.path().join(method);
        let args = ["--what", "tracks", "--method", method, "--json", "--journal", text(&journal)];
        let on = |drive: &Path, more: &[&str]| {
            headstack(&[&["probe", "--drive", text(drive)], &args[..], more].concat())
        };
        let (whole, again) = (on(&drive, &[]), on(&drive, &["--resume"]));
        assert_eq!((again.code, again.out), (0, whole.out), "{method}: {}", again.err);
        let reported = on(&other, &["--resume"]);
        assert!(reported.err.contains("the journal is of another disk: "), "{method}: {}", reported.err);
        assert_eq!((reported.code, reported.out.as_str()), (2, ""), "{method}");
    }
}

#[test]
fn journal_too_short_to_identify_the_disk_is_restarted() {
    let folder = folder();
    let (drive, other) = (small(folder.path()), stranger(folder.path()));
    let journal = folder.path().join("journal");
    let on = |drive: &Path, more: &[&str]| {
        let args =
            ["probe", "--drive", text(drive), "--what", "speed", "--json", "--journal", text(&journal)];
        json(&[&args[..], more].concat())["speed"]["rpm"].as_f64().expect("it turns").round()
    };
    // One block is read again and again: in its angles alone any disk is the same.
    assert_eq!((on(&drive, &[]), on(&other, &["--resume"])), (12000.0, 10000.0));
}

#[test]
fn budget_end_reports_the_files_not_written() {
    let folder = folder();
    let drive = small(folder.path());
    let [learned, map] = ["learned.toml", "small.map"].map(|name| folder.path().join(name));
    let args = ["probe", "--drive", text(&drive), "-o", text(&learned), "--map", text(&map), "--check"];
    let done = headstack(&[&args[..], &["--budget", "1500ms"]].concat());
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let reported =
        format!("headstack: {} was not written: tracks left open; {} was not", text(&map), text(&learned));
    assert!(done.err.starts_with(&reported), "{}", done.err);
    assert!(done.out.contains("small.map was not written"), "{}", done.out);
    assert!(!done.out.contains("agrees with") && done.out.contains("NOT WHOLE"), "{}", done.out);
    let done = headstack(&[&args[..], &["--budget", "1500ms", "--json"]].concat());
    let found = crate::common::schema::parsed(&["probe"], &done.out);
    assert_eq!((&found["check"]["agrees"], &found["check"]["whole"]), (&false.into(), &false.into()));
    assert_eq!(found["not_written"].as_array().map(Vec::len), Some(2), "{found:#}");
    // What comes to its end within the time is written.
    let done = headstack(&[&args[..], &["--budget", "25s"]].concat());
    assert_eq!((done.code, map.exists(), learned.exists()), (1, true, false), "{}{}", done.out, done.err);
}

#[test]
fn earlier_results_are_printed_after_a_later_failure() {
    let folder = folder();
    let drive = small(folder.path());
    let map = folder.path().join("small.map");
    // So late that not even its turn shows.
    let late = refused(&["probe", "--drive", text(&drive), "--late-share", "1", "--map", text(&map)], 2);
    assert!(late.contains("A small disk: no rotation shows in its response times"), "{late}");
    // So noisy that its turn shows, and its tracks do not.
    let args = ["probe", "--drive", text(&drive), "--noise-us", "400", "--map", text(&map)];
    let done = headstack(&args);
    assert_eq!(done.code, 2, "{}{}", done.out, done.err);
    assert!(done.out.contains("rpm, a turn in"), "{}", done.out);
    assert!(done.out.contains("left open       tracks, seek, cache: "), "{}", done.out);
    assert!(done.out.contains("small.map was not written"), "{}", done.out);
    assert!(done.err.starts_with("headstack: A small disk: ") && !map.exists(), "{}", done.err);
}

#[test]
fn interrupted_probe_leaves_only_its_journal() {
    let folder = folder();
    let drive = small(folder.path());
    let [journal, map] = ["journal", "small.map"].map(|name| folder.path().join(name));
    // It takes millions of reads: however late the signal comes, it comes before the end.
    let long = ["probe", "--drive", "toshiba-x300", "--what", "tracks", "--method", "timing"];
    let args = [&long[..], &["--journal", text(&journal), "--map", text(&map)]].concat();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_headstack"));
        let more: &[&str] = if signal == "TERM" { &["--resume"] } else { &[] };
        let piped = || std::process::Stdio::piped();
        let probe =
            command.args(&args).args(more).stdout(piped()).stderr(piped()).spawn().expect("it starts");
        let grown = fs::metadata(&journal).map_or(0, |journal| journal.len()) + 9_000;
        while fs::metadata(&journal).map_or(0, |journal| journal.len()) < grown {
            std::thread::yield_now();
        }
        let kill = std::process::Command::new("kill").args(["-s", signal, &probe.id().to_string()]).status();
        assert!(kill.is_ok_and(|kill| kill.success()));
        let done = probe.wait_with_output().expect("it ends");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{out}{err}");
        let reported =
            format!("headstack: stopped: --journal {} --resume continues from here\n", text(&journal));
        assert_eq!(err, reported);
        assert!(out.contains("stopped at "), "{out}");
        let left = fs::read_dir(folder.path()).expect("it is there").count();
        assert_eq!((left, drive.exists()), (2, true), "the drive's file and the journal");
    }
}

#[test]
fn probe_continues_through_an_ignored_sighup() {
    let folder = folder();
    let journal = folder.path().join("journal");
    let script = "trap '' HUP; \"$0\" probe --drive toshiba-x300 --what tracks --method timing --journal \"$1\" & \
        until [ $(wc -c < \"$1\") -gt 9000 ]; do :; done 2> /dev/null; kill -HUP $!; kill -TERM $!; wait $!";
    let mut shell = std::process::Command::new("sh");
    let done = shell.args(["-c", script, env!("CARGO_BIN_EXE_headstack"), text(&journal)]).output();
    let done = done.expect("there is a shell");
    let err = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(143), "{err}");
    // Of two signals the second would have ended it at once.
    assert!(err.contains("--resume continues from here"), "{err}");
}

#[test]
fn failed_check_exits_with_1() {
    let folder = folder();
    let drive = small(folder.path());
    let done = headstack(&["probe", "--drive", text(&drive), "--what", "speed", "--check=wd800jd"]);
    assert_eq!((done.code, done.err.as_str()), (1, "headstack: what was learned differs from wd800jd\n"));
    assert!(done.out.contains("DISAGREES with wd800jd: speed off by"), "{}", done.out);
    // So does one of which something is missing.
    let cut =
        headstack(&["probe", "--drive", text(&drive), "--what", "tracks", "--check", "--budget", "1500ms"]);
    assert_eq!(
        (cut.code, cut.err.as_str()),
        (1, "headstack: what was to be compared was not all learned\n"),
        "{}",
        cut.out
    );
}

#[test]
fn query_probe_resumes_from_its_journal() {
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
fn invalid_probe_arguments_are_rejected_in_one_line() {
    let folder = folder();
    let drive = small(folder.path());
    let drive = text(&drive);
    for (args, reported) in [
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
        assert!(said.contains(reported), "{args:?}: {said}");
    }
}

#[test]
fn every_method_finds_the_same_tracks() {
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
    // A disk that translates no addresses is rejected before anything is learned.
    let file = folder.path().join("file");
    fs::write(&file, vec![0; 4 << 20]).expect("there is room");
    let reported = refused(&["probe", text(&file), "--method", "query", "--what", "tracks"], 2);
    assert!(reported.contains("file: ") && reported.ends_with("; use --method lattice"), "{reported}");
}

#[test]
fn map_of_a_disk_with_equal_name_and_size_is_rejected() {
    let folder = folder();
    let (drive, map) = (small(folder.path()), folder.path().join("small.map"));
    printed(&["probe", "--drive", text(&drive), "--what", "tracks", "--map", text(&map)]);
    let other = stranger(folder.path());
    let done = headstack(&["probe", "--drive", text(&other), "--known", text(&map)]);
    assert_eq!(done.code, 2, "{}{}", done.out, done.err);
    assert!(
        done.err.contains("the map is of another disk: ") && done.err.lines().count() == 1,
        "{}",
        done.err
    );
}

#[test]
fn known_map_is_verified_and_repaired_at_grown_defects() {
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
    assert!(
        other.contains("whose name is \"A small disk\"; that of this one is \"Quantum Atlas 10K"),
        "{other}"
    );
    let whole = fs::read(&map).expect("it was written");
    fs::write(&map, &whole[..40]).expect("it is writable");
    let cut = refused(&["probe", "--drive", text(&old), "--known", text(&map)], 2);
    assert!(cut.contains("byte 40: the track map ends here, and should have"), "{cut}");
}
