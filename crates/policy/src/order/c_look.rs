//! C-LOOK: upward by block number from where the last access ended, then again from the lowest.
//!
//! It knows block numbers only, as a host does; where these do not follow cylinders its sweep does not either.

use super::{AccessCost, BuiltIn, Entry, Knowledge};
use crate::queue::QueueView;

pub(super) const ENTRY: Entry = Entry {
    name: "c-look",
    summary: "Upward by block number from the last access, then again from the lowest",
    knowledge: Knowledge::Lbn,
    order: BuiltIn::CLook(CLook),
};

/// One way by block number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CLook;

impl CLook {
    pub(super) fn pick<C: AccessCost + ?Sized>(&self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        let from = cost.last_lbn();
        // The wrapping distance puts blocks at and after `from` first and the lower ones behind them, both ascending.
        let ahead = |index: &usize| queue.slots[*index].request.lbn.0.wrapping_sub(from.0);
        (0..queue.slots.len()).min_by_key(ahead)
    }
}
