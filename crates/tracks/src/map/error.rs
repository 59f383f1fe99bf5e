//! What may be wrong with a track map that somebody hands in.

use std::io;

/// Why a file cannot be read as a track map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file itself cannot be read.
    #[error("the track map cannot be read: {0}")]
    Input(#[from] io::Error),
    /// It is something else.
    #[error("byte 0: {found:?} is no track map, which begins with \"\\x89HSTRK\\r\\n\"")]
    NotAMap {
        /// What it begins with.
        found: String,
    },
    /// It was written by a later program.
    #[error("byte 8: a track map of version {found}; versions 1 to {newest} can be read")]
    Version {
        /// Its version.
        found: u32,
        /// The newest one that can be read.
        newest: u32,
    },
    /// Its end is missing.
    #[error("byte {length}: the track map ends here, and should have {expected} bytes")]
    Truncated {
        /// Bytes that there are.
        length: u64,
        /// Bytes that there should be.
        expected: u64,
    },
    /// A byte of it is not what was written.
    #[error(
        "byte {at}: the checksum is {found:#010x}, that of the bytes before is {computed:#010x}: the map is damaged"
    )]
    Checksum {
        /// Where the checksum lies.
        at: u64,
        /// The one that was written.
        found: u32,
        /// That of the bytes.
        computed: u32,
    },
    /// A value cannot be.
    #[error("byte {at}: {what} is {found}; allowed is {allowed}")]
    Value {
        /// Where it lies.
        at: u64,
        /// What it stands for.
        what: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        allowed: String,
    },
}

/// Why the text form of a map cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The text itself cannot be read.
    #[error("the track map cannot be read: {0}")]
    Input(#[from] io::Error),
    /// A line is not a track.
    #[error("line {line}: `{found}`; allowed is {allowed}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What it says.
        found: String,
        /// What it may say.
        allowed: String,
    },
}

/// Why a map is that of another disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map is of a disk whose {what} is {of_map}; that of this one is {of_disk}")]
#[allow(missing_docs, reason = "the names say it")]
pub struct ForeignMap {
    pub what: &'static str,
    pub of_map: String,
    pub of_disk: String,
}
