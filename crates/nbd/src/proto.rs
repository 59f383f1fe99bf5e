//! The constants of the protocol, and its fields: big-endian, without padding.

use super::buffer::Buffer;

pub(super) const NAME_BYTES: usize = 4096;

/// The greeting: two magic numbers.
pub(super) const GREETING: [u64; 2] = [0x4e42_444d_4147_4943, OPTION_MAGIC];
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(super) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Zeros after the export's size and flags, for clients that did not decline them.
pub(super) const PADDING: [u8; 124] = [0; 124];

/// Flags of the handshake, of both sides.
pub(super) const FIXED_NEWSTYLE: u16 = 1 << 0;
pub(super) const NO_ZEROES: u16 = 1 << 1;

/// Transmission flags of an export.
pub(super) const EXPORT_HAS_FLAGS: u16 = 1 << 0;
pub(super) const EXPORT_READ_ONLY: u16 = 1 << 1;
pub(super) const EXPORT_SEND_FLUSH: u16 = 1 << 2;
pub(super) const EXPORT_SEND_FUA: u16 = 1 << 3;
pub(super) const EXPORT_ROTATIONAL: u16 = 1 << 4;
pub(super) const EXPORT_SEND_TRIM: u16 = 1 << 5;
pub(super) const EXPORT_SEND_WRITE_ZEROES: u16 = 1 << 6;
pub(super) const EXPORT_SEND_DF: u16 = 1 << 7;
pub(super) const EXPORT_CAN_MULTI_CONN: u16 = 1 << 8;
pub(super) const EXPORT_SEND_CACHE: u16 = 1 << 10;
pub(super) const EXPORT_SEND_FAST_ZERO: u16 = 1 << 11;

/// Options of the handshake.
pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
pub(super) const OPT_STARTTLS: u32 = 5;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;
pub(super) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(super) const OPT_LIST_META_CONTEXT: u32 = 9;
pub(super) const OPT_SET_META_CONTEXT: u32 = 10;

/// Types of option replies.
pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_META_CONTEXT: u32 = 4;
pub(super) const REP_ERR_UNSUP: u32 = (1 << 31) + 1;
pub(super) const REP_ERR_POLICY: u32 = (1 << 31) + 2;
pub(super) const REP_ERR_INVALID: u32 = (1 << 31) + 3;
pub(super) const REP_ERR_TLS_REQD: u32 = (1 << 31) + 5;
pub(super) const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;
pub(super) const REP_ERR_TOO_BIG: u32 = (1 << 31) + 9;

/// Information about an export.
pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_NAME: u16 = 1;
pub(super) const INFO_DESCRIPTION: u16 = 2;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

/// The only metadata context, and its ID.
pub(super) const CONTEXT: &str = "base:allocation";
pub(super) const CONTEXT_ID: u32 = 1;
/// Status flags of a hole that reads as zeros.
pub(super) const HOLE_OF_ZEROS: u32 = 0b11;

/// Commands of the transmission.
pub(super) const CMD_READ: u16 = 0;
pub(super) const CMD_WRITE: u16 = 1;
pub(super) const CMD_DISC: u16 = 2;
pub(super) const CMD_FLUSH: u16 = 3;
pub(super) const CMD_TRIM: u16 = 4;
pub(super) const CMD_CACHE: u16 = 5;
pub(super) const CMD_WRITE_ZEROES: u16 = 6;
pub(super) const CMD_BLOCK_STATUS: u16 = 7;

/// Flags of a command.
pub(super) const FLAG_FUA: u16 = 1 << 0;
pub(super) const FLAG_NO_HOLE: u16 = 1 << 1;
pub(super) const FLAG_DF: u16 = 1 << 2;
pub(super) const FLAG_REQ_ONE: u16 = 1 << 3;
pub(super) const FLAG_FAST_ZERO: u16 = 1 << 4;

/// Types of structured replies, and the flag of the last one.
pub(super) const CHUNK_DONE: u16 = 1 << 0;
pub(super) const CHUNK_OFFSET_DATA: u16 = 1;
pub(super) const CHUNK_BLOCK_STATUS: u16 = 5;
pub(super) const CHUNK_ERROR: u16 = (1 << 15) + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    Perm = 1,
    Io = 5,
    NoMem = 12,
    Inval = 22,
    NoSpc = 28,
    Overflow = 75,
    NotSup = 95,
    Shutdown = 108,
}

/// Parses fields from bytes.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `bytes` bytes, or none if there are fewer.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length before it.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u32()?;
        self.take_bytes(usize::try_from(bytes).ok()?)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes an option reply with the data of `parts`.
pub(super) fn put_option_reply(out: &mut Buffer, option: u32, reply: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).expect("replies to options are short");
    out.push(&OPTION_REPLY_MAGIC.to_be_bytes());
    for field in [option, reply, length] {
        out.push(&field.to_be_bytes());
    }
    for part in parts {
        out.push(part);
    }
}
