//! Detects streams by bitmaps of the recently requested blocks of each region, and by the order of the requests.
//!
//! By the published rule a region is a stream once enough of its bits are set within a time. Many random requests to a small area
//! meet that rule, too, so here requests must also be in order. They are if the request continues the last one of the same client, if
//! several requests of the region were near the one before and hardly any were not, or if the request ends a long chain. Regions are
//! kept in a hash table of fixed size, from which a new region evicts the least recently requested one. [`reorder`](super::reorder)
//! detects requests out of order, [`strides`](super::strides) those with gaps.
//!
//! *Source:* Panagiotakis et al., 4.1: bitmaps on demand around touched blocks, hashed. The table and the order are ours.

use super::chains::{Chains, Links};
use super::config::Classifier as Spec;
use headstack_model::{Instant, Nanos};

const WAYS: usize = 4;

/// Blocks that a client may leave out between two requests that follow each other.
const GAP_BLOCKS: u64 = 8;

/// Requests that each continue the one before: of random requests to four places, one in 4⁸ begins such a chain.
const LONG: u32 = 8;

/// Least number of requests of a region, each near the one before, that count as in order.
const DENSE: u32 = 6;

/// A request is small if at least this number fill a region: of longer ones there are too few in a region to judge their order.
const SMALL: u64 = 8;

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To higher places.
    Forward,
    /// To lower ones.
    Backward,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    number: u64,
    bits: u128,
    /// Requests that set any bits: a single request is no stream, however long.
    requests: u32,
    /// Requests near the one before, less those that were not.
    runs: u32,
    /// Requests near the one before, and those that were not; and the first and last block of the latest.
    near: u32,
    strays: u32,
    latest: (u64, u64),
    /// When the first bit was set, and when the region was last requested.
    since: Instant,
    touched: Instant,
}

#[derive(Debug)]
pub(super) struct Classifier {
    block_bytes: u64,
    region_blocks: u64,
    threshold: u32,
    window: Nanos,
    /// Whether a region is a stream by its bits and requests near each other alone.
    is_as_published: bool,
    chains: Chains,
    sets: Vec<[Option<Region>; WAYS]>,
}

impl Classifier {
    pub(super) fn new(spec: &Spec, is_as_published: bool) -> Classifier {
        let sets = (spec.regions as usize / WAYS).next_power_of_two();
        Classifier {
            block_bytes: spec.block_bytes,
            region_blocks: spec.region_blocks.into(),
            threshold: spec.threshold,
            window: Nanos::from_ms(spec.window_ms),
            is_as_published,
            chains: Chains::new(GAP_BLOCKS * spec.block_bytes),
            sets: vec![[None; WAYS]; sets],
        }
    }

    /// Records a request. Returns the direction of the stream that it belongs to, if there is one.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        client: u64,
        offset: u64,
        bytes: u64,
    ) -> Option<Direction> {
        let links = self.chains.observe(client, offset, bytes);
        let (first, last) = (offset / self.block_bytes, (offset + bytes - 1) / self.block_bytes);
        // A request over more than a region says all in its last.
        let from = first.max(last / self.region_blocks * self.region_blocks);
        let (number, low, high) =
            (last / self.region_blocks, from % self.region_blocks, last % self.region_blocks);
        let (window, threshold) = (self.window, self.threshold);
        let region = self.region(now, number);
        if now.since(region.since) > window {
            (region.bits, region.requests, region.since) = (0, 0, now);
            (region.near, region.strays) = (0, 0);
        }
        let before = region.bits;
        region.bits |= ones(low, high);
        let is_near = region.requests > 0 && near(region.latest, (low, high));
        region.runs = if is_near { region.runs + 1 } else { region.runs.saturating_sub(1) };
        region.near += u32::from(is_near);
        region.strays += u32::from(region.requests > 0 && !is_near);
        region.requests += u32::from(region.bits != before);
        (region.touched, region.latest) = (now, (low, high));
        let own = Count::from_region(region);
        // Requests near a border lie in two regions.
        let neighbour = match from > first {
            true => first.checked_sub(1).map(|before| before / self.region_blocks),
            false if low < self.region_blocks / 2 => number.checked_sub(1),
            false => Some(number + 1),
        };
        let neighbour =
            neighbour.filter(|_| !own.is_stream(threshold)).map(|neighbour| self.count(now, neighbour));
        let both = own.with(neighbour.unwrap_or_default());
        let is_new = before & ones(low, high) == 0;
        let is_small = (high - low + 1) * SMALL <= self.region_blocks;
        let is_stream = both.is_stream(threshold)
            && (self.is_as_published || links.own >= LONG || is_new && both.is_in_order(links, is_small));
        is_stream.then(|| direction(before, low, high))
    }

    fn count(&self, now: Instant, number: u64) -> Count {
        let found = self.sets[self.set(number)].iter().flatten().find(|region| region.number == number);
        let recent = found.filter(|region| now.since(region.touched) <= self.window);
        recent.map_or(Count::default(), Count::from_region)
    }

    fn set(&self, number: u64) -> usize {
        // Fibonacci hashing: neighbours lie far apart.
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.sets.len() - 1)
    }

    fn region(&mut self, now: Instant, number: u64) -> &mut Region {
        let set = self.set(number);
        let set = &mut self.sets[set];
        let is_it = |region: &Option<Region>| region.is_some_and(|region| region.number == number);
        let way = set.iter().position(is_it).unwrap_or_else(|| {
            let oldest = (0..WAYS).min_by_key(|way| set[*way].map(|region| region.touched));
            let way = oldest.expect("there are ways");
            set[way] = None;
            way
        });
        set[way].get_or_insert(Region {
            number,
            bits: 0,
            requests: 0,
            runs: 0,
            near: 0,
            strays: 0,
            latest: (0, 0),
            since: now,
            touched: now,
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    blocks: u32,
    requests: u32,
    runs: u32,
    near: u32,
    strays: u32,
}

impl Count {
    fn from_region(region: &Region) -> Count {
        let Region { bits, requests, runs, near, strays, .. } = *region;
        Count { blocks: bits.count_ones(), requests, runs, near, strays }
    }

    /// Adds the evidence of the neighbouring region: a stream that has just crossed the border was one before.
    fn with(self, neighbour: Count) -> Count {
        let crossing = u32::from(neighbour.requests > 0);
        Count {
            blocks: self.blocks + neighbour.blocks,
            requests: self.requests + neighbour.requests,
            runs: self.runs.max(neighbour.runs) + crossing,
            near: self.near + neighbour.near + crossing,
            strays: self.strays + neighbour.strays,
        }
    }

    fn is_stream(self, threshold: u32) -> bool {
        let least = self.requests.min(8) / 2;
        self.blocks >= threshold && self.requests > 1 && self.runs >= least
    }

    /// Whether requests follow each other and hardly any do not. Random requests to a small area are near each other by chance, but also far
    /// from each other. It is enough that a small request continues the last one of the same client.
    fn is_in_order(self, links: Links, is_small: bool) -> bool {
        let is_next = is_small && links.own > 0 && self.strays <= self.near / 4;
        let is_dense = is_small && self.near >= DENSE && self.strays <= self.near / 8;
        is_next || is_dense || links.any >= LONG
    }
}

/// Whether a request begins about where the one before ended, or ends about where that began.
fn near(before: (u64, u64), now: (u64, u64)) -> bool {
    let tolerance = 8.max(now.1 - now.0 + 1);
    now.0.abs_diff(before.1 + 1) <= tolerance || before.0.abs_diff(now.1 + 1) <= tolerance
}

/// Bits from `low` to `high`.
fn ones(low: u64, high: u64) -> u128 {
    (u128::MAX >> (127 - high)) & (u128::MAX << low)
}

/// The direction: backward if the blocks just above were requested before and those just below were not.
fn direction(before: u128, low: u64, high: u64) -> Direction {
    let above = high < 127 && before & (1 << (high + 1)) != 0;
    let below = low > 0 && before & (1 << (low - 1)) != 0;
    if above && !below { Direction::Backward } else { Direction::Forward }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Classifier {
        Classifier::new(&Spec::default(), false)
    }

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn stream_is_found_after_the_configured_block_count() {
        let mut watch = watch();
        let found: Vec<bool> =
            (0..20).map(|turn| watch.observe(ms(turn), 1, turn * 4096, 4096).is_some()).collect();
        assert_eq!(found.iter().position(|found| *found), Some(15));
        assert!(found[15..].iter().all(|found| *found));
    }

    #[test]
    fn block_order_is_ignored_and_repeats_do_not_count() {
        let mut watch = watch();
        assert!((0..100).all(|turn| watch.observe(ms(turn), 1, 8 * 4096, 4096).is_none()));
        let order = [5, 3, 9, 1, 0, 2, 4, 7, 6, 10, 12, 11, 13, 15, 14];
        let found = order.map(|block| watch.observe(ms(200), 1, block * 4096, 4096).is_some());
        assert_eq!(found.iter().position(|found| *found), Some(14));
    }

    #[test]
    fn expired_requests_do_not_count() {
        let mut watch = watch();
        assert!((0..15).all(|turn| watch.observe(ms(turn), 1, turn * 4096, 4096).is_none()));
        assert_eq!(watch.observe(ms(20_001), 1, 15 * 4096, 4096), None);
    }

    #[test]
    fn backward_stream_is_found_with_its_direction() {
        let mut watch = watch();
        let found = (0..20).rev().filter_map(|turn| watch.observe(ms(1), 1, turn * 4096, 4096)).last();
        assert_eq!(found, Some(Direction::Backward));
    }

    #[test]
    fn stream_continues_across_the_border_of_a_region() {
        let mut watch = watch();
        let found = (118..140).filter(|turn| watch.observe(ms(1), 1, turn * 4096, 4096).is_some()).count();
        assert_eq!(found, 22 - 15, "ten before the border and five behind it, and then each");
    }

    #[test]
    fn published_rule_finds_a_stream_at_the_second_long_request() {
        let mut watch = Classifier::new(&Spec::default(), true);
        assert_eq!(watch.observe(ms(1), 1, 0, 1 << 20), None);
        assert_eq!(watch.observe(ms(1), 1, 1 << 20, 1 << 20), Some(Direction::Forward));
    }

    #[test]
    fn eight_continuations_of_long_requests_make_a_stream() {
        let mut watch = watch();
        let found = (0..12).map(|turn| watch.observe(ms(1), 1, turn << 20, 1 << 20).is_some());
        assert_eq!(found.collect::<Vec<_>>().iter().position(|found| *found), Some(8));
    }

    #[test]
    fn random_reads_of_a_small_area_are_rarely_a_stream() {
        for (megabytes, kib, most) in [(1, 16, 20), (1, 64, 20), (10, 64, 20), (10, 256, 20), (200, 64, 100)]
        {
            let (mut watch, mut random) = (watch(), 1_u64);
            let places = megabytes * 1024 / kib;
            let found = (0..20_000).filter(|turn| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let place = (random >> 33) % places;
                watch.observe(ms(turn * 5), turn % 4, (place * kib) << 10, kib << 10).is_some()
            });
            let found = found.count();
            assert!(found <= most, "{found} of 20,000 reads of {kib} KiB over {megabytes} MB");
        }
    }

    #[test]
    fn dense_random_access_is_rarely_a_stream() {
        let mut watch = watch();
        let places =
            (0..200_000u64).map(|turn| (turn * turn + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 46);
        let found = places.filter(|place| watch.observe(ms(1), 1, place * 4096, 4096).is_some()).count();
        assert!(found < 2000, "{found} of 200,000 over 1 GiB");
    }

    #[test]
    fn sparse_random_access_is_never_a_stream() {
        let mut watch = watch();
        let places = (0..100_000u64).map(|turn| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        let found =
            places.filter(|place| watch.observe(ms(1), 1, place / 4096 * 4096, 4096).is_some()).count();
        assert_eq!(found, 0);
    }
}
