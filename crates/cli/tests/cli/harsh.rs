//! Every command where its surroundings fail it: a reader that goes away, a full disk, Ctrl-C, 40 columns, a terminal without UTF-8.

use crate::common::{command, commands, printed};
use crate::interrupt::{Running, long_job, names};
use crate::tools::have;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Commands that end within moments, with the inputs of a [`folder`].
const QUICK: &[&str] = &[
    "compare atlas-10k wd800jd job.fio",
    "completions bash",
    "doctor",
    "drive check drive.toml",
    "drive keys",
    "drive list",
    "drive map atlas-10k -o new.map",
    "drive new --capacity 1TB --rpm 7200 --mb-s 200 --seek 8",
    "drive plot atlas-10k -o drive.html",
    "drive show atlas-10k",
    "emulate null --size 1M -- true",
    "layout align a.map",
    "layout exclude a.map --partition 0,8000",
    "layout hints xfs a.map",
    "man",
    "rearrange analyze a.trace",
    "rearrange simulate atlas-10k a.trace",
    "rig check rig.toml",
    "rig keys",
    "rig list",
    "rig show single",
    "run --drive atlas-10k --pattern random --count 100",
    "sim atlas-10k job.fio",
    "stripe advise --drive atlas-10k --disks 4 --mpl 8 --size 64K",
    "sweep sweep.toml --out rows",
    "trace convert a.trace new.spc",
    "trace cut a.trace cut.trace --from 1ms",
    "trace formats",
    "trace plot a.trace -o trace.html",
    "trace stat a.trace",
    "tune atlas-10k job.fio --requests 200 --knob queue_depth",
    "validate --drive atlas-10k --trace v.trace",
    "zones ultrastar-hc620",
];

/// Commands of which only the help runs here, and why.
const HELP_ONLY: &[(&str, &str)] = &[
    ("demo", "takes seconds: command::demo_prints_three_experiments_and_writes_one_page"),
    ("drive import", "needs a set-up of DiskSim"),
    ("explore", "serves its page until it is stopped"),
    ("layout check", "needs an ext4 on a disk"),
    ("layout mkfs ext4", "needs e2fsprogs"),
    ("layout preallocate", "needs a mounted ext4"),
    ("layout reorganize", "needs a mounted ext4"),
    ("layout show", "needs a mounted file system"),
    ("probe", "takes seconds"),
    ("rearrange dissolve", "needs a region"),
    ("rearrange format", "needs a device"),
    ("rearrange status", "needs a region"),
    ("reproduce", "takes seconds"),
    ("rig import", "needs a set-up of DiskSim"),
    ("serve", "runs until it is stopped"),
    ("stripe follow", "needs a trace of an array"),
    ("top", "needs a node"),
];

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let inputs = [
        ("job.fio", "[j]\nrw=randread\nsize=1m\nnumber_ios=200\n"),
        (
            "a.trace",
            "0.000000 0 8 8 1\n10.000000 0 80 8 0\n20.000000 0 800 8 1\n30.0 0 8 8 1\n40.0 0 8 8 1\n",
        ),
        ("v.trace", "R Miss 8 8 9120.5 0\nW Miss 800 8 8120.5 0\nR Miss 8000 8 7120.5 0\n"),
        ("rig.toml", "[[drive]]\npreset = \"wd800jd\"\n"),
        ("sweep.toml", "rigs = [\"atlas-10k\"]\nloads = [\"job.fio\"]\nseeds = 2\n"),
    ];
    for (name, text) in inputs {
        fs::write(folder.path().join(name), text).expect("the folder is writable");
    }
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    printed(&["drive", "map", "atlas-10k", "-o", &at("a.map")]);
    printed(&[
        "drive",
        "new",
        "--capacity",
        "1TB",
        "--rpm",
        "7200",
        "--mb-s",
        "200",
        "--seek",
        "8",
        "-o",
        &at("drive.toml"),
    ]);
    folder
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The command in a folder, with these variables of the environment.
fn run(folder: &Path, line: &str, stdout: Stdio) -> Output {
    let mut command = command(&words(line));
    command.current_dir(folder).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_command_is_in_a_table_of_this_file() {
    let all: Vec<Vec<String>> = commands();
    let is_group =
        |words: &Vec<String>| all.iter().any(|other| other.len() > words.len() && other.starts_with(words));
    let leaves: BTreeSet<String> =
        all.iter().filter(|words| !is_group(words)).map(|words| words.join(" ")).collect();
    for leaf in &leaves {
        let quick = QUICK.iter().any(|line| *line == leaf || line.starts_with(&format!("{leaf} ")));
        let help = HELP_ONLY.iter().any(|(name, _)| name == leaf);
        assert!(quick != help, "{leaf}: quick {quick}, help only {help}");
    }
    assert_eq!(leaves.len(), QUICK.len() + HELP_ONLY.len());
}

#[test]
fn every_command_ends_quietly_when_its_reader_goes_away() {
    let folder = folder();
    for line in QUICK.iter().copied().chain(HELP_ONLY.iter().map(|(name, _)| *name)) {
        let line = if QUICK.contains(&line) { line.to_string() } else { format!("{line} --help") };
        let (reader, writer) = std::io::pipe().expect("pipes can be made");
        drop(reader);
        let done = run(folder.path(), &line, writer.into());
        let err = text(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{line}: {err}");
        assert!(!err.contains("panicked") && !err.contains("Broken pipe"), "{line}: {err}");
    }
}

#[test]
fn every_command_that_prints_reports_a_full_disk_in_one_line() {
    let folder = folder();
    for line in QUICK.iter().copied().filter(|line| !line.starts_with("emulate ")) {
        if run(folder.path(), line, Stdio::piped()).stdout.is_empty() {
            continue;
        }
        let full = fs::File::options().write(true).open("/dev/full").expect("the system has /dev/full");
        let done = run(folder.path(), line, full.into());
        let err = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {err}");
        assert!(
            err.ends_with("headstack: standard output: No space left on device (os error 28)\n"),
            "{line}: {err}"
        );
    }
}

/// Commands that write files: no file may become longer than the limit.
const WRITES: &[&str] = &[
    "compare atlas-10k wd800jd job.fio --json out.json",
    "compare atlas-10k wd800jd job.fio --picture out.svg",
    "compare atlas-10k wd800jd job.fio --report out.html",
    "drive map exos-x18 -o new.map",
    "drive new --capacity 1TB --rpm 7200 --mb-s 200 --seek 8 -o new.toml",
    "drive plot atlas-10k -o drive.html",
    "sim atlas-10k job.fio --json out.json",
    "sim atlas-10k job.fio --report out.html",
    "sim atlas-10k job.fio --requests out.csv",
    "trace plot a.trace -o trace.html",
];

#[test]
fn output_file_beyond_the_limit_fails_in_one_line_and_leaves_nothing() {
    let folder = folder();
    for line in WRITES {
        let before = names(folder.path());
        // In units of 512 bytes.
        let limited = "ulimit -f 1; exec \"$@\"";
        let done = Command::new("sh")
            .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_headstack")])
            .args(words(line))
            .current_dir(folder.path())
            .output()
            .expect("the shell starts");
        let err = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {err}");
        assert_eq!(err.lines().count(), 1, "{line}: {err}");
        assert!(err.starts_with("headstack: ") && err.contains("File too large"), "{line}: {err}");
        assert_eq!(names(folder.path()), before, "{line}");
    }
}

/// Commands that would run for hours.
const LONG: &[&str] = &[
    "rearrange simulate atlas-10k long.fio",
    "sweep long.toml --out rows",
    "tune atlas-10k long.fio --requests 50000000",
    "zones ultrastar-hc620 long-zones.fio",
];

#[test]
fn interrupted_command_ends_with_130_and_one_line() {
    for line in LONG {
        let folder = folder();
        long_job(folder.path());
        let sweep = "rigs = [\"atlas-10k\"]\nloads = [\"long.fio\"]\nseeds = 2\n";
        fs::write(folder.path().join("long.toml"), sweep).expect("the folder is writable");
        let zones = "[w]\nrw=write\nbs=4k\ndirect=1\nzonemode=zbd\nsize=1t\nnumber_ios=50000000\n";
        fs::write(folder.path().join("long-zones.fio"), zones).expect("the folder is writable");
        let running = Running::start(folder.path(), &words(line));
        running.handles_signals();
        let (code, _, err) = running.stopped_by("INT");
        assert_eq!(code, 130, "{line}: {err}");
        assert_eq!(err, "headstack: stopped by SIGINT; the results are partial\n", "{line}");
        let hidden = names(folder.path()).into_iter().find(|name| name.starts_with(".headstack"));
        assert_eq!(hidden, None, "{line}");
    }
}

#[test]
fn help_breaks_its_lines_at_40_columns() {
    for words in commands() {
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let done = command(&args).env("COLUMNS", "40").output().expect("the command starts");
        for line in text(&done.stdout).lines() {
            let is_one_word = line.split_whitespace().count() == 1;
            assert!(
                line.chars().count() <= 40 || line.starts_with("Usage: ") || is_one_word,
                "{args:?}: {line}"
            );
        }
    }
}

/// What the command prints on a terminal of 40 columns that shows ASCII alone.
fn on_a_poor_terminal(folder: &Path, line: &str) -> String {
    let shell = format!("stty cols 40; exec {} {line}", env!("CARGO_BIN_EXE_headstack"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &shell, "/dev/null"]).env("LC_ALL", "C");
    let done = script.current_dir(folder).stdin(Stdio::null()).output().expect("script starts");
    assert_eq!(done.status.code(), Some(0), "{line}: {}", text(&done.stdout));
    text(&done.stdout)
}

#[test]
fn terminal_without_utf_8_shows_ascii_alone() {
    if !have(&["script", "stty"]) {
        return;
    }
    let folder = folder();
    for line in QUICK.iter().copied().filter(|line| !line.starts_with("emulate ")) {
        let shown = on_a_poor_terminal(folder.path(), line);
        let other: String = shown.chars().filter(|letter| !letter.is_ascii()).collect();
        assert!(other.is_empty(), "{line}: {other}\n{shown}");
    }
}

#[test]
fn compare_leaves_columns_out_on_a_terminal_of_40_columns() {
    if !have(&["script", "stty"]) {
        return;
    }
    let folder = folder();
    let shown = on_a_poor_terminal(folder.path(), "compare atlas-10k wd800jd job.fio");
    let table = shown.lines().skip_while(|line| !line.starts_with("rig ")).take(4);
    for line in table {
        assert!(line.trim_end().chars().count() <= 40, "{line}\n{shown}");
    }
    assert!(shown.contains("Left out for a narrow terminal: "), "{shown}");
}

#[test]
fn output_to_a_file_is_the_same_without_utf_8() {
    let folder = folder();
    for line in ["drive list", "compare atlas-10k wd800jd job.fio", "trace stat a.trace"] {
        let with = |locale: &str| {
            let mut command = command(&words(line));
            command.current_dir(folder.path()).env("LC_ALL", locale).output().expect("it starts").stdout
        };
        assert_eq!(with("C"), with("C.UTF-8"), "{line}");
    }
}
