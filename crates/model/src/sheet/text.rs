//! Writes a drive file line by line.

use std::fmt::{Display, Write};

#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn comment(&mut self, words: &str) {
        self.push(&format!("# {words}"));
    }

    pub(super) fn table(&mut self, name: &str) {
        self.push(&format!("\n[{name}]"));
    }

    /// A number or a truth value, with its source.
    pub(super) fn line(&mut self, key: &str, value: impl Display, source: &str) {
        let comment = if source.is_empty() { String::new() } else { format!(" # {source}") };
        self.push(&format!("{key} = {value}{comment}"));
    }

    /// A word, with its source.
    pub(super) fn word(&mut self, key: &str, value: &str, source: &str) {
        self.line(key, toml::Value::String(value.to_string()), source);
    }

    pub(super) fn push(&mut self, line: &str) {
        writeln!(self.0, "{line}").expect("a text takes every line");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}
