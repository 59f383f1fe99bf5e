//! Running the command, and looking at what it did.

use serde_json::Value;
use std::process::{Command, Output};

/// What a run of the command did.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The command with these arguments, not yet started.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
    command.args(args);
    command
}

/// Runs the command with these arguments.
pub(crate) fn headstack(args: &[&str]) -> Done {
    let Output { status, stdout, stderr } = command(args).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("the command prints UTF-8");
    Done { code: status.code().expect("no signal ends it"), out: text(stdout), err: text(stderr) }
}

/// Runs the command and takes what it printed; it must do what it was asked.
pub(crate) fn printed(args: &[&str]) -> String {
    let done = headstack(args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    done.out
}

/// Runs the command and reads what it printed as JSON.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

/// Runs the command, which must fail with this code and one line, and takes that line.
pub(crate) fn refused(args: &[&str], code: i32) -> String {
    let done = headstack(args);
    assert_eq!(done.code, code, "{args:?}: {}{}", done.out, done.err);
    assert!(done.out.is_empty(), "{args:?} printed {}", done.out);
    assert_eq!(done.err.lines().count(), 1, "{args:?}: {}", done.err);
    assert!(done.err.starts_with("headstack: "), "{}", done.err);
    done.err.trim_end().to_string()
}
