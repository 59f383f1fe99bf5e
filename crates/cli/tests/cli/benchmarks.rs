//! `tests/guest/desk.py` reads what hdparm, Bonnie++ and IOzone print, and has the simulator predict it. The output in
//! `tests/guest/saved` has the programs' form and sizes that a test can simulate; no figure in it was measured.

use crate::common::Done;
use headstack_prerequisites::have_programs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DRIVE: &str = "maxtor-92048u8";

fn guest_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guest")
}

/// Runs the script's verdict on a folder.
fn judge(folder: &Path) -> Done {
    let mut command = Command::new("python3");
    command.arg(guest_tests().join("desk.py")).arg("judge").arg(folder);
    let done = command.args(["--headstack", env!("CARGO_BIN_EXE_headstack"), DRIVE]).output();
    let done = done.expect("python3 starts");
    let text = |bytes| String::from_utf8(bytes).expect("the script prints UTF-8");
    Done {
        code: done.status.code().expect("no signal ends it"),
        out: text(done.stdout),
        err: text(done.stderr),
    }
}

/// The measured and the simulated figure of a row.
fn figures(out: &str, row: &str) -> [f64; 2] {
    let line =
        out.lines().find_map(|line| line.strip_prefix(row)).unwrap_or_else(|| panic!("no {row}: {out}"));
    let mut words = line.split_whitespace();
    [(); 2].map(|()| words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}")))
}

#[test]
fn benchmarks_of_a_guest_are_read_and_predicted() {
    if !have_programs(&["python3"]) {
        return;
    }
    let done = judge(&guest_tests().join("saved"));
    // KiB/s as the programs print them, in MB/s; hdparm's is the mean of two runs.
    for (row, measured) in [
        ("hdparm -t", 21.18),
        ("Bonnie++ write", 15.87),
        ("Bonnie++ rewrite", 8.84),
        ("Bonnie++ read", 20.54),
        ("Bonnie++ seeks", 174.2),
        ("IOzone write, 1 process ", 14.34),
        ("IOzone read, 2 processes", 18.43),
    ] {
        let [found, simulated] = figures(&done.out, row);
        assert!((found / measured - 1.0).abs() < 0.02, "{row}: {found}, not {measured}");
        assert!(simulated > 1.0, "{row}: {simulated}");
    }
    // The drive reads its outer tracks at 20.8 MB/s: the page cache neither adds to a long read nor takes from it.
    let [_, simulated] = figures(&done.out, "hdparm -t");
    assert!((20.2..20.9).contains(&simulated), "{simulated}");
}

#[test]
fn a_row_more_than_a_tenth_off_fails_the_run() {
    if !have_programs(&["python3"]) {
        return;
    }
    let console = fs::read_to_string(guest_tests().join("saved/console")).expect("it is there");
    let slow = console.replace("60 MB in  3.00 seconds", "50 MB in  3.00 seconds");
    let done = judge_console(&slow.replace("62 MB in  3.04 seconds", "52 MB in  3.04 seconds"));
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(done.err.contains("hdparm -t is -"), "{}", done.err);
}

#[test]
fn output_without_a_figure_is_refused() {
    if !have_programs(&["python3"]) {
        return;
    }
    let console = fs::read_to_string(guest_tests().join("saved/console")).expect("it is there");
    for (from, to, complaint) in [
        ("20062,31", "+++++,+++", "Bonnie++ has no figure for bonnie read"),
        ("1.98,2.00a", "1.97,1.97", "another format than 1.98"),
        ("said maxtor-92048u8", "said another", "console has nothing of maxtor-92048u8"),
        ("readers", "others", "no rate of iozone 1 read"),
    ] {
        let done = judge_console(&console.replace(from, to));
        assert_eq!(done.code, 1, "{from}");
        assert!(done.err.contains(complaint), "{complaint}: {}", done.err);
    }
}

/// The verdict on a console's text.
fn judge_console(console: &str) -> Done {
    let folder = tempfile::tempdir().expect("a folder for a run");
    fs::write(folder.path().join("console"), console).expect("the folder is writable");
    fs::copy(guest_tests().join("saved/desk.plan"), folder.path().join("desk.plan")).expect("it is there");
    judge(folder.path())
}
