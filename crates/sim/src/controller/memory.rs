//! The lines of a controller's memory: their contents, which sectors are valid and dirty, and the order of eviction.

use crate::memory::Tree;
use headstack_model::cache::Recency;
use headstack_model::{Lbn, Request};
use slab::Slab;
use std::ops::Range;

/// Upper bound of the line numbers of a drive.
const DRIVE: u64 = 1 << 48;

#[derive(Clone, Copy, Debug)]
struct Line {
    key: u64,
    /// Requests in flight that use it.
    pins: u32,
    /// The transfer that most recently began to fill some of it.
    filling: Option<u32>,
    /// Number of read transfers in flight and of other holds.
    fills: u32,
    /// Number of transfers that write it.
    destaging: u32,
    /// Sectors that are dirty.
    dirty: u32,
    used: bool,
    protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Frame(u32),
    /// This dirty line would be evicted.
    Dirty(u32),
    /// Every line is in use.
    None,
}

/// The lines of all drives of a controller: a bounded number, made as they are needed.
#[derive(Debug)]
pub(super) struct Lines {
    most: usize,
    protected_most: usize,
    line_sectors: u64,
    /// Words of a line's map of sectors.
    words: usize,
    lines: Slab<Line>,
    valid: Vec<u64>,
    dirty: Vec<u64>,
    by_key: Tree,
    dirty_by_key: Tree,
    dirty_lines: usize,
    /// Lines used once, and those used again; the next to be evicted is in front.
    probation: Recency,
    protected: Recency,
    protected_count: usize,
}

impl Lines {
    /// Memory for `most` lines of `line_sectors` sectors, of which a share is reserved for those used again.
    pub(super) fn new(most: usize, line_sectors: u64, protected_ratio: f64) -> Lines {
        Lines {
            most,
            protected_most: (most as f64 * protected_ratio) as usize,
            line_sectors,
            words: line_sectors.div_ceil(64) as usize,
            lines: Slab::new(),
            valid: Vec::new(),
            dirty: Vec::new(),
            by_key: Tree::new(),
            dirty_by_key: Tree::new(),
            dirty_lines: 0,
            probation: Recency::default(),
            protected: Recency::default(),
            protected_count: 0,
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty_lines
    }

    pub(super) fn span(&self, request: &Request) -> Range<u64> {
        request.lbn.0 / self.line_sectors..request.end().0.div_ceil(self.line_sectors)
    }

    pub(super) fn find(&self, drive: u32, line: u64) -> Option<u32> {
        let key = u64::from(drive) * DRIVE + line;
        self.by_key.at_or_after(key).filter(|frame| self.lines[*frame as usize].key == key)
    }

    pub(super) fn first_dirty(&self, drive: u32) -> Option<u32> {
        let first = u64::from(drive) * DRIVE;
        let found = self.dirty_by_key.at_or_after(first)?;
        (self.lines[found as usize].key < first + DRIVE).then_some(found)
    }

    pub(super) fn place(&self, frame: u32) -> (u32, u64) {
        let key = self.lines[frame as usize].key;
        ((key / DRIVE) as u32, key % DRIVE)
    }

    /// Finds room for a drive's line that is not in memory: an empty place or a clean line.
    pub(super) fn take(&mut self, drive: u32, line: u64) -> Room {
        if self.lines.len() >= self.most {
            let Some(victim) = self.victim() else { return Room::None };
            if self.lines[victim as usize].dirty > 0 {
                return Room::Dirty(victim);
            }
            self.remove(victim);
        }
        let key = u64::from(drive) * DRIVE + line;
        let fresh = Line {
            key,
            pins: 0,
            filling: None,
            fills: 0,
            destaging: 0,
            dirty: 0,
            used: false,
            protected: false,
        };
        let frame = self.lines.insert(fresh) as u32;
        let map = self.map(frame);
        self.valid.resize(self.valid.len().max(map.end), 0);
        self.dirty.resize(self.dirty.len().max(map.end), 0);
        self.valid[map.clone()].fill(0);
        self.dirty[map].fill(0);
        self.by_key.insert(key, frame);
        self.probation.push_back(frame);
        Room::Frame(frame)
    }

    /// The next line to be evicted: the one unused for longest without requests in flight.
    pub(super) fn victim(&self) -> Option<u32> {
        [&self.probation, &self.protected].into_iter().find_map(|list| {
            let next = |frame: &u32| list.after(*frame);
            std::iter::successors(list.front(), next).find(|frame| {
                let line = &self.lines[*frame as usize];
                line.pins == 0 && line.fills == 0 && line.destaging == 0
            })
        })
    }

    fn remove(&mut self, frame: u32) {
        let Line { key, protected, .. } = self.lines[frame as usize];
        self.by_key.remove(key, frame);
        if protected {
            self.protected.remove(frame);
            self.protected_count -= 1;
        } else {
            self.probation.remove(frame);
        }
        self.lines.remove(frame as usize);
    }

    pub(super) fn pin(&mut self, frame: u32) {
        self.lines[frame as usize].pins += 1;
    }

    /// Releases a line that a request no longer uses, and counts it as used.
    pub(super) fn unpin(&mut self, frame: u32) {
        let line = &mut self.lines[frame as usize];
        line.pins -= 1;
        let again = std::mem::replace(&mut line.used, true);
        if line.protected {
            return self.protected.move_to_back(frame);
        }
        if !again || self.protected_most == 0 {
            return self.probation.move_to_back(frame);
        }
        line.protected = true;
        self.probation.remove(frame);
        self.protected.push_back(frame);
        self.protected_count += 1;
        if self.protected_count > self.protected_most {
            let back = self.protected.front().expect("there are more than may be");
            self.lines[back as usize].protected = false;
            self.protected.remove(back);
            self.protected_count -= 1;
            self.probation.push_back(back);
        }
    }

    pub(super) fn filling(&self, frame: u32) -> Option<u32> {
        self.lines[frame as usize].filling
    }

    pub(super) fn fill(&mut self, frame: u32, transfer: u32) {
        self.lines[frame as usize].filling = Some(transfer);
        self.hold(frame);
    }

    /// Protects a line from eviction.
    pub(super) fn hold(&mut self, frame: u32) {
        self.lines[frame as usize].fills += 1;
    }

    pub(super) fn release(&mut self, frame: u32) {
        self.lines[frame as usize].fills -= 1;
    }

    pub(super) fn filled(&mut self, frame: u32, transfer: u32) {
        let filling = &mut self.lines[frame as usize].filling;
        *filling = filling.filter(|other| *other != transfer);
        self.release(frame);
    }

    pub(super) fn destage(&mut self, frame: u32) {
        self.lines[frame as usize].destaging += 1;
    }

    pub(super) fn destaged(&mut self, frame: u32) {
        self.lines[frame as usize].destaging -= 1;
    }

    pub(super) fn is_moving(&self, frame: u32) -> bool {
        let line = &self.lines[frame as usize];
        line.destaging > 0 || line.fills > 0
    }

    fn map(&self, frame: u32) -> Range<usize> {
        let first = frame as usize * self.words;
        first..first + self.words
    }

    fn bit(&self, frame: u32, sector: u64) -> (usize, u64) {
        (frame as usize * self.words + (sector / 64) as usize, 1 << (sector % 64))
    }

    pub(super) fn is_valid(&self, frame: u32, sector: u64) -> bool {
        let (word, bit) = self.bit(frame, sector);
        self.valid[word] & bit != 0
    }

    pub(super) fn is_dirty(&self, frame: u32, sector: u64) -> bool {
        let (word, bit) = self.bit(frame, sector);
        self.dirty[word] & bit != 0
    }

    pub(super) fn set_valid(&mut self, frame: u32, sector: u64) {
        let (word, bit) = self.bit(frame, sector);
        self.valid[word] |= bit;
    }

    pub(super) fn set_dirty(&mut self, frame: u32, sector: u64) {
        let (word, bit) = self.bit(frame, sector);
        if self.dirty[word] & bit == 0 {
            self.dirty[word] |= bit;
            let line = &mut self.lines[frame as usize];
            line.dirty += 1;
            if line.dirty == 1 {
                self.dirty_by_key.insert(line.key, frame);
                self.dirty_lines += 1;
            }
        }
    }

    pub(super) fn set_clean(&mut self, frame: u32, sector: u64) {
        let (word, bit) = self.bit(frame, sector);
        if self.dirty[word] & bit != 0 {
            self.dirty[word] &= !bit;
            let line = &mut self.lines[frame as usize];
            line.dirty -= 1;
            if line.dirty == 0 {
                self.dirty_by_key.remove(line.key, frame);
                self.dirty_lines -= 1;
            }
        }
    }

    /// Marks a sector as neither valid nor dirty.
    pub(super) fn set_stale(&mut self, frame: u32, sector: u64) {
        self.set_clean(frame, sector);
        let (word, bit) = self.bit(frame, sector);
        self.valid[word] &= !bit;
    }

    /// Each sector of a run of a drive with the frame of its line and its index in the line; `None` if the line is not in memory.
    pub(super) fn each(&self, drive: u32, run: Range<Lbn>) -> impl Iterator<Item = (Lbn, Option<u32>, u64)> {
        let mut at = (u64::MAX, None);
        (run.start.0..run.end.0).map(move |lbn| {
            let line = lbn / self.line_sectors;
            if at.0 != line {
                at = (line, self.find(drive, line));
            }
            (Lbn(lbn), at.1, lbn % self.line_sectors)
        })
    }

    pub(super) fn blocks(&self, line: u64) -> Range<Lbn> {
        Lbn(line * self.line_sectors)..Lbn((line + 1) * self.line_sectors)
    }

    /// Changes each sector of a run that is in memory.
    pub(super) fn change(&mut self, drive: u32, run: Range<Lbn>, change: fn(&mut Lines, u32, u64)) {
        for line in run.start.0 / self.line_sectors..run.end.0.div_ceil(self.line_sectors) {
            let Some(frame) = self.find(drive, line) else { continue };
            let blocks = self.blocks(line);
            let (from, to) = (run.start.max(blocks.start), run.end.min(blocks.end));
            (from - blocks.start..to - blocks.start).for_each(|sector| change(self, frame, sector));
        }
    }
}
