//! The commit, date and machine of a run, for its record.

use std::process::Command;
use std::{fs, io};

/// Commit, date and machine of this run, in words: `Commit abc1234, 2026-11-24, 2 CPUs of AMD EPYC`.
///
/// *Errors:* `git` or `date` does not run.
#[allow(clippy::disallowed_methods, reason = "a record names the machine")]
pub(crate) fn stamp() -> io::Result<String> {
    let output = |program: &str, args: &[&str]| -> io::Result<String> {
        Ok(String::from_utf8_lossy(&Command::new(program).args(args).output()?.stdout).trim().to_string())
    };
    let commit = output("git", &["describe", "--always", "--dirty"])?;
    let date = output("date", &["-u", "+%Y-%m-%d"])?;
    let processors = std::thread::available_parallelism()?;
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    Ok(format!("Commit {commit}, {date}, {processors} CPUs of {}", model.unwrap_or("an unknown processor")))
}
