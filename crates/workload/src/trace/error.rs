//! Errors of traces, with their place.

use std::fmt;

use thiserror::Error;

pub(super) const LONGEST_LINE: usize = 4096;
/// The most devices that a trace may name.
pub(super) const MOST_NAMES: usize = 65_536;

/// An error in a trace, with its place.
#[derive(Debug, Error)]
#[error("{}{}{fault}", before(.file), before(.place))]
#[allow(missing_docs, reason = "the names say it")]
pub struct TraceError {
    /// The trace's file; empty if there is none.
    pub file: String,
    pub place: Place,
    pub fault: Fault,
}

fn before(place: impl fmt::Display) -> String {
    let place = place.to_string();
    if place.is_empty() { place } else { place + ": " }
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// The byte at which a record begins, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A fault at a place of a trace.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Fault {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("longer than {LONGEST_LINE} bytes")]
    TooLong,
    #[error("{found} fields, where `{form}` are {wanted}")]
    FieldCount { found: usize, form: &'static str, wanted: usize },
    #[error("{field} is `{found}`, where {allowed} is allowed")]
    Field {
        field: &'static str,
        /// Its value, cut to 40 characters.
        found: String,
        allowed: &'static str,
    },
    /// An invalid value of a field that determines how later records are read.
    #[error("{field} is `{found}`, where {allowed} is allowed")]
    Final { field: &'static str, found: u64, allowed: &'static str },
    #[error("the trace ends after {found} of the {wanted} bytes of a record")]
    Truncated { found: usize, wanted: usize },
    #[error("the header {what}")]
    Header { what: &'static str },
    #[error("more than {MOST_NAMES} devices are named")]
    TooManyDevices,
    #[error("{0}")]
    UnknownFormat(String),
}

impl Fault {
    pub(super) fn field(field: &'static str, found: &[u8], allowed: &'static str) -> Fault {
        let found = String::from_utf8_lossy(&found[..found.len().min(160)]);
        let shown = found.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c });
        Fault::Field { field, found: shown.collect(), allowed }
    }

    /// A field of a binary record with an invalid value.
    pub(super) fn number(field: &'static str, found: u64, allowed: &'static str) -> Fault {
        Fault::Field { field, found: found.to_string(), allowed }
    }

    /// Whether nothing after it can be read, so that it cannot be skipped.
    pub fn is_final(&self) -> bool {
        !matches!(self, Fault::TooLong | Fault::FieldCount { .. } | Fault::Field { .. })
    }
}
