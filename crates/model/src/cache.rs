//! The drive's buffer: segments, each holding one run of blocks.
//!
//! Modelled: fixed and adaptive segmentation, hits on whole and on first parts of requests, sliding of a full segment,
//! replacement, segments for writes, invalidation by writes. Only which blocks are where is kept here; *when* they
//! arrive is the device's business. *Source:* Ruemmler and Wilkes (1994); DiskSim 4.0 manual, "On-board cache".

use crate::spec::{CacheSpec, Replacement, Segmentation};
use crate::{DriveSpec, Lbn};

/// What a segment holds.
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

/// A run of blocks in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First block held.
    pub start: Lbn,
    /// Block after the last one held.
    pub end: Lbn,
    /// What it holds.
    pub state: SegmentState,
    /// Block after the last one that a host has taken: what lies beyond was read ahead and not used yet.
    pub used_to: Lbn,
    /// Turn of the cache's own clock at which it was last used.
    last_used: u64,
    /// Turn at which it was filled.
    filled: u64,
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

/// The segments of a drive.
#[derive(Clone, Debug)]
pub struct Cache {
    segments: Vec<Segment>,
    total_sectors: u64,
    segment_sectors: u64,
    adaptive: Option<Adaptive>,
    replacement: Replacement,
    enabled: bool,
    almost_hits: bool,
    hits_on_written: bool,
    write_segments: u32,
    dedicated_write_segment: bool,
    turn: u64,
    random: u64,
}

/// State of adaptive segmentation.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    least: usize,
    most: usize,
    /// Fills since the last change in number, and those of them that pushed out unused read-ahead.
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
        let mut segments = Vec::with_capacity(room);
        segments.resize(count, Segment::default());
        Cache {
            segments,
            total_sectors: count as u64 * size,
            segment_sectors: size,
            adaptive,
            replacement: spec.replacement,
            enabled: spec.enabled,
            almost_hits: spec.almost_hits,
            hits_on_written: spec.read_hits_on_written,
            write_segments: spec.write_segments,
            dedicated_write_segment: spec.dedicated_write_segment && count > 1,
            turn: 0,
            random: seed | 1,
        }
    }

    /// The segment with this index.
    pub fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// The segment with this index, to change.
    pub fn segment_mut(&mut self, index: usize) -> &mut Segment {
        &mut self.segments[index]
    }

    /// All segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Size of one segment, in sectors.
    pub fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// How a read of `start..end` meets the cache. Whole hits go before parts, the longest part before others.
    pub fn find(&self, start: Lbn, end: Lbn) -> Hit {
        let mut best = Hit::Miss;
        let mut best_end = Lbn(0);
        if !self.enabled {
            return best;
        }
        for (index, segment) in self.segments.iter().enumerate() {
            if !self.may_answer(segment, start) {
                continue;
            }
            if segment.end >= end {
                return Hit::Whole(index);
            }
            if segment.end >= best_end {
                (best, best_end) = (Hit::Part(index), segment.end);
            }
        }
        best
    }

    #[inline]
    fn may_answer(&self, segment: &Segment, start: Lbn) -> bool {
        if start < segment.start || start > segment.end {
            return false;
        }
        let inside = start < segment.end;
        match segment.state {
            SegmentState::Empty => false,
            SegmentState::Read => inside,
            SegmentState::Filling => inside || self.almost_hits,
            SegmentState::Written | SegmentState::Dirty => inside && self.hits_on_written,
        }
    }

    /// Marks a segment as just used, by a host that took it up to `to`.
    pub fn touch(&mut self, index: usize, to: Lbn) {
        self.turn += 1;
        let segment = &mut self.segments[index];
        segment.last_used = self.turn;
        segment.used_to = segment.used_to.max(to);
    }

    /// Takes a segment for a read from `start` on, in place of what it held.
    pub fn take_for_read(&mut self, start: Lbn) -> Option<usize> {
        let first = usize::from(self.dedicated_write_segment);
        let index = self.victim(first)?;
        self.note_loss(index);
        let index = if index < self.segments.len() { index } else { self.victim(first)? };
        self.turn += 1;
        self.segments[index] = Segment {
            start,
            end: start,
            used_to: start,
            state: SegmentState::Filling,
            last_used: self.turn,
            filled: self.turn,
        };
        Some(index)
    }

    /// Takes a segment for a write of `start..end`: the dirty one it continues, else a free one. `None` when all
    /// segments allowed for writes are dirty.
    ///
    /// A write longer than a segment takes one too: it flows through it.
    pub fn take_for_write(&mut self, start: Lbn, end: Lbn) -> Option<usize> {
        self.turn += 1;
        let turn = self.turn;
        let room = self.segment_sectors;
        let continued = self
            .segments
            .iter()
            .position(|s| s.state == SegmentState::Dirty && s.end == start && end - s.start <= room);
        if let Some(index) = continued {
            self.segments[index].end = end;
            self.segments[index].last_used = turn;
            return Some(index);
        }
        let dirty = self.segments.iter().filter(|s| s.state == SegmentState::Dirty).count();
        if dirty >= self.write_segments as usize {
            return None;
        }
        let index = if self.dedicated_write_segment {
            (self.segments[0].state != SegmentState::Dirty).then_some(0)?
        } else {
            self.victim(0)?
        };
        self.segments[index] =
            Segment { start, end, used_to: end, state: SegmentState::Dirty, last_used: turn, filled: turn };
        Some(index)
    }

    /// Drops what a write of `start..end` makes stale, `keep` apart.
    pub fn invalidate(&mut self, start: Lbn, end: Lbn, keep: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let clean = matches!(segment.state, SegmentState::Read | SegmentState::Written);
            if clean && segment.start < end && start < segment.end && Some(index) != keep {
                segment.state = SegmentState::Empty;
            }
        }
    }

    /// Lets a segment slide, so that it holds no more than its size, and ends at `end`.
    #[inline]
    pub fn slide(&mut self, index: usize, end: Lbn) {
        let size = self.segment_sectors;
        let segment = &mut self.segments[index];
        segment.end = end;
        segment.start = segment.start.max(Lbn(end.0.saturating_sub(size)));
    }

    /// The segment that gives way: an empty one, else a clean one by the rule of replacement.
    fn victim(&mut self, first: usize) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            let rank = match segment.state {
                SegmentState::Empty => return Some(index),
                SegmentState::Filling | SegmentState::Dirty => continue,
                SegmentState::Read | SegmentState::Written => match self.replacement {
                    Replacement::Lru => segment.last_used,
                    Replacement::Fifo => segment.filled,
                    Replacement::Random => mix(self.random ^ self.turn.wrapping_add(index as u64)),
                },
            };
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Adapts the number of segments: too few when read-ahead is pushed out unused, too many when that never happens.
    fn note_loss(&mut self, victim: usize) {
        let Some(adaptive) = &mut self.adaptive else { return };
        let segment = &self.segments[victim];
        adaptive.fills += 1;
        if segment.state == SegmentState::Read
            && segment.used_to < segment.end
            && segment.used_to > segment.start
        {
            adaptive.losses += 1;
        }
        let count = self.segments.len();
        if adaptive.losses * 4 > count as u32 && count * 2 <= adaptive.most {
            self.resize(count * 2);
        } else if adaptive.fills > 16 * count as u32 {
            let unused = self.segments.iter().filter(|s| s.state == SegmentState::Empty).count();
            let halve = adaptive.losses == 0 && unused * 2 >= count && count / 2 >= adaptive.least;
            self.resize(if halve { count / 2 } else { count });
        }
    }

    fn resize(&mut self, count: usize) {
        let adaptive = self.adaptive.as_mut().expect("only adaptive caches change");
        (adaptive.fills, adaptive.losses) = (0, 0);
        let busy = |s: &Segment| matches!(s.state, SegmentState::Filling | SegmentState::Dirty);
        if count < self.segments.len() && self.segments.iter().skip(count).any(busy) {
            return;
        }
        self.segments.resize(count, Segment::default());
        self.segment_sectors = (self.total_sectors / count as u64).max(1);
        for index in 0..count {
            if !busy(&self.segments[index]) {
                self.slide(index, self.segments[index].end);
            }
        }
    }
}

/// A step of SplitMix64: a well-spread value from a counter. *Source:* Steele, Lea and Flood, OOPSLA 2014.
fn mix(seed: u64) -> u64 {
    let mut value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
