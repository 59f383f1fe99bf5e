//! Waiting requests in both orders that matter: by block number and by arrival.

use headstack_model::{Instant, Nanos};

use super::pool::{Entry, Pool};
use super::sorted::Sorted;

#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    by_lbn: Sorted,
    fifo: Sorted,
}

/// Limit and cost of a backward seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackSeek {
    /// In blocks.
    pub(super) most: u64,
    /// Cost of a block backward, relative to one forward.
    pub(super) penalty: u64,
}

impl Run {
    pub(super) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    pub(super) fn insert(&mut self, id: u32, entry: &Entry) {
        self.by_lbn.insert(entry.lbn(), id);
        self.fifo.insert(entry.turn, id);
    }

    pub(super) fn remove(&mut self, id: u32, entry: &Entry) {
        self.by_lbn.remove(entry.lbn(), id);
        self.fifo.remove(entry.turn, id);
    }

    pub(super) fn change(&mut self, id: u32, before: &Entry, after: &Entry) {
        self.remove(id, before);
        self.insert(id, after);
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        self.fifo.first()
    }

    /// The oldest request if it came `expire` or more ago.
    pub(super) fn expired(&self, now: Instant, expire: Nanos, pool: &Pool) -> Option<u32> {
        self.oldest().filter(|id| pool.get(*id).added + expire <= now)
    }

    pub(super) fn at_or_after(&self, lbn: u64) -> Option<u32> {
        self.by_lbn.at_or_after(lbn)
    }

    /// The request nearest to `last`: ahead of it, or behind it within the limit of a backward seek; else the lowest.
    pub(super) fn nearest(&self, last: u64, back: BackSeek, pool: &Pool) -> Option<u32> {
        let ahead = self.at_or_after(last).map(|id| (pool.get(id).lbn() - last, id));
        let behind = self.by_lbn.before(last).and_then(|id| {
            let distance = last - pool.get(id).lbn();
            (distance <= back.most).then(|| (distance.saturating_mul(back.penalty), id))
        });
        let near = ahead.into_iter().chain(behind).min().map(|(_, id)| id);
        near.or_else(|| self.by_lbn.first())
    }
}
