//! What a node's bytes are on.

mod emulated;
mod memory;

use super::core::{Command, Ended, NodeCore, Shape};
use crate::{BlockError, DiskHandle};
use emulated::Emulated;
use memory::Memory;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// How commands ended, by their numbers.
pub(crate) type Ends = Vec<(u32, Result<Ended, BlockError>)>;

/// A disk's commands, carried out. One thread has it.
pub(crate) trait Drive: Send {
    fn shape(&self) -> Shape;

    /// What is told of it: one line.
    fn title(&self) -> String;

    /// What becomes readable when a command has ended.
    fn wake(&self) -> Option<BorrowedFd<'_>>;

    /// Takes a command, whose bytes the core has.
    fn start(&mut self, core: &mut NodeCore, command: Command);

    /// Begins all commands that were taken.
    fn issue(&mut self, core: &mut NodeCore);

    /// Adds what has ended by now. Bytes that were read are where the core wants them by then.
    fn take_ended(&mut self, core: &mut NodeCore, ends: &mut Ends);

    /// Reads what a command left with the disk ([`Ended::Left`]).
    fn fetch(&self, offset: u64, into: &mut [u8]);
}

/// A disk for a [`Node`](super::Node).
pub struct Backend(pub(super) Box<dyn Drive>);

impl fmt::Debug for Backend {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Backend").field(&self.0.title()).finish()
    }
}

impl Backend {
    /// A disk in memory, whose zeros take no room; to measure what a node costs.
    ///
    /// *Errors:* a size that is no number of blocks of 512 bytes.
    pub fn memory(bytes: u64) -> io::Result<Backend> {
        if bytes == 0 || !bytes.is_multiple_of(u64::from(Memory::BLOCK)) {
            let message = format!("a disk of {bytes} bytes: it must be a multiple of {}", Memory::BLOCK);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Backend(Box::new(Memory::new(bytes))))
    }

    /// A volume of an emulated disk of this process.
    ///
    /// *Errors:* the system has nothing to be woken by.
    pub fn emulated(disk: DiskHandle, volume: u32) -> io::Result<Backend> {
        Ok(Backend(Box::new(Emulated::new(disk, volume)?)))
    }

    /// The disk.
    pub fn shape(&self) -> Shape {
        self.0.shape()
    }

    /// What it is, in one line.
    pub fn title(&self) -> String {
        self.0.title()
    }
}
