//! Commands that compute, stopped by a signal: what they print, how they end, and what lies in the folder then.

use crate::common::{json, schema};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a signal needs at most to show; a machine under load is slow.
const DEADLINE: Duration = Duration::from_secs(60);

/// Bit of SIGINT among the signals that a process handles.
const SIGINT_BIT: u64 = 1 << 1;

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// A job that takes hours: tens of millions of random requests.
pub(crate) fn long_job(folder: &Path) -> String {
    let path = folder.join("long.fio");
    let text =
        "[load]\nrw=randrw\nbs=4k\nsize=4g\nio_size=1t\nioengine=libaio\niodepth=8\nnumber_ios=50000000\n";
    fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

/// Waits until `seen` holds.
fn wait_until(what: &str, mut seen: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a test waits for another process")]
    let begun = Instant::now();
    while !seen() {
        assert!(begun.elapsed() < DEADLINE, "in vain: {what}");
        #[allow(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The running command in a folder. The caller of the tests may ignore SIGINT; the command does not.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Running {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP,QUIT", env!("CARGO_BIN_EXE_headstack")]).args(args);
        command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("the command starts") }
    }

    /// Waits until it handles signals itself.
    pub(crate) fn handles_signals(&self) {
        let path = format!("/proc/{}/status", self.child.id());
        wait_until("the command handles SIGINT", || {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            caught.is_some_and(|mask| mask & SIGINT_BIT != 0)
        });
    }

    /// Waits until a temporary file is in the folder.
    pub(crate) fn has_begun_a_file(&self, folder: &Path) {
        let is_hidden = |name: &String| name.starts_with(".headstack-");
        wait_until("a file is begun", || names(folder).iter().any(is_hidden));
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    fn end(self) -> Output {
        self.child.wait_with_output().expect("it ends")
    }

    /// Ends it by one signal; its exit code, what it printed, and its line on standard error.
    pub(crate) fn stopped_by(self, name: &str) -> (i32, String, String) {
        self.signal(name);
        let output = self.end();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command prints UTF-8");
        (output.status.code().expect("it exits by itself"), text(output.stdout), text(output.stderr))
    }
}

/// The names of the files in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Bytes in the largest temporary file of a folder.
fn temporary_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".headstack-"));
    hidden.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).max().unwrap_or(0)
}

#[test]
fn interrupted_sim_writes_its_partial_results() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = folder();
        let job = long_job(folder.path());
        let files = ["--requests", "r.csv", "--json", "out.json", "--report", "out.html"];
        let running = Running::start(folder.path(), &[&["sim", "atlas-10k", &job], &files[..]].concat());
        wait_until("requests are written", || temporary_bytes(folder.path()) > 1 << 20);
        let (found, out, err) = running.stopped_by(signal);
        assert_eq!(found, code);
        assert_eq!(err, format!("headstack: stopped by SIG{signal}; the results are partial\n"));
        let partial = out.lines().next().expect("it prints");
        assert!(partial.starts_with(&format!("  partial              stopped by SIG{signal} at ")), "{out}");
        assert!(partial.ends_with("requests outstanding are not counted"), "{out}");
        assert_eq!(names(folder.path()), ["long.fio", "out.html", "out.json", "r.csv"]);
        let text = fs::read_to_string(folder.path().join("out.json")).expect("it was written");
        let whole: Value = serde_json::from_str(&text).expect("it is JSON");
        schema::check(&["sim"], &whole);
        let ours = &whole["headstack"];
        assert_eq!(ours["partial"]["signal"], format!("SIG{signal}"));
        assert!(ours["partial"]["share"].as_f64().is_some_and(|share| 0.0 < share && share < 0.5), "{ours}");
        assert!(ours["partial"]["outstanding"].as_u64().is_some_and(|count| (1..=8).contains(&count)));
        let requests = ours["requests"].as_u64().expect("it is a number");
        let csv = fs::read_to_string(folder.path().join("r.csv")).expect("it was written");
        assert_eq!(csv.lines().count() as u64, requests + 1, "a line a request that came back");
        let page = fs::read_to_string(folder.path().join("out.html")).expect("it was written");
        assert!(page.contains(&format!("Partial: stopped by SIG{signal} at ")));
    }
}

#[test]
fn complete_run_is_not_marked_partial() {
    let folder = folder();
    let job = folder.path().join("short.fio");
    fs::write(&job, "[load]\nrw=randread\nsize=1m\n").expect("the folder is writable");
    let found = json(&["sim", "atlas-10k", &job.to_string_lossy(), "--json", "-"]);
    assert_eq!(found["headstack"]["partial"], Value::Null);
    let found = json(&["run", "--drive", "atlas-10k", "--pattern", "random", "--count", "10", "--json"]);
    assert_eq!(found["partial"], Value::Null);
}

#[test]
fn second_signal_ends_the_process_and_leaves_no_file() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("endless.fio")).status();
    assert!(made.expect("mkfifo runs").success());
    // It waits for its job, a pipe without a writer, and does not check for signals meanwhile.
    let args = ["sim", "atlas-10k", "endless.fio", "--requests", "r.csv", "--json", "out.json"];
    let mut running = Running::start(folder.path(), &args);
    wait_until("both files are begun", || names(folder.path()).len() == 3);
    wait_until("it has ended", || {
        running.signal("INT");
        running.child.try_wait().expect("it is our child").is_some()
    });
    assert_eq!(running.end().status.code(), Some(130));
    assert_eq!(names(folder.path()), ["endless.fio"]);
}

#[test]
fn second_signal_ends_the_prober_and_leaves_no_file() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("endless.map")).status();
    assert!(made.expect("mkfifo runs").success());
    // It waits for the map, a pipe without a writer.
    let args = ["probe", "--drive", "atlas-10k", "--known", "endless.map", "--report", "out.html"];
    let mut running = Running::start(folder.path(), &args);
    running.has_begun_a_file(folder.path());
    wait_until("it has ended", || {
        running.signal("INT");
        running.child.try_wait().expect("it is our child").is_some()
    });
    assert_eq!(running.end().status.signal(), Some(2));
    assert_eq!(names(folder.path()), ["endless.map"]);
}

#[test]
fn interrupted_run_prints_its_partial_results() {
    let folder = folder();
    let args = ["run", "--drive", "atlas-10k", "--pattern", "random", "--count", "500000000"];
    let running = Running::start(folder.path(), &args);
    running.handles_signals();
    let (code, out, _) = running.stopped_by("INT");
    assert_eq!(code, 130);
    assert!(out.starts_with("  partial              stopped by SIGINT at "), "{out}");
    let running = Running::start(folder.path(), &[&args[..], &["--json"]].concat());
    running.handles_signals();
    let (code, out, err) = running.stopped_by("TERM");
    assert_eq!((code, err.as_str()), (143, "headstack: stopped by SIGTERM; the results are partial\n"));
    let found: Value = serde_json::from_str(&out).expect("it is JSON");
    schema::check(&["run"], &found);
    assert_eq!(found["partial"]["signal"], "SIGTERM");
    assert_eq!(found["partial"]["of"], 500_000_000);
    assert!(found["requests"].as_u64().is_some_and(|count| count > 0), "{found}");
}

#[test]
fn interrupted_compare_reports_its_completed_runs() {
    let folder = folder();
    let job = long_job(folder.path());
    let args = ["compare", "atlas-10k", "wd800jd", &job, "--json", "out.json", "--report", "out.html"];
    let running = Running::start(folder.path(), &args);
    running.handles_signals();
    let (code, out, err) = running.stopped_by("INT");
    assert_eq!((code, err.as_str()), (130, "headstack: stopped by SIGINT; the results are partial\n"));
    assert_eq!(out, "partial: stopped by SIGINT with 0 of 2 runs done\n");
    assert_eq!(names(folder.path()), ["long.fio", "out.json"], "there is nothing to draw");
    let text = fs::read_to_string(folder.path().join("out.json")).expect("it was written");
    let found: Value = serde_json::from_str(&text).expect("it is JSON");
    schema::check(&["compare"], &found);
    assert_eq!(found["partial"], serde_json::json!({"signal": "SIGINT", "runs": 0, "of": 2}));
    assert_eq!(found["runs"], serde_json::json!([]));
}

#[test]
fn interrupted_reproduce_keeps_the_completed_studies() {
    let folder = folder();
    let running = Running::start(folder.path(), &["reproduce", "st2000dm006", "streams", "--quick"]);
    wait_until("the first study is done", || folder.path().join("out/st2000dm006.html").exists());
    let (code, out, err) = running.stopped_by("TERM");
    assert_eq!((code, err.as_str()), (143, "headstack: stopped by SIGTERM; the results are partial\n"));
    assert!(out.contains("Report: out/st2000dm006.html"), "{out}");
    assert!(out.lines().last().is_some_and(|line| line.starts_with("streams: ")), "{out}");
    assert!(out.ends_with(" rows: not run.\n"), "{out}");
    assert_eq!(names(&folder.path().join("out")), ["st2000dm006.html"]);
}

#[test]
fn interrupted_reproduce_marks_rows_not_run_in_json() {
    let folder = folder();
    let running = Running::start(folder.path(), &["reproduce", "streams", "--json"]);
    running.handles_signals();
    let (code, out, _) = running.stopped_by("INT");
    assert_eq!(code, 130);
    let found: Value = serde_json::from_str(&out).expect("it is JSON");
    schema::check(&["reproduce"], &found);
    assert_eq!((&found["study"], &found["partial"]), (&"streams".into(), &true.into()));
    let rows = found["rows"].as_array().expect("it is a list");
    assert!(rows.len() > 10 && rows.iter().all(|row| row["verdict"] == "not run" && row["ours"].is_null()));
}

#[test]
fn quit_signal_ends_a_run_at_once_and_leaves_no_file() {
    let folder = folder();
    let job = long_job(folder.path());
    let files = ["--requests", "r.csv", "--json", "out.json"];
    let running = Running::start(folder.path(), &[&["sim", "atlas-10k", &job], &files[..]].concat());
    wait_until("requests are written", || temporary_bytes(folder.path()) > 1 << 20);
    let (code, out, _) = running.stopped_by("QUIT");
    assert_eq!((code, out.as_str()), (131, ""));
    assert_eq!(names(folder.path()), ["long.fio"]);
}

#[test]
fn first_signal_ends_a_run_that_waits_for_the_reader_of_a_pipe() {
    let folder = folder();
    fs::write(folder.path().join("short.fio"), "[load]\nrw=randread\nsize=1m\n")
        .expect("the folder is writable");
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let running = Running::start(folder.path(), &["sim", "atlas-10k", "short.fio", "--json", "pipe"]);
    running.handles_signals();
    let (code, _, err) = running.stopped_by("TERM");
    assert!(code != 0 && err.contains("pipe: the pipe has no reader") || code == 143, "{code}: {err}");
    assert_eq!(names(folder.path()), ["pipe", "short.fio"]);
}
