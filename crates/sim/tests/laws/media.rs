//! The media writes that the device reports: which blocks and at what time. The data of a completed forced write or flush are on the media.
//! The device reports only data that were written, and a power cut tears at most one access.

use crate::history::{DiskOperation, History};
use crate::support::*;
use headstack_model::spec::{Tagging, WriteCache};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_sim::{Completion, Device, DeviceOptions, MediaWrite, Outcome};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Shipped drives without and with a log on the media, small drives with each kind of write cache, and small drives without a buffer. Some of
/// the small ones have large physical sectors.
pub(crate) fn writers() -> Vec<Rig> {
    let kinds = [WriteCache::None, WriteCache::Sequential, WriteCache::Segment, WriteCache::Full];
    let with = |(index, kind): (usize, WriteCache)| {
        small()[index].with(|spec| {
            spec.cache.write_cache = kind;
            (spec.cache.segments, spec.cache.segment_sectors) = (4, 200);
            (spec.cache.dirty_max_sectors, spec.cache.dirty_start_sectors) = (600, 300);
            spec.cache.destage_idle_ms = 5.0;
            spec.bus.write_us_per_sector = 20.0;
            spec.physical_sector_bytes = spec.sector_bytes << (3 * (index % 2));
        })
    };
    let mut all = shipped();
    all.extend(shipped_with_logs());
    all.extend(kinds.into_iter().enumerate().map(with));
    // This drive destages at once, and its bus is hardly fast enough for that.
    all.push(all[all.len() - 1].with(|spec| {
        spec.cache.dirty_start_sectors = 0;
        spec.bus.write_us_per_sector = 150.0;
    }));
    all.extend(small().into_iter().map(|rig| {
        rig.with(|spec| {
            (spec.cache.buffered, spec.bus.write_us_per_sector) = (false, 20.0);
            spec.physical_sector_bytes = 8 * spec.sector_bytes;
        })
    }));
    all
}

/// Draws requests, most of which are for the same 1,500 blocks or continue the previous request.
pub(crate) struct Asks {
    random: Pcg64Mcg,
    sectors: u64,
    hot: u64,
    end: u64,
}

impl Asks {
    pub(crate) fn new(rig: &Rig, seed: u64) -> Asks {
        let mut random = seeded(seed);
        let hot = random.random_range(0..rig.sectors() - 2_000);
        Asks { random, sectors: rig.sectors(), hot, end: hot }
    }

    pub(crate) fn random(&mut self) -> &mut Pcg64Mcg {
        &mut self.random
    }

    pub(crate) fn next(&mut self) -> Request {
        let random = &mut self.random;
        let sectors = if random.random_bool(0.1) { 300 } else { random.random_range(1..40) };
        let lbn = match random.random_range(0..10) {
            0 => random.random_range(0..self.sectors - 300),
            1..5 if self.end + 300 < self.sectors => self.end,
            _ => self.hot + random.random_range(0..1_500),
        };
        let lbn = Lbn(lbn.min(self.sectors - 300));
        self.end = lbn.0 + u64::from(sectors);
        match random.random_range(0..20) {
            0..2 => Request::flush(),
            2..6 => Request::read(lbn, sectors),
            _ => Request { fua: random.random_bool(0.1), ..Request::write(lbn, sectors) },
        }
    }

    /// Draws the time from one submission to the next: none, up to 2 ms, or up to 60 ms, in which the drive may become idle.
    pub(crate) fn gap(&mut self) -> Nanos {
        let most =
            *[1u64, 1, 2_000_000, 60_000_000].get(self.random.random_range(0..4)).expect("there are four");
        Nanos(self.random.random_range(0..most))
    }
}

/// A device under a load of [`Asks`], and the media writes that it has reported.
pub(crate) struct Run {
    pub(crate) device: Device,
    pub(crate) asks: Asks,
    pub(crate) now: Instant,
    depth: usize,
    /// The time of the next request.
    due: Instant,
    /// Whether flushes are reported as done without reaching the device.
    lies: bool,
    /// Whether each write completes only when it is on the media.
    through: bool,
    pub(crate) history: History,
    /// For each tag, the number of its operation.
    tags: BTreeMap<u32, usize>,
    /// For each time of submission, the write's number and request.
    pub(crate) writes: BTreeMap<Instant, (usize, Request)>,
    /// For each time of submission, the time of completion.
    ends: BTreeMap<Instant, Instant>,
    pub(crate) reported: Vec<MediaWrite>,
    /// For each block, the time of submission of the write whose data are on the media.
    pub(crate) media: BTreeMap<u64, Instant>,
}

impl Run {
    pub(crate) fn new(rig: &Rig, seed: u64, lies: bool) -> Run {
        let mut device = rig.device_with(&DeviceOptions { seed, ..DeviceOptions::default() });
        device.track_media();
        let mut asks = Asks::new(rig, seed);
        let depth = asks.random().random_range(1..=device.depth());
        Run {
            device,
            asks,
            now: Instant::ZERO,
            depth,
            due: Instant(1),
            lies,
            through: rig.spec.cache.write_cache == WriteCache::None,
            history: History::default(),
            tags: BTreeMap::new(),
            writes: BTreeMap::new(),
            ends: BTreeMap::new(),
            reported: Vec::new(),
            media: BTreeMap::new(),
        }
    }

    /// Advances device and load to a time; calls `done` for each completion.
    pub(crate) fn until(&mut self, end: Instant, mut done: impl FnMut(&mut Run, usize, &Completion)) {
        loop {
            let room = self.device.outstanding() < self.depth;
            let event = self.device.poll_timeout().unwrap_or(Instant::MAX);
            let next = if room { event.min(self.due.max(self.now)) } else { event };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.device.handle_timeout(self.now);
            self.listen();
            while let Some(completion) = self.device.poll_completion() {
                assert_eq!(completion.outcome, Outcome::Done);
                let number = self.tags.remove(&completion.tag.0).expect("it was submitted");
                self.history.complete(number);
                self.ends.insert(completion.submitted, completion.completed);
                done(self, number, &completion);
            }
            if self.due <= self.now && self.device.outstanding() < self.depth {
                self.submit();
            }
        }
    }

    /// Submits the next request. No two requests have the same time of submission, so that this time identifies a request.
    fn submit(&mut self) {
        let request = self.asks.next();
        self.due = self.now + self.asks.gap() + Nanos(1);
        if request.op == Op::Flush && self.lies {
            let number = self.history.submit(DiskOperation::Flush);
            return self.history.complete(number);
        }
        let tag = self.device.submit(self.now, request).expect("there is room");
        let blocks = request.lbn.0..request.end().0;
        let number = match request.op {
            Op::Write => {
                self.history.submit(DiskOperation::Write { blocks, forced: request.fua || self.through })
            }
            Op::Flush => self.history.submit(DiskOperation::Flush),
            // For the judge, a read is a write of no blocks.
            Op::Read => self.history.submit(DiskOperation::Write { blocks: 0..0, forced: false }),
        };
        if request.op == Op::Write {
            self.writes.insert(self.now, (number, request));
        }
        self.tags.insert(tag.0, number);
    }

    /// Collects the media writes that the device has reported since the last call.
    pub(crate) fn listen(&mut self) {
        while let Some(written) = self.device.poll_media_write() {
            for block in written.start.0..written.end.0 {
                self.media.insert(block, written.submitted);
            }
            self.reported.push(written);
        }
    }

    /// The number of the write whose data the media hold for a block.
    pub(crate) fn holds(&self, block: u64) -> Option<usize> {
        self.media.get(&block).map(|submitted| self.writes[submitted].0)
    }
}

#[test]
fn flushed_and_forced_writes_are_on_the_media() {
    for rig in writers() {
        let through = rig.spec.cache.write_cache == WriteCache::None;
        let (mut flushes, mut forced) = (0, 0);
        for seed in 0..3 {
            let mut run = Run::new(&rig, seed, false);
            run.until(Instant::from_secs(2), |run, number, completion| {
                match completion.request.op {
                    Op::Flush => flushes += 1,
                    Op::Write if completion.request.fua || through => forced += 1,
                    _ => return,
                }
                // The judge knows which writes are safe at this time.
                let judged = run.history.judge(|block| run.holds(block));
                judged.unwrap_or_else(|loss| panic!("{}, seed {seed}, {number}: {loss}", rig.name()));
            });
        }
        assert!(flushes > 5 && forced > 5, "{}: {flushes} flushes, {forced} forced", rig.name());
    }
}

/// Asserts that the bus had time to transfer the data of a media write, and the request's data before them, before that write.
fn assert_came_first(rig: &Rig, written: &MediaWrite, request: &Request) {
    let bus = rig.spec.bus.write_us_per_sector * 1e3 * (written.end - request.lbn) as f64;
    let found = (written.at.0 as f64 - written.submitted.0 as f64) + 3.0;
    assert!(found >= bus, "{}: {written:?} {found} ns after {request:?}, whose data took {bus}", rig.name());
}

#[test]
fn data_joining_a_dirty_run_cross_the_bus_before_destage() {
    for rig in small() {
        // A sector takes longer over the bus than under the head.
        let rig = rig.with(|spec| {
            spec.cache.write_cache = WriteCache::Full;
            (spec.cache.segment_sectors, spec.cache.dirty_max_sectors) = (100, 600);
            spec.bus.write_us_per_sector = 300.0;
        });
        for lbn in rig.spread(40).filter(|lbn| lbn.0 + 100 < rig.sectors()) {
            let mut device = rig.queued(4, "fcfs");
            device.track_media();
            // The arm serves the first write when the second arrives. The third write joins the second's dirty run some time later.
            let writes = [
                (Instant(0), Request::write(lbn, 40)),
                (Instant(1), Request::write(lbn + 40, 1)),
                (Instant::from_ms(14.0), Request::write(lbn + 41, 40)),
            ];
            for (at, write) in writes {
                device.submit(at, write).expect("the queue holds them");
            }
            while let Some(at) = device.poll_timeout() {
                device.handle_timeout(at);
            }
            let reported: Vec<_> = std::iter::from_fn(|| device.poll_media_write()).collect();
            for written in &reported {
                let write = writes.iter().find(|(at, _)| *at == written.submitted);
                assert_came_first(&rig, written, &write.expect("it is one of them").1);
            }
            assert_eq!(
                reported.iter().map(|write| write.end - write.start).sum::<u64>(),
                81,
                "{}",
                rig.name()
            );
        }
    }
}

#[test]
fn media_write_is_never_reported_before_it_can_happen() {
    for rig in writers() {
        for seed in 0..6 {
            let mut run = Run::new(&rig, seed, false);
            run.until(Instant::from_secs(4), |_, _, _| {});
            let (mut last, mut media) = (Instant::ZERO, BTreeMap::new());
            for written in &run.reported {
                let name = format!("{}, seed {seed}: {written:?}", rig.name());
                let (_, request) = run.writes[&written.submitted];
                assert!(
                    request.lbn <= written.start
                        && written.start < written.end
                        && written.end <= request.end(),
                    "{name}"
                );
                assert_came_first(&rig, written, &request);
                assert!(last <= written.at, "{name}: one after the other");
                last = written.at;
                for block in written.start.0..written.end.0 {
                    // If two writes were outstanding at the same time, either may reach the media last.
                    let end = run.ends.get(&written.submitted).copied().unwrap_or(Instant::MAX);
                    let before = media.insert(block, written.submitted);
                    let in_order = before.is_none_or(|before| before <= written.submitted || end > before);
                    assert!(in_order, "{name}: {before:?} before, done at {end}");
                }
            }
            assert!(run.reported.len() > 20, "{}: {}", rig.name(), run.reported.len());
        }
    }
}

#[test]
fn dirty_data_never_exceed_the_write_cache() {
    for rig in writers() {
        let cache = rig.spec.cache.clone();
        for seed in 0..2 {
            let (mut run, mut most) = (Run::new(&rig, seed, false), 0);
            let mut youngest: BTreeMap<u64, Instant> = BTreeMap::new();
            run.until(Instant::from_secs(4), |run, _, completion| {
                let Completion { request, submitted, .. } = *completion;
                if request.op != Op::Write {
                    return;
                }
                for block in request.lbn.0..request.end().0 {
                    let at = youngest.entry(block).or_default();
                    *at = (*at).max(submitted);
                }
                youngest.retain(|block, at| run.media.get(block).is_none_or(|of| *of < *at));
                most = most.max(youngest.len() as u64);
            });
            let longest = 300;
            let segments = |count: u32| u64::from(count) * u64::from(cache.segment_sectors).max(longest);
            let room = match cache.write_cache {
                WriteCache::None => 0,
                WriteCache::Sequential | WriteCache::Segment => segments(cache.write_segments),
                WriteCache::Full => cache.dirty_max_sectors,
            };
            assert!(most <= room, "{}, seed {seed}: {most} sectors dirty of {room}", rig.name());
            let takes_all = matches!(cache.write_cache, WriteCache::Segment | WriteCache::Full);
            assert!(most > 0 || !takes_all, "{}: a cache that holds nothing", rig.name());
        }
    }
}

#[test]
fn flush_completes_under_continuous_writes() {
    for rig in writers() {
        // With SCSI's tags, a flush does not exclude other commands.
        let rig = rig.with(|spec| spec.queue.tagging = Some(Tagging::Tcq));
        let mut device = rig.queued(4, "fcfs");
        let (mut asks, mut now) = (Asks::new(&rig, 3), Instant::ZERO);
        let (mut flush_submitted, mut is_done, mut writes) = (false, false, 0);
        while !is_done {
            while device.outstanding() < 4 {
                let request = match writes {
                    100.. if !flush_submitted => Request::flush(),
                    _ => Request::write(any_lbn(asks.random(), &rig, 8), 8),
                };
                device.submit(now, request).expect("there is room");
                flush_submitted |= request.op == Op::Flush;
                writes += 1;
            }
            now = device.poll_timeout().expect("writes are outstanding").max(now);
            device.handle_timeout(now);
            while let Some(done) = device.poll_completion() {
                is_done |= done.request.op == Op::Flush;
            }
            assert!(writes < 5_000, "{}: it never ends", rig.name());
        }
    }
}

#[test]
fn power_cut_tears_at_most_one_access_between_sectors() {
    let mut torn = 0;
    for rig in writers() {
        let physical = u64::from(rig.spec.physical_sector_bytes / rig.spec.sector_bytes);
        let mut whole = Run::new(&rig, 1, false);
        whole.until(Instant::from_secs(2), |_, _, _| {});
        for index in 0..20u64 {
            let cut = Instant(61_000_001 * (index + 1));
            let mut run = Run::new(&rig, 1, false);
            run.until(cut, |_, _, _| {});
            let before = run.reported.len();
            run.device.cut_power(cut);
            run.listen();
            assert_eq!(run.device.poll_timeout(), None, "nothing happens any more");
            let name = format!("{}, cut at {cut}", rig.name());
            let (head, tail) = run.reported.split_at(before);
            assert_eq!(head, &whole.reported[..before], "{name}");
            // The cut run reports the same media writes as the whole run, but only the first sectors of the access that the cut tears.
            for (written, would) in tail.iter().zip(&whole.reported[before..]) {
                assert!(
                    written.start == would.start && written.submitted == would.submitted,
                    "{name}: {written:?}"
                );
                if written.end == would.end {
                    assert_eq!(written, would, "{name}");
                    continue;
                }
                torn += 1;
                assert_eq!(Some(written), tail.last(), "{name}: nothing after it");
                assert!(written.end.0.is_multiple_of(physical), "{name}: {written:?} in a sector");
                assert!(written.end < would.end && written.at < would.at, "{name}: {written:?}");
            }
            // All writes that had reached the media before the cut are reported, and at most one physical sector that was completed after it.
            let after = &whole.reported[before + tail.len()..];
            let outer = rig.spread(40).map(|lbn| rig.geometry().extent_at(lbn).sectors_per_track);
            let sector = rig.turn() / f64::from(outer.min().expect("there are blocks"));
            assert!(after.iter().all(|would| would.at > cut), "{name}: {after:?}");
            let late = tail.last().map_or(0, |written| written.at.since(cut).0);
            assert!(late as f64 <= sector * physical as f64 + 2.0, "{name}: {late} ns after the cut");
        }
    }
    assert!(torn > 20, "{torn} accesses were torn");
}
