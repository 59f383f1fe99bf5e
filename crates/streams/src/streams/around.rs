//! Detects streams as published: by a bitmap of the blocks around a request that no other bitmap covers.
//!
//! A region covers the blocks [B - offset, B + offset] around the first block B of the request for which it was allocated. Each later
//! request that begins in it sets the bits of its blocks, as far as the region covers them. The region is a stream once enough bits are
//! set by at least two requests within a time, in whatever order; a block requested again sets no further bit. A region that was not
//! requested for that time is freed, and where there are too many the least recently requested one is.
//!
//! A request longer than `offset` blocks leaves the next one outside its region: such streams are not found. Where two regions
//! overlap, a request belongs to the one that begins last.
//!
//! *Source:* Panagiotakis, thesis, 4.1. How regions may overlap, and that a single long request is no stream, is not said there.

use super::classifier::Direction;
use super::config::Classifier as Spec;
use headstack_model::{Instant, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks around a request.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    bits: u128,
    /// Requests that set any bits.
    requests: u32,
    /// When the first bit was set, and when the region was last requested.
    since: Instant,
    touched: Instant,
}

/// The bitmaps in use, by the block with which each begins.
#[derive(Debug)]
pub(super) struct AroundRequests {
    block_bytes: u64,
    offset: u64,
    threshold: u32,
    window: Nanos,
    most: usize,
    /// A region's key is its first block plus `offset`: the block around which it lies, which may be less than `offset`.
    regions: BTreeMap<u64, Surroundings>,
    /// The same regions by when they were last requested.
    by_age: BTreeSet<(Instant, u64)>,
}

impl AroundRequests {
    pub(super) fn new(spec: &Spec) -> AroundRequests {
        AroundRequests {
            block_bytes: spec.block_bytes,
            offset: spec.offset(),
            threshold: spec.threshold,
            window: Nanos::from_ms(spec.window_ms),
            most: spec.regions as usize,
            regions: BTreeMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// Records a request. Returns the direction of the stream that it belongs to, if there is one.
    pub(super) fn observe(&mut self, now: Instant, offset: u64, bytes: u64) -> Option<Direction> {
        let (first, last) = (offset / self.block_bytes, (offset + bytes - 1) / self.block_bytes);
        self.free_old(now);
        let center = self.covering(first).unwrap_or_else(|| self.allocate(now, first));
        let (low, most) = (first + self.offset - center, 2 * self.offset);
        let high = (low + (last - first)).min(most);
        let region = self.regions.get_mut(&center).expect("it was found or allocated");
        if now.since(region.since) > self.window {
            (region.bits, region.requests, region.since) = (0, 0, now);
        }
        let before = region.bits;
        region.bits |= (u128::MAX >> (127 - high)) & (u128::MAX << low);
        region.requests += u32::from(region.bits != before);
        let (touched, found) =
            (region.touched, region.bits.count_ones() >= self.threshold && region.requests > 1);
        region.touched = now;
        self.by_age.remove(&(touched, center));
        self.by_age.insert((now, center));
        let above = high < most && before & (1 << (high + 1)) != 0;
        let below = low > 0 && before & (1 << (low - 1)) != 0;
        found.then_some(if above && !below { Direction::Backward } else { Direction::Forward })
    }

    /// The block around which the region lies that covers a block; of several the one that begins last.
    fn covering(&self, block: u64) -> Option<u64> {
        let reach = block.saturating_sub(self.offset)..=block + self.offset;
        self.regions.range(reach).next_back().map(|(center, _)| *center)
    }

    fn allocate(&mut self, now: Instant, center: u64) -> u64 {
        while self.regions.len() >= self.most {
            self.free_oldest();
        }
        self.regions.insert(center, Surroundings { bits: 0, requests: 0, since: now, touched: now });
        self.by_age.insert((now, center));
        center
    }

    /// Frees the regions that were not requested for the time that counts.
    fn free_old(&mut self, now: Instant) {
        while self.by_age.first().is_some_and(|(touched, _)| now.since(*touched) > self.window) {
            self.free_oldest();
        }
    }

    fn free_oldest(&mut self) {
        let (_, center) = self.by_age.pop_first().expect("there is a region to free");
        self.regions.remove(&center);
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::RegionForm;
    use super::*;

    /// With regions of 63 blocks either way, where 16 of them make a stream.
    fn watch() -> AroundRequests {
        AroundRequests::new(&Spec { form: RegionForm::Around, ..Spec::default() })
    }

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// Requests of blocks of 4 KiB, each with its first block and its number of blocks, and which of them belong to a stream.
    fn found(watch: &mut AroundRequests, requests: &[(u64, u64)]) -> Vec<bool> {
        let observe =
            |(first, blocks): &(u64, u64)| watch.observe(ms(1), first * 4096, blocks * 4096).is_some();
        requests.iter().map(observe).collect()
    }

    #[test]
    fn stream_is_found_once_enough_bits_are_set_in_any_order() {
        let upward: Vec<_> = (1000..1016).map(|block| (block, 1)).collect();
        let mixed = [7, 3, 12, 0, 15, 9, 1, 4, 2, 14, 8, 5, 11, 6, 13, 10].map(|block| (1000 + block, 1));
        let downward: Vec<_> = upward.iter().rev().copied().collect();
        for requests in [&upward[..], &mixed, &downward] {
            let found = found(&mut watch(), requests);
            assert_eq!(found.iter().position(|found| *found), Some(15), "{requests:?}");
        }
    }

    #[test]
    fn blocks_requested_again_set_no_further_bit() {
        let mut watch = watch();
        assert_eq!(found(&mut watch, &[(50, 8); 100]), [false; 100]);
        assert_eq!(found(&mut watch, &[(58, 7), (40, 1)]), [false, true]);
    }

    #[test]
    fn single_long_request_is_no_stream_and_its_successor_of_64_kib_is() {
        assert_eq!(found(&mut watch(), &[(900, 16), (916, 16)]), [false, true]);
        // Requests longer than the offset leave each other's regions.
        assert_eq!(found(&mut watch(), &[(0, 128), (128, 128), (256, 128), (384, 128)]), [false; 4]);
    }

    #[test]
    fn region_reaches_offset_blocks_either_way_of_its_first_request() {
        for (other, is_covered) in [(1063, true), (1064, false), (937, true), (936, false)] {
            let mut watch = watch();
            found(&mut watch, &[(1000, 1)]);
            assert_eq!(watch.covering(other), is_covered.then_some(1000), "{other}");
            found(&mut watch, &[(other, 1)]);
            assert_eq!(watch.regions.len(), if is_covered { 1 } else { 2 }, "{other}");
        }
    }

    #[test]
    fn old_requests_do_not_count_and_old_regions_are_freed() {
        let mut watch = watch();
        assert!((0..15).all(|block| watch.observe(ms(block), block * 4096, 4096).is_none()));
        assert_eq!(watch.observe(ms(20_001), 15 * 4096, 4096), None);
        assert_eq!(watch.observe(ms(60_000), 1 << 30, 4096), None);
        assert_eq!((watch.regions.len(), watch.by_age.len()), (1, 1));
    }

    #[test]
    fn least_recently_requested_region_is_freed_where_there_are_too_many() {
        let mut watch = AroundRequests::new(&Spec { regions: 16, ..Spec::default() });
        (0..40).for_each(|place| {
            watch.observe(ms(place), place << 30, 4096);
            watch.observe(ms(place), 0, 4096);
        });
        assert_eq!((watch.regions.len(), watch.by_age.len()), (16, 16));
        assert_eq!(watch.covering(0), Some(0));
        assert_eq!((watch.covering(24 << 18), watch.covering(25 << 18)), (None, Some(25 << 18)));
    }

    #[test]
    fn requests_downward_are_a_stream_backward() {
        let mut watch = watch();
        let last = (0..40).rev().filter_map(|block| watch.observe(ms(1), block * 4096, 4096)).last();
        assert_eq!(last, Some(Direction::Backward));
    }
}
