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

/// A table of requests. A handle is a request's number in its upper half, its place in its lower.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Slab<(u32, Pending)>,
    /// The next request's number. It comes round after four thousand million, when its place is taken by others.
    number: u32,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Keeps a request and names it.
    pub(super) fn insert(&mut self, pending: Pending) -> u64 {
        let number = self.number;
        self.number = number.wrapping_add(1);
        u64::from(number) << 32 | self.slots.insert((number, pending)) as u64
    }

    /// Gives a request back. One that was not asked for, or was answered before, is our own mistake.
    pub(super) fn remove(&mut self, handle: u64) -> Pending {
        let place = (handle & u64::from(u32::MAX)) as usize;
        let found = self.slots.try_remove(place).filter(|(number, _)| u64::from(*number) == handle >> 32);
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
    fn is_each_request_found_by_its_own_handle() {
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
    fn is_a_second_answer_noticed() {
        let mut slots = Slots::default();
        let handle = slots.insert(pending(1));
        slots.remove(handle);
        slots.remove(handle);
    }
}
