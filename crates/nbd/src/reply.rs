//! Encodes replies into the output buffer.

use super::outbox::{NoMemory, Outbox};
use super::proto::{self, Errno};
use crate::{BlockError, StatusExtent};

impl From<BlockError> for Errno {
    fn from(error: BlockError) -> Errno {
        match error {
            BlockError::Invalid => Errno::Inval,
            BlockError::Medium | BlockError::Dead => Errno::Io,
            BlockError::NoSpace => Errno::NoSpc,
            BlockError::NoMemory => Errno::NoMem,
            BlockError::ReadOnly => Errno::Perm,
            BlockError::ShuttingDown => Errno::Shutdown,
        }
    }
}

/// A simple reply, with an error or 0.
fn simple_header(error: u32, cookie: u64) -> [u8; 16] {
    let mut header = [0; 16];
    header[..4].copy_from_slice(&proto::SIMPLE_REPLY_MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&error.to_be_bytes());
    header[8..].copy_from_slice(&cookie.to_be_bytes());
    header
}

/// The header of a reply's last chunk.
fn chunk_header(kind: u16, cookie: u64, payload: usize) -> [u8; 20] {
    let payload = u32::try_from(payload).expect("chunks are shorter than 4 GiB, as transfers are");
    let mut header = [0; 20];
    header[..4].copy_from_slice(&proto::STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&proto::CHUNK_DONE.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&payload.to_be_bytes());
    header
}

/// A success. The simple form is always allowed for replies without data.
pub(super) fn done(out: &mut Outbox, cookie: u64) -> Result<(), NoMemory> {
    out.push(&simple_header(0, cookie))
}

/// A failure; only structured replies carry the message.
pub(super) fn error(
    out: &mut Outbox,
    structured: bool,
    cookie: u64,
    error: Errno,
    message: &str,
) -> Result<(), NoMemory> {
    if !structured {
        return out.push(&simple_header(error as u32, cookie));
    }
    let length = u16::try_from(message.len()).expect("messages are one line");
    out.push(&chunk_header(proto::CHUNK_ERROR, cookie, 6 + message.len()))?;
    out.push(&(error as u32).to_be_bytes())?;
    out.push(&length.to_be_bytes())?;
    out.push(message.as_bytes())
}

/// The data of a read, which `read` writes directly into the output. If there is no memory for them, the reply is that error.
pub(super) fn data(
    out: &mut Outbox,
    structured: bool,
    (cookie, offset, bytes): (u64, u64, u32),
    read: impl FnOnce(&mut [u8]) -> Result<(), BlockError>,
) -> Result<(), NoMemory> {
    let bytes = bytes as usize;
    let head = if structured { 28 } else { 16 };
    let Ok(room) = out.reserve(head + bytes) else {
        let failure = BlockError::NoMemory;
        return error(out, structured, cookie, failure.into(), &failure.to_string());
    };
    if let Err(failure) = read(&mut room[head..]) {
        out.cancel();
        return error(out, structured, cookie, failure.into(), &failure.to_string());
    }
    if structured {
        room[..20].copy_from_slice(&chunk_header(proto::CHUNK_OFFSET_DATA, cookie, 8 + bytes));
        room[20..28].copy_from_slice(&offset.to_be_bytes());
    } else {
        room[..16].copy_from_slice(&simple_header(0, cookie));
    }
    out.commit(head + bytes);
    Ok(())
}

/// Extents from the request's first byte to at most its last.
pub(super) fn extents(
    out: &mut Outbox,
    cookie: u64,
    reported: &[StatusExtent],
    bytes: u32,
    most: usize,
) -> Result<(), NoMemory> {
    let descriptors = || Descriptors { reported, left: u64::from(bytes) }.take(most.max(1));
    let count = descriptors().count();
    assert!(count > 0, "the disk tells of the first byte at least");
    out.push(&chunk_header(proto::CHUNK_BLOCK_STATUS, cookie, 4 + 8 * count))?;
    out.push(&proto::CONTEXT_ID.to_be_bytes())?;
    for (length, hole) in descriptors() {
        out.push(&length.to_be_bytes())?;
        out.push(&(if hole { proto::HOLE_OF_ZEROS } else { 0 }).to_be_bytes())?;
    }
    Ok(())
}

/// Extents for a reply: neighbours of a kind are merged, none is empty, none is beyond the request.
struct Descriptors<'a> {
    reported: &'a [StatusExtent],
    left: u64,
}

impl Iterator for Descriptors<'_> {
    type Item = (u32, bool);

    fn next(&mut self) -> Option<(u32, bool)> {
        let first = self.reported.iter().position(|extent| extent.bytes > 0)?;
        let hole = self.reported[first].hole;
        let run = self.reported[first..].iter().take_while(|extent| extent.hole == hole || extent.bytes == 0);
        let (count, bytes) =
            run.fold((0, 0_u64), |(count, sum), extent| (count + 1, sum.saturating_add(extent.bytes)));
        let bytes = bytes.min(self.left);
        if bytes == 0 {
            return None;
        }
        self.reported = &self.reported[first + count..];
        self.left -= bytes;
        Some((u32::try_from(bytes).expect("a request is shorter than 4 GiB"), hole))
    }
}
