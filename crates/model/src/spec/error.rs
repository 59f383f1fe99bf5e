//! Errors of drive files: where, what was met, what is allowed.

use std::fmt;

/// Why a drive file was refused. Displays as one line: `file:line: key: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SpecError {
    /// The file (or drive) the text came from.
    pub origin: String,
    /// Line in the text, counted from 1; 0 when there is no text.
    pub line: usize,
    /// The key at fault, as a path (`geometry.zones[2].spares`); empty for faults of the TOML syntax.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for SpecError {
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

/// A fault found in a spec, before its line is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { key: key.into(), message: message.into() }
    }

    /// Turns the fault into an error that names the line of its key in `text`.
    pub(crate) fn locate(self, text: &str, origin: &str) -> SpecError {
        let line = locate_key(text, &self.key).map_or(0, |offset| line_of(text, offset));
        SpecError { origin: origin.to_string(), line, key: self.key, message: self.message }
    }
}

impl SpecError {
    /// An error of the TOML reader: syntax, type, missing or unknown key.
    pub(crate) fn from_toml(error: &toml::de::Error, text: &str, origin: &str) -> SpecError {
        let offset = error.span().map(|span| span.start);
        let line = offset.map_or(1, |offset| line_of(text, offset));
        let key = offset.map_or(String::new(), |offset| key_on_line(text, offset));
        let mut message = error.message().replace('\n', "; ");
        if let Some(hint) = nearest_name(&message) {
            message.push_str(&hint);
        }
        SpecError { origin: origin.to_string(), line, key, message }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// The key (or table heading) written on the line that holds `offset`.
fn key_on_line(text: &str, offset: usize) -> String {
    let start = text.get(..offset).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
    let line = text.get(start..).and_then(|t| t.lines().next()).unwrap_or("");
    let name = line.split(['=', '#']).next().unwrap_or("").trim();
    name.trim_matches(['[', ']']).chars().take(80).collect()
}

/// Names the nearest known name when a message of serde lists the expected ones.
fn nearest_name(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (met, known) = quoted.split_first()?;
    if !message.starts_with("unknown") || known.is_empty() {
        return None;
    }
    let best = known.iter().max_by(|a, b| {
        strsim::jaro_winkler(met, a).total_cmp(&strsim::jaro_winkler(met, b)).then_with(|| b.cmp(a))
    })?;
    Some(format!("; did you mean `{best}`?"))
}

/// Byte offset of a key path such as `geometry.zones[2].spares` in a TOML text: of the deepest part that is there.
fn locate_key(text: &str, path: &str) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut found = None;
    let mut table = Some(document.get_ref());
    for part in path.split('.') {
        let mut names = part.split(['[', ']']).filter(|name| !name.is_empty());
        let Some((key, value)) = table.and_then(|t| t.get_key_value(names.next()?)) else { break };
        found = Some(key.span().start);
        let mut value = value;
        for index in names {
            let index = index.parse::<usize>().ok();
            let Some(item) = index.and_then(|i| value.get_ref().as_array()?.get(i)) else { break };
            found = Some(item.span().start);
            value = item;
        }
        table = value.get_ref().as_table();
    }
    found
}
