//! Memory that a device can transfer to and from: in whole pages.

use memmap2::{MmapMut, MmapOptions};
use std::io;

/// A size in pages that is a power of two has a list of its own up to this one, 64 MiB.
const CLASSES: usize = 15;

const PAGE: usize = 4096;

/// Memory in whole pages, zero until it is written.
///
/// *Errors:* the system has not that much.
pub(super) fn memory(bytes: u64) -> io::Result<MmapMut> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    MmapOptions::new().len(bytes.max(1).next_multiple_of(PAGE)).map_anon()
}

/// The same of what a request or a thread needs.
pub(crate) fn pages(bytes: usize) -> MmapMut {
    memory(bytes as u64).expect("the system has memory for a request")
}

/// Memory for requests, of which some is kept for the next.
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

    /// Room for so many bytes at least, of no meaning yet.
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
        assert_eq!(pool.kept, 24 << 10, "the last is given back to the system");
        assert_eq!(pool.allocate(12 << 10).as_ptr(), place);
        assert_eq!((pool.kept, pool.allocate(1).len()), (8192, 4096));
    }
}
