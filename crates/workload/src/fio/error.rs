//! Errors of job files: where, what was met, what is allowed.

use std::fmt;
use std::rc::Rc;

/// Why a job file was refused, or cannot run on a rig. Displays as one line: `file:line: key: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FioError {
    /// The file the text came from.
    pub origin: String,
    /// Line in it, counted from 1; 0 where no line is at fault.
    pub line: usize,
    /// The key at fault; empty where none is.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl Place {
    /// An error at this place.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> FioError {
        FioError { origin: self.file.to_string(), line: self.line, key: show(key), message: message.into() }
    }
}

/// A text as an error shows it: one line, cut to 60 characters.
pub(super) fn show(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect()
}

/// The known name that `met` is nearest to, as the end of a message.
pub(super) fn nearest<'a>(met: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = headstack_model::spec::nearest(&show(met), known);
    name.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}
