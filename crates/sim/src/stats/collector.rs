//! Statistics of a run, in constant memory whatever the number of requests.

use super::{Batches, Confidence, Priority, Sample, SourceStats, TimeHistogram, Timeline};
use crate::{CacheUse, Finished, TimeSplit};
use headstack_model::{Instant, Nanos, Op, Request};
use headstack_workload::{Issue, VolumeInfo};
use std::collections::BTreeMap;

/// Maximum number of requests in the sample, spread evenly over the run.
const SAMPLES: usize = 4096;

/// Number of requests stored one by one: the first that count and need the arm.
const FIRST: usize = 128;

/// Response times and their parts of the requests of one direction.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Response times: right to a thousandth, on rigs of more than 64 volumes to a hundredth.
    pub responses: TimeHistogram,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Sums of the parts of the response times in nanoseconds, in the order of [`TimeSplit::NAMES`].
    pub parts_ns: [u128; TimeSplit::NAMES.len()],
    /// Response times of the requests that lost revolutions to retries themselves; `None` if there were none.
    pub retried: Option<Box<TimeHistogram>>,
    digits: u8,
}

impl Totals {
    fn new(digits: u8) -> Totals {
        let responses = TimeHistogram::with_digits(digits);
        Totals { responses, bytes: 0, parts_ns: [0; TimeSplit::NAMES.len()], retried: None, digits }
    }

    fn retried_mut(&mut self) -> &mut TimeHistogram {
        self.retried.get_or_insert_with(|| Box::new(TimeHistogram::with_digits(self.digits)))
    }

    /// Means of the parts of the response times in milliseconds, in the order of [`TimeSplit::NAMES`]; 0 without requests.
    pub fn parts_ms(&self) -> [f64; TimeSplit::NAMES.len()] {
        let count = self.responses.count() as f64;
        self.parts_ns.map(|sum| if count > 0.0 { sum as f64 / 1e6 / count } else { 0.0 })
    }

    /// Of the slowest `share` of the requests, the share that lost revolutions to retries themselves.
    pub fn retried_of_slowest(&self, share: f64) -> f64 {
        let least = self.responses.quantile(1.0 - share);
        let retried = self.retried.as_ref().map_or(0, |retried| retried.count_from(least));
        retried as f64 / self.responses.count_from(least).max(1) as f64
    }

    #[inline]
    fn add(&mut self, finished: &Finished, bytes: u64) {
        self.responses.record(finished.completion.response());
        self.bytes += bytes;
        for (sum, part) in self.parts_ns.iter_mut().zip(finished.completion.parts.parts()) {
            *sum += u128::from(part.0);
        }
        if finished.completion.parts.retries > Nanos::ZERO {
            self.retried_mut().record(finished.completion.response());
        }
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Totals) {
        self.responses.merge(&other.responses);
        self.bytes += other.bytes;
        for (sum, part) in self.parts_ns.iter_mut().zip(&other.parts_ns) {
            *sum += part;
        }
        if let Some(retried) = &other.retried {
            self.retried_mut().merge(retried);
        }
    }
}

/// The statistics of a volume, or of several together.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VolumeStats {
    /// Its reads; `None` if there were none.
    pub reads: Option<Box<Totals>>,
    pub writes: Option<Box<Totals>>,
    pub flushes: Option<Box<Totals>>,
    /// Time during which it had any request outstanding, including the time before requests counted.
    pub occupied: Nanos,
    digits: u8,
}

impl VolumeStats {
    fn new(digits: u8) -> VolumeStats {
        VolumeStats { reads: None, writes: None, flushes: None, occupied: Nanos::ZERO, digits }
    }

    #[inline]
    fn add(&mut self, finished: &Finished, bytes: u64) {
        let direction = match finished.completion.request.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Flush => &mut self.flushes,
        };
        direction.get_or_insert_with(|| Box::new(Totals::new(self.digits))).add(finished, bytes);
    }

    fn merge(&mut self, other: &VolumeStats) {
        let pairs = [
            (&mut self.reads, &other.reads),
            (&mut self.writes, &other.writes),
            (&mut self.flushes, &other.flushes),
        ];
        for (mine, others) in pairs {
            if let Some(others) = others {
                mine.get_or_insert_with(|| Box::new(Totals::new(self.digits))).merge(others);
            }
        }
    }

    /// Reads and writes together. A flush moves no data, and its response is of another kind.
    pub fn transfers(&self) -> Totals {
        let mut both = Totals::new(self.digits);
        [&self.reads, &self.writes].into_iter().flatten().for_each(|part| both.merge(part));
        both
    }

    /// Number of reads, writes and flushes.
    pub fn count(&self) -> u64 {
        let parts = [&self.reads, &self.writes, &self.flushes].into_iter().flatten();
        parts.map(|part| part.responses.count()).sum()
    }
}

/// A request of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sampled {
    pub volume: u32,
    /// The device that served it, or the last part of it.
    pub device: u32,
    pub request: Request,
    pub issued: Instant,
    pub completed: Instant,
    pub cache: CacheUse,
    /// The destination of its seek; `None` if the arm stayed.
    pub cylinder: Option<u32>,
}

impl Sampled {
    fn new(finished: &Finished) -> Sampled {
        let completion = &finished.completion;
        Sampled {
            volume: finished.volume,
            device: finished.device,
            request: completion.request,
            issued: completion.submitted,
            completed: completion.completed,
            cache: completion.cache,
            cylinder: completion.travel.map(|travel| travel.to),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Account {
    entry: u32,
    job: Option<u32>,
    /// Requests that complete before this time count only in the timeline and the sample.
    counted_from: Instant,
    outstanding: u32,
}

/// The statistics of a run.
#[derive(Clone, Debug)]
pub struct Collector {
    sector_bytes: Vec<u64>,
    /// One per source, and one more for all other sources.
    accounts: Vec<Account>,
    volumes: Vec<VolumeStats>,
    /// Number of outstanding requests of each volume, and since when there are any.
    waiting: Vec<(u64, Instant)>,
    entries: Vec<Option<Box<SourceStats>>>,
    /// Statistics by job, where jobs differ from entries.
    jobs: Vec<Option<Box<SourceStats>>>,
    timeline: Timeline,
    batches: Batches,
    sample: Sample<Sampled>,
    first: Vec<Sampled>,
    /// The outstanding requests that have a priority, by the load's number.
    priorities: BTreeMap<u64, Priority>,
    issued: u64,
    completed: u64,
    outstanding: u64,
    most_outstanding: u64,
    first_counted: Instant,
    last: Instant,
}

impl Collector {
    /// A collector for a rig of these volumes. `entry_of` gives the entry of a source's requests, by the source's number; sources
    /// beyond it are in entry 0.
    pub fn new(volumes: &[VolumeInfo], entry_of: &[u32]) -> Collector {
        Collector::with_jobs(volumes, entry_of, entry_of)
    }

    /// As [`Collector::new`]; a source's requests are also counted by job, where `job_of` differs from `entry_of`.
    pub fn with_jobs(volumes: &[VolumeInfo], entry_of: &[u32], job_of: &[u32]) -> Collector {
        let digits = if volumes.len() <= 64 { 3 } else { 2 };
        let apart = entry_of != job_of;
        let account = |(entry, job): (u32, u32)| Account {
            entry,
            job: apart.then_some(job),
            counted_from: Instant::ZERO,
            outstanding: 0,
        };
        let sources = entry_of.iter().copied().zip(job_of.iter().copied());
        let length = |numbers: &[u32]| numbers.iter().max().map_or(1, |most| *most as usize + 1);
        Collector {
            sector_bytes: volumes.iter().map(|volume| u64::from(volume.sector_bytes)).collect(),
            accounts: sources.chain([(0, 0)]).map(account).collect(),
            volumes: vec![VolumeStats::new(digits); volumes.len()],
            waiting: vec![(0, Instant::ZERO); volumes.len()],
            entries: vec![None; length(entry_of)],
            jobs: vec![None; if apart { length(job_of) } else { 0 }],
            timeline: Timeline::default(),
            batches: Batches::new(),
            sample: Sample::new(SAMPLES),
            first: Vec::with_capacity(FIRST),
            priorities: BTreeMap::new(),
            issued: 0,
            completed: 0,
            outstanding: 0,
            most_outstanding: 0,
            first_counted: Instant::MAX,
            last: Instant::ZERO,
        }
    }

    #[inline]
    fn account(&mut self, source: u32) -> &mut Account {
        let index = (source as usize).min(self.accounts.len() - 1);
        &mut self.accounts[index]
    }

    /// Counts only requests of a source that complete at `from` or later: until then it warms up.
    pub fn count_from(&mut self, source: u32, from: Instant) {
        self.account(source).counted_from = from;
    }

    /// Applies `count` to the statistics of a source: to its entry and, if different, its job.
    #[inline]
    fn each_book(&mut self, account: Account, begins: Instant, count: impl Fn(&mut SourceStats)) {
        let book = |books: &mut [Option<Box<SourceStats>>], number: u32| {
            count(books[number as usize].get_or_insert_with(|| Box::new(SourceStats::new(begins))));
        };
        book(&mut self.entries, account.entry);
        if let Some(job) = account.job {
            book(&mut self.jobs, job);
        }
    }

    /// Records that a request was issued at `now`.
    pub fn issued(&mut self, now: Instant, issue: &Issue) {
        self.issued += 1;
        self.outstanding += 1;
        self.most_outstanding = self.most_outstanding.max(self.outstanding);
        self.timeline.issued(now);
        if issue.urgent || issue.limit > 0 {
            self.priorities.insert(issue.id, Priority::of(issue.urgent, issue.limit));
        }
        let waiting = &mut self.waiting[issue.device as usize];
        if waiting.0 == 0 {
            waiting.1 = now;
        }
        waiting.0 += 1;
        let account = self.account(issue.source);
        account.outstanding += 1;
        let account = *account;
        let begins = now.max(account.counted_from);
        self.first_counted = self.first_counted.min(begins);
        let counts = now >= account.counted_from;
        self.each_book(account, begins, |book| {
            if counts {
                book.issued(account.outstanding);
            }
        });
    }

    #[inline]
    fn priority_of(&mut self, id: u64) -> Priority {
        if self.priorities.is_empty() {
            return Priority::default();
        }
        self.priorities.remove(&id).unwrap_or_default()
    }

    /// Records a completed request. Returns whether it counts, or completed while its job warmed up.
    pub fn finished(&mut self, finished: &Finished) -> bool {
        let completion = &finished.completion;
        let (op, response, now) = (completion.request.op, completion.response(), completion.completed);
        let bytes = u64::from(completion.request.sectors) * self.sector_bytes[finished.volume as usize];
        self.completed += 1;
        self.outstanding = self.outstanding.saturating_sub(1);
        self.last = self.last.max(now);
        let waiting = &mut self.waiting[finished.volume as usize];
        waiting.0 = waiting.0.saturating_sub(1);
        if waiting.0 == 0 {
            self.volumes[finished.volume as usize].occupied += now.since(waiting.1);
        }
        self.timeline.completed(now, op, bytes, response);
        self.sample.offer(|| Sampled::new(finished));
        let priority = self.priority_of(finished.id);
        let account = self.account(finished.source);
        account.outstanding = account.outstanding.saturating_sub(1);
        let account = *account;
        if now < account.counted_from {
            return false;
        }
        if self.first.len() < FIRST && completion.travel.is_some() {
            self.first.push(Sampled::new(finished));
        }
        self.each_book(account, completion.submitted, |book| {
            book.completed(now, op, bytes, response, priority);
        });
        self.volumes[finished.volume as usize].add(finished, bytes);
        if op != Op::Flush {
            self.batches.record(now, response, bytes);
        }
        true
    }

    /// Each volume, in the order of the rig.
    pub fn volumes(&self) -> &[VolumeStats] {
        &self.volumes
    }

    /// All volumes together.
    pub fn total(&self) -> VolumeStats {
        let mut total = VolumeStats::new(self.volumes.first().map_or(3, |volume| volume.digits));
        self.volumes.iter().for_each(|volume| total.merge(volume));
        total
    }

    /// Each entry; `None` if its sources issued nothing.
    pub fn entries(&self) -> &[Option<Box<SourceStats>>] {
        &self.entries
    }

    /// Each job; `None` if its sources issued nothing.
    pub fn jobs(&self) -> &[Option<Box<SourceStats>>] {
        if self.jobs.is_empty() { &self.entries } else { &self.jobs }
    }

    /// Counts over time, including requests that do not count.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The batches of the counted requests.
    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    /// The confidence from the batches of the counted requests; `None` if there are too few.
    pub fn confidence(&self) -> Option<Confidence> {
        self.batches.confidence(self.first_counted())
    }

    /// Requests evenly over the run.
    pub fn sample(&self) -> &Sample<Sampled> {
        &self.sample
    }

    /// The first requests that count and needed the arm, in order of completion.
    pub fn first(&self) -> &[Sampled] {
        &self.first
    }

    /// Requests issued, also those that do not count.
    pub fn requests(&self) -> u64 {
        self.issued
    }

    /// Completed requests, including those that do not count.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// The largest number of outstanding requests.
    pub fn most_outstanding(&self) -> u64 {
        self.most_outstanding
    }

    /// When the first source begins to count; zero without sources.
    pub fn first_counted(&self) -> Instant {
        if self.first_counted == Instant::MAX { Instant::ZERO } else { self.first_counted }
    }

    /// When the last request completed.
    pub fn last(&self) -> Instant {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceOptions, Engine};
    use headstack_model::drives;
    use headstack_workload::{Closed, Load, Pattern, Poll, Region, Shape};
    use std::cell::RefCell;

    /// Random requests, four at a time, each reported to the collector.
    struct ReportingLoad<'a> {
        load: Closed,
        books: &'a RefCell<Collector>,
    }

    impl Load for ReportingLoad<'_> {
        fn poll(&mut self, now: Instant) -> Poll {
            let poll = self.load.poll(now);
            if let Poll::Issue(issue) = &poll {
                self.books.borrow_mut().issued(now, issue);
            }
            poll
        }

        fn handle_completion(&mut self, now: Instant, id: u64) {
            self.load.handle_completion(now, id);
        }
    }

    fn run(counted_from: Instant) -> (Collector, Instant, u64) {
        let spec = drives::load("atlas-10k").expect("the drive ships");
        let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive works");
        let volume = VolumeInfo {
            name: "disk0".into(),
            sectors: device.sectors(),
            sector_bytes: spec.sector_bytes,
            zones: None,
        };
        let region = Region::whole(device.sectors());
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.7 };
        let load = Closed::new(shape, 4, 3000, 1).expect("the load fits");
        let books = RefCell::new(Collector::new(&[volume], &[]));
        books.borrow_mut().count_from(0, counted_from);
        let (mut engine, mut responses) = (Engine::new(vec![device]), 0);
        engine.run(&mut ReportingLoad { load, books: &books }, &mut |finished| {
            responses += finished.completion.response().0;
            books.borrow_mut().finished(finished);
        });
        (books.into_inner(), engine.now(), responses)
    }

    #[test]
    fn every_request_is_counted_in_every_statistic() {
        let (all, now, responses) = run(Instant::ZERO);
        assert_eq!((all.requests(), all.completed(), all.most_outstanding()), (3000, 3000, 4));
        assert!(all.last() <= now);
        assert_eq!(all.volumes()[0].occupied, all.last().since_start());
        let totals = all.volumes()[0].transfers();
        assert_eq!((totals.responses.count(), totals.bytes), (3000, 3000 * 4096));
        assert_eq!(totals.parts_ns.iter().sum::<u128>(), u128::from(responses));
        let source = all.entries()[0].as_ref().expect("it asked");
        assert_eq!(source.count(), 3000);
        assert_eq!(source.depths.iter().sum::<u64>(), 3000);
        assert_eq!(source.depths[..3], [1, 1, 2998]);
        let bins = all.timeline().bins();
        assert_eq!(bins.iter().map(|bin| bin.reads + bin.writes).sum::<u64>(), 3000);
        // Little's law, request by request.
        assert_eq!(bins.iter().map(|bin| bin.depth_ns).sum::<u128>(), u128::from(responses));
        assert_eq!(all.sample().kept().len(), 3000);
    }

    #[test]
    fn completions_during_the_ramp_are_excluded_from_statistics() {
        let ramp = Instant::from_secs(5);
        let (all, _, _) = run(ramp);
        let source = all.entries()[0].as_ref().expect("it asked");
        assert_eq!(source.begins, ramp);
        let counted = all.volumes()[0].count();
        assert!(counted > 500 && counted < 2900, "{counted}");
        assert_eq!(source.count(), counted);
        assert_eq!((all.requests(), all.first_counted()), (3000, ramp));
    }
}
