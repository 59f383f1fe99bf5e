//! The page cache of a volume: recently used pages, read-ahead, and write-back.
//!
//! A [`Layer`]: it answers requests that it serves, passes direct and forced requests through, and sends its own transfers to its
//! child.
//!
//! A read visits its pages one by one: it uses a page in memory, waits for one in a transfer, and reads a missing one, with
//! read-ahead. A write makes its pages dirty, after it has read those that it covers in part, and waits while too many pages are
//! dirty. A flush writes the present dirty pages and flushes the drive.
//!
//! *Time:* a request that waited for transfers has their time split, as far as it waited; waiting for room for dirty pages is
//! `queued`; waiting for the host's own writes in a flush, and copying, is `cache`.
//!
//! Modelled: Linux's read-ahead, one list by last use, dirty limits and ages, the flusher. Not modelled: the division in active
//! and inactive pages, the pacing of writers below the hard limit, direct requests waiting for dirty pages of their blocks.
//!
//! *Source:* Linux 5 `mm/readahead.c`, `mm/page-writeback.c`, `Documentation/admin-guide/sysctl/vm.rst` (the behaviour).

mod ahead;
mod pages;
mod write_back;

use super::{HostSpec, PageCacheSpec};
use crate::device::Completion;
use crate::layer::{Completed, Layer, Out, Submission};
use crate::link::{ProcessorWork, WorkKind};
use crate::memory::{Agenda, Job, RequestTable, Resume};
use ahead::{Fetch, Memory, Reader};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_workload::ReadAdvice;
use pages::Pages;
use serde::Serialize;
use write_back::WriteBack;

/// The counters of a page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageCacheActivity {
    /// Pages that readers requested.
    pub wanted_pages: u64,
    /// Pages that were in memory when the reader reached them.
    pub hit_pages: u64,
    /// Pages read from the volume.
    pub read_pages: u64,
    /// Pages that writers made dirty.
    pub dirtied_pages: u64,
    /// Pages written to the volume.
    pub written_pages: u64,
    /// Largest number of pages that were dirty or being written at one time.
    pub unwritten_pages_max: u64,
    /// Times that a writer had to wait because too many pages were unwritten.
    pub throttled: u64,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Fill {
        first: u64,
        pages: u32,
    },
    /// Writes pages; it has a rank in the order of such transfers.
    WriteBack {
        first: u64,
        pages: u32,
        turn: u64,
    },
    Flush,
}

/// The progress of a request over its pages.
#[derive(Clone, Copy, Debug)]
struct PageWalk {
    /// Pages still to walk over.
    next: u64,
    end: u64,
    /// Number of pages that were not in memory when the walk first reached them.
    missed: u64,
    /// The page after the last of these. A page that leaves the memory before the request continues is missed twice and counted once.
    missed_end: u64,
    advice: ReadAdvice,
}

impl PageWalk {
    /// Counts a page that is not in memory, unless it was counted before.
    fn miss(&mut self, page: u64) {
        if page >= self.missed_end {
            (self.missed, self.missed_end) = (self.missed + 1, page + 1);
        }
    }
}

/// The process that waits for a transfer, and its priority.
#[derive(Clone, Copy, Debug)]
struct TransferSender {
    source: u32,
    urgent: bool,
    idle: bool,
    sync: bool,
}

impl TransferSender {
    /// The process of a request, which waits.
    fn from_job<S>(job: &Job<S>) -> TransferSender {
        TransferSender { source: job.source, urgent: job.urgent, idle: job.idle, sync: true }
    }
}

/// The cost of copies between pages and programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCost {
    /// Cost of copying a page.
    page: Nanos,
    /// Whether copies wait for the host's processor; else each has a processor of its own.
    waits: bool,
}

impl CopyCost {
    /// The cost at this host for the pages of a volume with blocks of `sector_bytes` bytes.
    pub(crate) fn new(host: &HostSpec, sector_bytes: u32) -> CopyCost {
        let page_bytes = host.page_cache.as_ref().map_or(0, |cache| cache.page_bytes);
        let page = host.copy_time(u64::from(page_bytes.max(sector_bytes)));
        CopyCost { page, waits: host.processor().is_some() }
    }
}

/// The page cache of a volume.
#[derive(Debug)]
pub struct PageCache {
    pages: Pages,
    sectors: u64,
    page_sectors: u64,
    ahead_most: u64,
    request_most: u64,
    copies: CopyCost,
    readers: Vec<(u32, Reader)>,
    requests: RequestTable<PageWalk, Purpose>,
    write_back: WriteBack,
    /// Whether direct requests go through the cache, too.
    buffer_direct: bool,
    /// Jobs that end once their data are copied.
    copying: Agenda<u32>,
    activity: PageCacheActivity,
}

impl Memory for Pages {
    fn before(&self, index: u64, most: u64) -> u64 {
        (1..=most.min(index)).find(|back| self.find(index - back).is_none()).unwrap_or(most.min(index) + 1)
            - 1
    }

    fn gap(&self, index: u64, most: u64) -> Option<u64> {
        (index..=index + most).find(|index| self.find(*index).is_none())
    }
}

impl PageCache {
    /// Number of requests and transfers for which memory is allocated at the start.
    const AT_ONCE: usize = 1024;

    /// A page cache for a volume of `sectors` blocks of `sector_bytes` bytes, above an array with `stripe_bytes` of data in a stripe if given.
    pub(crate) fn new(
        spec: &PageCacheSpec,
        copies: CopyCost,
        (sectors, sector_bytes): (u64, u32),
        stripe_bytes: Option<u64>,
    ) -> PageCache {
        let page_sectors = u64::from((spec.page_bytes / sector_bytes).max(1));
        let page_bytes = page_sectors * u64::from(sector_bytes);
        let pages = |kb: u64| kb * 1024 / page_bytes;
        let room = pages(u64::from(spec.memory_mb) * 1024) as usize;
        PageCache {
            pages: Pages::new(room),
            sectors,
            page_sectors,
            ahead_most: pages(spec.read_ahead_kib(stripe_bytes)),
            request_most: pages(1280),
            copies,
            readers: Vec::new(),
            requests: RequestTable::new(PageCache::AT_ONCE, Resume::OldestFirst),
            write_back: WriteBack::new(spec, room),
            buffer_direct: spec.buffer_direct,
            copying: Agenda::new(PageCache::AT_ONCE),
            activity: PageCacheActivity::default(),
        }
    }

    fn next_event(&self) -> Instant {
        self.copying.next_event().min(self.write_back.next_tick(&self.pages))
    }

    /// Its counters.
    pub fn activity(&self) -> &PageCacheActivity {
        &self.activity
    }

    /// Dirty pages.
    pub fn dirty(&self) -> usize {
        self.pages.dirty()
    }

    /// Whether the cache serves a request; it does not serve direct ones and those that are forced to the media.
    fn serves(&self, Submission { request, direct, .. }: &Submission) -> bool {
        let fits = request.sectors > 0 && request.end().0 <= self.sectors;
        request.op == Op::Flush || (fits && !request.fua && (!direct || self.buffer_direct))
    }

    /// Drops the pages that a request makes stale which bypasses the cache.
    fn invalidate(&mut self, request: &Request) {
        if request.op == Op::Write && request.end().0 <= self.sectors {
            let (first, end) = self.span(request);
            (first..end).for_each(|index| self.pages.drop_clean(index));
        }
    }

    fn span(&self, request: &Request) -> (u64, u64) {
        (request.lbn.0 / self.page_sectors, request.end().0.div_ceil(self.page_sectors))
    }

    fn begin(&mut self, now: Instant, submission: &Submission, out: &mut Out<'_>) {
        let (next, end) = self.span(&submission.request);
        let walk = PageWalk { next, end, missed: 0, missed_end: 0, advice: submission.advice };
        let job = self.requests.begin(now, submission, walk);
        self.go_on(now, job, out);
    }

    fn transferred(&mut self, now: Instant, number: u32, how: &Completion, out: &mut Out<'_>) {
        let (purpose, mut waiters) = self.requests.end_transfer(number);
        match purpose {
            Purpose::Fill { first, pages } => {
                for index in first..first + u64::from(pages) {
                    let frame = self.pages.find(index).expect("a page stays while it is filled");
                    self.pages.get_mut(frame).filling = None;
                }
            }
            Purpose::WriteBack { first, pages, turn } => {
                for index in first..first + u64::from(pages) {
                    let frame = self.pages.find(index).expect("a page stays while it is written");
                    self.pages.written(frame);
                }
                self.write_back.ended(turn);
            }
            Purpose::Flush => {}
        }
        while let Some(job) = self.requests.next_waiter(&mut waiters) {
            self.account(now, job, Some(how));
            match how.request.op {
                Op::Flush => self.end(now, job, 0, out),
                _ => self.go_on(now, job, out),
            }
        }
        if matches!(purpose, Purpose::WriteBack { .. }) {
            self.resume_writers(now, out);
            self.write(now, out);
            self.finish_flushes(now, out);
        }
        for _ in 0..self.requests.starved() {
            if let Some(job) = self.requests.next_starved() {
                self.account(now, job, None);
                self.go_on(now, job, out);
            }
        }
    }

    /// Accounts for the time that a job waited: as the time split of the transfer it waited for, or as waiting for others.
    fn account(&mut self, now: Instant, job: u32, how: Option<&Completion>) {
        let job = &mut self.requests[job];
        match how {
            Some(how) => {
                job.account(now, how);
                job.completion.outcome = how.outcome;
            }
            None => {
                let waited = job.end_wait(now);
                job.completion.parts.queued += waited;
                job.waited = true;
            }
        }
    }

    fn go_on(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        match self.requests[job].completion.request.op {
            Op::Read => self.read(now, job, out),
            Op::Write => self.dirty_pages(now, job, false, out),
            Op::Flush => self.flush(now, job, out),
        }
    }

    fn end(&mut self, now: Instant, job: u32, pages: u64, out: &mut Out<'_>) {
        let copy = Nanos(self.copies.page.0 * pages);
        self.requests[job].completion.parts.cache += copy;
        if self.copies.waits {
            self.requests[job].since = now + copy;
            let work = ProcessorWork::new(WorkKind::Copy, copy);
            out.compute(job, work);
        } else {
            self.end_at(now + copy, job)
        }
    }

    /// Ends a request when its data have been copied, at `until`.
    fn end_at(&mut self, until: Instant, job: u32) {
        self.requests[job].completion.completed = until;
        self.copying.add(until, job);
    }

    fn read(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (source, end) = (self.requests[job].source, self.requests[job].state.end);
        let (first, _) = self.span(&self.requests[job].completion.request);
        while self.requests[job].state.next < end {
            let index = self.requests[job].state.next;
            let frame = match self.pages.find(index) {
                Some(frame) => {
                    if std::mem::take(&mut self.pages.get_mut(frame).marked) {
                        self.read_ahead(job, true, out);
                    }
                    frame
                }
                None => {
                    self.read_ahead(job, false, out);
                    match self.pages.find(index).or_else(|| self.fill(job, index, 1, None, out)) {
                        Some(frame) => frame,
                        None => return self.starve(now, job, out),
                    }
                }
            };
            if let Some(transfer) = self.pages.get(frame).filling {
                self.requests[job].since = now;
                self.requests[job].state.miss(index);
                return self.requests.wait(job, transfer);
            }
            self.pages.touch(frame);
            self.requests[job].state.next += 1;
        }
        let place = self.reader(source);
        self.readers[place].1.has_read(end - 1);
        self.activity.wanted_pages += end - first;
        self.activity.hit_pages += end - first - self.requests[job].state.missed;
        self.end(now, job, end - first, out);
    }

    fn reader(&mut self, source: u32) -> usize {
        match self.readers.binary_search_by_key(&source, |reader| reader.0) {
            Ok(place) => place,
            Err(place) => {
                self.readers.insert(place, (source, Reader::default()));
                place
            }
        }
    }

    /// Reads pages for a job whose page is missing or marked.
    fn read_ahead(&mut self, job: u32, marked: bool, out: &mut Out<'_>) {
        let (source, PageWalk { next, end, advice, .. }) =
            (self.requests[job].source, self.requests[job].state);
        let (request, ahead) = (end - next, self.ahead_most);
        let place = self.reader(source);
        let alone = |pages| (!marked).then_some(Fetch { first: next, pages, mark: None });
        let fetch = match advice {
            // Linux turns the batches of a read off with read-ahead: each page is a transfer, for which the reader waits.
            _ if ahead == 0 => alone(1),
            ReadAdvice::Random if !marked => alone(request.min(ahead.max(self.request_most))),
            _ => {
                let ahead = if advice == ReadAdvice::Sequential { 2 * ahead } else { ahead };
                let most = ahead.max(request.min(self.request_most));
                self.readers[place].1.fetch(next, request, marked, most, &self.pages)
            }
        };
        if let Some(Fetch { first, pages, mark }) = fetch {
            self.fill(job, first, pages, mark, out);
        }
    }

    /// Reads those of the pages that are not in memory, as far as there is room; returns the frame of the first one.
    fn fill(
        &mut self,
        job: u32,
        first: u64,
        pages: u64,
        mark: Option<u64>,
        out: &mut Out<'_>,
    ) -> Option<u32> {
        let end = (first + pages).min(self.sectors.div_ceil(self.page_sectors));
        let (mut index, mut found) = (first, None);
        while index < end {
            let begin = index;
            let number = self.requests.next_transfer();
            while index < end && self.pages.find(index).is_none() {
                let Some(frame) = self.pages.insert(index, Some(number)) else { break };
                self.pages.get_mut(frame).marked = mark == Some(index);
                found = found.or(Some(frame));
                index += 1;
            }
            if index > begin {
                let pages = (index - begin) as u32;
                let from = TransferSender::from_job(&self.requests[job]);
                self.transfer(number, Purpose::Fill { first: begin, pages }, from, out);
            }
            if index < end && self.pages.find(index).is_none() {
                return found;
            }
            index += u64::from(index < end);
        }
        found
    }

    fn transfer(&mut self, number: u32, purpose: Purpose, from: TransferSender, out: &mut Out<'_>) {
        let request = match purpose {
            Purpose::Fill { first, pages } => self.request(Op::Read, first, pages),
            Purpose::WriteBack { first, pages, .. } => self.request(Op::Write, first, pages),
            Purpose::Flush => Request::flush(),
        };
        match purpose {
            Purpose::Fill { pages, .. } => self.activity.read_pages += u64::from(pages),
            Purpose::WriteBack { pages, .. } => self.activity.written_pages += u64::from(pages),
            Purpose::Flush => {}
        }
        let key = self.requests.begin_transfer(purpose);
        assert_eq!(key, number, "pages were promised to the next transfer");
        let TransferSender { source, urgent, idle, sync } = from;
        let submission = Submission { source, urgent, idle, sync, ..Submission::new(number, request) };
        out.down(0, submission);
    }

    fn request(&self, op: Op, first: u64, pages: u32) -> Request {
        let lbn = first * self.page_sectors;
        let end = (lbn + u64::from(pages) * self.page_sectors).min(self.sectors);
        Request { op, lbn: Lbn(lbn), sectors: (end - lbn) as u32, fua: false }
    }

    fn starve(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        self.requests[job].since = now;
        self.requests.starve(job);
        self.write(now, out);
    }
}

impl Layer for PageCache {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        if !self.serves(&submission) {
            self.invalidate(&submission.request);
            out.forward(0, submission.request.lbn);
        } else {
            self.begin(now, &submission, out);
        }
        out.wake_at(self.next_event());
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.transferred(now, answer.id, &answer.completion, out);
        out.wake_at(self.next_event());
    }

    fn computed(&mut self, _now: Instant, id: u32, until: Instant, out: &mut Out<'_>) {
        let job = &mut self.requests[id];
        job.completion.parts.queued += until - job.since;
        self.end_at(until, id);
        out.wake_at(self.next_event());
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        while let Some(job) = self.copying.pop_due(now) {
            let Job { id, completion, waited, .. } = self.requests.end(job);
            out.up(Completed { id, completion, cached: !waited });
        }
        if self.write_back.next_tick(&self.pages) <= now {
            self.write_back.tick(now);
            self.write(now, out);
        }
        out.wake_at(self.next_event());
    }
}
