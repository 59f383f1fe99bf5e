//! The reads that `verify` makes: what a job wrote is read again, after each pass or every few writes.
//!
//! The requests are fio's, their data are not compared. Without a random map the last write of each place is read, in the order of the
//! places; else all writes in their order. With `verify_backlog` reads begin between the writes, and only of writes that have completed.
//!
//! *Source:* `do_verify`, `check_get_verify` and `log_io_piece` of fio 3.33.

use std::collections::{BTreeMap, VecDeque};

use crate::fio::extent::Run;
use crate::fio::file::Pattern;
use crate::fio::settings::Settings;

/// Written requests of one size, one after the other.
#[derive(Clone, Copy, Debug)]
struct Written {
    file: usize,
    offset: u64,
    bytes: u64,
    count: u64,
}

impl Written {
    fn end(&self) -> u64 {
        self.offset + self.count * self.bytes
    }

    /// Whether a request continues it.
    fn is_continued(&self, other: &Written) -> bool {
        self.file == other.file && self.bytes == other.bytes && self.end() == other.offset
    }

    /// It without its first `count` requests.
    fn after(self, count: u64) -> Written {
        Written { offset: self.offset + count * self.bytes, count: self.count - count, ..self }
    }
}

/// The written requests that are still to be read.
#[derive(Clone, Debug)]
enum Unread {
    InOrder(VecDeque<Written>),
    /// By file and offset; a place is written once.
    ByPlace(BTreeMap<(usize, u64), Written>),
}

impl Unread {
    /// Adds a request; returns how many others it replaces.
    fn push(&mut self, new: Written) -> u64 {
        let all = match self {
            Unread::InOrder(all) => {
                match all.back_mut() {
                    Some(last) if last.is_continued(&new) => last.count += 1,
                    _ => all.push_back(new),
                }
                return 0;
            }
            Unread::ByPlace(all) => all,
        };
        let gone = cut_out(all, &new);
        match all.range_mut((new.file, 0)..(new.file, new.offset)).next_back() {
            Some((_, last)) if last.is_continued(&new) => last.count += 1,
            _ => drop(all.insert((new.file, new.offset), new)),
        }
        gone
    }

    fn first(&self) -> Option<Written> {
        match self {
            Unread::InOrder(all) => all.front().copied(),
            Unread::ByPlace(all) => all.first_key_value().map(|(_, first)| *first),
        }
    }

    fn pop(&mut self) {
        match self {
            Unread::InOrder(all) => {
                if let Some(first) = all.pop_front().filter(|first| first.count > 1) {
                    all.push_front(first.after(1));
                }
            }
            Unread::ByPlace(all) => {
                if let Some((_, first)) = all.pop_first().filter(|(_, first)| first.count > 1) {
                    let rest = first.after(1);
                    all.insert((rest.file, rest.offset), rest);
                }
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Unread::InOrder(all) => all.clear(),
            Unread::ByPlace(all) => all.clear(),
        }
    }
}

/// Removes the requests that a new one overwrites in part or whole; returns how many these were.
fn cut_out(all: &mut BTreeMap<(usize, u64), Written>, new: &Written) -> u64 {
    let mut gone = 0;
    while let Some((key, old)) = all.range((new.file, 0)..(new.file, new.end())).next_back()
        && old.end() > new.offset
    {
        let (key, old) = (*key, *old);
        all.remove(&key);
        let before = new.offset.saturating_sub(old.offset) / old.bytes;
        let upto = (new.end() - old.offset).div_ceil(old.bytes).min(old.count);
        gone += upto - before;
        if upto < old.count {
            let rest = old.after(upto);
            all.insert((rest.file, rest.offset), rest);
        }
        if before > 0 {
            all.insert(key, Written { count: before, ..old });
        }
    }
    gone
}

/// The place of a request: its file and its offset.
type WrittenPlace = (usize, u64);

/// What a clone wrote, and its progress in reading that.
#[derive(Clone, Debug)]
pub(in crate::fio) struct Verify {
    backlog: u64,
    batch: u64,
    /// Reads left of the present batch.
    batch_left: u64,
    pub(super) only: bool,
    /// Whether bytes end the passes of a job that only its time ends. As in fio, those of an engine that completes requests at once do not.
    pub(super) ends_passes: bool,
    pending: Unread,
    /// Number of pending requests.
    count: u64,
    /// The requests that have not completed by their ids, and the place of each that writes.
    out: Vec<(u64, Option<WrittenPlace>)>,
    /// The request issued last, until its id is known.
    issued: Option<Option<WrittenPlace>>,
    /// Whether the request completed last was a write.
    has_written: bool,
    is_reading: bool,
    /// Whether writes are kept to be read: `do_verify`.
    keeps: bool,
    replay: Option<ReplayedBytes>,
}

/// The bytes of a job with `experimental_verify`, which reads no more in all its passes than one of them wrote.
#[derive(Clone, Copy, Debug)]
struct ReplayedBytes {
    read: u64,
    written: u64,
    least: u64,
}

impl Verify {
    /// The reads of a job that writes and verifies; `None` for others.
    pub(super) fn new(settings: &Settings, pattern: &Pattern) -> Option<Box<Verify>> {
        let rules = settings.flushes.verify;
        let direction = settings.direction();
        if !direction.writes || !rules.has_method || !(rules.reads || rules.only) {
            return None;
        }
        let in_order = direction.random && pattern.once || rules.replays;
        let queue = &settings.queue;
        let at_once =
            queue.engine.synchronous || queue.offload || queue.engine.name == "null" && queue.depth() == 1;
        Some(Box::new(Verify {
            backlog: if rules.replays { 0 } else { rules.backlog },
            batch: if rules.batch == 0 { rules.backlog } else { rules.batch },
            batch_left: 0,
            only: rules.only,
            ends_passes: !at_once,
            pending: if in_order {
                Unread::InOrder(VecDeque::new())
            } else {
                Unread::ByPlace(BTreeMap::new())
            },
            count: 0,
            out: Vec::new(),
            issued: None,
            has_written: false,
            is_reading: false,
            keeps: rules.reads,
            replay: rules.replays.then_some(ReplayedBytes { read: 0, written: 0, least: pattern.least() }),
        }))
    }

    /// Whether the reads count as the writes that they repeat.
    pub(super) fn replays(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether the pass is over and what it wrote is read.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Records a request before it is issued; with `verify_only` a write is not.
    pub(super) fn note(&mut self, is_write: bool, file: usize, run: Run) {
        let place = is_write.then_some((file, run.offset));
        self.issued = Some(place);
        if is_write && self.keeps {
            self.count += 1;
            self.count -= self.pending.push(Written { file, offset: run.offset, bytes: run.bytes, count: 1 });
            if let Some(replay) = &mut self.replay {
                replay.written += run.bytes;
            }
        }
    }

    /// Records the id of the request issued last.
    pub(super) fn note_id(&mut self, id: u64) {
        if let Some(place) = self.issued.take() {
            self.out.push((id, place));
        }
    }

    /// Handles the completion of a request.
    pub(super) fn complete(&mut self, id: u64) {
        if let Some(at) = self.out.iter().position(|(out, _)| *out == id) {
            self.has_written = self.out.swap_remove(at).1.is_some();
        }
    }

    /// The write that is read next between the writes, if it is time and if it has completed.
    pub(super) fn next_of_backlog(&mut self) -> Option<(usize, Run)> {
        if self.backlog == 0 || self.count == 0 {
            return None;
        }
        if self.batch_left == 0 {
            if !self.has_written || !self.count.is_multiple_of(self.backlog) {
                return None;
            }
            self.batch_left = self.batch;
        }
        let first = self.pending.first()?;
        if self.out.iter().any(|(_, place)| *place == Some((first.file, first.offset))) {
            return None;
        }
        self.batch_left -= 1;
        Some(self.pop_first(&first))
    }

    /// The write that is read next after the pass; `None` if all were.
    pub(super) fn next_of_pass(&mut self) -> Option<(usize, Run)> {
        let first = self.pending.first()?;
        if let Some(replay) = &mut self.replay {
            if replay.read + replay.least > replay.written {
                return None;
            }
            replay.read += first.bytes;
        }
        Some(self.pop_first(&first))
    }

    fn pop_first(&mut self, first: &Written) -> (usize, Run) {
        self.pending.pop();
        self.count -= 1;
        (first.file, Run { offset: first.offset, bytes: first.bytes, resets_zone: false })
    }

    /// Goes from a pass to its reads, or from these to the next pass. Returns whether reads follow.
    pub(super) fn switch_phase(&mut self) -> bool {
        self.is_reading = !self.is_reading && self.count > 0;
        if !self.is_reading {
            self.pending.clear();
            self.count = 0;
            if let Some(replay) = &mut self.replay {
                replay.written = 0;
            }
        }
        self.is_reading
    }
}
