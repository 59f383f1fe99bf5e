//! What can be wrong with a trace, and where.

use std::fmt;

use thiserror::Error;

/// The longest line that is read.
pub(super) const LONGEST_LINE: usize = 4096;
/// The most devices that a trace may name.
pub(super) const MOST_NAMES: usize = 65_536;

/// What is wrong with a trace, and where.
#[derive(Debug, Error)]
#[error("{}{}{fault}", before(.file), before(.place))]
pub struct TraceError {
    /// The trace's file; empty where there is none.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong there.
    pub fault: Fault,
}

/// What stands before a fault, if there is anything to say.
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

/// What can be wrong at a place of a trace.
#[derive(Debug, Error)]
pub enum Fault {
    /// The reader failed.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// A line is longer than any real one.
    #[error("longer than {LONGEST_LINE} bytes")]
    TooLong,
    /// A field is missing or one too many.
    #[error("{found} fields, where `{form}` are {wanted}")]
    FieldCount {
        /// How many there are.
        found: usize,
        /// What a line looks like.
        form: &'static str,
        /// How many fields that are.
        wanted: usize,
    },
    /// A field holds what it may not.
    #[error("{field} is `{found}`, where {allowed} is allowed")]
    Field {
        /// The field's name.
        field: &'static str,
        /// What it holds, cut to 40 characters.
        found: String,
        /// What it may hold.
        allowed: &'static str,
    },
    /// A field holds what it may not, and says how the records behind it are read.
    #[error("{field} is `{found}`, where {allowed} is allowed")]
    Final {
        /// The field's name.
        field: &'static str,
        /// What it holds.
        found: u64,
        /// What it may hold.
        allowed: &'static str,
    },
    /// The trace ends within a record.
    #[error("the trace ends after {found} of the {wanted} bytes of a record")]
    Truncated {
        /// Bytes of the record that are there.
        found: usize,
        /// Bytes that it has.
        wanted: usize,
    },
    /// The text before the first record is not as it must be.
    #[error("the header {what}")]
    Header {
        /// What it lacks.
        what: &'static str,
    },
    /// More devices are named than any real trace has.
    #[error("more than {MOST_NAMES} devices are named")]
    TooManyDevices,
    /// No format looks like this.
    #[error("{0}")]
    UnknownFormat(String),
}

impl Fault {
    /// A field that holds what it may not.
    pub(super) fn field(field: &'static str, found: &[u8], allowed: &'static str) -> Fault {
        let found = String::from_utf8_lossy(&found[..found.len().min(160)]);
        let shown = found.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c });
        Fault::Field { field, found: shown.collect(), allowed }
    }

    /// A field of a binary record that holds what it may not.
    pub(super) fn number(field: &'static str, found: u64, allowed: &'static str) -> Fault {
        Fault::Field { field, found: found.to_string(), allowed }
    }

    /// Whether nothing behind it can be read, so that it cannot be skipped.
    pub fn is_final(&self) -> bool {
        !matches!(self, Fault::TooLong | Fault::FieldCount { .. } | Fault::Field { .. })
    }
}
