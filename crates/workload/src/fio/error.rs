//! Errors of job files: the place, the value, what is allowed.

use std::rc::Rc;

use headstack_model::SpecError;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl Place {
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> SpecError {
        SpecError { origin: self.file.to_string(), line: self.line, key: show(key), message: message.into() }
    }
}

/// A text as errors show it: one line, cut to 60 characters.
pub(super) fn show(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect()
}

/// The known name nearest to `met`, as the end of a message.
pub(super) fn nearest<'a>(met: &str, known: impl Iterator<Item = &'a str>) -> String {
    headstack_model::spec::did_you_mean(&show(met), known)
}

/// Names in a list for people, the first few of them.
pub(super) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", show(name))).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
