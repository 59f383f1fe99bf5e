//! Commands at the disk, and what they are for.

use headstack_streams::rearrange::BlockAccess;
use headstack_streams::streams::RequestKind;

/// What a command that has not ended is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum DiskPurpose {
    /// A part of a request or a half of a copy, with the rearranger's number.
    Block(u32),
    /// A page of the table, with its buffer, or one of its flushes.
    Table(Option<u32>),
    /// A part of the saved counts.
    Counts,
}

pub(super) fn block_access(kind: RequestKind) -> BlockAccess {
    match kind {
        RequestKind::Read { .. } | RequestKind::BlockStatus { .. } => BlockAccess::Read,
        RequestKind::Write { .. } | RequestKind::Zero { .. } | RequestKind::Trim { .. } => BlockAccess::Write,
        RequestKind::Flush => BlockAccess::Flush,
    }
}

/// The same command with another run of bytes.
pub(super) fn with_run(kind: RequestKind, offset: u64, bytes: u64) -> RequestKind {
    match kind {
        RequestKind::Read { fua, .. } => RequestKind::Read { offset, bytes, fua },
        RequestKind::Write { fua, .. } => RequestKind::Write { offset, bytes, fua },
        RequestKind::Zero { may_trim, fua, .. } => RequestKind::Zero { offset, bytes, may_trim, fua },
        RequestKind::Trim { .. } => RequestKind::Trim { offset, bytes },
        RequestKind::BlockStatus { .. } => RequestKind::BlockStatus { offset, bytes },
        RequestKind::Flush => RequestKind::Flush,
    }
}
