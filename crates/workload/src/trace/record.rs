//! One request of a trace, and the header of a trace.

use std::fmt;

use headstack_model::{Instant, Nanos};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Read,
    Write,
    Flush,
    Trim,
}

impl Kind {
    /// All kinds, in the order in which they are counted.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Flush, Kind::Trim];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Flush => "flush",
            Kind::Trim => "trim",
        }
    }

    /// The kind of this name.
    pub fn named(name: &[u8]) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One request of a trace, in the terms that all formats share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was issued, by the trace's own clock (some count from their start, others from an epoch).
    pub time: Instant,
    /// The device's number in the trace, or the index of its name in [`Header::names`].
    pub device: u32,
    /// Its operation.
    pub kind: Kind,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// Number of bytes; 0 for a flush.
    pub bytes: u64,
    /// The response time, if the trace has it.
    pub response: Option<Nanos>,
    /// From its completion to the next request's issue, in traces that are replayed by completions rather than by times.
    pub think: Option<Nanos>,
    /// The number of the issuing process, if the trace has it.
    pub source: Option<u32>,
    /// Fields that only its format has.
    pub native: Native,
}

impl Record {
    /// A request with only the fields that every format has.
    pub fn new(time: Instant, device: u32, kind: Kind, offset: u64, bytes: u64) -> Record {
        Record {
            time,
            device,
            kind,
            offset,
            bytes,
            response: None,
            think: None,
            source: None,
            native: Native::None,
        }
    }

    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// The same request without its process and without the fields of a single format.
    pub fn plain(self) -> Record {
        Record { source: None, native: Native::None, ..self }
    }
}

/// Fields that only one format has, kept so that the same format can be written again without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Native {
    #[default]
    None,
    /// All bits of the flags of a DiskSim trace.
    DiskSim {
        flags: u32,
    },
    /// The action seen on the bus, of a validation trace: its first four letters.
    Validate {
        /// The letters, with blanks at the end.
        action: [u8; 4],
    },
    Srt(super::srt::Words),
}

/// The part of a trace that applies to all its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The text before the first request, if the format has free text there.
    pub preamble: Vec<u8>,
    /// Whether the numbers of a binary trace are big-endian.
    pub big_endian: bool,
    /// Names of the devices in order of first appearance, in formats that name them.
    pub names: Vec<String>,
    /// How the format numbers devices.
    pub numbering: Numbering,
}

/// How a format identifies devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// By a number.
    #[default]
    Plain,
    /// By the two numbers that Linux gives a block device: `8,16`.
    MajorMinor,
}

/// Bits of the minor number in a device's number.
pub(super) const MINOR_BITS: u32 = 20;

impl Header {
    /// The trace's name or number of a device.
    pub fn label(&self, device: u32) -> String {
        match (self.names.get(device as usize), self.numbering) {
            (Some(name), _) => name.clone(),
            (None, Numbering::Plain) => device.to_string(),
            (None, Numbering::MajorMinor) => {
                format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_labelled_by_name_or_numbers() {
        let mut header = Header { names: vec!["sda".to_string()], ..Header::default() };
        assert_eq!((header.label(0), header.label(7)), ("sda".to_string(), "7".to_string()));
        header.numbering = Numbering::MajorMinor;
        assert_eq!(header.label((8 << 20) | 16), "8,16");
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert!(Kind::ALL.iter().all(|kind| Kind::named(kind.name().as_bytes()) == Some(*kind)));
        assert_eq!(Kind::named(b"reed"), None);
    }
}
