//! The pages in memory: their state, the order of eviction, and which are dirty and since when.

use crate::memory::{NONE, Tree};
use headstack_model::Instant;
use headstack_model::cache::Recency;
use slab::Slab;

#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) index: u64,
    pub(super) filling: Option<u32>,
    pub(super) dirty: bool,
    pub(super) dirtied: Instant,
    pub(super) written_back: bool,
    /// Whether a reader that reaches it triggers more read-ahead.
    pub(super) marked: bool,
    /// The next one with the same hash.
    chain: u32,
}

impl Page {
    fn may_go(&self) -> bool {
        self.filling.is_none() && !self.dirty && !self.written_back
    }
}

/// Page frames: a bounded number, allocated as they are needed.
#[derive(Debug)]
pub(super) struct Pages {
    most: usize,
    frames: Slab<Page>,
    /// Frames by a hash of their page's number: the first of each chain.
    buckets: Vec<u32>,
    /// The pages by last use; the next one to be evicted is in front.
    recency: Recency,
    dirty: Tree,
    /// Dirty pages; the one that has been dirty for longest is in front.
    ages: Recency,
    dirty_count: usize,
    written_back_count: usize,
}

impl Pages {
    pub(super) fn new(most: usize) -> Pages {
        Pages {
            most,
            frames: Slab::new(),
            buckets: vec![NONE; 64],
            recency: Recency::default(),
            dirty: Tree::new(),
            ages: Recency::default(),
            dirty_count: 0,
            written_back_count: 0,
        }
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty_count
    }

    pub(super) fn unwritten(&self) -> usize {
        self.dirty_count + self.written_back_count
    }

    pub(super) fn get(&self, frame: u32) -> &Page {
        &self.frames[frame as usize]
    }

    pub(super) fn get_mut(&mut self, frame: u32) -> &mut Page {
        &mut self.frames[frame as usize]
    }

    fn bucket(&self, index: u64) -> usize {
        let hash = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & (self.buckets.len() - 1)
    }

    pub(super) fn find(&self, index: u64) -> Option<u32> {
        let mut frame = self.buckets[self.bucket(index)];
        while frame != NONE && self.get(frame).index != index {
            frame = self.get(frame).chain;
        }
        (frame != NONE).then_some(frame)
    }

    pub(super) fn touch(&mut self, frame: u32) {
        self.recency.move_to_back(frame);
    }

    /// Adds a page that is not in memory. Without room it evicts the one unused for longest; `None` if none may be evicted.
    pub(super) fn insert(&mut self, index: u64, filling: Option<u32>) -> Option<u32> {
        let page = Page {
            index,
            filling,
            dirty: false,
            dirtied: Instant::ZERO,
            written_back: false,
            marked: false,
            chain: NONE,
        };
        if self.frames.len() >= self.most {
            let gives_way = self.oldest_clean()?;
            self.remove(gives_way);
        }
        let frame = self.frames.insert(page) as u32;
        self.recency.push_back(frame);
        self.hash(frame);
        if self.frames.len() > 2 * self.buckets.len() {
            self.rehash();
        }
        Some(frame)
    }

    /// The page unused for longest of those that may be evicted. The others go to the back, as Linux rotates them, so that they
    /// are not checked again at once.
    fn oldest_clean(&mut self) -> Option<u32> {
        for _ in 0..self.frames.len() {
            let frame = self.recency.front()?;
            if self.get(frame).may_go() {
                return Some(frame);
            }
            self.recency.move_to_back(frame);
        }
        None
    }

    /// Removes a clean page that is in no transfer.
    pub(super) fn remove(&mut self, frame: u32) {
        let Page { index, chain, .. } = *self.get(frame);
        let bucket = self.bucket(index);
        if self.buckets[bucket] == frame {
            self.buckets[bucket] = chain;
        } else {
            let mut at = self.buckets[bucket];
            while self.get(at).chain != frame {
                at = self.get(at).chain;
            }
            self.get_mut(at).chain = chain;
        }
        self.recency.remove(frame);
        self.frames.remove(frame as usize);
    }

    pub(super) fn drop_clean(&mut self, index: u64) {
        if let Some(frame) = self.find(index).filter(|frame| self.get(*frame).may_go()) {
            self.remove(frame);
        }
    }

    fn hash(&mut self, frame: u32) {
        let bucket = self.bucket(self.get(frame).index);
        self.get_mut(frame).chain = self.buckets[bucket];
        self.buckets[bucket] = frame;
    }

    fn rehash(&mut self) {
        self.buckets = vec![NONE; 4 * self.buckets.len()];
        let mut next = self.recency.front();
        while let Some(frame) = next {
            self.hash(frame);
            next = self.recency.after(frame);
        }
    }

    /// Makes a clean page dirty.
    pub(super) fn soil(&mut self, frame: u32, now: Instant) {
        let page = self.get_mut(frame);
        (page.dirty, page.dirtied) = (true, now);
        let index = page.index;
        self.dirty.insert(index, frame);
        self.ages.push_back(frame);
        self.dirty_count += 1;
    }

    pub(super) fn write_back(&mut self, frame: u32) {
        let page = self.get_mut(frame);
        (page.dirty, page.written_back) = (false, true);
        let index = page.index;
        self.dirty.remove(index, frame);
        self.ages.remove(frame);
        self.dirty_count -= 1;
        self.written_back_count += 1;
    }

    pub(super) fn written(&mut self, frame: u32) {
        self.get_mut(frame).written_back = false;
        self.written_back_count -= 1;
    }

    pub(super) fn dirty_from(&self, index: u64) -> Option<u32> {
        self.dirty.at_or_after(index)
    }

    /// Since when the oldest dirty page has been dirty; `Instant::MAX` without one.
    pub(super) fn dirty_since(&self) -> Instant {
        self.ages.front().map_or(Instant::MAX, |frame| self.get(frame).dirtied)
    }
}
