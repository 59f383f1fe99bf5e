//! The command as a whole: help, usage, the demo, a reader that goes away.

use crate::common::{command, headstack, printed, refused};
use std::fs;
use std::process::Stdio;

const COMMANDS: [&[&str]; 14] = [
    &["drive", "list"],
    &["drive", "show"],
    &["drive", "check"],
    &["drive", "plot"],
    &["drive", "import"],
    &["drive", "keys"],
    &["drive"],
    &["emulate"],
    &["validate"],
    &["run"],
    &["sim"],
    &["compare"],
    &["demo"],
    &["reproduce"],
];

#[test]
fn command_help_begins_with_a_description() {
    assert!(printed(&["--version"]).starts_with("headstack "));
    assert!(printed(&["--help"]).contains("validate"));
    for command in COMMANDS {
        let help = printed(&[command, &["--help"]].concat());
        assert!(help.lines().next().is_some_and(|line| line.len() > 20), "{command:?}: {help}");
    }
}

#[test]
fn help_and_version_agree_in_every_form() {
    assert!(printed(&["help"]).contains("Commands:"));
    for command in ["sim", "compare", "emulate"] {
        assert_eq!(printed(&["help", command]), printed(&[command, "--help"]));
    }
    assert_eq!(printed(&["help", "drive", "show"]), printed(&["drive", "show", "--help"]));
    let version = |args: &[&str]| printed(args).split_whitespace().last().map(str::to_string);
    assert_eq!(version(&["sim", "--version"]), version(&["--version"]));
    assert_eq!(version(&["drive", "show", "--version"]), version(&["--version"]));
}

#[test]
fn missing_command_prints_help_and_exits_with_2() {
    for (args, word) in [(&[][..], "validate"), (&["drive"][..], "plot")] {
        let done = headstack(args);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.err.contains("Usage:") && done.err.contains(word), "{}", done.err);
    }
}

#[test]
fn wrong_usage_is_rejected_in_one_line_with_code_2() {
    assert!(refused(&["drive", "shwo"], 2).contains("'show'"));
    assert!(refused(&["validate", "--drive", "atlas-10k"], 2).contains("--trace"));
    assert!(refused(&["demo", "--nowhere"], 2).contains("--nowhere"));
}

#[test]
fn closed_output_pipe_is_no_failure() {
    let mut child = command(&["drive", "show", "toshiba-x300"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn demo_prints_three_experiments_and_writes_one_page() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let out = folder.path().join("new/out");
    let done = headstack(&["demo", "--out", out.to_str().expect("the path is UTF-8")]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "no bar where there is no terminal");
    for part in ["sptf", "depth 256", "1 MiB reads", "unaligned, depth 2", "demo.html"] {
        assert!(done.out.contains(part), "{part} in {}", done.out);
    }
    assert_eq!(fs::read_dir(&out).expect("it was made").count(), 1);
    let html = fs::read_to_string(out.join("demo.html")).expect("it was written");
    assert_eq!(html.matches("class=\"chart\"").count(), 5);
    assert!(html.contains("prefers-color-scheme") && html.contains("default-src 'none'"));
}

#[test]
fn folder_that_cannot_be_created_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("the folder is writable");
    let inside = file.join("out");
    refused(&["demo", "--out", inside.to_str().expect("the path is UTF-8")], 2);
}
