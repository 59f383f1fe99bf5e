//! Requests: which are allowed, and how others are refused.

use super::export::Export;
use super::limits::Breach;
use super::outbox;
use super::proto::{self, Errno, Fields};
use crate::Operation;

pub(super) const HEADER_BYTES: usize = 28;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) structured: bool,
    /// The client may request block status.
    pub(super) allocation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    flags: u16,
    command: u16,
    /// The client's ID of the request, which its reply repeats.
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Data,
    Extents { one: bool },
}

impl Header {
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Breach> {
        let mut fields = Fields(bytes);
        let whole = "a header has all its fields";
        let magic = fields.u32().expect(whole);
        if magic != proto::REQUEST_MAGIC {
            return Err(Breach::RequestMagic { met: magic });
        }
        Ok(Header {
            flags: fields.u16().expect(whole),
            command: fields.u16().expect(whole),
            cookie: fields.u64().expect(whole),
            offset: fields.u64().expect(whole),
            length: fields.u32().expect(whole),
        })
    }

    pub(super) fn is_disconnect(&self) -> bool {
        self.command == proto::CMD_DISC
    }

    pub(super) fn payload(&self) -> usize {
        if self.command == proto::CMD_WRITE { self.length as usize } else { 0 }
    }

    /// Bytes of data of the request or its reply.
    pub(super) fn data_bytes(&self) -> usize {
        match self.command {
            proto::CMD_READ | proto::CMD_WRITE => self.length as usize,
            // Extents of sixteen bytes and their encoding, for as many as the length allows.
            proto::CMD_BLOCK_STATUS => (self.length as usize / 512).clamp(1, 4096) * 24,
            _ => 0,
        }
    }

    /// Bytes of memory that the request holds until it is answered.
    pub(super) fn weight(&self) -> usize {
        match self.command {
            proto::CMD_WRITE => self.data_bytes() + outbox::weight(0),
            _ => outbox::weight(self.data_bytes()),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        match self.command {
            proto::CMD_READ => Shape::Data,
            proto::CMD_BLOCK_STATUS => Shape::Extents { one: self.has(proto::FLAG_REQ_ONE) },
            _ => Shape::Plain,
        }
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn check(&self, export: &Export, terms: Terms) -> Result<(), Refusal> {
        let (offered, mut allowed) = self.offered(export, terms)?;
        if export.fua {
            allowed |= proto::FLAG_FUA;
        }
        if self.flags & !allowed != 0 {
            return Err(Refusal::Flags { met: self.flags, allowed });
        }
        if export.read_only && self.writes() {
            return Err(Refusal::ReadOnly);
        }
        if !offered {
            return Err(Refusal::NotOffered { command: self.command });
        }
        if self.command == proto::CMD_FLUSH {
            return if (self.offset, self.length) == (0, 0) { Ok(()) } else { Err(Refusal::FlushOfPart) };
        }
        self.check_place(export)?;
        if self.has(proto::FLAG_FAST_ZERO) { Err(Refusal::SlowZeroes) } else { Ok(()) }
    }

    /// Whether the command was offered, and its allowed flags other than FUA.
    fn offered(&self, export: &Export, terms: Terms) -> Result<(bool, u16), Refusal> {
        Ok(match self.command {
            proto::CMD_READ if terms.structured => (true, proto::FLAG_DF),
            proto::CMD_READ | proto::CMD_WRITE => (true, 0),
            proto::CMD_FLUSH => (export.flush, 0),
            proto::CMD_TRIM => (export.trim, 0),
            proto::CMD_CACHE => (export.cache, 0),
            proto::CMD_WRITE_ZEROES => (export.write_zeroes, proto::FLAG_NO_HOLE | proto::FLAG_FAST_ZERO),
            proto::CMD_BLOCK_STATUS => (terms.allocation, proto::FLAG_REQ_ONE),
            met => return Err(Refusal::Unknown { met }),
        })
    }

    fn writes(&self) -> bool {
        matches!(self.command, proto::CMD_WRITE | proto::CMD_WRITE_ZEROES | proto::CMD_TRIM)
    }

    fn check_place(&self, export: &Export) -> Result<(), Refusal> {
        let Header { offset, length, .. } = *self;
        if length == 0 {
            return Err(Refusal::Empty);
        }
        if self.data_bytes() > export.blocks.maximum as usize {
            let whole = self.has(proto::FLAG_DF);
            return Err(Refusal::TooLong { met: length, allowed: export.blocks.maximum, whole });
        }
        if offset.checked_add(u64::from(length)).is_none_or(|end| end > export.bytes) {
            let room = matches!(self.command, proto::CMD_WRITE | proto::CMD_WRITE_ZEROES);
            return Err(Refusal::Beyond { offset, length, size: export.bytes, room });
        }
        let minimum = export.blocks.minimum;
        if !offset.is_multiple_of(u64::from(minimum)) || !length.is_multiple_of(minimum) {
            return Err(Refusal::Misaligned { offset, length, minimum });
        }
        Ok(())
    }

    /// The operation of a valid request.
    pub(super) fn operation(&self, data: Vec<u8>) -> Operation {
        let Header { offset, length, .. } = *self;
        let (fua, bytes) = (self.has(proto::FLAG_FUA), u64::from(length));
        match self.command {
            proto::CMD_READ => Operation::Read { offset, bytes: length, fua },
            proto::CMD_WRITE => Operation::Write { offset, data, fua },
            proto::CMD_FLUSH => Operation::Flush,
            // Only this writes zeros that FUA makes durable.
            proto::CMD_TRIM if fua => Operation::WriteZeroes { offset, bytes, may_trim: true, fua },
            proto::CMD_TRIM => Operation::Trim { offset, bytes },
            proto::CMD_CACHE => Operation::Prefetch { offset, bytes },
            proto::CMD_WRITE_ZEROES => {
                Operation::WriteZeroes { offset, bytes, may_trim: !self.has(proto::FLAG_NO_HOLE), fua }
            }
            proto::CMD_BLOCK_STATUS => Operation::Allocation { offset, bytes },
            other => unreachable!("command {other} is never found good"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("unknown command {met}")]
    Unknown { met: u16 },
    #[error("command flags {met:#x}, where {allowed:#x} are allowed")]
    Flags { met: u16, allowed: u16 },
    #[error("the export is read-only")]
    ReadOnly,
    #[error("command {command} was not offered or not agreed on")]
    NotOffered { command: u16 },
    #[error("a flush is of the whole export: its offset and length must be 0")]
    FlushOfPart,
    #[error("a length of 0")]
    Empty,
    #[error("{met} bytes in one request, where {allowed} are allowed")]
    TooLong { met: u32, allowed: u32, whole: bool },
    #[error("{length} bytes at {offset} are not all within the export's {size}")]
    Beyond { offset: u64, length: u32, size: u64, room: bool },
    #[error("{length} bytes at {offset} are not in whole blocks of {minimum}")]
    Misaligned { offset: u64, length: u32, minimum: u32 },
    #[error("zeros take as long as data")]
    SlowZeroes,
    #[error("no memory left for the request")]
    NoMemory,
}

impl Refusal {
    pub(super) fn errno(&self) -> Errno {
        match self {
            Refusal::ReadOnly => Errno::Perm,
            Refusal::TooLong { whole: true, .. } => Errno::Overflow,
            Refusal::Beyond { room: true, .. } => Errno::NoSpc,
            Refusal::SlowZeroes => Errno::NotSup,
            Refusal::NoMemory => Errno::NoMem,
            _ => Errno::Inval,
        }
    }
}
