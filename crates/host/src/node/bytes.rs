//! Page-aligned memory for device transfers.

use memmap2::{MmapMut, MmapOptions};
use std::io;

/// Sizes that are a power of two pages have free lists, up to 64 MiB.
const CLASSES: usize = 15;

const PAGE: usize = 4096;

/// Page-aligned memory, zero until it is written.
pub(super) fn memory(bytes: u64) -> io::Result<MmapMut> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    MmapOptions::new().len(bytes.max(1).next_multiple_of(PAGE)).map_anon()
}

/// As [`memory`], for a request or a thread.
pub(crate) fn pages(bytes: usize) -> MmapMut {
    memory(bytes as u64).expect("the system has memory for a request")
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
    pub(super) fn allocate(&mut self, bytes: usize) -> MmapMut {
        let class = class(bytes);
        match self.free.get_mut(class).and_then(Vec::pop) {
            Some(room) => {
                self.kept -= room.len();
                room
            }
            None => pages(PAGE << class),
        }
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

fn class(bytes: usize) -> usize {
    bytes.div_ceil(PAGE).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_up_to_the_allowed_total() {
        let mut pool = Pool::new(24 << 10);
        let (first, second) = (pool.allocate(5000), pool.allocate(16 << 10));
        assert_eq!((first.len(), second.len()), (8192, 16 << 10));
        assert_eq!(first.as_ptr() as usize % PAGE, 0);
        let place = second.as_ptr();
        pool.give(first);
        pool.give(second);
        pool.give(pages(4096));
        assert_eq!(pool.kept, 24 << 10, "the last is returned to the system");
        assert_eq!(pool.allocate(12 << 10).as_ptr(), place);
        assert_eq!((pool.kept, pool.allocate(1).len()), (8192, 4096));
    }
}
