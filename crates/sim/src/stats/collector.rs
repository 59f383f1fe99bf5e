//! Everything that is kept of a run: it takes the same memory however many requests there are.

use super::{Batches, Sample, SourceStats, TimeHistogram, Timeline};
use crate::{CacheUse, Finished, TimeSplit};
use headstack_model::{Nanos, Op, Request};
use headstack_workload::{Issue, Load, Poll, VolumeInfo};
use std::cell::RefCell;

/// Most sources that are kept apart; those beyond are kept together as one more.
pub const SOURCES_MOST: usize = 1024;

/// Requests that are kept whole, evenly over the run.
const SAMPLES: usize = 4096;

/// Response times and their parts of the requests of one direction.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Response times: right to a thousandth, on rigs of more than 64 volumes to a hundredth.
    pub responses: TimeHistogram,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Sums of the parts of the response times in nanoseconds, in the order of [`TimeSplit::NAMES`].
    pub parts_ns: [u128; TimeSplit::NAMES.len()],
}

impl Totals {
    fn new(digits: u8) -> Totals {
        let responses = TimeHistogram::with_digits(digits);
        Totals { responses, bytes: 0, parts_ns: [0; TimeSplit::NAMES.len()] }
    }

    #[inline]
    fn add(&mut self, finished: &Finished, bytes: u64) {
        self.responses.record(finished.completion.response());
        self.bytes += bytes;
        for (sum, part) in self.parts_ns.iter_mut().zip(finished.completion.parts.parts()) {
            *sum += u128::from(part.0);
        }
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Totals) {
        self.responses.merge(&other.responses);
        self.bytes += other.bytes;
        for (sum, part) in self.parts_ns.iter_mut().zip(&other.parts_ns) {
            *sum += part;
        }
    }
}

/// What is kept of a volume, or of several together.
#[derive(Clone, Debug)]
pub struct VolumeStats {
    /// Its reads; none where there were none.
    pub reads: Option<Box<Totals>>,
    /// Its writes.
    pub writes: Option<Box<Totals>>,
    /// Its flushes.
    pub flushes: Option<Box<Totals>>,
    digits: u8,
}

impl VolumeStats {
    fn new(digits: u8) -> VolumeStats {
        VolumeStats { reads: None, writes: None, flushes: None, digits }
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

    /// Reads, writes and flushes together.
    pub fn all(&self) -> Totals {
        let mut all = Totals::new(self.digits);
        [&self.reads, &self.writes, &self.flushes].into_iter().flatten().for_each(|part| all.merge(part));
        all
    }
}

/// A request of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The volume it went to.
    pub volume: u32,
    /// The request.
    pub request: Request,
    /// When it was issued.
    pub issued: Nanos,
    /// When it completed.
    pub completed: Nanos,
    /// How the cache served it.
    pub cache: CacheUse,
    /// The cylinder the arm went to for it; none where it stayed.
    pub cylinder: Option<u32>,
}

/// What is kept of a run.
#[derive(Clone, Debug)]
pub struct Collector {
    sector_bytes: Vec<u64>,
    counted_from: Vec<Nanos>,
    volumes: Vec<VolumeStats>,
    sources: Vec<Option<Box<SourceStats>>>,
    timeline: Timeline,
    batches: Batches,
    sample: Sample<Sampled>,
    issued: u64,
    completed: u64,
    outstanding: u64,
    most_outstanding: u64,
    first_counted: Nanos,
    last: Nanos,
}

impl Collector {
    /// A collector for a rig of these volumes. Of source `s` only what is issued from `counted_from[s]` on counts; of others
    /// everything does.
    pub fn new(volumes: &[VolumeInfo], counted_from: Vec<Nanos>) -> Collector {
        let first_counted = counted_from.iter().min().copied().unwrap_or(Nanos::ZERO);
        let digits = if volumes.len() <= 64 { 3 } else { 2 };
        Collector {
            sector_bytes: volumes.iter().map(|volume| u64::from(volume.sector_bytes)).collect(),
            counted_from,
            volumes: vec![VolumeStats::new(digits); volumes.len()],
            sources: Vec::new(),
            timeline: Timeline::default(),
            batches: Batches::new(first_counted),
            sample: Sample::new(SAMPLES),
            issued: 0,
            completed: 0,
            outstanding: 0,
            most_outstanding: 0,
            first_counted,
            last: Nanos::ZERO,
        }
    }

    fn counts(&self, source: u32, issued: Nanos) -> bool {
        self.counted_from.get(source as usize).is_none_or(|from| issued >= *from)
    }

    #[inline]
    fn source(&mut self, source: u32, begins: Nanos) -> &mut SourceStats {
        let index = (source as usize).min(SOURCES_MOST);
        if index >= self.sources.len() {
            self.sources.resize(index + 1, None);
        }
        self.sources[index].get_or_insert_with(|| Box::new(SourceStats::new(begins)))
    }

    /// A request was issued at `now`.
    pub fn issued(&mut self, now: Nanos, issue: &Issue) {
        self.issued += 1;
        self.outstanding += 1;
        self.most_outstanding = self.most_outstanding.max(self.outstanding);
        self.timeline.issued(now);
        let counts = self.counts(issue.source, now);
        let from = self.counted_from.get(issue.source as usize).copied().unwrap_or(Nanos::ZERO);
        self.source(issue.source, now.max(from)).issued(counts);
    }

    /// A request came back.
    pub fn finished(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        let (op, response, now) = (completion.request.op, completion.response(), completion.completed);
        let bytes = u64::from(completion.request.sectors) * self.sector_bytes[finished.device as usize];
        self.completed += 1;
        self.outstanding = self.outstanding.saturating_sub(1);
        self.last = self.last.max(now);
        self.timeline.completed(now, op, bytes, response);
        self.sample.offer(|| Sampled {
            volume: finished.device,
            request: completion.request,
            issued: completion.submitted,
            completed: now,
            cache: completion.cache,
            cylinder: completion.travel.map(|travel| travel.to),
        });
        let counts = self.counts(finished.source, completion.submitted);
        let source = self.source(finished.source, completion.submitted);
        source.returned();
        if !counts {
            return;
        }
        source.completed(now, op, bytes, response);
        self.volumes[finished.device as usize].add(finished, bytes);
        self.batches.record(now, response, bytes);
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

    /// Each source by its number; none where it asked for nothing. The last of more than [`SOURCES_MOST`] is all the others.
    pub fn sources(&self) -> &[Option<Box<SourceStats>>] {
        &self.sources
    }

    /// What happened over time, requests that do not count included.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The batches of the requests that count.
    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    /// Requests evenly over the run.
    pub fn sample(&self) -> &Sample<Sampled> {
        &self.sample
    }

    /// Requests issued, also those that do not count.
    pub fn requests(&self) -> u64 {
        self.issued
    }

    /// Requests that came back, also those that do not count.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// The most requests that were outstanding at a time.
    pub fn most_outstanding(&self) -> u64 {
        self.most_outstanding
    }

    /// From when on the earliest source counts.
    pub fn first_counted(&self) -> Nanos {
        self.first_counted
    }

    /// When the last request came back.
    pub fn last(&self) -> Nanos {
        self.last
    }
}

/// A load whose issues a collector sees, as the engine tells nobody of them.
pub struct Watched<'a> {
    load: &'a mut dyn Load,
    collector: &'a RefCell<Collector>,
}

impl<'a> Watched<'a> {
    /// `load`, seen by `collector`.
    pub fn new(load: &'a mut dyn Load, collector: &'a RefCell<Collector>) -> Watched<'a> {
        Watched { load, collector }
    }
}

impl Load for Watched<'_> {
    fn poll(&mut self, now: Nanos) -> Poll {
        let poll = self.load.poll(now);
        if let Poll::Issue(issue) = &poll {
            self.collector.borrow_mut().issued(now, issue);
        }
        poll
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        self.load.handle_completion(now, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceOptions, Engine};
    use headstack_model::drives;
    use headstack_workload::{Closed, Pattern, Region, Shape};

    fn run(counted_from: Vec<Nanos>) -> (Collector, Nanos, u64) {
        let spec = drives::load("atlas-10k").expect("the drive ships");
        let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive works");
        let volume =
            VolumeInfo { name: "disk0".into(), sectors: device.sectors(), sector_bytes: spec.sector_bytes };
        let region = Region::whole(device.sectors());
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.7 };
        let mut load = Closed::new(shape, 4, 3000, 1).expect("the load fits");
        let collector = RefCell::new(Collector::new(&[volume], counted_from));
        let (mut engine, mut responses) = (Engine::new(vec![device]), 0);
        engine.run(&mut Watched::new(&mut load, &collector), &mut |finished| {
            responses += finished.completion.response().0;
            collector.borrow_mut().finished(finished);
        });
        (collector.into_inner(), engine.now(), responses)
    }

    #[test]
    fn is_every_request_in_every_account() {
        let (all, now, responses) = run(Vec::new());
        assert_eq!((all.requests(), all.completed(), all.most_outstanding()), (3000, 3000, 4));
        assert!(all.last() <= now);
        let totals = all.volumes()[0].all();
        assert_eq!((totals.responses.count(), totals.bytes), (3000, 3000 * 4096));
        assert_eq!(totals.parts_ns.iter().sum::<u128>(), u128::from(responses));
        let source = all.sources()[0].as_ref().expect("it asked");
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
    fn does_only_what_is_issued_after_the_ramp_count() {
        let ramp = Nanos::from_secs(5);
        let (all, _, _) = run(vec![ramp]);
        let source = all.sources()[0].as_ref().expect("it asked");
        assert_eq!(source.begins, ramp);
        let counted = all.volumes()[0].all().responses.count();
        assert!(counted > 500 && counted < 2900, "{counted}");
        assert_eq!(source.count(), counted);
        assert_eq!((all.requests(), all.first_counted()), (3000, ramp));
    }
}
