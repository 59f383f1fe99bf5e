//! The one table of fio's keys: what is honoured, what is ignored, what is refused and why.
//!
//! It feeds the parser, the errors, the page `docs/formats/fio-jobs.md` and the tests.
//!
//! *Source:* `fio --cmdhelp=all` of fio 3.33 and its HOWTO, whose defaults these are.

use super::error::nearest;
use super::settings::Settings;
use super::value::Given;
use super::{honoured, ignored};

/// The form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// One of some words, as the summary lists them.
    Word,
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// 0 or 1.
    Flag,
    /// 0 or 1; the key alone means 1.
    Switch,
    /// A number of bytes with a suffix.
    Bytes,
    /// A number of bytes or a percentage.
    Amount,
    /// Two numbers of bytes, apart by `-` or `:`, or one.
    Range,
    /// A time with a suffix.
    Time,
    /// A list as the summary shows.
    List,
}

impl ValueKind {
    /// Its name on the page of keys.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Word => "word",
            ValueKind::Text => "text",
            ValueKind::Count => "number",
            ValueKind::Flag => "0 or 1",
            ValueKind::Switch => "switch",
            ValueKind::Bytes => "bytes",
            ValueKind::Amount => "bytes or %",
            ValueKind::Range => "range",
            ValueKind::Time => "time",
            ValueKind::List => "list",
        }
    }
}

/// The treatment of a key.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// It shapes the load.
    Honoured(Setter),
    /// It steers fio's own machinery: accepted, and listed.
    Ignored,
    /// The load would be another one without it, and it cannot be had.
    Refused {
        /// Why not.
        reason: &'static str,
        /// Accepted values that have no effect.
        harmless: &'static [&'static str],
    },
}

/// Writes the value of a key into the settings of a job.
#[derive(Clone, Copy)]
pub struct Setter(pub(super) fn(&mut Settings, &Given<'_>) -> Result<(), String>);

impl std::fmt::Debug for Setter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setter")
    }
}

/// A key of fio's job files.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// Its name.
    pub name: &'static str,
    /// Its other name, if it has one.
    pub alias: Option<&'static str>,
    /// Whether it may have a value a direction: `4k,8k` for reads and for writes.
    pub by_direction: bool,
    /// The form of its value.
    pub kind: ValueKind,
    /// Its treatment.
    pub role: Role,
    /// Its meaning.
    pub summary: &'static str,
}

impl FioOption {
    /// Whether its value may say anything: it steers fio's own machinery, or names an export that a rig of one volume
    /// does not need to know.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.role, Role::Ignored) || self.name == "uri"
    }
}

/// All keys, the honoured ones first.
pub fn options() -> impl Iterator<Item = &'static FioOption> + Clone {
    honoured::WHERE
        .iter()
        .chain(honoured::WHAT)
        .chain(honoured::WHEN)
        .chain(ignored::IGNORED)
        .chain(ignored::REFUSED)
}

/// The key of this name or alias.
pub(super) fn find(name: &str) -> Option<&'static FioOption> {
    options().find(|option| option.name == name || option.alias == Some(name))
}

/// The error for an unknown key.
pub(super) fn unknown(name: &str) -> String {
    let names = options().flat_map(|option| std::iter::once(option.name).chain(option.alias));
    format!("unknown key{}", nearest(name, names))
}
