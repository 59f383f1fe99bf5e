//! Callers that pass answers to the kernel.

use crate::{Answer, BlockError, Caller, DiskHandle, Operation, StatusExtent};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyLseek, ReplyWrite};

pub(super) fn errno(error: BlockError) -> Errno {
    match error {
        BlockError::Invalid => Errno::EINVAL,
        BlockError::Medium | BlockError::Dead => Errno::EIO,
        BlockError::NoSpace => Errno::ENOSPC,
        BlockError::NoMemory => Errno::ENOMEM,
        BlockError::ReadOnly => Errno::EROFS,
        BlockError::ShuttingDown => Errno::ESHUTDOWN,
    }
}

impl Caller for ReplyData {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        match result {
            Ok(Answer::Data(data)) => self.data(&data),
            Ok(_) => self.error(Errno::EIO),
            Err(error) => self.error(errno(error)),
        }
    }
}

impl Caller for ReplyEmpty {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        match result {
            Ok(_) => self.ok(),
            Err(error) => self.error(errno(error)),
        }
    }
}

pub(super) struct Writer {
    pub(super) reply: ReplyWrite,
    pub(super) bytes: u32,
}

impl Caller for Writer {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        match result {
            Ok(_) => self.reply.written(self.bytes),
            Err(error) => self.reply.error(errno(error)),
        }
    }
}

/// Finds the next data or hole from an offset on.
pub(super) struct Seeker {
    pub(super) reply: ReplyLseek,
    pub(super) disk: DiskHandle,
    pub(super) volume: u32,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) hole: bool,
}

impl Seeker {
    /// Queries the next part; the end of the file counts as a hole.
    pub(super) fn seek(self) {
        if self.at < self.end {
            let operation = Operation::Allocation { offset: self.at, bytes: self.end - self.at };
            return self.disk.clone().submit(self.volume, operation, Box::new(self));
        }
        if self.hole { self.reply.offset(self.end as i64) } else { self.reply.error(Errno::ENXIO) }
    }

    fn walk(mut self, extents: &[StatusExtent]) {
        for extent in extents {
            if extent.hole == self.hole {
                return self.reply.offset(self.at as i64);
            }
            self.at += extent.bytes;
        }
        self.seek();
    }
}

impl Caller for Seeker {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        match result {
            Ok(Answer::Allocation(extents)) if !extents.is_empty() => self.walk(&extents),
            Ok(_) => self.reply.error(Errno::EIO),
            Err(error) => self.reply.error(errno(error)),
        }
    }
}
