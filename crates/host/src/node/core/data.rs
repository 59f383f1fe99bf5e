//! The bytes of requests and commands.

use super::{ActiveCommand, Content, NodeCore, NodeRequest, first};
use headstack_policy::streams::{RequestKind, TransferBuffer};
use memmap2::MmapMut;

impl NodeCore {
    /// Puts there what the read that was answered last has read; false where the bytes were left with the disk.
    pub fn fill(&self, into: &mut [u8]) -> bool {
        let (number, staged) = self.last.as_ref().expect("a read was answered last");
        let Some(pieces) = staged else {
            let Content::Room(room) = &self.requests[*number].content else { return false };
            into.copy_from_slice(&room[..into.len()]);
            return true;
        };
        let mut filled = 0;
        for piece in pieces.iter() {
            let (at, bytes) = (piece.at as usize, piece.bytes as usize);
            into[filled..filled + bytes].copy_from_slice(&self.memory[at..at + bytes]);
            filled += bytes;
        }
        assert_eq!(filled, into.len(), "all of a read is staged");
        true
    }

    /// The first byte and the length of what a command is for.
    pub fn run_of(&self, id: u32) -> (u64, u64) {
        let ActiveCommand { offset, bytes, .. } = self.active_command(id);
        (offset, bytes)
    }

    /// Whether a read's bytes go to a request and not to the stream memory.
    pub fn is_for_request(&self, id: u32) -> bool {
        matches!(self.active_command(id).place, TransferBuffer::Request(_))
    }

    /// Where the bytes of a read go: in whole pages, or from one of the stream memory's blocks on.
    pub fn room(&mut self, id: u32) -> &mut [u8] {
        let ActiveCommand { place, offset, bytes } = self.active_command(id);
        match place {
            TransferBuffer::Memory(at) => &mut self.memory[at as usize..][..bytes as usize],
            TransferBuffer::Request(number) => {
                let (room, first) = self.room_of(number as usize);
                &mut room[(offset - first) as usize..][..bytes as usize]
            }
            TransferBuffer::None => panic!("it has no bytes"),
        }
    }

    /// What a write writes, wherever it lies.
    pub fn data(&self, id: u32) -> &[u8] {
        let ActiveCommand { place, offset, bytes } = self.active_command(id);
        match place {
            TransferBuffer::Memory(at) => &self.memory[at as usize..][..bytes as usize],
            TransferBuffer::Request(number) => {
                let request = &self.requests[number as usize];
                &request.written_data()[(offset - first(request.kind)) as usize..][..bytes as usize]
            }
            TransferBuffer::None => panic!("it has no bytes"),
        }
    }

    /// What a write writes, where a device can transfer it from: as [`NodeCore::room`].
    pub fn aligned_data(&mut self, id: u32) -> &[u8] {
        if let TransferBuffer::Request(number) = self.active_command(id).place {
            self.room_of(number as usize);
        }
        self.data(id)
    }

    /// The stream memory, for devices that want to know it beforehand.
    pub fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// A request's bytes where a device can transfer them, and its first byte.
    fn room_of(&mut self, number: usize) -> (&mut MmapMut, u64) {
        let NodeRequest { kind, content, .. } = &mut self.requests[number];
        if !matches!(content, Content::Room(_)) {
            let (RequestKind::Read { bytes, .. } | RequestKind::Write { bytes, .. }) = *kind else {
                panic!("it has no bytes")
            };
            let mut room = self.pool.allocate(bytes as usize);
            if let Content::Written(data) = content {
                room[..data.len()].copy_from_slice(data);
            }
            *content = Content::Room(room);
        }
        match content {
            Content::Room(room) => (room, first(*kind)),
            _ => unreachable!("it was put there"),
        }
    }
}
