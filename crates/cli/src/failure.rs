//! How a command fails: one line on standard error and an exit code.

use crate::plain::{self, Letters, Plain};
use crate::signal::Signal;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check failed. Exit code 1.
    Check(String),
    /// The arguments or a file they name are invalid. Exit code 2.
    Input(String),
    /// A child command ended with this code, after its own message.
    Command(u8),
    /// A signal stopped it after it printed partial results. Exit code 128 + the signal's number.
    Stopped(Signal),
    /// A signal stopped it before it had any result. Exit code 128 + the signal's number.
    StoppedWithoutResult(Signal),
    /// Standard output cannot be written. A closed pipe is no failure.
    Output(io::Error),
}

impl Failure {
    /// Bad input, with a library's error message.
    pub(crate) fn input(error: impl Display) -> Failure {
        Failure::Input(error.to_string())
    }

    /// The same failure, prefixed with `what`.
    pub(crate) fn within(self, what: &str) -> Failure {
        match self {
            Failure::Input(message) => Failure::Input(format!("{what}: {message}")),
            other => other,
        }
    }

    /// Prints the line and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let code = match &self {
            Failure::Command(code) => return ExitCode::from(*code),
            Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Output(_) | Failure::Input(_) => 2,
            Failure::Check(_) => 1,
            Failure::Stopped(signal) | Failure::StoppedWithoutResult(signal) => signal.exit_code(),
        };
        print_line(&self.to_string());
        ExitCode::from(code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Output(error) => write!(f, "standard output: {error}"),
            Failure::Stopped(signal) => write!(f, "stopped by {}; the results are partial", signal.name()),
            Failure::StoppedWithoutResult(signal) => {
                write!(f, "stopped by {} without a result", signal.name())
            }
            Failure::Command(code) => write!(f, "the command ended with {code}"),
            Failure::Check(message) | Failure::Input(message) => f.write_str(message),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// Prints the message of the argument parser: help and version unchanged, also the help for a missing command; a usage error as one line.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Failure::Output(error).report(),
        };
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The help of a command that needs a subcommand.
        let _ = error.print();
        return ExitCode::from(2);
    }
    // What the standard library says of a text that is no number.
    let text = error.render().to_string().replace("invalid float literal", "must be a number, such as 10");
    let text = text.replace("invalid digit found in string", "must be a whole number, such as 10");
    let said = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let reported: Vec<String> = said
        .filter(|part| {
            !part.is_empty() && !part.starts_with("Usage:") && !part.starts_with("For more information")
        })
        .collect();
    print_line(&format!("{} (see --help)", reported.join("; ").trim_start_matches("error: ")));
    ExitCode::from(2)
}

pub(crate) fn print_line(message: &str) {
    print_note(&format!("headstack: {message}"));
}

/// Prints a note on standard error, on a line without the command's name.
pub(crate) fn print_note(note: &str) {
    let indent = note.len() - note.trim_start().len();
    // If standard error fails, there is no other place to report that.
    let mut stderr = Plain(io::stderr(), Letters::shown_by(&io::stderr()));
    let _ = stderr.write_all(format!("{}{}\n", &note[..indent], plain::message(note)).as_bytes());
}
