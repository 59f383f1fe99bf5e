//! The bytes of requests and commands.

use super::{Content, NodeCore, NodeRequest, ReadData};
use crate::BlockError;
use crate::node::bytes::{drain, refill};
use headstack_streams::streams::{Command, TransferBuffer};
use memmap2::MmapMut;

impl<T> NodeCore<T> {
    /// Copies the bytes of a read; returns false, without a copy, if they are still on the disk.
    pub fn fill(&self, data: &ReadData, into: &mut [u8]) -> bool {
        match data {
            ReadData::Left => return false,
            ReadData::Buffer(buffer) => into.copy_from_slice(&buffer[..into.len()]),
            ReadData::Staged(pieces) => {
                let mut filled = 0;
                for piece in pieces.iter() {
                    let (at, bytes) = (piece.at as usize, piece.bytes as usize);
                    into[filled..filled + bytes].copy_from_slice(&self.memory[at..at + bytes]);
                    filled += bytes;
                }
                assert_eq!(filled, into.len(), "all of a read is staged");
            }
        }
        true
    }

    /// As [`NodeCore::fill`]; frees the memory of a large read as it is copied.
    pub(crate) fn move_out(&self, data: &mut ReadData, into: &mut [u8]) -> bool {
        match data {
            ReadData::Buffer(buffer) => {
                drain(buffer, into);
                true
            }
            other => self.fill(other, into),
        }
    }

    /// Allocates what [`NodeCore::buffer`] and [`NodeCore::aligned_data`] need for a command.
    ///
    /// *Errors:* the system has no memory left.
    pub fn prepare(&mut self, command: &Command) -> Result<(), BlockError> {
        match request_part(command) {
            Some((number, _)) => self.buffer_of(number as usize).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The bytes of a write, which leave the core if no other command can need them.
    ///
    /// *Errors:* the system has no memory left for a copy.
    pub(crate) fn take_data(&mut self, command: &Command) -> Result<Vec<u8>, BlockError> {
        if self.stack.is_empty()
            && let TransferBuffer::Request(number) = command.place
            && let NodeRequest { content: Content::Written(data), .. } = &mut self.requests[number as usize]
            && data.len() as u64 == command.kind.run().1
        {
            return Ok(std::mem::take(data));
        }
        let data = self.data(command);
        let mut copy = Vec::new();
        copy.try_reserve_exact(data.len()).map_err(|_| BlockError::NoMemory)?;
        copy.extend_from_slice(data);
        Ok(copy)
    }

    /// Releases the memory of a read whose bytes were copied or are not needed.
    pub fn release(&mut self, data: ReadData) {
        match data {
            ReadData::Staged(pieces) => self.streams.release(&pieces),
            ReadData::Buffer(buffer) => self.pool.give(buffer),
            ReadData::Left => {}
        }
    }

    /// The destination of a read's bytes: whole pages, or a part of the stream memory that begins with one of its blocks.
    ///
    /// Panics if the system has no memory left and [`NodeCore::prepare`] was not called.
    pub fn buffer(&mut self, command: &Command) -> &mut [u8] {
        let bytes = command.kind.run().1 as usize;
        match (command.place, request_part(command)) {
            (_, Some((number, offset))) => {
                let (buffer, first) = self.buffer_of(number as usize).expect("it was prepared");
                &mut buffer[(offset - first) as usize..][..bytes]
            }
            (TransferBuffer::Memory(at), _) => &mut self.memory[at as usize..][..bytes],
            (TransferBuffer::Layer { buffer, from }, _) => {
                &mut self.stack.buffer(buffer)[from as usize..][..bytes]
            }
            _ => panic!("a flush has no bytes"),
        }
    }

    /// The bytes of a write.
    pub fn data(&self, command: &Command) -> &[u8] {
        let bytes = command.kind.run().1 as usize;
        match (command.place, request_part(command)) {
            (_, Some((number, offset))) => {
                let request = &self.requests[number as usize];
                &request.written_data()[(offset - request.kind.run().0) as usize..][..bytes]
            }
            (TransferBuffer::Memory(at), _) => &self.memory[at as usize..][..bytes],
            (TransferBuffer::Layer { buffer, from }, _) => {
                &self.stack.bytes(buffer)[from as usize..][..bytes]
            }
            _ => panic!("a flush has no bytes"),
        }
    }

    /// The bytes of a write in memory that a device can transfer from, aligned as [`NodeCore::buffer`]; it panics alike.
    pub fn aligned_data(&mut self, command: &Command) -> &[u8] {
        if let Some((number, _)) = request_part(command) {
            self.buffer_of(number as usize).expect("it was prepared");
        }
        self.data(command)
    }

    /// The stream memory, for devices that register it.
    pub fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// A request's bytes in whole pages, and the offset of the first on the disk.
    ///
    /// *Errors:* the system has no memory left.
    fn buffer_of(&mut self, number: usize) -> Result<(&mut MmapMut, u64), BlockError> {
        let NodeRequest { kind, content, .. } = &mut self.requests[number];
        if !matches!(content, Content::Buffer(_)) {
            let mut buffer = self.pool.allocate(kind.transferred_bytes() as usize)?;
            if let Content::Written(data) = content {
                refill(&mut buffer, std::mem::take(data));
            }
            *content = Content::Buffer(buffer);
        }
        match content {
            Content::Buffer(buffer) => Ok((buffer, kind.run().0)),
            _ => unreachable!("it was set above"),
        }
    }
}

/// The number of the request whose buffer has a command's bytes, and the first byte's offset on the disk as clients see it.
fn request_part(command: &Command) -> Option<(u64, u64)> {
    match command.place {
        TransferBuffer::Request(number) => Some((number, command.kind.run().0)),
        TransferBuffer::Part { ticket, offset } => Some((ticket, offset)),
        _ => None,
    }
}
