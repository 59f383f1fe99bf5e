//! `headstack emulate`: what it takes and refuses, how it runs a command, and what it tells while it runs. Real clients are in
//! the tests of their own.

use crate::common::{command, headstack, refused};
use crate::tools::{self, have, text};
use headstack_prerequisites::have_devices;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a disk with a command.
fn run(args: &[&str], shell: &str) -> (i32, String, String) {
    let done = headstack(&[&["emulate"], args, &["--", "sh", "-c", shell]].concat());
    (done.code, done.out, done.err)
}

#[test]
fn invalid_emulate_arguments_are_rejected_in_one_line() {
    let drive = "atlas-10k";
    for (args, output) in [
        (&["emulate", drive][..], "--nbd ADDRESS or --mount FOLDER"),
        (&["emulate"], "DRIVE|RIG"),
        (&["emulate", "atlas-10", "--nbd", "unix:x"], "did you mean `atlas-10k`?"),
        (&["emulate", drive, "--nbd", "nowhere"], "write HOST:PORT"),
        (&["emulate", drive, "--nbd", "unix:/nowhere/socket"], "unix:/nowhere/socket"),
        (&["emulate", drive, "--nbd", "unix:x", "--set", "drive.queue.dept=3"], "did you mean"),
        (&["emulate", drive, "--nbd", "unix:x", "--size", "1G"], "for the disk `null`"),
        (&["emulate", "null", "--nbd", "unix:x", "--size", "1000"], "multiple of 512"),
        (
            &["emulate", "null", "--nbd", "unix:x", "--size", "9E"],
            "is outside 512 to 9223372036854775296 bytes",
        ),
        (&["emulate", "wd800jd", "--nbd", "unix:x", "--control", "/nowhere/x"], "--control /nowhere/x"),
        (&["emulate", drive, "--nbd", "unix:x", "--speed", "0"], "0.001 to 5000"),
        (&["emulate", drive, "--nbd", "unix:x", "--fault", "power-cut"], "power-cut@TIME"),
        (&["emulate", drive, "--nbd", "unix:x", "--fault", "ignore-flsh"], "did you mean `ignore-flush`?"),
        (&["emulate", "null", "--nbd", "unix:x", "--fault", "ignore-flush"], "the disk `null` has none"),
        (
            &["emulate", drive, drive, "--nbd", "unix:x", "--fault", "disk2:dead@1s"],
            "no drive is called `disk2`",
        ),
        (&["emulate", drive, "--nbd", "unix:x", "--fault", "slow@99999999999:2"], "outside the drive's"),
        (&["emulate", drive, "--nbd", "unix:x", "--fault", "medium-error@head=99"], "it has no head 99"),
        (
            &["emulate", "raid5", "--nbd", "unix:x", "--fault", "data0:medium-error@head=1"],
            "it is no single drive",
        ),
        (&["emulate", drive, "--nbd", "unix:x", "--data", "/nowhere/disk"], "/nowhere/disk"),
        (&["emulate", drive, "--nbd", "unix:x", "--stats=1ms"], "50ms"),
        (&["emulate", drive, "--nbd", "unix:x", "--metrics", "nowhere"], "--metrics nowhere"),
        (&["emulate", drive, "--mount", "/nowhere"], "/nowhere"),
        (&["emulate", drive, "--", "/nowhere/program"], "/nowhere/program"),
        (&["emulate", drive, "--quick"], "--check"),
        (&["emulate", drive, "--check", "--nbd", "unix:x"], "--check"),
        (&["emulate", "null", "--check"], "takes no time"),
        (&["emulate", drive, "wd800jd", "--check"], "takes one disk, and these are 2 (disk0, disk1)"),
    ] {
        let line = refused_quietly(args);
        assert!(line.contains(output), "{args:?}: {line}");
    }
}

/// As `refused`, of a command whose disks may have been introduced before it failed.
fn refused_quietly(args: &[&str]) -> String {
    if args.last() != Some(&"/nowhere/program") {
        return refused(args, 2);
    }
    let done = headstack(args);
    assert_eq!(done.code, 2, "{}", done.err);
    done.err.lines().find(|line| line.starts_with("headstack: ")).expect("it says why").to_string()
}

#[test]
fn child_command_gets_disk_uris_and_sets_the_exit_code() {
    let args = ["atlas-10k", "null", "--size", "1M", "--fault", "disk0:ignore-flush"];
    let (code, out, err) = run(&args, "env; exit 7");
    assert_eq!(code, 7, "{err}");
    let value = |name: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{name} in {out}")).to_string()
    };
    assert_eq!(value("HEADSTACK_URI"), value("HEADSTACK_URI_DISK0"));
    assert!(value("HEADSTACK_URI_DISK1").starts_with("nbd+unix:///disk1?socket="));
    assert!(!out.contains("Quantum"), "what is said of the disks does not go among the command's output");
    for part in ["disk0: Quantum Atlas 10K", "disk1: a disk that takes no time", "requests", "none"] {
        assert!(err.contains(part), "{part} in {err}");
    }
}

#[test]
fn signal_death_of_the_child_command_sets_the_exit_code() {
    assert_eq!(run(&["null"], "kill -TERM $$").0, 128 + 15);
}

#[test]
fn data_is_stored_in_a_file_or_a_folder_for_several_disks() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("the path is UTF-8").to_string();
    let (file, disks) = (path("disk"), path("new/disks"));
    assert_eq!(run(&["null", "--size", "1M", "--data", &file], "true").0, 0);
    let length = |path: &str| std::fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    // Behind the disk's bytes a page says whose they are.
    assert_eq!(length(&file), (1 << 20) + 4096);
    assert_eq!(run(&["null", "null", "--size", "2M", "--data", &disks], "true").0, 0);
    assert_eq!(
        (length(&path("new/disks/disk0.img")), length(&path("new/disks/disk1.img"))),
        ((2 << 20) + 4096, (2 << 20) + 4096)
    );
    let again = run(&["null", "--size", "4K", "--data", &file], "true");
    assert!(again.0 == 2 && again.2.contains("1048576"), "{}", again.2);
}

#[test]
fn emulation_ends_after_its_duration_or_a_power_cut() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let done = headstack(&["emulate", "null", "--nbd", &socket, "--duration", "1ms"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("requests             none"), "{}", done.out);
    assert!(!folder.path().join("nbd").exists(), "the socket goes with the server");
    let done = headstack(&["emulate", "atlas-10k", "--nbd", &socket, "--fault", "power-cut@10ms"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("the power is cut"), "{}", done.err);
    let done = headstack(&["emulate", "raid5", "--nbd", &socket, "--fault", "power-cut@10ms"]);
    assert!(done.code == 2 && done.err.contains("what is on the media"), "{}", done.err);
}

#[test]
fn statistics_print_one_line_per_disk() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let args = ["emulate", "exos-x18", "raid5", "--nbd", &socket, "--stats=50ms", "--duration", "300ms"];
    let done = headstack(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    let line = |name: &str| {
        let found = done.err.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {}", done.err))
    };
    for part in ["cylinder 0, head 0, LBN 0", "idle", "queue 0/32", "0 in flight", "late p50"] {
        assert!(line("disk0 |").contains(part), "{part} in {}", done.err);
    }
    assert!(line("raid5 |").contains("5 drives, 0 commands"), "{}", done.err);
}

/// An emulator that runs until this value goes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an emulator with these arguments; its output from the first line on that holds `ready`, and that line.
fn start(args: &[&str], ready: &str) -> (Running, BufReader<ChildStdout>, String) {
    start_as(command(args), ready)
}

/// The same of a command that becomes an emulator.
fn start_as(mut command: Command, ready: &str) -> (Running, BufReader<ChildStdout>, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut out = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let running = Running(child);
    let mut line = String::new();
    while !line.contains(ready) {
        line.clear();
        assert!(out.read_line(&mut line).expect("it prints text") > 0, "it ended before it said `{ready}`");
    }
    (running, out, line)
}

/// What `/metrics` of the server at an address says.
fn fetch(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is text");
    answer
}

/// The value of a metric with these labels.
fn value(text: &str, metric: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{metric} in {text}")).parse().expect("it is a number")
}

#[test]
fn metrics_report_the_state_of_every_disk() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let args = ["emulate", "atlas-10k", "null", "--nbd", &socket, "--metrics", "127.0.0.1:0"];
    let (_running, _out, line) = start(&args, "metrics: ");
    let address = line.trim().trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_string();
    let answer = fetch(&address, "/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").expect("it has a head");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(
        text.contains("\n# TYPE headstack_operations_total counter\n") && !text.contains("# EOF"),
        "{text}"
    );
    assert_eq!(value(text, "headstack_queue_depth{disk=\"disk0\",drive=\"0\"}"), 1.0);
    assert_eq!(value(text, "headstack_arm{disk=\"disk0\",drive=\"0\",work=\"idle\"}"), 1.0);
    assert_eq!(value(text, "headstack_powered{disk=\"disk1\"}"), 1.0);
    assert_eq!(value(text, "headstack_operations_total{disk=\"disk1\",operation=\"read\"}"), 0.0);
    let first = value(text, "headstack_time_seconds{disk=\"disk0\"}");
    let second = value(&fetch(&address, "/metrics"), "headstack_time_seconds{disk=\"disk0\"}");
    assert!(second > first, "the disk's time continues");
    assert!(fetch(&address, "/").contains("\n/metrics\n"));
    assert!(fetch(&address, "/nowhere").starts_with("HTTP/1.1 404"));
}

/// A shell that does something and then becomes an emulator with these arguments.
fn shell(first: &str, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_headstack")]).args(args);
    shell
}

/// Waits until something is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn metrics_endpoint_recovers_from_descriptor_exhaustion() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let args = ["emulate", "null", "--nbd", &socket, "--metrics", "127.0.0.1:0"];
    let (running, _out, line) = start_as(shell("ulimit -n 40", &args), "metrics: ");
    let address = line.trim().trim_start_matches("metrics: http://").trim_end_matches("/metrics").to_string();
    let connect = |_| TcpStream::connect(&address).expect("it listens");
    let many: Vec<TcpStream> = (0..80).map(connect).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", running.0.id())).expect("it runs").count();
    wait_until("no descriptor is left", || open() >= 40);
    let waits = std::thread::spawn({
        let address = address.clone();
        move || fetch(&address, "/metrics")
    });
    drop(many);
    assert!(waits.join().expect("it is answered").starts_with("HTTP/1.1 200"));
    assert!(fetch(&address, "/metrics").starts_with("HTTP/1.1 200"));
}

#[test]
fn inherited_ignore_of_sighup_is_kept() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let args = ["emulate", "null", "--nbd", &socket];
    let (running, _out, _) = start_as(shell("trap '' HUP", &args), "nbd+unix");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id())).expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("Linux tells it");
    assert_eq!(u64::from_str_radix(mask.trim(), 16).expect("it is a mask") & 1, 1, "{status}");
}

#[test]
fn exit_code_survives_a_closed_error_pipe() {
    let mut command =
        command(&["emulate", "null", "--stats=50ms", "--", "sh", "-c", "kill -USR1 $PPID; exit 7"]);
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    drop(reader);
    let status = command.stdout(Stdio::null()).stderr(writer).status().expect("the command starts");
    assert_eq!(status.code(), Some(7));
}

#[test]
fn check_compares_every_job_simulated_and_real() {
    // Whether this machine can be trusted while tests run is not the question.
    let args = ["emulate", "st2000dm006", "--check", "--quick", "--json", "--speed", "10"];
    let done = headstack(&args);
    assert!(done.code == 0 || done.code == 1 && done.err.contains("cannot be trusted"), "{}", done.err);
    let found = crate::common::schema::parsed(&["emulate"], &done.out);
    assert!(found["version"].is_string(), "{found}");
    assert_eq!(found["speed"], 10.0);
    let jobs = found["jobs"].as_array().expect("there are jobs");
    assert_eq!(jobs.len(), 6);
    for job in jobs {
        for side in ["simulated", "real"] {
            assert!(job[side]["requests"].as_u64().is_some_and(|count| count > 10), "{job}");
            assert!(job[side]["mean_ms"].as_f64().is_some_and(|mean| mean > 0.0), "{job}");
        }
        assert!(job["demerit_share_of_mean"].is_number() && job["lateness_us"]["p99"].is_number(), "{job}");
    }
    assert!(["full", "means", "none"].map(Some).contains(&found["trust"].as_str()), "{found}");
}

#[test]
fn null_is_rejected_as_a_rig_name() {
    assert!(refused(&["rig", "show", "null"], 2).contains("no rig or drive `null`"));
}

#[test]
fn first_line_names_the_speed_and_real_time_priority() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let socket = format!("unix:{}", folder.path().join("socket").display());
    let introduced = |speed: &str| {
        let args = ["emulate", "wd800jd", "--nbd", &socket, "--duration", "1ms", "--speed", speed];
        let done = headstack(&args);
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.lines().next().unwrap_or_default().to_string()
    };
    let (usual, fast) = (introduced("1"), introduced("10"));
    assert!(fast.contains("data in memory, 10 times as fast as a real one, with"), "{fast}");
    assert!(fast.ends_with(" real-time priority") && usual.ends_with(" real-time priority"), "{usual}");
    assert!(!usual.contains("times as fast"), "{usual}");
}

#[test]
fn printed_losetup_command_is_quoted_for_a_shell() {
    if !have_devices(&["/dev/fuse"]) || !have(&["fusermount3"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mount = folder.path().join("my disks \u{2603}");
    fs::create_dir(&mount).expect("the folder is writable");
    let done = headstack(&["emulate", "wd800jd", "--mount", text(&mount), "--duration", "1ms"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let command = done.out.lines().find_map(|line| line.trim().strip_prefix("losetup "));
    let command = command.unwrap_or_else(|| panic!("{}", done.out));
    let words = tools::run("sh", &["-c", &format!("printf '%s\\n' {command}")]);
    assert_eq!(words.lines().last(), Some(text(&mount.join("disk0"))), "{command}");
}
