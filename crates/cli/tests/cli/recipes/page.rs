//! A recipe's page: its commands, what they print, the pictures and results that they write.

use serde_json::Value;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the repository that commands of recipes name.
const INPUTS: [&str; 3] = ["jobs", "recipes", "rigs"];

/// The line that stands for lines which are left out.
const LEFT_OUT: &str = "[…]";

pub(crate) fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

pub(crate) struct Page {
    path: PathBuf,
    pub(crate) text: String,
}

/// A command of a page, with the output that the page quotes.
struct Example {
    command: String,
    quoted: Vec<String>,
    /// The lines of the page that hold the quoted output.
    first: usize,
}

impl Page {
    pub(crate) fn read(name: &str) -> Page {
        let path = guide().join("recipes").join(format!("{name}.md"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { path, text }
    }

    /// The commands in the blocks of this kind, in their order. A command continues on the next line after a backslash.
    fn examples(&self, fence: &str) -> Vec<Example> {
        let mut examples: Vec<Example> = Vec::new();
        let (mut in_block, mut continues) = (false, false);
        for (index, line) in self.text.lines().enumerate() {
            if line.starts_with("```") {
                in_block = line == fence;
            } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
                continues = command.ends_with('\\');
                examples.push(Example { command: command.to_string(), quoted: Vec::new(), first: index + 1 });
            } else if let Some(last) = examples.last_mut().filter(|_| in_block) {
                if continues {
                    continues = line.ends_with('\\');
                    last.command = format!("{}\n{line}", last.command);
                    last.first = index + 1;
                } else {
                    last.quoted.push(line.to_string());
                }
            }
        }
        assert!(!examples.is_empty(), "{}: no commands in {fence}", self.path.display());
        examples
    }

    /// Runs the commands of the blocks `console real-time` in a new folder, and returns what they print: the quoted words with
    /// other numbers.
    pub(crate) fn run_in_real_time(&self) -> Vec<String> {
        let folder = folder();
        let words = |text: &str| text.split(|c: char| c.is_ascii_digit()).collect::<String>();
        let mut all = Vec::new();
        for example in self.examples("```console real-time") {
            let printed = run(&example.command, folder.path());
            assert_eq!(
                words(&printed),
                words(&example.quoted.iter().map(|line| format!("{line}\n")).collect::<String>())
            );
            all.push(printed);
        }
        all
    }

    /// Runs all commands in a new folder, checks outputs and pictures, and returns the results of each `compare`.
    pub(crate) fn run(mut self) -> Vec<Comparison> {
        let folder = folder();
        let examples = self.examples("```console");
        let mut results = Vec::new();
        // Backwards, so that an update moves no lines that are still to be compared.
        let printed: Vec<String> =
            examples.iter().map(|example| run(&example.command, folder.path())).collect();
        for (example, printed) in examples.iter().zip(&printed).rev() {
            self.check(example, printed);
        }
        for example in &examples {
            self.check_picture(&example.command, folder.path());
            results.extend(example.result(folder.path()));
        }
        results
    }

    fn check(&mut self, example: &Example, printed: &str) {
        let lines: Vec<&str> = printed.lines().collect();
        if is_quoted(&example.quoted, &lines) {
            return;
        }
        assert!(
            wants_update() && !example.quoted.iter().any(|line| line == LEFT_OUT),
            "{}: `{}` prints\n{printed}\nHEADSTACK_UPDATE=1 quotes it in the page, where nothing is left out.",
            self.path.display(),
            example.command
        );
        let mut page: Vec<&str> = self.text.lines().collect();
        page.splice(example.first..example.first + example.quoted.len(), lines);
        self.text = page.join("\n") + "\n";
        fs::write(&self.path, &self.text).expect("the page is writable");
    }

    fn check_picture(&self, command: &str, folder: &Path) {
        let mut words = command.split_whitespace().skip_while(|word| *word != "--picture");
        let Some(name) = words.nth(1) else { return };
        let drawn = fs::read_to_string(folder.join(name)).expect("the command draws the picture");
        let committed = self.path.with_file_name(name);
        if fs::read_to_string(&committed).is_ok_and(|text| text == drawn) {
            return;
        }
        assert!(wants_update(), "{}: HEADSTACK_UPDATE=1 brings it up to date", committed.display());
        fs::write(&committed, drawn).expect("the folder is writable");
    }
}

impl Example {
    fn result(&self, folder: &Path) -> Option<Comparison> {
        let text = fs::read_to_string(folder.join(result_name(&self.command)?)).ok()?;
        Some(Comparison(serde_json::from_str(&text).expect("the command writes JSON")))
    }
}

/// A folder in which the repository's inputs have the same names as in its root.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in INPUTS {
        symlink(root.join(name), folder.path().join(name)).expect("the folder is writable");
    }
    folder
}

fn wants_update() -> bool {
    env::var_os("HEADSTACK_UPDATE").is_some()
}

/// The file for the results of a `compare`, from its load and first key.
fn result_name(command: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let plain: String = command.chars().filter(|c| is_plain(*c)).take(120).collect();
    command.starts_with("headstack compare ").then(|| format!("{plain}.json"))
}

/// Runs a command of a page, which must succeed, and takes what it prints. The results of a `compare` go to a file as well.
fn run(command: &str, folder: &Path) -> String {
    let line = match result_name(command) {
        Some(name) => format!("{command} --json {name}"),
        None => command.to_string(),
    };
    let program = Path::new(env!("CARGO_BIN_EXE_headstack"));
    let own = program.parent().expect("a program lies in a folder");
    let path = env::var("PATH").unwrap_or_default();
    let done = Command::new("sh")
        .args(["-c", &line])
        .env("PATH", format!("{}:{path}", own.display()))
        .current_dir(folder)
        .output()
        .expect("the shell starts");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{line}: {}\n{out}{err}", done.status);
    out.into_owned()
}

/// Whether lines are the quoted ones, where `[…]` stands for any number of lines.
fn is_quoted(quoted: &[String], lines: &[&str]) -> bool {
    match quoted.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == LEFT_OUT => {
            (0..=lines.len()).any(|skipped| is_quoted(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line.trim_end() == first.trim_end() && is_quoted(rest, others)),
    }
}

/// The results of a `compare`.
pub(crate) struct Comparison(Value);

impl Comparison {
    fn run(&self, label: &str) -> &Value {
        let runs = self.0["runs"].as_array().expect("a comparison has runs");
        let found = runs.iter().find(|run| {
            let own = run["label"].as_str().unwrap_or_default();
            label
                .split(' ')
                .all(|word| own.split(' ').any(|other| other == word || other.ends_with(&format!(".{word}"))))
        });
        found.unwrap_or_else(|| panic!("no run is called {label}"))
    }

    /// A metric of the run of that rig, or with that last part of a setting: `exos-x18`, `queue_depth=8`.
    pub(crate) fn figure(&self, label: &str, metric: &str) -> f64 {
        number(&self.run(label)["figures"][metric]["mean"], metric)
    }

    /// A metric of the reads, writes or flushes of a job.
    pub(crate) fn job(&self, label: &str, job: &str, kind: &str, metric: &str) -> f64 {
        let jobs = self.run(label)["headstack"]["jobs"].as_array().expect("a run has jobs");
        let found = jobs.iter().find(|one| one["name"] == job).unwrap_or_else(|| panic!("no job {job}"));
        match metric.strip_suffix("_ms") {
            Some(response) => number(&found[kind]["response_ms"][response], metric),
            None => number(&found[kind][metric], metric),
        }
    }
}

fn number(value: &Value, what: &str) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{what}: {value}"))
}

#[test]
fn left_out_lines_stand_for_any_number() {
    let quoted = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let lines = ["a", "b", "c "];
    for (text, is_there) in [
        ("a\nb\nc", true),
        ("a\n[…]\nc", true),
        ("[…]\nc\n[…]", true),
        ("a\nc", false),
        ("a\nb", false),
        ("[…]\nb", false),
    ] {
        assert_eq!(is_quoted(&quoted(text), &lines), is_there, "{text}");
    }
}
