//! noop: first in, first out. The host only merges.
//!
//! *Source:* Linux 2.6 `noop-iosched` (the behaviour).

use headstack_model::Instant;

use super::pool::{Entry, Pool};
use super::sorted::Sorted;
use super::{Listed, Scheduler, Tuning};

pub(super) const LISTED: Listed = Listed {
    name: "noop",
    alias: Some("none"),
    summary: "First in, first out, with merging",
    build: |_: &Tuning| Box::<Noop>::default(),
};

#[derive(Debug, Default)]
pub(super) struct Noop {
    fifo: Sorted,
}

impl Scheduler for Noop {
    fn add(&mut self, _now: Instant, id: u32, pool: &Pool) {
        self.fifo.insert(pool.get(id).turn, id);
    }

    fn change(&mut self, id: u32, before: &Entry, pool: &Pool) {
        self.fifo.remove(before.turn, id);
        self.fifo.insert(pool.get(id).turn, id);
    }

    fn remove(&mut self, id: u32, pool: &Pool) {
        self.fifo.remove(pool.get(id).turn, id);
    }

    fn dispatch(&mut self, _now: Instant, pool: &Pool) -> Option<u32> {
        let id = self.fifo.first()?;
        self.remove(id, pool);
        Some(id)
    }
}
