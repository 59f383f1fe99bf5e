//! Requests that are with the disk, by handles that are never given out twice.

use slab::Slab;

use super::request::Shape;

/// What is kept of a request until it is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) weight: usize,
    pub(super) shape: Shape,
}

/// Lower bits of a handle, which tell the request's place; the others are its number.
const PLACE_BITS: u32 = 24;

/// A table of requests.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Slab<(u64, Pending)>,
    /// The next request's number.
    number: u64,
}

impl Slots {
    /// Most requests that can be under way.
    pub(super) const MOST: usize = 1 << PLACE_BITS;

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Keeps a request and names it.
    pub(super) fn insert(&mut self, pending: Pending) -> u64 {
        let handle = self.number << PLACE_BITS | self.slots.vacant_key() as u64;
        self.slots.insert((handle, pending));
        self.number += 1;
        handle
    }

    /// Gives a request back. One that was not asked for, or was answered before, is our own mistake.
    pub(super) fn remove(&mut self, handle: u64) -> Pending {
        let place = handle as usize & (Slots::MOST - 1);
        let found = self.slots.try_remove(place).filter(|(kept, _)| *kept == handle);
        found.expect("a request is answered once, after it was asked for").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(cookie: u64) -> Pending {
        Pending { cookie, offset: 0, length: 0, weight: 0, shape: Shape::Plain }
    }

    #[test]
    fn every_request_is_found_by_its_own_handle() {
        let mut slots = Slots::default();
        let first = slots.insert(pending(1));
        let second = slots.insert(pending(2));
        assert_eq!(slots.remove(first).cookie, 1);
        let third = slots.insert(pending(3));
        assert!(third != first && third != second);
        assert_eq!((slots.remove(second).cookie, slots.remove(third).cookie, slots.len()), (2, 3, 0));
    }

    #[test]
    #[should_panic(expected = "answered once")]
    fn second_answer_to_a_request_panics() {
        let mut slots = Slots::default();
        let handle = slots.insert(pending(1));
        slots.remove(handle);
        slots.remove(handle);
    }
}
