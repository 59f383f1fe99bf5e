//! Running the command, and looking at what it did.

#[path = "schema.rs"]
pub(crate) mod schema;

use serde_json::Value;
use std::collections::BTreeSet;
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

/// Runs the command and reads what it printed as JSON, which must say which version printed it.
pub(crate) fn json(args: &[&str]) -> Value {
    let found = serde_json::from_str(&printed(args)).unwrap_or_else(|error| panic!("{args:?}: {error}"));
    // A JSON Schema has the version of its own format.
    let is_known =
        WITHOUT_VERSION.iter().any(|command| args.starts_with(command)) || args.contains(&"--json-schema");
    assert!(is_known != has_version(&found), "{args:?}: {found}");
    if !args.contains(&"--json-schema") {
        schema::check(args, &found);
    }
    found
}

/// Commands that print a list, or a file in JSON's notation, whose keys are the file's own.
pub(crate) const WITHOUT_VERSION: [&[&str]; 4] =
    [&["drive", "list"], &["drive", "show"], &["rig", "list"], &["rig", "show"]];

/// Whether an object names the version that made it; results in fio's shape do so in an object of their own, and of several studies each.
pub(crate) fn has_version(found: &Value) -> bool {
    match found {
        Value::Array(several) => !several.is_empty() && several.iter().all(has_version),
        found => found["version"].is_string() || found["headstack"]["version"].is_string(),
    }
}

/// The names of the commands that a help lists, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && line.as_bytes()[2] != b' ');
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_string)
        .collect()
}

/// The words of every command, `[]` for `headstack` itself, as the helps list them.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut index = 0;
    while let Some(command) = all.get(index).cloned() {
        let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        all.extend(listed(&printed(&args)).into_iter().map(|name| [&command[..], &[name]].concat()));
        index += 1;
    }
    all
}

/// The commands with an option `--json`, as their helps list them.
pub(crate) fn commands_with_json() -> BTreeSet<String> {
    let has_json = |command: &[String]| {
        let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        printed(&args)
            .lines()
            .any(|line| matches!(line.trim_start().split([' ', '[']).next(), Some("--json")))
    };
    commands().into_iter().filter(|command| has_json(command)).map(|command| command.join(" ")).collect()
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
