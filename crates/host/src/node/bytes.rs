//! Page-aligned memory for device transfers.

use crate::BlockError;
use memmap2::{MmapMut, MmapOptions, UncheckedAdvice};
use std::io;

/// Sizes that are a power of two pages have free lists, up to 1 MiB. Larger buffers have their own size, and are not kept.
const CLASSES: usize = 9;

/// Bytes that are moved from one buffer to another before the memory of the first is freed.
const STEP: usize = 1 << 20;

const PAGE: usize = 4096;

/// Page-aligned memory, zero until it is written.
pub(super) fn memory(bytes: u64) -> io::Result<MmapMut> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    MmapOptions::new().len(bytes.max(1).next_multiple_of(PAGE)).map_anon()
}

/// As [`memory`], for a request.
///
/// *Errors:* the system has no memory left.
pub(super) fn try_pages(bytes: usize) -> Result<MmapMut, BlockError> {
    memory(bytes as u64).map_err(|_| BlockError::NoMemory)
}

/// As [`memory`], for a thread or before the first request.
pub(crate) fn pages(bytes: usize) -> MmapMut {
    memory(bytes as u64).expect("the system has memory at the start")
}

/// Buffers for requests, some of them kept for reuse.
#[derive(Debug)]
pub(super) struct Pool {
    free: [Vec<MmapMut>; CLASSES],
    kept: usize,
    most: usize,
}

impl Pool {
    pub(super) fn new(most: usize) -> Pool {
        Pool { free: Default::default(), kept: 0, most }
    }

    /// A buffer of at least this size, with undefined contents.
    ///
    /// *Errors:* the system has no memory left.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<MmapMut, BlockError> {
        let class = class(bytes);
        let Some(free) = self.free.get_mut(class) else { return try_pages(bytes) };
        let Some(room) = free.pop() else { return try_pages(PAGE << class) };
        self.kept -= room.len();
        Ok(room)
    }

    pub(super) fn give(&mut self, room: MmapMut) {
        if let Some(free) = self.free.get_mut(class(room.len()))
            && self.kept + room.len() <= self.most
        {
            self.kept += room.len();
            free.push(room);
        }
    }
}

/// Moves the first bytes of a buffer. The memory of a large one is freed on the way, so that the bytes are not held twice.
pub(super) fn drain(buffer: &mut MmapMut, into: &mut [u8]) {
    for (number, part) in into.chunks_mut(STEP).enumerate() {
        let from = number * STEP;
        part.copy_from_slice(&buffer[from..from + part.len()]);
        if part.len() == STEP && buffer.len() > STEP {
            // SAFETY: the mapping is private and anonymous, and this has the only reference to it: its pages are zero afterwards.
            // If it fails, the memory is freed with the buffer.
            let _ = unsafe { buffer.unchecked_advise_range(UncheckedAdvice::DontNeed, from, STEP) };
        }
    }
}

/// Moves bytes to the beginning of a buffer; the memory of many is freed on the way, from the end.
pub(super) fn refill(buffer: &mut [u8], mut data: Vec<u8>) {
    while !data.is_empty() {
        let from = (data.len() - 1) / STEP * STEP;
        buffer[from..data.len()].copy_from_slice(&data[from..]);
        data.truncate(from);
        data.shrink_to_fit();
    }
}

fn class(bytes: usize) -> usize {
    bytes.div_ceil(PAGE).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_up_to_the_allowed_total() {
        let mut pool = Pool::new(24 << 10);
        let mut allocate = |bytes| pool.allocate(bytes).expect("there is memory");
        let (first, second) = (allocate(5000), allocate(16 << 10));
        assert_eq!((first.len(), second.len()), (8192, 16 << 10));
        assert_eq!(first.as_ptr() as usize % PAGE, 0);
        let place = second.as_ptr();
        pool.give(first);
        pool.give(second);
        pool.give(pages(4096));
        assert_eq!(pool.kept, 24 << 10, "the last is returned to the system");
        assert_eq!(pool.allocate(12 << 10).expect("there is memory").as_ptr(), place);
        assert_eq!((pool.kept, pool.allocate(1).expect("there is memory").len()), (8192, 4096));
    }

    #[test]
    fn large_buffer_has_its_own_size_and_is_not_kept() {
        let mut pool = Pool::new(1 << 30);
        let large = pool.allocate((1 << 20) + 1).expect("there is memory");
        assert_eq!(large.len(), (1 << 20) + PAGE);
        pool.give(large);
        assert_eq!(pool.kept, 0);
        assert_eq!(pool.allocate(usize::MAX / 2).err(), Some(BlockError::NoMemory));
    }

    #[test]
    fn bytes_of_a_large_buffer_move_to_another() {
        let data: Vec<u8> = (0..(5 << 19) + 77).map(|at: usize| (at / 3) as u8).collect();
        let mut buffer = pages(data.len());
        refill(&mut buffer, data.clone());
        let mut into = vec![0; data.len()];
        drain(&mut buffer, &mut into);
        assert!(into == data);
        assert!(buffer[..2 * STEP].iter().all(|byte| *byte == 0), "its memory is free");
    }
}
