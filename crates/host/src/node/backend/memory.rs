//! A disk in memory. Bytes never written, or trimmed in whole chunks, take none.

use super::{Drive, Ends};
use crate::node::handle::Core;
use crate::node::messages::{Ended, Shape};
use crate::{BlockError, StatusExtent};
use headstack_streams::streams::{Command, RequestKind};
use memmap2::{Advice, MmapMut};
use std::io;
use std::os::fd::BorrowedFd;

/// Unit of allocation: a huge page, because most of the cost of random reads is the page lookup.
const CHUNK: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct Memory {
    bytes: u64,
    chunks: Vec<Option<MmapMut>>,
    ended: Ends,
}

impl Memory {
    pub(super) const BLOCK: u32 = 512;

    pub(super) fn new(bytes: u64) -> Memory {
        let chunks = usize::try_from(bytes.div_ceil(CHUNK as u64)).expect("memory is addressed");
        Memory { bytes, chunks: (0..chunks).map(|_| None).collect(), ended: Vec::new() }
    }

    /// *Errors:* the system has no memory left.
    fn write(&mut self, offset: u64, mut data: &[u8]) -> Result<(), BlockError> {
        for (number, from, bytes) in parts(offset, data.len() as u64) {
            if self.chunks[number].is_none() {
                self.chunks[number] = Some(zeros()?);
            }
            let chunk = self.chunks[number].as_mut().expect("it is there");
            let (part, rest) = data.split_at(bytes);
            chunk[from..from + bytes].copy_from_slice(part);
            data = rest;
        }
        Ok(())
    }

    fn clear(&mut self, offset: u64, bytes: u64) {
        for (number, from, bytes) in parts(offset, bytes) {
            match &mut self.chunks[number] {
                chunk if bytes == CHUNK => *chunk = None,
                Some(chunk) => chunk[from..from + bytes].fill(0),
                None => {}
            }
        }
    }

    fn block_status(&self, offset: u64, bytes: u64) -> Vec<StatusExtent> {
        let extent = |(number, _, bytes): (usize, usize, usize)| StatusExtent {
            bytes: bytes as u64,
            hole: self.chunks[number].is_none(),
        };
        parts(offset, bytes).map(extent).collect()
    }
}

/// A chunk of zeros.
fn zeros() -> Result<MmapMut, BlockError> {
    let chunk = MmapMut::map_anon(CHUNK).map_err(|_| BlockError::NoMemory)?;
    // Without huge pages it is slower.
    let _ = chunk.advise(Advice::HugePage);
    Ok(chunk)
}

/// The chunks of a run: number, first byte of the run in it, and bytes.
fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (number, from) = (at / CHUNK as u64, at % CHUNK as u64);
        let bytes = (end - at).min(CHUNK as u64 - from);
        at += bytes;
        (bytes > 0).then_some((number as usize, from as usize, bytes as usize))
    })
}

impl Drive for Memory {
    fn shape(&self) -> Shape {
        Shape { bytes: self.bytes, block_bytes: Memory::BLOCK, read_only: false }
    }

    fn title(&self) -> String {
        "memory".to_string()
    }

    fn read_at_start(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.fetch(offset, into);
        Ok(())
    }

    fn wake(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn start(&mut self, core: &mut Core, command: Command) {
        let ended = Ok(match command.kind {
            RequestKind::Read { .. } if command.is_for_request() => Ended::Left,
            RequestKind::Read { offset, .. } => {
                self.fetch(offset, core.buffer(&command));
                Ended::Done
            }
            RequestKind::Write { offset, .. } => {
                let written = self.write(offset, core.data(&command));
                return self.ended.push((command, written.map(|()| Ended::Done)));
            }
            RequestKind::Zero { offset, bytes, .. } | RequestKind::Trim { offset, bytes } => {
                self.clear(offset, bytes);
                Ended::Done
            }
            RequestKind::BlockStatus { offset, bytes } => {
                Ended::BlockStatus(self.block_status(offset, bytes))
            }
            RequestKind::Flush => Ended::Done,
        });
        self.ended.push((command, ended));
    }

    fn issue(&mut self, _core: &mut Core) {}

    fn take_ended(&mut self, _core: &mut Core, ends: &mut Ends) {
        ends.append(&mut self.ended);
    }

    fn fetch(&self, offset: u64, mut into: &mut [u8]) {
        for (number, from, bytes) in parts(offset, into.len() as u64) {
            let (part, rest) = into.split_at_mut(bytes);
            match &self.chunks[number] {
                Some(chunk) => part.copy_from_slice(&chunk[from..from + bytes]),
                None => part.fill(0),
            }
            into = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_across_chunks_are_kept_and_cleared() {
        let mut memory = Memory::new(8 << 20);
        let edge = (2 << 20) - 512;
        memory.write(edge, &[7; 1024]).expect("there is memory");
        let mut read = [1; 1536];
        memory.fetch(edge, &mut read);
        assert!(read[..1024] == [7; 1024] && read[1024..] == [0; 512]);
        let (data, hole) =
            (StatusExtent { bytes: 2 << 20, hole: false }, StatusExtent { bytes: 2 << 20, hole: true });
        assert_eq!(memory.block_status(0, 8 << 20), [data, data, hole, hole]);
        memory.clear(2 << 20, 6 << 20);
        memory.fetch(edge, &mut read);
        assert!(read[..512] == [7; 512] && read[512..] == [0; 1024]);
        assert_eq!(
            memory.block_status(512, (4 << 20) - 512),
            [StatusExtent { bytes: (2 << 20) - 512, ..data }, hole]
        );
    }
}
