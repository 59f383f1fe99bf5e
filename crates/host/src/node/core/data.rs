//! The bytes of requests and commands.

use super::{Content, NodeCore, NodeRequest, ReadData};
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

    /// Releases the memory of a read whose bytes were copied or are not needed.
    pub fn release(&mut self, data: ReadData) {
        match data {
            ReadData::Staged(pieces) => self.streams.release(&pieces),
            ReadData::Buffer(buffer) => self.pool.give(buffer),
            ReadData::Left => {}
        }
    }

    /// The destination of a read's bytes: whole pages, or a part of the stream memory that begins with one of its blocks.
    pub fn buffer(&mut self, command: &Command) -> &mut [u8] {
        match self.part_of_request(command) {
            Some(part) => self.request_buffer(&part),
            None => self.rearranger.as_mut().expect("it has this command").own_buffer(command.id),
        }
    }

    /// The bytes of a write.
    pub fn data(&self, command: &Command) -> &[u8] {
        match self.part_of_request(command) {
            Some(part) => self.request_data(&part),
            None => self.rearranger.as_ref().expect("it has this command").own_bytes(command.id),
        }
    }

    /// The bytes of a write in memory that a device can transfer from, aligned as [`NodeCore::buffer`].
    pub fn aligned_data(&mut self, command: &Command) -> &[u8] {
        if let Some(Command { place: TransferBuffer::Request(number), .. }) = self.part_of_request(command) {
            self.buffer_of(number as usize);
        }
        self.data(command)
    }

    /// The command of the scheduler, or the part of one, that a command of the disk carries out. `None` if it is the rearranger's own.
    #[inline]
    fn part_of_request(&self, command: &Command) -> Option<Command> {
        match &self.rearranger {
            Some(rearranger) => rearranger.part_of_request(command.id),
            None => Some(*command),
        }
    }

    fn request_buffer(&mut self, command: &Command) -> &mut [u8] {
        let (offset, bytes) = command.kind.run();
        match command.place {
            TransferBuffer::Memory(at) => &mut self.memory[at as usize..][..bytes as usize],
            TransferBuffer::Request(number) => {
                let (buffer, first) = self.buffer_of(number as usize);
                &mut buffer[(offset - first) as usize..][..bytes as usize]
            }
            TransferBuffer::None => panic!("a flush has no bytes"),
        }
    }

    fn request_data(&self, command: &Command) -> &[u8] {
        let (offset, bytes) = command.kind.run();
        match command.place {
            TransferBuffer::Memory(at) => &self.memory[at as usize..][..bytes as usize],
            TransferBuffer::Request(number) => {
                let request = &self.requests[number as usize];
                &request.written_data()[(offset - request.kind.run().0) as usize..][..bytes as usize]
            }
            TransferBuffer::None => panic!("a flush has no bytes"),
        }
    }

    /// The stream memory, for devices that register it.
    pub fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// A request's bytes in whole pages, and the offset of the first on the disk.
    fn buffer_of(&mut self, number: usize) -> (&mut MmapMut, u64) {
        let NodeRequest { kind, content, .. } = &mut self.requests[number];
        if !matches!(content, Content::Buffer(_)) {
            let mut buffer = self.pool.allocate(kind.transferred_bytes() as usize);
            if let Content::Written(data) = content {
                buffer[..data.len()].copy_from_slice(data);
            }
            *content = Content::Buffer(buffer);
        }
        match content {
            Content::Buffer(buffer) => (buffer, kind.run().0),
            _ => unreachable!("it was set above"),
        }
    }
}
