//! The memory for requests of all connections together.
//!
//! A connection has [`Budget::OWN`] bytes itself; it takes more from the budget, and returns them as the client receives replies. If the
//! budget is used up, a connection reads no further request until others have returned enough, which its owner finds out by
//! polling. So all connections together hold at most the budget and, each, [`Budget::OWN`]; and small requests are served whatever others
//! hold. These are bytes of memory: the capacity of buffers, used or not.

use super::outbox::PIECE;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that each connection may hold outside the budget.
const OWN: usize = Budget::OWN;

/// Bytes of reads, writes and unsent replies that all connections may hold. A clone is the same budget.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Purse>);

#[derive(Debug, Default)]
struct Purse {
    bytes: usize,
    spent: AtomicUsize,
    /// Bytes returned since [`Budget::take_returned`].
    returned: AtomicUsize,
}

impl Budget {
    /// Bytes of the largest request, which must fit.
    pub const LEAST: usize = 32 << 20;

    /// Bytes that each connection may hold outside the budget: two pieces of replies. Its input has another buffer.
    pub const OWN: usize = 2 * PIECE;

    /// A budget of `bytes`, in addition to the own bytes of each connection.
    pub fn new(bytes: usize) -> Budget {
        Budget(Arc::new(Purse { bytes, ..Purse::default() }))
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Bytes in use.
    pub fn spent(&self) -> usize {
        self.0.spent.load(Ordering::Relaxed)
    }

    /// Whether connections have returned a sixteenth of it since the last call that said so: then memory of the heap may be free.
    pub fn take_returned(&self) -> bool {
        let much = |returned| (returned > self.0.bytes / 16).then_some(0);
        self.0.returned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, much).is_ok()
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        let left = |spent: usize| spent.checked_add(bytes).filter(|spent| *spent <= self.0.bytes);
        self.0.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    fn release(&self, bytes: usize) {
        let before = self.0.spent.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "only what was taken is returned");
        self.0.returned.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A connection's part of a budget, if there is one.
#[derive(Debug)]
pub(super) struct Share {
    budget: Option<Budget>,
    taken: usize,
}

impl Share {
    pub(super) fn new(budget: Option<Budget>) -> Share {
        Share { budget, taken: 0 }
    }

    pub(super) fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Whether a connection that holds `held` bytes may hold `more`; if so, takes them.
    pub(super) fn allows(&mut self, held: usize, more: usize) -> bool {
        let Some(budget) = &self.budget else { return true };
        let lacking = (held + more).saturating_sub(OWN + self.taken);
        let is_there = budget.try_reserve(lacking);
        self.taken += if is_there { lacking } else { 0 };
        is_there
    }

    /// Returns what a connection that holds `held` bytes no longer needs.
    pub(super) fn settle(&mut self, held: usize) {
        let Some(budget) = &self.budget else { return };
        let surplus = self.taken.saturating_sub(held.saturating_sub(OWN));
        if surplus > 0 {
            budget.release(surplus);
            self.taken -= surplus;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Connections that begin and end requests at random stay within the bound, and small requests always pass.
        #[test]
        fn shared_bound_holds_and_small_requests_always_pass(
            steps in prop::collection::vec((0..8usize, any::<bool>(), 1..600_000usize), 1..400),
        ) {
            const BYTES: usize = 1 << 20;
            let budget = Budget::new(BYTES);
            let mut shares: Vec<_> = (0..8).map(|_| (Share::new(Some(budget.clone())), Vec::new())).collect();
            for (which, asks, bytes) in steps {
                let (share, requests) = &mut shares[which];
                let held: usize = requests.iter().sum();
                if asks {
                    let allowed = share.allows(held, bytes);
                    prop_assert!(allowed || held + bytes > OWN, "what a connection has by itself is always there");
                    if allowed {
                        requests.push(bytes);
                    }
                } else if !requests.is_empty() {
                    requests.swap_remove(bytes % requests.len());
                    share.settle(requests.iter().sum());
                }
                prop_assert!(budget.spent() <= BYTES);
                let all: usize = shares.iter().flat_map(|(_, requests)| requests).sum();
                prop_assert!(all <= BYTES + 8 * OWN, "{all}");
            }
            drop(shares);
            prop_assert_eq!(budget.spent(), 0);
        }
    }
}
