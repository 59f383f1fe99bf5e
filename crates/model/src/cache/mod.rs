//! The drive's buffer: segments, each holding one run of blocks.
//!
//! Modelled: fixed and adaptive segmentation, whole and partial hits, sliding of a full segment, replacement, segments for
//! writes, invalidation by writes. Not modelled: when blocks arrive, which the device computes.
//! *Source:* Ruemmler and Wilkes, "An introduction to disk drive modeling" (1994); DiskSim 4.0 manual, "On-board cache".

mod coarse;
mod lookup;
mod recency;

use crate::spec::{CacheSpec, Replacement, Segmentation};
use crate::{DriveSpec, Lbn};
use coarse::Coarse;
pub use recency::Recency;
use std::ops::Range;

/// The contents of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentState {
    /// Nothing.
    #[default]
    Empty,
    /// Blocks read from the media.
    Read,
    /// Blocks written by the host that are on the media too.
    Written,
    /// Blocks that the arm is reading into it now.
    Filling,
    /// Blocks written by the host that are not on the media yet.
    Dirty,
}

impl SegmentState {
    fn is_clean(self) -> bool {
        matches!(self, SegmentState::Empty | SegmentState::Read | SegmentState::Written)
    }
}

/// A run of blocks in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First block held.
    pub start: Lbn,
    /// Block after the last one held.
    pub end: Lbn,
    /// The kind of its contents.
    pub state: SegmentState,
    /// Block after the last one that a host has read: the blocks beyond were read ahead and not used yet.
    pub used_to: Lbn,
}

impl Segment {
    /// Whether its contents are on the media too.
    pub fn is_clean(&self) -> bool {
        self.state.is_clean()
    }
}

/// How a request meets the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// No segment holds its first block.
    Miss,
    /// This segment holds its first blocks.
    Part(usize),
    /// This segment holds all of it.
    Whole(usize),
}

/// First block and the block after the last, stored apart from the rest of a segment so that a search touches little memory.
type Span = (u64, u64);

/// The segments of a drive.
#[derive(Clone, Debug)]
pub struct Cache {
    spans: Vec<Span>,
    coarse: Coarse,
    states: Vec<SegmentState>,
    used_to: Vec<Lbn>,
    /// The planned end of each segment's read-ahead, for its present contents.
    ahead_to: Vec<Lbn>,
    recency: Recency,
    total_sectors: u64,
    segment_sectors: u64,
    adaptive: Option<Adaptive>,
    replacement: Replacement,
    enabled: bool,
    almost_hits: bool,
    hits_on_written: bool,
    write_segments: usize,
    dedicated_write_segment: bool,
    dirty: usize,
    random: u64,
}

#[derive(Clone, Copy, Debug)]
struct Adaptive {
    least: usize,
    most: usize,
    /// Fills since the last decision on the number, and those of them that evicted unused read-ahead.
    fills: u32,
    losses: u32,
}

impl Cache {
    /// The cache that a drive file describes, empty. `seed` is for random replacement.
    pub fn new(drive: &DriveSpec, seed: u64) -> Cache {
        let spec: &CacheSpec = &drive.cache;
        let (count, size) = (spec.segments as usize, u64::from(spec.segment_sectors));
        let adaptive = (spec.segmentation == Segmentation::Adaptive).then(|| Adaptive {
            least: count,
            most: spec.segments_max.unwrap_or(spec.segments) as usize,
            fills: 0,
            losses: 0,
        });
        let room = adaptive.map_or(count, |a| a.most);
        let mut cache = Cache {
            spans: Vec::with_capacity(room),
            coarse: Coarse::new(size, room),
            states: Vec::with_capacity(room),
            used_to: Vec::with_capacity(room),
            ahead_to: Vec::with_capacity(room),
            recency: Recency::with_capacity(room),
            total_sectors: count as u64 * size,
            segment_sectors: size,
            adaptive,
            replacement: spec.replacement,
            enabled: spec.enabled && spec.buffered,
            almost_hits: spec.almost_hits,
            hits_on_written: spec.read_hits_on_written,
            write_segments: spec.write_segments as usize,
            dedicated_write_segment: spec.dedicated_write_segment && count > 1,
            dirty: 0,
            random: seed,
        };
        cache.set_count(count);
        cache
    }

    /// The segment with this index.
    #[inline]
    pub fn segment(&self, index: usize) -> Segment {
        let (start, end) = self.spans[index];
        Segment { start: Lbn(start), end: Lbn(end), state: self.states[index], used_to: self.used_to[index] }
    }

    /// The blocks that a segment holds.
    #[inline]
    pub fn blocks(&self, index: usize) -> Range<Lbn> {
        let (start, end) = self.spans[index];
        Lbn(start)..Lbn(end)
    }

    /// The present number of segments.
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    /// Size of one segment, in sectors.
    pub fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// Sets the state of a segment.
    pub fn set_state(&mut self, index: usize, state: SegmentState) {
        let before = std::mem::replace(&mut self.states[index], state);
        self.dirty -= usize::from(before == SegmentState::Dirty);
        self.dirty += usize::from(state == SegmentState::Dirty);
    }

    /// Sets the first block of a segment.
    pub fn set_start(&mut self, index: usize, start: Lbn) {
        self.set_span(index, (start.0, self.spans[index].1));
    }

    /// Extends the planned end of a segment's read-ahead to `limit`, unless it is later already; returns the planned end.
    pub fn extend_read_ahead(&mut self, index: usize, limit: Lbn) -> Lbn {
        self.ahead_to[index] = self.ahead_to[index].max(limit);
        self.ahead_to[index]
    }

    /// Records that a host used a segment up to `to`. With LRU replacement it is then evicted last.
    pub fn touch(&mut self, index: usize, to: Lbn) {
        if self.replacement == Replacement::Lru {
            self.recency.move_to_back(index as u32);
        }
        self.used_to[index] = self.used_to[index].max(to);
    }

    /// Allocates a segment for a read from `start` on, and drops its contents. `None` when no segment is clean.
    pub fn take_for_read(&mut self, start: Lbn) -> Option<usize> {
        let mut index = self.victim()?;
        if self.adaptive.is_some() && self.adapt(index) {
            index = self.victim()?;
        }
        self.assign(index, start, start, start, SegmentState::Filling);
        Some(index)
    }

    /// The segment that a read from `start` on continues, because the host has read all of it, for the read to be stored behind it.
    pub fn continued_read(&mut self, start: Lbn) -> Option<usize> {
        let ends = |index: &usize| {
            self.spans[*index].1 == start.0
                && self.used_to[*index] == start
                && self.states[*index] == SegmentState::Read
        };
        // A random read continues none, and the filter is ten times as fast as the search.
        if self.coarse.may_hold(start.0) { (0..self.spans.len()).find(ends) } else { None }
    }

    /// Allocates a segment for a write of `start..end`: the dirty one it continues, else a free one. `None` when all segments
    /// allowed for writes are dirty.
    ///
    /// A write longer than a segment also uses one: its data flow through it. Blocks before `written_to` are on the media.
    pub fn take_for_write(&mut self, start: Lbn, end: Lbn, written_to: Lbn) -> Option<usize> {
        if self.dirty > 0
            && let Some(index) = self.continued_by(start, end, written_to)
        {
            self.slide(index, end);
            self.recency.move_to_back(index as u32);
            return Some(index);
        }
        if self.dirty >= self.write_segments {
            return None;
        }
        let index = if self.dedicated_write_segment {
            self.states[0].is_clean().then_some(0)?
        } else {
            // A segment that the write makes stale is evicted first.
            self.stale(start, end).or_else(|| self.victim())?
        };
        self.assign(index, start, end, end, SegmentState::Dirty);
        Some(index)
    }

    /// The clean segment that a write of `start..end` makes stale; of several, the first in the order of eviction.
    fn stale(&self, start: Lbn, end: Lbn) -> Option<usize> {
        let is_stale = |index: &usize| {
            let (from, to) = self.spans[*index];
            from < end.0 && start.0 < to && self.states[*index].is_clean()
        };
        self.segments().find(is_stale)
    }

    /// The dirty segment that a write of `start..end` continues.
    fn continued_by(&self, start: Lbn, end: Lbn, written_to: Lbn) -> Option<usize> {
        let first = |span: &Span| if written_to.0 < start.0 { span.0.max(written_to.0) } else { span.0 };
        let fits = |span: &Span| span.1 == start.0 && end.0 - first(span) <= self.segment_sectors;
        (0..self.spans.len())
            .find(|index| fits(&self.spans[*index]) && self.states[*index] == SegmentState::Dirty)
    }

    #[inline(always)]
    fn assign(&mut self, index: usize, start: Lbn, end: Lbn, used_to: Lbn, state: SegmentState) {
        self.set_span(index, (start.0, end.0));
        self.used_to[index] = used_to;
        self.ahead_to[index] = Lbn(0);
        self.set_state(index, state);
        self.recency.move_to_back(index as u32);
    }

    /// Drops the contents that a write of `start..end` makes stale, except those of `keep`.
    pub fn invalidate(&mut self, start: Lbn, end: Lbn, keep: Option<usize>) {
        if !self.coarse.may_share(start.0, end.0) {
            return;
        }
        for index in 0..self.spans.len() {
            let (from, to) = self.spans[index];
            let stale = from < end.0 && start.0 < to && self.states[index].is_clean();
            if stale && Some(index) != keep {
                self.set_span(index, (0, 0));
                self.set_state(index, SegmentState::Empty);
                self.recency.move_to_front(index as u32);
            }
        }
    }

    /// Moves the start of a segment so that it ends at `end` and holds no more than its size.
    #[inline]
    pub fn slide(&mut self, index: usize, end: Lbn) {
        let start = self.spans[index].0.max(end.0.saturating_sub(self.segment_sectors));
        self.set_span(index, (start, end.0));
    }

    #[inline]
    fn set_span(&mut self, index: usize, span: Span) {
        self.spans[index] = span;
        self.coarse.set(index, span);
    }

    /// The segments in the order of eviction.
    fn segments(&self) -> impl Iterator<Item = usize> {
        self.recency.iter().map(|index| index as usize)
    }

    /// The segment to evict for a read: an empty one, else a clean one by the replacement rule.
    fn victim(&mut self) -> Option<usize> {
        let reserved = self.dedicated_write_segment.then_some(0);
        let is_free = |index: &usize| Some(*index) != reserved && self.states[*index].is_clean();
        let mut free = self.segments().filter(is_free);
        let first = free.next()?;
        if self.replacement != Replacement::Random || self.states[first] == SegmentState::Empty {
            return Some(first);
        }
        let others = free.count() as u64;
        self.random = mix(self.random);
        let is_free = |index: &usize| Some(*index) != reserved && self.states[*index].is_clean();
        let mut free = self.segments().filter(is_free);
        free.nth((self.random % (others + 1)) as usize)
    }

    /// Adapts the number of segments before `victim` is evicted: doubles it when unused read-ahead is often evicted, halves it when none was
    /// and half of the segments are empty. Returns whether it changed.
    fn adapt(&mut self, victim: usize) -> bool {
        let segment = self.segment(victim);
        let lost = segment.state == SegmentState::Read
            && segment.used_to < segment.end
            && segment.used_to > segment.start;
        let count = self.spans.len();
        let unused = self.states.iter().filter(|state| **state == SegmentState::Empty).count();
        let Some(adaptive) = &mut self.adaptive else { return false };
        adaptive.fills += 1;
        adaptive.losses += u32::from(lost);
        let wanted = if adaptive.losses as usize * 4 > count && count * 2 <= adaptive.most {
            count * 2
        } else if adaptive.fills as usize > 16 * count {
            let halve = adaptive.losses == 0 && unused * 2 >= count && count / 2 >= adaptive.least;
            (adaptive.fills, adaptive.losses) = (0, 0);
            if halve { count / 2 } else { count }
        } else {
            count
        };
        let busy = |state: &SegmentState| !state.is_clean();
        if wanted == count || self.states.iter().skip(wanted).any(busy) {
            return false;
        }
        self.set_count(wanted);
        true
    }

    fn set_count(&mut self, count: usize) {
        if let Some(adaptive) = &mut self.adaptive {
            (adaptive.fills, adaptive.losses) = (0, 0);
        }
        self.spans.resize(count, (0, 0));
        self.coarse.resize(count);
        self.states.resize(count, SegmentState::Empty);
        self.used_to.resize(count, Lbn(0));
        self.ahead_to.resize(count, Lbn(0));
        self.recency.reset(count);
        self.segment_sectors = (self.total_sectors / count as u64).max(1);
        for index in 0..count {
            match self.states[index] {
                SegmentState::Empty => self.recency.move_to_front(index as u32),
                SegmentState::Read | SegmentState::Written => self.slide(index, Lbn(self.spans[index].1)),
                SegmentState::Filling | SegmentState::Dirty => {}
            }
        }
    }
}

/// A step of SplitMix64: a well-spread value from a counter. *Source:* Steele, Lea and Flood, OOPSLA 2014.
fn mix(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(change: impl Fn(&mut CacheSpec)) -> Cache {
        let mut drive = crate::drives::load("atlas-10k").expect("the drive ships");
        drive.cache = CacheSpec { segments: 3, segment_sectors: 100, ..CacheSpec::default() };
        change(&mut drive.cache);
        Cache::new(&drive, 7)
    }

    /// Reads `start..end` into a segment, as the arm does.
    fn fill(cache: &mut Cache, start: u64, end: u64) -> usize {
        let index = cache.take_for_read(Lbn(start)).expect("a segment is clean");
        cache.slide(index, Lbn(end));
        cache.set_state(index, SegmentState::Read);
        index
    }

    #[test]
    fn least_recently_used_segment_is_replaced() {
        let mut cache = cache(|_| {});
        let (a, b, c) = (fill(&mut cache, 0, 50), fill(&mut cache, 1000, 1050), fill(&mut cache, 2000, 2050));
        cache.touch(a, Lbn(10));
        assert_eq!(fill(&mut cache, 3000, 3050), b);
        assert_eq!(fill(&mut cache, 4000, 4050), c);
        assert_eq!(cache.find(Lbn(5), Lbn(50)), Hit::Whole(a));
        assert_eq!(cache.find(Lbn(1005), Lbn(1010)), Hit::Miss);
    }

    #[test]
    fn fifo_replacement_ignores_use() {
        let mut cache = cache(|spec| spec.replacement = Replacement::Fifo);
        let (a, b) = (fill(&mut cache, 0, 50), fill(&mut cache, 1000, 1050));
        fill(&mut cache, 2000, 2050);
        cache.touch(a, Lbn(10));
        assert_eq!(fill(&mut cache, 3000, 3050), a);
        assert_eq!(fill(&mut cache, 4000, 4050), b);
    }

    #[test]
    fn find_returns_whole_hit_or_longest_part_hit() {
        let mut cache = cache(|_| {});
        let short = fill(&mut cache, 0, 20);
        let long = fill(&mut cache, 10, 40);
        assert_eq!(cache.find(Lbn(12), Lbn(60)), Hit::Part(long));
        assert_eq!(cache.find(Lbn(5), Lbn(20)), Hit::Whole(short));
        assert_eq!(
            cache.find(Lbn(40), Lbn(41)),
            Hit::Miss,
            "a segment that is not being filled has no next block"
        );
    }

    #[test]
    fn filling_segment_answers_before_others_holding_the_read() {
        let mut cache = cache(|_| {});
        let held = [(0, 50), (10, 60), (20, 55)].map(|(from, to)| fill(&mut cache, from, to));
        for index in held {
            cache.set_state(index, SegmentState::Filling);
            assert_eq!(cache.find(Lbn(25), Lbn(40)), Hit::Whole(index));
            cache.set_state(index, SegmentState::Read);
        }
        cache.set_state(held[2], SegmentState::Filling);
        assert_eq!(cache.find(Lbn(25), Lbn(58)), Hit::Whole(held[1]), "the one being filled holds less");
    }

    #[test]
    fn read_ahead_end_keeps_its_maximum_until_segment_reuse() {
        let mut cache = cache(|_| {});
        let index = fill(&mut cache, 0, 50);
        assert_eq!(cache.extend_read_ahead(index, Lbn(200)), Lbn(200));
        assert_eq!(cache.extend_read_ahead(index, Lbn(120)), Lbn(200));
        let other =
            [fill(&mut cache, 1000, 1050), fill(&mut cache, 2000, 2050), fill(&mut cache, 3000, 3050)];
        assert_eq!(other[2], index, "the segment gives way");
        assert_eq!(cache.extend_read_ahead(index, Lbn(120)), Lbn(120));
    }

    #[test]
    fn dedicated_write_segment_gives_whole_hits_only() {
        for dedicated in [false, true] {
            let mut cache = cache(|spec| spec.dedicated_write_segment = dedicated);
            let written = cache.take_for_write(Lbn(0), Lbn(20), Lbn(0)).expect("no segment is dirty yet");
            cache.set_state(written, SegmentState::Written);
            assert_eq!(cache.find(Lbn(5), Lbn(20)), Hit::Whole(written));
            let part = if dedicated { Hit::Miss } else { Hit::Part(written) };
            assert_eq!(cache.find(Lbn(5), Lbn(30)), part, "dedicated: {dedicated}");
        }
    }

    #[test]
    fn full_segment_slides_past_its_oldest_blocks() {
        let mut cache = cache(|_| {});
        let index = fill(&mut cache, 0, 90);
        cache.slide(index, Lbn(150));
        assert_eq!((cache.segment(index).start, cache.segment(index).end), (Lbn(50), Lbn(150)));
    }

    #[test]
    fn writes_invalidate_stale_data_and_keep_to_their_segments() {
        let mut cache = cache(|spec| spec.write_segments = 1);
        let old = [fill(&mut cache, 0, 50), fill(&mut cache, 10, 55)];
        let kept = fill(&mut cache, 1000, 1050);
        let dirty = cache.take_for_write(Lbn(40), Lbn(60), Lbn(0)).expect("no segment is dirty yet");
        assert_eq!(dirty, old[0], "a segment whose data it makes stale gives way to it first");
        cache.invalidate(Lbn(40), Lbn(60), Some(dirty));
        assert_eq!(cache.segment(old[1]).state, SegmentState::Empty);
        assert_eq!(cache.segment(kept).state, SegmentState::Read);
        assert_eq!(cache.take_for_write(Lbn(60), Lbn(70), Lbn(0)), Some(dirty), "it continues the dirty one");
        assert_eq!(cache.take_for_write(Lbn(500), Lbn(510), Lbn(0)), None);
        cache.set_state(dirty, SegmentState::Written);
        assert!(cache.take_for_write(Lbn(500), Lbn(510), Lbn(0)).is_some());
    }

    #[test]
    fn adaptive_segments_multiply_when_streams_evict_each_other() {
        let mut cache = cache(|spec| {
            (spec.segments, spec.segment_sectors) = (2, 1200);
            (spec.segmentation, spec.segments_max) = (Segmentation::Adaptive, Some(16));
        });
        for round in 0..200u64 {
            let start = (round % 5) * 100_000 + round / 5 * 100;
            let index = fill(&mut cache, start, start + 100);
            cache.touch(index, Lbn(start + 10));
        }
        assert!(cache.count() >= 4, "{} segments for 5 streams", cache.count());
        assert_eq!(cache.segment_sectors() * cache.count() as u64, 2400);
    }
}
