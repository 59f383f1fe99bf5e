//! Errors of track map files.

use std::io;

/// Why a file is no valid track map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// Reading failed.
    #[error("the track map cannot be read: {0}")]
    Input(#[from] io::Error),
    /// It is not a track map.
    #[error("byte 0: {found:?} is no track map, which begins with \"\\x89HSTRK\\r\\n\"")]
    NotAMap {
        /// Its first bytes.
        found: String,
    },
    /// It was written by a newer program.
    #[error("byte 8: a track map of version {found}; versions 1 to {newest} can be read")]
    Version {
        /// Its version.
        found: u32,
        /// Newest supported version.
        newest: u32,
    },
    /// It is truncated.
    #[error("byte {length}: the track map ends here, and should have {expected} bytes")]
    Truncated {
        /// Actual length in bytes.
        length: u64,
        /// Expected length in bytes.
        expected: u64,
    },
    /// The checksum does not match.
    #[error(
        "byte {at}: the checksum is {found:#010x}, that of the bytes before is {computed:#010x}: the map is damaged"
    )]
    Checksum {
        /// Offset of the checksum.
        at: u64,
        /// The checksum in the file.
        found: u32,
        /// The computed checksum.
        computed: u32,
    },
    /// A value is invalid.
    #[error("byte {at}: {what} is {found}; allowed is {allowed}")]
    Value {
        /// Its offset.
        at: u64,
        /// Its meaning.
        what: &'static str,
        /// The value.
        found: String,
        /// The allowed values.
        allowed: String,
    },
}

/// Why a text is no valid map.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// Reading failed.
    #[error("the track map cannot be read: {0}")]
    Input(#[from] io::Error),
    /// A line is no track.
    #[error("line {line}: `{found}`; allowed is {allowed}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Its text.
        found: String,
        /// The allowed text.
        allowed: String,
    },
}

/// Why a map belongs to another disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map is of a disk whose {what} is {of_map}; that of this one is {of_disk}")]
#[allow(missing_docs, reason = "the names say it")]
pub struct ForeignMap {
    pub what: &'static str,
    pub of_map: String,
    pub of_disk: String,
}
