//! The requests that an elevator holds, waiting or at the device, by number.

use headstack_model::{Instant, Request};
use slab::Slab;

/// A request in an elevator. Merged requests are one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) request: Request,
    pub(super) source: u32,
    pub(super) urgent: bool,
    pub(super) idle: bool,
    pub(super) limit: u8,
    pub(super) sync: bool,
    /// When the oldest of the requests merged into it arrived.
    pub(super) added: Instant,
    /// Its rank in the order of arrival: the lowest of the requests merged into it.
    pub(super) turn: u64,
}

impl Entry {
    pub(super) fn lbn(&self) -> u64 {
        self.request.lbn.0
    }

    pub(super) fn end(&self) -> u64 {
        self.request.end().0
    }
}

/// Entries by number. A number is free again once its request is done.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    entries: Slab<Entry>,
    turns: u64,
}

impl Pool {
    /// Adds an entry, as the youngest.
    pub(super) fn insert(&mut self, entry: Entry) -> u32 {
        self.turns += 1;
        self.entries.insert(Entry { turn: self.turns - 1, ..entry }) as u32
    }

    pub(super) fn get(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Entry {
        &mut self.entries[id as usize]
    }

    pub(super) fn release(&mut self, id: u32) {
        self.entries.remove(id as usize);
    }
}
