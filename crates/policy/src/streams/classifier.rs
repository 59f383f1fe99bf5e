//! Which requests belong to streams: bits for the blocks around a place that were asked for of late.
//!
//! Repetitions do not matter, nearness in space and time does: so a stream is found whose client has several requests under way,
//! goes on with small gaps, or backwards. Many random requests to a small area set all bits, too: in a stream, besides, most
//! requests come near the one before. Regions are watched in a table of fixed size, found by
//! hashing, in which the one asked for longest ago gives way.
//!
//! *Source:* Panagiotakis et al., 4.1: bitmaps on demand around touched blocks, hashed. The table is ours.

use super::config::Classifier as Spec;
use headstack_model::Nanos;

/// Places of the table in which a region may be.
const WAYS: usize = 4;

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
    /// Requests that set any of them: one alone is no stream, however long.
    requests: u32,
    /// How many more came near the one before than did not, and that one's first block and last.
    runs: u32,
    latest: (u64, u64),
    /// When the first of the bits was set, and when it was last asked for.
    since: Nanos,
    touched: Nanos,
}

/// Watches requests of one kind.
#[derive(Debug)]
pub(super) struct Classifier {
    block_bytes: u64,
    region_blocks: u64,
    threshold: u32,
    window: Nanos,
    sets: Vec<[Option<Region>; WAYS]>,
}

impl Classifier {
    pub(super) fn new(spec: &Spec) -> Classifier {
        let sets = (spec.regions as usize / WAYS).next_power_of_two();
        Classifier {
            block_bytes: spec.block_bytes,
            region_blocks: spec.region_blocks.into(),
            threshold: spec.threshold,
            window: Nanos::from_ms(spec.window_ms),
            sets: vec![[None; WAYS]; sets],
        }
    }

    /// Takes note of a request; which way a stream goes there, where enough is near it in space and time.
    pub(super) fn observe(&mut self, now: Nanos, offset: u64, bytes: u64) -> Option<Direction> {
        let (first, last) = (offset / self.block_bytes, (offset + bytes - 1) / self.block_bytes);
        // A request over more than a region says all in its last.
        let from = first.max(last / self.region_blocks * self.region_blocks);
        let (number, low, high) =
            (last / self.region_blocks, from % self.region_blocks, last % self.region_blocks);
        let (window, threshold) = (self.window, self.threshold);
        let region = self.region(now, number);
        if now.since(region.since) > window {
            (region.bits, region.requests, region.since) = (0, 0, now);
        }
        let before = region.bits;
        region.bits |= ones(low, high);
        let is_near = region.requests > 0 && near(region.latest, (low, high));
        region.runs = if is_near { region.runs + 1 } else { region.runs.saturating_sub(1) };
        region.requests += u32::from(region.bits != before);
        (region.touched, region.latest) = (now, (low, high));
        let own = Count::of(region);
        // What lies around a place near the border lies in two regions.
        let beside = match from > first {
            true => first.checked_sub(1).map(|before| before / self.region_blocks),
            false if low < self.region_blocks / 2 => number.checked_sub(1),
            false => Some(number + 1),
        };
        let beside = beside.filter(|_| !own.is_stream(threshold)).map(|beside| self.count(now, beside));
        let both = own.with(beside.unwrap_or_default());
        both.is_stream(threshold).then(|| direction(before, low, high))
    }

    fn count(&self, now: Nanos, number: u64) -> Count {
        let found = self.sets[self.set(number)].iter().flatten().find(|region| region.number == number);
        let recent = found.filter(|region| now.since(region.touched) <= self.window);
        recent.map_or(Count::default(), Count::of)
    }

    fn set(&self, number: u64) -> usize {
        // Fibonacci hashing: neighbours lie far apart.
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.sets.len() - 1)
    }

    fn region(&mut self, now: Nanos, number: u64) -> &mut Region {
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
            latest: (0, 0),
            since: now,
            touched: now,
        })
    }
}

/// What speaks for a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    blocks: u32,
    requests: u32,
    runs: u32,
}

impl Count {
    fn of(region: &Region) -> Count {
        Count { blocks: region.bits.count_ones(), requests: region.requests, runs: region.runs }
    }

    /// A stream that has just come over a border was one before it; crossing is coming near, too.
    fn with(self, beside: Count) -> Count {
        let crossing = u32::from(beside.requests > 0);
        Count {
            blocks: self.blocks + beside.blocks,
            requests: self.requests + beside.requests,
            runs: self.runs.max(beside.runs) + crossing,
        }
    }

    fn is_stream(self, threshold: u32) -> bool {
        let least = self.requests.min(8) / 2;
        self.blocks >= threshold && self.requests > 1 && self.runs >= least
    }
}

/// Whether a request comes where the one before ended, or ends where it began, or nearly so.
fn near(before: (u64, u64), now: (u64, u64)) -> bool {
    let tolerance = 8.max(now.1 - now.0 + 1);
    now.0.abs_diff(before.1 + 1) <= tolerance || before.0.abs_diff(now.1 + 1) <= tolerance
}

/// Bits from `low` to `high`.
fn ones(low: u64, high: u64) -> u128 {
    (u128::MAX >> (127 - high)) & (u128::MAX << low)
}

/// Backwards goes who asks just below what was asked for, and not just above.
fn direction(before: u128, low: u64, high: u64) -> Direction {
    let above = high < 127 && before & (1 << (high + 1)) != 0;
    let below = low > 0 && before & (1 << (low - 1)) != 0;
    if above && !below { Direction::Backward } else { Direction::Forward }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Classifier {
        Classifier::new(&Spec::default())
    }

    fn at(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    #[test]
    fn is_a_stream_found_after_as_many_blocks_as_stated() {
        let mut watch = watch();
        let found: Vec<bool> =
            (0..20).map(|turn| watch.observe(at(turn), turn * 4096, 4096).is_some()).collect();
        assert_eq!(found.iter().position(|found| *found), Some(15));
        assert!(found[15..].iter().all(|found| *found));
    }

    #[test]
    fn does_the_order_not_matter_and_no_repetition_count() {
        let mut watch = watch();
        assert!((0..100).all(|turn| watch.observe(at(turn), 8 * 4096, 4096).is_none()));
        let order = [5, 3, 9, 1, 0, 2, 4, 7, 6, 10, 12, 11, 13, 15, 14];
        let found = order.map(|block| watch.observe(at(200), block * 4096, 4096).is_some());
        assert_eq!(found.iter().position(|found| *found), Some(14));
    }

    #[test]
    fn does_what_was_asked_for_long_ago_not_count() {
        let mut watch = watch();
        assert!((0..15).all(|turn| watch.observe(at(turn), turn * 4096, 4096).is_none()));
        assert_eq!(watch.observe(at(20_001), 15 * 4096, 4096), None);
    }

    #[test]
    fn is_a_stream_told_from_its_direction() {
        let mut watch = watch();
        let found = (0..20).rev().filter_map(|turn| watch.observe(at(1), turn * 4096, 4096)).last();
        assert_eq!(found, Some(Direction::Backward));
    }

    #[test]
    fn does_a_stream_go_on_over_the_border_of_a_region() {
        let mut watch = watch();
        let found = (118..140).filter(|turn| watch.observe(at(1), turn * 4096, 4096).is_some()).count();
        assert_eq!(found, 22 - 15, "ten before the border and five behind it, and then each");
    }

    #[test]
    fn is_one_request_no_stream_however_long() {
        let mut watch = watch();
        assert_eq!(watch.observe(at(1), 0, 1 << 20), None);
        assert_eq!(watch.observe(at(1), 1 << 20, 1 << 20), Some(Direction::Forward));
    }

    #[test]
    fn is_dense_random_access_hardly_ever_a_stream() {
        let mut watch = watch();
        let places =
            (0..200_000u64).map(|turn| (turn * turn + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 46);
        let found = places.filter(|place| watch.observe(at(1), place * 4096, 4096).is_some()).count();
        assert!(found < 2000, "{found} of 200,000 over 1 GiB");
    }

    #[test]
    fn is_random_access_no_stream() {
        let mut watch = watch();
        let places = (0..100_000u64).map(|turn| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        let found = places.filter(|place| watch.observe(at(1), place / 4096 * 4096, 4096).is_some()).count();
        assert_eq!(found, 0);
    }
}
