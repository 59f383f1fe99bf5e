//! Every command where its surroundings fail it: a reader that goes away, a full disk, Ctrl-C, 40 columns, a terminal without UTF-8.

use crate::common::{command, commands};
use crate::interrupt::{Running, long_job, names};
use crate::tools::have;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Commands that end within moments, with the inputs of a [`folder`].
const QUICK: &[&str] = &[
    "compare atlas-10k wd800jd job.fio",
    "completions bash",
    "doctor",
    "drive check drive.toml",
    "drive import setup.parv",
    "drive firmware",
    "drive keys",
    "drive list",
    "drive map atlas-10k -o new.map",
    "drive new --capacity 1TB --rpm 7200 --mb-s 200 --seek 8",
    "drive plot atlas-10k -o drive.html",
    "drive show atlas-10k",
    "emulate null --size 1M -- true",
    "keys load",
    "layout align a.map",
    "layout check a.map ext4.img --partition 1003,100000",
    "layout exclude a.map --partition 0,8000",
    "layout hints xfs a.map",
    "layout mkfs ext4 a.map new.img --partition 1003,100000 --force",
    "man",
    "probe --drive small.toml --what speed",
    "rearrange analyze a.trace",
    "rearrange format new-region.img --region 1M",
    "rearrange simulate atlas-10k a.trace",
    "rearrange status region.img",
    "reproduce --list",
    "rig check rig.toml",
    "rig import setup.parv",
    "rig keys",
    "rig list",
    "rig show single",
    "run --drive atlas-10k --pattern random --count 100",
    "serve node.toml --check=file",
    "sim atlas-10k job.fio",
    "stripe advise --drive atlas-10k --disks 4 --mpl 8 --size 64K",
    "stripe follow a.trace --drive atlas-10k --disks 4 --mpl 8",
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
    ("drive fit", "runs for seconds"),
    ("demo", "takes seconds: command::demo_prints_three_experiments_and_writes_one_page"),
    ("explore", "serves its page until it is stopped: explore::"),
    ("fault", "needs an emulator: its tests are with those of real clients"),
    ("layout preallocate", "needs a mounted ext4"),
    ("layout reorganize", "needs a mounted ext4"),
    ("layout show", "needs a mounted file system"),
    ("rearrange dissolve", "removes the region that it needs"),
    ("sweep merge", "needs the folder of a sweep: sweep::"),
    ("sweep status", "needs the folder of a sweep: sweep::"),
    ("top", "needs a node"),
];

fn empty() -> TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// A folder with the inputs of the quick commands.
fn folder() -> TempDir {
    let folder = empty();
    let inputs = [
        ("job.fio", "[j]\nrw=randread\nsize=1m\nnumber_ios=200\n"),
        (
            "a.trace",
            "0.000000 0 8 8 1\n10.000000 0 80 8 0\n20.000000 0 800 8 1\n30.0 0 8 8 1\n40.0 0 8 8 1\n",
        ),
        ("v.trace", "R Miss 8 8 9120.5 0\nW Miss 800 8 8120.5 0\nR Miss 8000 8 7120.5 0\n"),
        ("rig.toml", "[[drive]]\npreset = \"wd800jd\"\n"),
        ("sweep.toml", "rigs = [\"atlas-10k\"]\nloads = [\"job.fio\"]\nseeds = 2\n"),
        ("small.toml", include_str!("../small.toml")),
        ("setup.parv", include_str!("../../../disksim/tests/small/setup.parv")),
        ("drive.diskspecs", include_str!("../../../disksim/tests/small/drive.diskspecs")),
        ("drive.model", include_str!("../../../disksim/tests/small/drive.model")),
        ("drive.seek", include_str!("../../../disksim/tests/small/drive.seek")),
        ("node.toml", include_str!("../../../../contrib/debian/node.toml")),
    ];
    for (name, text) in inputs {
        fs::write(folder.path().join(name), text).expect("the folder is writable");
    }
    IMAGES.iter().for_each(|image| make_image(folder.path(), image));
    let makes = [
        "drive map atlas-10k -o a.map",
        "drive new --capacity 1TB --rpm 7200 --mb-s 200 --seek 8 -o drive.toml",
        "layout mkfs ext4 a.map ext4.img --partition 1003,100000",
        "rearrange format region.img --region 1M",
    ];
    for line in makes.into_iter().filter(|line| can_run(line)) {
        let made = run(folder.path(), line, Stdio::piped());
        assert!(made.status.success(), "{line}: {}", text(&made.stderr));
    }
    folder
}

/// Files with holes, as disks; the last gets a region.
const IMAGES: [(&str, u64); 4] =
    [("ext4.img", 51_200_000), ("new.img", 51_200_000), ("region.img", 1 << 26), ("new-region.img", 1 << 26)];

fn make_image(folder: &Path, (name, bytes): &(&str, u64)) {
    let file = fs::File::create(folder.join(name)).expect("the folder is writable");
    file.set_len(*bytes).expect("a file may have holes");
}

/// Whether this machine has the programs that a command needs.
fn can_run(line: &str) -> bool {
    let needs_ext4 = ["layout check ", "layout mkfs "].iter().any(|command| line.starts_with(command));
    !needs_ext4 || have(&["mke2fs", "e2fsck", "debugfs", "dumpe2fs", "blkid"])
}

/// The quick commands that this machine can run.
fn quick() -> impl Iterator<Item = &'static str> {
    QUICK.iter().copied().filter(|line| can_run(line))
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The command in a folder, with these variables of the environment.
fn run(folder: &Path, line: &str, stdout: Stdio) -> Output {
    if line.contains("new-region.img") {
        // A disk gets no second region.
        make_image(folder, &IMAGES[3]);
    }
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
    let leaves: BTreeSet<String> = all
        .iter()
        .filter(|words| !is_group(words) || words[..] == ["sweep"])
        .map(|words| words.join(" "))
        .collect();
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
    for line in quick().chain(HELP_ONLY.iter().map(|(name, _)| *name)) {
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
    for line in quick().filter(|line| !line.starts_with("emulate ")) {
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

const PARTIAL: &str = "headstack: stopped by SIGINT; the results are partial\n";
const NOTHING: &str = "headstack: stopped by SIGINT without a result\n";

/// Commands that would run for hours, and what they say in the end.
const LONG: &[(&str, &str)] = &[
    ("rearrange simulate atlas-10k long.fio --report out.html", NOTHING),
    ("sweep long.toml --out rows", PARTIAL),
    ("tune atlas-10k long.fio --requests 50000000", NOTHING),
    ("zones ultrastar-hc620 long-zones.fio", PARTIAL),
];

#[test]
fn interrupted_command_ends_with_130_and_one_line() {
    for (line, said) in LONG {
        let folder = empty();
        long_job(folder.path());
        let sweep = "rigs = [\"atlas-10k\"]\nloads = [\"long.fio\"]\nseeds = 2\n";
        fs::write(folder.path().join("long.toml"), sweep).expect("the folder is writable");
        let zones = "[w]\nrw=write\nbs=4k\ndirect=1\nzonemode=zbd\nsize=1t\nnumber_ios=50000000\n";
        fs::write(folder.path().join("long-zones.fio"), zones).expect("the folder is writable");
        let running = Running::start(folder.path(), &words(line));
        running.handles_signals();
        let (code, _, err) = running.stopped_by("INT");
        assert_eq!(code, 130, "{line}: {err}");
        assert_eq!(err, *said, "{line}");
        let hidden = names(folder.path()).into_iter().find(|name| name.starts_with(".headstack"));
        assert_eq!(hidden, None, "{line}");
    }
}

/// Commands that read a trace, which never ends here.
const READERS: &[&str] = &[
    "rearrange analyze endless.trace",
    "stripe follow endless.trace --drive atlas-10k --disks 4 --mpl 8",
    "trace convert endless.trace new.spc",
    "trace cut endless.trace cut.trace --from 1ms",
    "trace plot endless.trace -o trace.html",
    "trace stat endless.trace",
    "validate --drive atlas-10k --trace endless.trace --report out.html",
];

/// Makes a pipe in the folder, and lines for its first reader until that goes away.
fn endless(folder: &Path, line: fn(u64) -> String) {
    let path = folder.join("endless.trace");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
    std::thread::spawn(move || {
        let mut pipe = fs::File::options().write(true).open(path).expect("the pipe opens");
        (0..).map(line).find(|line| pipe.write_all(line.as_bytes()).is_err())
    });
}

#[test]
fn interrupted_reader_of_a_trace_leaves_no_file() {
    for line in READERS {
        let folder = empty();
        if line.starts_with("validate ") {
            endless(folder.path(), |index| format!("R Miss {} 8 9120.5 0\n", index % 1000))
        } else {
            endless(folder.path(), |index| format!("{index}.0 0 {} 8 1\n", index % 1000 * 8))
        }
        let before = names(folder.path());
        let running = Running::start(folder.path(), &words(line));
        running.handles_signals();
        if line.starts_with("trace c") {
            running.has_begun_a_file(folder.path());
        }
        let (code, out, err) = running.stopped_by("INT");
        assert_eq!((code, out.as_str(), err.as_str()), (130, "", NOTHING), "{line}");
        assert_eq!(names(folder.path()), before, "{line}");
    }
}

#[test]
fn interrupted_demo_prints_its_completed_experiments_and_writes_no_page() {
    let folder = empty();
    let running = Running::start(folder.path(), &["demo"]);
    running.handles_signals();
    let (code, out, err) = running.stopped_by("INT");
    assert_eq!(code, 130, "{err}");
    assert_eq!(err, if out.is_empty() { NOTHING } else { PARTIAL });
    assert!(out.is_empty() || out.starts_with("RANDOM READS: THE ORDER OF REQUESTS\n"), "{out}");
    assert_eq!(names(&folder.path().join("out")), [""; 0]);
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
    for line in quick().filter(|line| !line.starts_with("emulate ")) {
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
