//! The stream memory: frames of one size, each with a run of the disk's bytes.
//!
//! Runs that were read, or are being read, never overlap each other; neither do those that were written and are not on the
//! disk. What a frame holds is found by its place on the disk.

use super::messages::{Piece, Pieces};
use super::view::MemoryView;
use headstack_model::Instant;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Reading,
    /// It was read, and clients may fetch from it.
    Staged,
    Coalescing,
    Ready,
    Writing,
}

impl State {
    fn is_dirty(self) -> bool {
        matches!(self, State::Coalescing | State::Ready | State::Writing)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) state: State,
    /// The stream that it belongs to; the stream may have ended.
    pub(super) stream: u32,
    /// The first byte on the disk, and the number of bytes that it holds or will hold.
    pub(super) place: u64,
    pub(super) bytes: u64,
    /// Bitmap of the sixty-fourths that clients have fetched.
    fetched: u64,
    /// No request finds it any more: its bytes are stale, or all of them were fetched.
    pub(super) is_hidden: bool,
    pub(super) is_behind: bool,
    /// Answers that refer to it and whose bytes the owner has not copied yet.
    pub(super) pins: u32,
    /// When a client last fetched from it, or it was filled.
    pub(super) touched: Instant,
    /// Orders frames by the time at which they were allocated.
    pub(super) serial: u64,
}

impl Frame {
    pub(super) fn end(&self) -> u64 {
        self.place + self.bytes
    }

    /// Whether it was read, and may be fetched from.
    pub(super) fn is_evictable(&self) -> bool {
        self.state == State::Staged && !self.is_hidden
    }

    /// Its key among the frames that may be evicted, if it is one: whether its stream has passed it, and when it was last used.
    fn staged(&self, id: u32) -> Option<(bool, (Instant, u32))> {
        self.is_evictable().then_some((self.is_behind, (self.touched, id)))
    }

    /// Bitmap of the sixty-fourths in which a run of its bytes lies.
    fn parts(&self, begin: u64, end: u64) -> u64 {
        let part = |place: u64| (place - self.place) * 64 / self.bytes;
        let (first, last) = (part(begin), part(end - 1));
        (u64::MAX << first) & (u64::MAX >> (63 - last))
    }

    /// Bytes that no client has fetched, to a sixty-fourth.
    pub(super) fn unfetched(&self) -> u64 {
        self.bytes * u64::from(self.fetched.count_zeros()) / 64
    }
}

#[derive(Debug)]
pub(super) struct Frames {
    frame_bytes: u64,
    count: usize,
    frames: Slab<Frame>,
    /// Frames whose bytes may be fetched, now or once they are read, by offset.
    readable: BTreeMap<u64, u32>,
    /// Frames with bytes that are not on the disk yet, by offset.
    dirty: BTreeMap<u64, u32>,
    /// Staged frames by their last use: those that their streams have not reached, and those that their streams have passed.
    staged: [BTreeSet<(Instant, u32)>; 2],
    owned: BTreeSet<(u32, u32)>,
    /// Frames whose bytes were all fetched.
    emptied: Vec<u32>,
    serials: u64,
    high_water: usize,
}

impl Frames {
    pub(super) fn new(memory_bytes: u64, frame_bytes: u64) -> Frames {
        let count = (memory_bytes / frame_bytes) as usize;
        Frames {
            frame_bytes,
            count,
            frames: Slab::with_capacity(count),
            readable: BTreeMap::new(),
            dirty: BTreeMap::new(),
            staged: Default::default(),
            owned: BTreeSet::new(),
            emptied: Vec::new(),
            serials: 0,
            high_water: 0,
        }
    }

    pub(super) fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.count as u64 * self.frame_bytes
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn free(&self) -> usize {
        self.count - self.used()
    }

    pub(super) fn used(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Allocates a free frame for a run of the disk's bytes, if there is one.
    pub(super) fn allocate(
        &mut self,
        now: Instant,
        state: State,
        stream: u32,
        place: u64,
        bytes: u64,
    ) -> Option<u32> {
        if self.free() == 0 {
            return None;
        }
        self.serials += 1;
        let (serial, touched) = (self.serials, now);
        let (fetched, is_hidden, is_behind, pins) = (0, false, false, 0);
        let frame =
            Frame { state, stream, place, bytes, fetched, is_hidden, is_behind, pins, touched, serial };
        let id = self.frames.insert(frame) as u32;
        self.high_water = self.high_water.max(self.used());
        self.owned.insert((stream, id));
        let map = if state.is_dirty() { &mut self.dirty } else { &mut self.readable };
        let before = map.insert(place, id);
        assert!(before.is_none(), "runs of one kind do not overlap");
        Some(id)
    }

    /// Hides a frame: no request finds it any more.
    fn hide(&mut self, id: u32) {
        let Frame { is_hidden, place, state, .. } = *self.get(id);
        if is_hidden {
            return;
        }
        self.change(id, |frame| frame.is_hidden = true);
        let is_dirty = state.is_dirty();
        let map = if is_dirty { &mut self.dirty } else { &mut self.readable };
        map.remove(&place);
    }

    /// Frees a frame, or marks it to be freed when no answer refers to it. Returns its stream if the frame is free now.
    pub(super) fn retire(&mut self, id: u32) -> Option<u32> {
        self.hide(id);
        let frame = self.get_mut(id);
        if frame.pins > 0 {
            // The clients of these answers may still fetch from it.
            frame.state = State::Staged;
            return None;
        }
        let stream = frame.stream;
        self.frames.remove(id as usize);
        self.owned.remove(&(stream, id));
        Some(stream)
    }

    pub(super) fn is_readable(&self, id: u32) -> bool {
        self.frames.get(id as usize).is_some_and(|frame| !frame.is_hidden && !frame.state.is_dirty())
    }

    pub(super) fn pin(&mut self, pieces: &Pieces) {
        for id in self.named(pieces) {
            self.get_mut(id).pins += 1;
        }
    }

    /// Unpins the frames of an answer. Calls `freed` with the stream of each frame that becomes free.
    pub(super) fn unpin(&mut self, pieces: &Pieces, mut freed: impl FnMut(u32)) {
        for id in self.named(pieces) {
            let frame = self.get_mut(id);
            frame.pins -= 1;
            if frame.pins == 0 && frame.is_hidden && frame.state == State::Staged {
                freed(self.retire(id).expect("nothing names it any more"));
            }
        }
    }

    fn named(&self, pieces: &Pieces) -> impl Iterator<Item = u32> + use<> {
        let (frame_bytes, pieces) = (self.frame_bytes, *pieces);
        let frames = move |piece: Piece| piece.at / frame_bytes..=(piece.at + piece.bytes - 1) / frame_bytes;
        (0..pieces.len()).flat_map(move |number| frames(pieces.get(number))).map(|id| id as u32)
    }

    pub(super) fn get(&self, id: u32) -> &Frame {
        &self.frames[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Frame {
        &mut self.frames[id as usize]
    }

    /// Changes a frame, and its key among the staged ones.
    fn change(&mut self, id: u32, change: impl FnOnce(&mut Frame)) {
        let frame = self.get_mut(id);
        let before = frame.staged(id);
        change(frame);
        let now = frame.staged(id);
        if before == now {
            return;
        }
        if let Some((is_behind, key)) = before {
            self.staged[usize::from(is_behind)].remove(&key);
        }
        if let Some((is_behind, key)) = now {
            self.staged[usize::from(is_behind)].insert(key);
        }
    }

    pub(super) fn stage(&mut self, now: Instant, id: u32) {
        self.change(id, |frame| (frame.state, frame.touched) = (State::Staged, now));
    }

    pub(super) fn mark_passed(&mut self, id: u32) {
        self.change(id, |frame| frame.is_behind = true);
    }

    /// The least recently used frame of those that their streams have passed.
    pub(super) fn oldest_passed(&self) -> Option<u32> {
        self.staged[1].first().map(|(_, id)| *id)
    }

    /// The frames that their streams have not passed, least recently used first.
    pub(super) fn expected(&self) -> impl Iterator<Item = (u32, &Frame)> {
        self.staged[0].iter().map(|(_, id)| (*id, self.get(*id)))
    }

    pub(super) fn owned_by(&self, stream: u32) -> impl Iterator<Item = u32> {
        self.owned.range((stream, 0)..=(stream, u32::MAX)).map(|(_, id)| *id)
    }

    pub(super) fn set_owner(&mut self, id: u32, stream: u32) {
        let before = std::mem::replace(&mut self.get_mut(id).stream, stream);
        self.owned.remove(&(before, id));
        self.owned.insert((stream, id));
    }

    /// Frames that may be fetched from and hold bytes between these two.
    pub(super) fn readable_in(&self, begin: u64, end: u64) -> impl Iterator<Item = u32> {
        let first = self.readable_at(begin);
        first.into_iter().chain(self.readable.range(begin + 1..end.max(begin + 1)).map(|(_, id)| *id))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Frame)> {
        self.frames.iter().map(|(id, frame)| (id as u32, frame))
    }

    /// The offset in the stream memory of a byte of the disk that a frame holds.
    pub(super) fn memory_offset(&self, id: u32, place: u64) -> u64 {
        u64::from(id) * self.frame_bytes + (place - self.get(id).place)
    }

    pub(super) fn serial(&self) -> u64 {
        self.serials
    }

    /// Whether frames up to this number are not on the disk yet.
    pub(super) fn has_dirty_until(&self, serial: u64) -> bool {
        self.dirty.values().any(|id| self.get(*id).serial <= serial)
    }

    /// The frame from which this byte may be fetched, now or once it is read.
    pub(super) fn readable_at(&self, place: u64) -> Option<u32> {
        let (_, id) = self.readable.range(..=place).next_back()?;
        (self.get(*id).end() > place).then_some(*id)
    }

    /// Frames with bytes of this run that are not on the disk.
    pub(super) fn dirty_in(&self, place: u64, bytes: u64) -> impl Iterator<Item = u32> + '_ {
        let below = self.dirty.range(..=place).next_back().map(|(_, id)| *id);
        let below = below.filter(move |id| self.get(*id).end() > place && self.get(*id).place < place);
        let within = self.dirty.range(place..place.saturating_add(bytes)).map(|(_, id)| *id);
        below.into_iter().chain(within).filter(move |id| self.get(*id).end() > place)
    }

    /// All frames with bytes that are not on the disk, in ascending order.
    pub(super) fn all_dirty(&self) -> impl Iterator<Item = u32> + '_ {
        self.dirty.values().copied()
    }

    /// The pieces of this run, if all of it is staged and its pieces are few enough.
    pub(super) fn pieces(&self, place: u64, bytes: u64) -> Option<Pieces> {
        let (mut pieces, mut at, end) = (Pieces::default(), place, place + bytes);
        while at < end {
            let id = self.readable_at(at).filter(|id| self.get(*id).state == State::Staged)?;
            let upto = self.get(id).end().min(end);
            if !pieces.push(Piece { at: self.memory_offset(id, at), bytes: upto - at }) {
                return None;
            }
            at = upto;
        }
        Some(pieces)
    }

    pub(super) fn fetch(&mut self, now: Instant, place: u64, bytes: u64) {
        let (mut at, end) = (place, place + bytes);
        while at < end {
            let id = self.readable_at(at).expect("it was there");
            let frame = self.get_mut(id);
            let upto = frame.end().min(end);
            frame.fetched |= frame.parts(at, upto);
            let is_done = frame.fetched == u64::MAX;
            self.change(id, |frame| frame.touched = now);
            if is_done {
                self.emptied.push(id);
            }
            at = upto;
        }
    }

    /// Removes and returns the last frame whose bytes were all fetched.
    pub(super) fn pop_emptied(&mut self) -> Option<u32> {
        self.emptied.pop()
    }

    /// Whether frames hold a run, now or once they are read.
    pub(super) fn covers(&self, place: u64, bytes: u64) -> bool {
        let (mut at, end) = (place, place + bytes);
        while at < end {
            let Some(id) = self.readable_at(at) else { return false };
            at = self.get(id).end();
        }
        true
    }

    /// Hides all frames with bytes of this run, because the disk will have other bytes there. Calls `unused` with each that no command
    /// needs.
    pub(super) fn invalidate(&mut self, place: u64, bytes: u64, mut unused: impl FnMut(u32)) {
        let end = place.saturating_add(bytes);
        let mut at = place;
        while let Some(id) = self.first_readable(at).filter(|id| self.get(*id).place < end) {
            at = self.get(id).end();
            self.hide(id);
            if self.get(id).state == State::Staged {
                unused(id);
            }
        }
    }

    /// The first frame with bytes to be fetched at or after this one.
    fn first_readable(&self, place: u64) -> Option<u32> {
        self.readable_at(place).or_else(|| self.readable.range(place..).next().map(|(_, id)| *id))
    }

    /// Where the last frame, readable or dirty, below this byte ends.
    pub(super) fn end_below(&self, place: u64) -> u64 {
        let below =
            [&self.readable, &self.dirty].map(|map| map.range(..place).next_back().map(|(_, id)| *id));
        below.into_iter().flatten().map(|id| self.get(id).end()).max().unwrap_or(0)
    }

    /// Where the next frame begins, readable or dirty, from this byte on.
    pub(super) fn begin_above(&self, place: u64) -> u64 {
        let above =
            [&self.readable, &self.dirty].map(|map| map.range(place..).next().map(|(place, _)| *place));
        above.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// The frame, readable or dirty, that holds this byte.
    pub(super) fn holder(&self, place: u64) -> Option<u32> {
        self.dirty_in(place, 1).next().or_else(|| self.readable_at(place))
    }

    pub(super) fn view(&self) -> MemoryView {
        let (mut staged_bytes, mut coalesced_bytes) = (0, 0);
        for (_, frame) in self.iter() {
            match frame.state {
                State::Staged => staged_bytes += frame.bytes,
                State::Coalescing | State::Ready | State::Writing => coalesced_bytes += frame.bytes,
                State::Reading => {}
            }
        }
        MemoryView {
            bytes: self.memory_bytes(),
            used_bytes: self.used() as u64 * self.frame_bytes,
            high_water_bytes: self.high_water as u64 * self.frame_bytes,
            staged_bytes,
            coalesced_bytes,
        }
    }

    pub(super) fn check(&self) {
        let mut ends = (0, 0);
        for (map, end, dirty) in [(&self.readable, &mut ends.0, false), (&self.dirty, &mut ends.1, true)] {
            for (place, id) in map {
                let frame = self.get(*id);
                assert!(
                    frame.place == *place && frame.state.is_dirty() == dirty,
                    "frame {id} is where it is kept"
                );
                assert!(*place >= *end, "runs of one kind do not overlap");
                assert!(frame.bytes > 0 && frame.bytes <= self.frame_bytes, "a frame holds what fits");
                *end = frame.end();
            }
        }
        let kept = self.readable.len() + self.dirty.len();
        let hidden = self.iter().filter(|(_, frame)| frame.is_hidden).count();
        assert_eq!(kept + hidden, self.used(), "each frame in use is kept once");
        let staged = self.iter().filter_map(|(id, frame)| frame.staged(id));
        let is_listed = |(is_behind, key): (bool, _)| self.staged[usize::from(is_behind)].contains(&key);
        let count = staged.inspect(|staged| assert!(is_listed(*staged), "{staged:?} is listed")).count();
        assert_eq!(count, self.staged.iter().map(BTreeSet::len).sum::<usize>(), "and no other is");
        assert!(self.iter().all(|(id, frame)| self.owned.contains(&(frame.stream, id))));
        assert_eq!(self.owned.len(), self.used(), "each frame in use has one owner");
    }
}
