//! Streams whose requests arrive out of order: each client's recent reads, as long as they fill a run of the disk without repetition.
//!
//! A client that reads a file from several threads, or whose requests take different routes, reads all of it, each part once, in an order
//! that departs from the file's by a bounded number of requests. Random reads of a region repeat themselves, or leave out a growing part
//! of it, before they look like that: among 64 random places out of 128, two are equal with a probability of all but 1 in 10⁷
//! (e^(-64²/(2·128))).

use super::clients::ByClient;

/// Reads that must fill a run.
const READS: usize = 64;

/// Parts of the run that may be missing, in reads.
const MISSING: u64 = 64;

/// A client's recent reads, all of one length.
#[derive(Clone, Debug, Default)]
struct Recent {
    bytes: u64,
    offsets: Vec<u64>,
}

impl Recent {
    /// Adds a read; returns whether it is a new part of the same run.
    fn insert(&mut self, offset: u64) -> bool {
        let Err(place) = self.offsets.binary_search(&offset) else { return false };
        self.offsets.insert(place, offset);
        let (first, last) = (self.offsets[0], self.offsets[self.offsets.len() - 1]);
        let parts = (last - first) / self.bytes + 1;
        (offset - first).is_multiple_of(self.bytes)
            && (last - first).is_multiple_of(self.bytes)
            && parts - self.offsets.len() as u64 <= MISSING
    }
}

/// Watches reads that continue no stream.
#[derive(Debug)]
pub(super) struct Reorder {
    clients: ByClient<Recent>,
}

impl Reorder {
    pub(super) fn new() -> Reorder {
        Reorder { clients: ByClient::new() }
    }

    /// Records a read. Returns the end of the run that the client's recent reads fill, once there is one.
    pub(super) fn observe(&mut self, client: u64, offset: u64, bytes: u64) -> Option<u64> {
        let (recent, is_own) = self.clients.claim(client);
        let continues = is_own && recent.bytes == bytes && recent.insert(offset);
        if !continues {
            recent.bytes = bytes;
            recent.offsets.clear();
            recent.offsets.push(offset);
        }
        if recent.offsets.len() < READS {
            return None;
        }
        let end = recent.offsets.pop().expect("64 reads were counted") + bytes;
        recent.offsets.clear();
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clients::CLIENTS;
    use super::*;

    /// A permutation of 0 to 63 that is far from ascending.
    fn scattered(turn: u64) -> u64 {
        turn * 37 % 64
    }

    #[test]
    fn reads_that_fill_a_run_in_any_order_are_a_stream() {
        let mut reorder = Reorder::new();
        let found: Vec<_> =
            (0..64).map(|turn| reorder.observe(7, (100 + scattered(turn)) << 16, 1 << 16)).collect();
        assert!(found[..63].iter().all(Option::is_none));
        assert_eq!(found[63], Some(164 << 16));
    }

    #[test]
    fn repeated_or_scattered_reads_are_no_stream() {
        let mut reorder = Reorder::new();
        let places = |turn: u64| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        for region in [40, 128, 100_000] {
            let found = (0..100_000)
                .any(|turn| reorder.observe(1, (places(turn * turn) % region) << 16, 1 << 16).is_some());
            assert!(!found, "{region} places");
        }
    }

    #[test]
    fn clients_that_share_a_slot_do_not_make_a_stream_together() {
        let mut reorder = Reorder::new();
        let found =
            (0..64).any(|turn| reorder.observe(turn % 2 * CLIENTS as u64, turn << 16, 1 << 16).is_some());
        assert!(!found);
    }
}
