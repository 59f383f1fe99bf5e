//! A log-structured file system's writes: a log in segments, and a cleaner that makes room for it.
//!
//! Modelled: a segment usage table with places and lengths, so that segments may be tracks; blocks that become dead when they are written
//! again or deleted; a cleaner that starts when clean segments are few, reads whole segments, those with the best ratio of benefit to
//! cost first, and writes their live blocks sorted by age; the cost of all this. Not modelled: the contents of blocks (inodes, directories),
//! reads (the host's cache serves them, as Matthews et al. assume), segments written before they are full, checkpoints.
//!
//! *Source:* M. Rosenblum and J. Ousterhout, "The design and implementation of a log-structured file system" (1992); segments as long
//! as tracks from Schindler, Griffin, Lumb and Ganger 2002, section 5.4.

mod clean;
mod segments;
#[cfg(test)]
mod tests;
mod updates;

pub use segments::{Segment, SegmentTable};
pub use updates::{UpdateShape, Updates};

use headstack_model::Request;
use std::collections::BTreeSet;

/// Which segments are cleaned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Those with the highest gain per cost: `(1 - u) age / (1 + u)`.
    CostBenefit,
    /// Those in which least lives.
    Greedy,
}

/// When and how segments are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Which first.
    pub choice: Choice,
    /// Cleaning begins when fewer segments than this are clean. At least 2: live blocks need room.
    pub low: u32,
    /// Cleaning ends when this many are clean.
    pub high: u32,
}

/// No segment is clean, and none can be made clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all segments are full of live blocks")]
pub struct Full;

/// Blocks written, and blocks moved for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Blocks that users wrote.
    pub new: u64,
    /// Blocks of segments that were read to be cleaned.
    pub read: u64,
    /// Blocks that were live there and were written again.
    pub copied: u64,
}

impl Cost {
    /// Blocks moved to or from the disk for each that was written; 1 where nothing had to be cleaned.
    pub fn write_cost(&self) -> f64 {
        (self.new + self.read + self.copied) as f64 / self.new.max(1) as f64
    }

    /// Share of the cleaned segments that was live.
    pub fn cleaned_utilisation(&self) -> f64 {
        self.copied as f64 / self.read.max(1) as f64
    }
}

/// Where a block is: its segment, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    segment: u32,
    slot: u32,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    segment: u32,
    filled: u32,
}

/// A log-structured file system. Its blocks are numbered from 0.
#[derive(Clone, Debug)]
pub struct Lfs {
    table: SegmentTable,
    cleaning: Cleaning,
    /// The blocks written to each segment, in their order, whether they live or not.
    written: Vec<Vec<u32>>,
    /// Where each block lives.
    places: Vec<Option<Place>>,
    /// When each was modified.
    modified: Vec<u64>,
    clean: BTreeSet<u32>,
    clean_blocks: u64,
    open: Option<Open>,
    /// The segment opened last: the next is the first clean one after it.
    last: u32,
    /// Blocks written by users: the time.
    now: u64,
    cost: Cost,
    transfers: Vec<Request>,
}

impl Lfs {
    /// An empty file system of at most `blocks` blocks on these segments.
    pub fn new(table: SegmentTable, cleaning: Cleaning, blocks: u32) -> Lfs {
        assert!(
            2 <= cleaning.low && cleaning.low <= cleaning.high,
            "{cleaning:?} leaves no segment to clean to"
        );
        let segments = u32::try_from(table.segments().len()).expect("a disk has fewer segments than sectors");
        Lfs {
            written: table
                .segments()
                .iter()
                .map(|segment| Vec::with_capacity(segment.blocks as usize))
                .collect(),
            clean_blocks: table.blocks(),
            clean: (0..segments).collect(),
            table,
            cleaning,
            places: vec![None; blocks as usize],
            modified: vec![0; blocks as usize],
            open: None,
            last: 0,
            now: 0,
            cost: Cost::default(),
            transfers: Vec::new(),
        }
    }

    /// Writes or overwrites a block. Its number is below that of all blocks.
    ///
    /// *Errors:* there is no room; the block is unchanged.
    pub fn write(&mut self, block: u32) -> Result<(), Full> {
        if self.room() == 0 {
            self.make_room()?;
        }
        self.now += 1;
        self.cost.new += 1;
        self.modified[block as usize] = self.now;
        self.remove(block);
        self.append(block);
        Ok(())
    }

    /// Removes a block, if it exists.
    pub fn remove(&mut self, block: u32) {
        let Some(Place { segment, .. }) = self.places[block as usize].take() else { return };
        let entry = self.table.segment(segment);
        entry.live -= 1;
        if entry.live == 0 && self.open.is_none_or(|open| open.segment != segment) {
            self.free(segment);
        }
    }

    /// The segments and their contents.
    pub fn table(&self) -> &SegmentTable {
        &self.table
    }

    /// Number of empty segments.
    pub fn clean_segments(&self) -> usize {
        self.clean.len()
    }

    /// Whether a block exists.
    pub fn holds(&self, block: u32) -> bool {
        self.places[block as usize].is_some()
    }

    /// The cost since the last call.
    pub fn take_cost(&mut self) -> Cost {
        std::mem::take(&mut self.cost)
    }

    /// The transfers since the last call: whole segments, in their order.
    pub fn take_transfers(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.transfers)
    }

    fn room(&self) -> u32 {
        self.open.map_or(0, |open| self.table.segments()[open.segment as usize].blocks - open.filled)
    }

    /// Makes a segment open that has room, and cleans before where few are clean.
    fn make_room(&mut self) -> Result<(), Full> {
        self.seal();
        if self.clean.len() < self.cleaning.low as usize {
            self.clean_up();
        }
        if self.room() > 0 || self.open_next() { Ok(()) } else { Err(Full) }
    }

    /// Writes the open segment to the disk, if it is full.
    fn seal(&mut self) {
        if self.room() > 0 {
            return;
        }
        let Some(Open { segment, .. }) = self.open.take() else { return };
        let Segment { start, sectors, live, .. } = *self.table.segment(segment);
        self.transfers.push(Request::write(start, sectors));
        // All of it may have died before.
        if live == 0 {
            self.free(segment);
        }
    }

    /// Opens the next clean segment; whether there was one.
    fn open_next(&mut self) -> bool {
        let behind = self.clean.range(self.last..).next().or(self.clean.first()).copied();
        let Some(segment) = behind else { return false };
        self.clean.remove(&segment);
        self.clean_blocks -= u64::from(self.table.segment(segment).blocks);
        self.last = segment;
        self.open = Some(Open { segment, filled: 0 });
        true
    }

    /// Adds a block to the open segment, which has room.
    fn append(&mut self, block: u32) {
        let open = self.open.as_mut().expect("there is room");
        let (segment, slot) = (open.segment, open.filled);
        open.filled += 1;
        self.written[segment as usize].push(block);
        self.places[block as usize] = Some(Place { segment, slot });
        let modified = self.modified[block as usize];
        let entry = self.table.segment(segment);
        entry.live += 1;
        entry.youngest = entry.youngest.max(modified);
    }

    fn free(&mut self, segment: u32) {
        let entry = self.table.segment(segment);
        assert_eq!(entry.live, 0, "no live block is lost");
        entry.youngest = 0;
        self.clean_blocks += u64::from(entry.blocks);
        self.written[segment as usize].clear();
        self.clean.insert(segment);
    }
}
