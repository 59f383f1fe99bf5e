//! An emulated disk of the same process, whose own thread reports the ends of commands.

use super::{Drive, Ends};
use crate::disk::Outcome;
use crate::node::handle::Core;
use crate::node::messages::{Ended, Shape};
use crate::shared::{Ends as DiskEnds, RequestOrigin};
use crate::{BlockError, DiskHandle, Operation};
use headstack_streams::streams::{Command, RequestKind};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

pub(super) struct Emulated {
    disk: DiskHandle,
    volume: u32,
    ended_at_disk: Arc<DiskEnds>,
    taken: Vec<(u32, Operation, RequestOrigin)>,
    /// Kept to reuse its memory.
    over: Vec<(Command, Result<Outcome, BlockError>)>,
}

impl Emulated {
    pub(super) fn new(disk: DiskHandle, volume: u32) -> io::Result<Emulated> {
        Ok(Emulated {
            disk,
            volume,
            ended_at_disk: Arc::new(DiskEnds::new()?),
            taken: Vec::new(),
            over: Vec::new(),
        })
    }
}

impl Drive for Emulated {
    fn shape(&self) -> Shape {
        let info = &self.disk.volumes()[self.volume as usize];
        Shape { bytes: info.bytes(), block_bytes: info.sector_bytes, read_only: false }
    }

    fn title(&self) -> String {
        format!("emulated {}", self.disk.volumes()[self.volume as usize].name)
    }

    fn read_at_start(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(self.volume, offset, into).map_err(io::Error::other)
    }

    fn wake(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ended_at_disk.wake.as_fd())
    }

    fn woken(&mut self) {
        // Fails only if there is nothing to read.
        let _ = rustix::io::read(&self.ended_at_disk.wake, &mut [0; 8]);
    }

    fn start(&mut self, core: &mut Core, command: Command) {
        let operation = match command.kind {
            RequestKind::Read { offset, bytes, fua } => Operation::Read { offset, bytes: bytes as u32, fua },
            RequestKind::Write { offset, fua, .. } => match core.take_data(&command) {
                Ok(data) => Operation::Write { offset, data, fua },
                Err(error) => return self.over.push((command, Err(error))),
            },
            RequestKind::Flush => Operation::Flush,
            RequestKind::Zero { offset, bytes, may_trim, fua } => {
                Operation::WriteZeroes { offset, bytes, may_trim, fua }
            }
            RequestKind::Trim { offset, bytes } => Operation::Trim { offset, bytes },
            RequestKind::BlockStatus { offset, bytes } => Operation::Allocation { offset, bytes },
        };
        self.taken.push((
            self.volume,
            operation,
            RequestOrigin::Node(Arc::clone(&self.ended_at_disk), command),
        ));
    }

    fn issue(&mut self, _core: &mut Core) {
        if !self.taken.is_empty() {
            self.disk.submit_all(self.taken.drain(..));
        }
    }

    fn take_ended(&mut self, core: &mut Core, ends: &mut Ends) {
        self.ended_at_disk.take_ended(&mut self.over);
        for (command, result) in self.over.drain(..) {
            let result = result.and_then(|outcome| match outcome {
                Outcome::Done => Ok(Ended::Done),
                Outcome::Read { volume, offset, .. } => {
                    core.prepare(&command)?;
                    self.disk.read(volume, offset, core.buffer(&command)).map(|()| Ended::Done)
                }
                Outcome::Allocation(extents) => Ok(Ended::BlockStatus(extents)),
            });
            ends.push((command, result));
        }
    }

    fn fetch(&self, _offset: u64, _into: &mut [u8]) {
        unreachable!("it leaves nothing");
    }
}
