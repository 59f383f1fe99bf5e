//! Write-back: when the flusher writes dirty pages, and which jobs wait for it.
//!
//! It writes while more than the background share is dirty, while a flush waits, and old pages at each interval: upward by page
//! number from where it stopped, adjacent pages in one transfer.

use super::TransferSender;
use super::pages::Pages;
use super::{PageCache, Purpose};
use crate::layer::Out;
use crate::memory::Destages;
use crate::os::PageCacheSpec;
use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct WriteBack {
    background: usize,
    hard: usize,
    interval: Nanos,
    expire: Nanos,
    in_flight_max: usize,
    cursor: u64,
    /// Pages dirty since this time or earlier are written, whatever their number.
    until: Option<Instant>,
    last_tick: Instant,
    destages: Destages,
    /// Writers that wait because too many pages are dirty.
    pub(super) throttled: VecDeque<u32>,
    flushes: Vec<Flush>,
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    job: u32,
    /// The flush waits for pages that have been dirty since then or earlier.
    until: Instant,
    /// The flush waits for transfers before this one, once all its pages are in transfers.
    before: Option<u64>,
}

impl WriteBack {
    pub(super) fn new(spec: &PageCacheSpec, room: usize) -> WriteBack {
        let share = |percent: u32| (room * percent as usize / 100).max(1);
        WriteBack {
            background: share(spec.dirty_background_ratio),
            hard: share(spec.dirty_ratio),
            interval: Nanos(u64::from(spec.dirty_writeback_centisecs) * 10_000_000),
            expire: Nanos(u64::from(spec.dirty_expire_centisecs) * 10_000_000),
            in_flight_max: spec.writeback_requests as usize,
            cursor: 0,
            until: None,
            last_tick: Instant::ZERO,
            destages: Destages::default(),
            throttled: VecDeque::with_capacity(PageCache::AT_ONCE),
            flushes: Vec::new(),
        }
    }

    /// When the flusher next searches for old pages: at a multiple of its interval, while there is a dirty page.
    pub(super) fn next_tick(&self, pages: &Pages) -> Instant {
        if pages.dirty() == 0 || self.interval == Nanos::ZERO {
            return Instant::MAX;
        }
        let from = self.last_tick.max(pages.dirty_since());
        Instant((from.0 / self.interval.0 + 1) * self.interval.0)
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.last_tick = now;
        self.until = now.0.checked_sub(self.expire.0).map(Instant);
    }

    pub(super) fn ended(&mut self, turn: u64) {
        self.destages.end(turn);
    }

    /// Pages that became dirty up to this time are to be written; all pages if there are too many.
    fn written_until(&self, pages: &Pages, starved: bool) -> Option<Instant> {
        if pages.dirty() > self.background || !self.throttled.is_empty() || starved {
            return Some(Instant::MAX);
        }
        let flushes = self.flushes.iter().filter(|flush| flush.before.is_none());
        let until = flushes.map(|flush| flush.until).chain(self.until).max()?;
        (pages.dirty_since() <= until).then_some(until)
    }
}

impl PageCache {
    /// Makes the pages of a write dirty. If other writers wait for that, the write waits behind them, unless it is the first of them.
    pub(super) fn dirty_pages(&mut self, now: Instant, job: u32, first_in_line: bool, out: &mut Out<'_>) {
        let request = self.requests[job].completion.request;
        let (first, end) = self.span(&request);
        while self.requests[job].state.next < end {
            let index = self.requests[job].state.next;
            let begin = index * self.page_sectors;
            let whole =
                request.lbn.0 <= begin && (begin + self.page_sectors).min(self.sectors) <= request.end().0;
            let found = self.pages.find(index);
            let is_dirty = found.is_some_and(|frame| self.pages.get(frame).dirty);
            let behind = !first_in_line && !self.write_back.throttled.is_empty();
            if !is_dirty && (behind || self.pages.unwritten() >= self.write_back.hard) {
                return self.throttle(now, job, first_in_line, out);
            }
            let frame = match found {
                Some(frame) => Some(frame),
                None if whole => self.pages.insert(index, None),
                None => self.fill(job, index, 1, None, out),
            };
            let Some(frame) = frame else { return self.starve(now, job, out) };
            if let Some(transfer) = self.pages.get(frame).filling {
                self.requests[job].since = now;
                return self.requests.wait(job, transfer);
            }
            self.pages.touch(frame);
            if !is_dirty {
                self.soil(now, frame);
            }
            self.requests[job].state.next += 1;
        }
        self.end(now, job, end - first, out);
        self.write(now, out);
    }

    fn soil(&mut self, now: Instant, frame: u32) {
        self.pages.soil(frame, now);
        self.activity.dirtied_pages += 1;
        let unwritten = self.pages.unwritten() as u64;
        self.activity.unwritten_pages_max = self.activity.unwritten_pages_max.max(unwritten);
    }

    fn throttle(&mut self, now: Instant, job: u32, first_in_line: bool, out: &mut Out<'_>) {
        self.requests[job].since = now;
        if first_in_line {
            self.write_back.throttled.push_front(job);
        } else {
            self.activity.throttled += 1;
            self.write_back.throttled.push_back(job);
        }
        self.write(now, out);
    }

    pub(super) fn resume_writers(&mut self, now: Instant, out: &mut Out<'_>) {
        while self.pages.unwritten() < self.write_back.hard
            && let Some(job) = self.write_back.throttled.pop_front()
        {
            self.account(now, job, None);
            self.dirty_pages(now, job, true, out);
        }
    }

    pub(super) fn write(&mut self, now: Instant, out: &mut Out<'_>) {
        while self.write_back.destages.in_flight() < self.write_back.in_flight_max {
            let starved = self.requests.starved() > 0;
            let Some(until) = self.write_back.written_until(&self.pages, starved) else { break };
            if !self.write_run(until, out) {
                break;
            }
        }
        self.finish_flushes(now, out);
    }

    /// Begins writing the next run of dirty pages; false if there is none that may be written.
    fn write_run(&mut self, until: Instant, out: &mut Out<'_>) -> bool {
        let Some(first) = self.next_old(until) else { return false };
        let mut index = first;
        while index - first < self.request_most
            && let Some(frame) = self.pages.find(index)
            && self.pages.get(frame).dirty
            && !self.pages.get(frame).written_back
        {
            self.pages.write_back(frame);
            index += 1;
        }
        self.write_back.cursor = index;
        let turn = self.write_back.destages.begin(0);
        let flusher = self.write_back.flushes.first().map(|flush| self.requests[flush.job].source);
        let (source, sync) = (flusher.unwrap_or(u32::MAX), flusher.is_some());
        let purpose = Purpose::WriteBack { first, pages: (index - first) as u32, turn };
        // The class is that of the kernel's own process that writes back.
        let from = TransferSender { source, urgent: false, idle: false, sync };
        self.transfer(self.requests.next_transfer(), purpose, from, out);
        true
    }

    /// The first page from the cursor on, wrapping once, that has been dirty since `until` or earlier and is not in a transfer.
    fn next_old(&self, until: Instant) -> Option<u64> {
        let is_due = |frame: u32| {
            let page = self.pages.get(frame);
            page.dirtied <= until && !page.written_back
        };
        let cursor = self.write_back.cursor;
        for (from, end) in [(cursor, u64::MAX), (0, cursor)] {
            let mut index = from;
            while let Some(frame) =
                self.pages.dirty_from(index).filter(|frame| self.pages.get(*frame).index < end)
            {
                if is_due(frame) {
                    return Some(self.pages.get(frame).index);
                }
                index = self.pages.get(frame).index + 1;
            }
        }
        None
    }

    pub(super) fn flush(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        self.write_back.flushes.push(Flush { job, until: now, before: None });
        self.write(now, out);
    }

    /// Flushes the drive for the flushes whose pages are written.
    pub(super) fn finish_flushes(&mut self, now: Instant, out: &mut Out<'_>) {
        let since = self.pages.dirty_since();
        let mut index = 0;
        while let Some(flush) = self.write_back.flushes.get_mut(index) {
            let destages = &self.write_back.destages;
            if flush.before.is_none() && since > flush.until {
                flush.before = Some(destages.next());
            }
            if flush.before.is_none_or(|before| destages.is_any_before(before, 0)) {
                index += 1;
                continue;
            }
            let job = self.write_back.flushes.remove(index).job;
            let number = self.requests.next_transfer();
            let waiting = &mut self.requests[job];
            let waited = waiting.end_wait(now);
            waiting.completion.parts.cache += waited;
            let from = TransferSender::from_job(waiting);
            self.transfer(number, Purpose::Flush, from, out);
            self.requests.wait(job, number);
        }
    }
}
