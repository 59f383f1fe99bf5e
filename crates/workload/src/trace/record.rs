//! One request of a trace, and what a trace says once.

use std::fmt;

use headstack_model::Nanos;

/// What a request of a trace asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// All written data to the media.
    Flush,
    /// A run of bytes that nobody needs any more.
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
    pub time: Nanos,
    /// The device's number in the trace, or the place of its name among [`Header::names`].
    pub device: u32,
    /// What it asked for.
    pub kind: Kind,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// How many bytes; 0 for a flush.
    pub bytes: u64,
    /// How long the device took, where the trace knows.
    pub response: Option<Nanos>,
    /// From its completion to the next request's issue, in traces that wait for completions rather than for times.
    pub think: Option<Nanos>,
    /// Who asked: the number of the process, where the trace knows.
    pub source: Option<u32>,
    /// What only the format it was read from says.
    pub native: Native,
}

impl Record {
    /// A request with nothing known beyond what every format says.
    pub fn new(time: Nanos, device: u32, kind: Kind, offset: u64, bytes: u64) -> Record {
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

    /// The same request with its process removed and all that only one format says.
    pub fn plain(self) -> Record {
        Record { source: None, native: Native::None, ..self }
    }
}

/// What only one format says of a request, kept so that the same format can be written again without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Native {
    /// Nothing.
    #[default]
    None,
    /// All bits of the flags of a DiskSim trace.
    DiskSim {
        /// The flags.
        flags: u32,
    },
    /// The action seen on the bus, of a validation trace: its first four letters.
    Validate {
        /// The letters, with blanks at the end.
        action: [u8; 4],
    },
    /// The further words of an HP SRT record.
    Srt(super::srt::Words),
}

/// What a trace says once, for all its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The text before the first request, where the format has one that is free.
    pub preamble: Vec<u8>,
    /// Whether the numbers of a binary trace have their highest byte first.
    pub big_endian: bool,
    /// Names of the devices in order of first appearance, in formats that name them.
    pub names: Vec<String>,
    /// How the format calls a device that has a number.
    pub numbering: Numbering,
}

/// How a format calls devices.
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
    /// What the trace calls a device: its name or its number.
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
