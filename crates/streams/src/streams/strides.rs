//! Strided streams, whose equal gaps are too wide for the bitmaps. For each client they are found from its last request and that
//! request's distance from the one before.
//!
//! Several such streams over one connection are not detected.

use super::classifier::Direction;
use super::clients::ByClient;
use super::stream::NO_STREAM;

/// Equal distances after which there is a stream: of random requests to four places, one in 4⁴ has as many.
const ENOUGH: u8 = 5;

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    offset: u64,
    bytes: u64,
    distance: i64,
    times: u8,
}

#[derive(Debug)]
pub(super) struct Strides {
    clients: ByClient<Last>,
    /// By client, the stream that was found last.
    streams: ByClient<u32>,
}

impl Strides {
    pub(super) fn new() -> Strides {
        Strides { clients: ByClient::new(), streams: ByClient::new() }
    }

    /// Records a request. Returns direction and distance if the client's last requests had equal distances.
    pub(super) fn observe(&mut self, client: u64, offset: u64, bytes: u64) -> Option<(Direction, u64)> {
        let before = self.clients.get(client).copied().filter(|last| last.bytes == bytes);
        let distance = before.map_or(0, |last| offset as i64 - last.offset as i64);
        let goes_on = before.is_some_and(|last| last.distance == distance) && distance.unsigned_abs() > bytes;
        let times = if goes_on { before.map_or(0, |last| last.times) + 1 } else { 1 };
        *self.clients.claim(client).0 = Last { offset, bytes, distance, times };
        let direction = if distance < 0 { Direction::Backward } else { Direction::Forward };
        (times >= ENOUGH).then_some((direction, distance.unsigned_abs()))
    }

    /// Records that a stream was found, and restarts the count of its client.
    pub(super) fn found(&mut self, client: u64, stream: u32) {
        self.clients.forget(client);
        *self.streams.claim(client).0 = stream;
    }

    /// The stream found last for a client. Its number may belong to another stream by now.
    pub(super) fn stream_of(&self, client: u64) -> u32 {
        self.streams.get(client).copied().unwrap_or(NO_STREAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_equal_distances_are_a_stride() {
        let mut strides = Strides::new();
        let found: Vec<_> = (0..7).map(|turn| strides.observe(1, turn << 20, 4096)).collect();
        assert_eq!(found[..5], [None; 5]);
        assert_eq!(found[5..], [Some((Direction::Forward, 1 << 20)); 2]);
        let found = (0..7).rev().filter_map(|turn| strides.observe(2, turn << 20, 4096)).last();
        assert_eq!(found, Some((Direction::Backward, 1 << 20)));
    }

    #[test]
    fn contiguous_or_irregular_reads_are_no_stride() {
        let mut strides = Strides::new();
        assert!((0..9).all(|turn| strides.observe(1, turn * 4096, 4096).is_none()));
        assert!((0..9).all(|turn| strides.observe(1, (turn * turn) << 20, 4096).is_none()));
        assert!((0..9).all(|turn| strides.observe(turn, turn << 20, 4096).is_none()));
    }
}
