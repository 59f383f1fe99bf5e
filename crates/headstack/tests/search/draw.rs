//! Draws machines and loads from a seed.

use crate::bench::Machine;
use crate::job_text::{JobKeys, JobText, bytes};
use headstack::model::DriveSpec;
use headstack::model::spec::{Interface, WriteCache};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Blocks of a stream or a random load.
pub(crate) const BLOCKS: [u64; 14] = [
    512,
    KIB,
    2 * KIB,
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
];

/// Depths beyond 1.
pub(crate) const DEPTHS: [u64; 8] = [2, 3, 4, 8, 16, 31, 32, 64];

/// Draws for one drive.
pub(crate) struct Draw<'a> {
    pub(crate) spec: &'a DriveSpec,
    random: Pcg64Mcg,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(spec: &'a DriveSpec, seed: u64) -> Draw<'a> {
        Draw { spec, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())]
    }

    /// Whether an event of this probability happens.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        if range.is_empty() { range.start } else { self.random.random_range(range) }
    }

    /// A block from `least` to `most` bytes that is whole sectors and takes at most half a second of the drive's media.
    pub(crate) fn block(&mut self, least: u64, most: u64) -> u64 {
        let most = most.min(bytes_per_s(self.spec) / 2);
        let least = least.max(u64::from(self.spec.sector_bytes));
        let fitting: Vec<u64> = BLOCKS.into_iter().filter(|block| (least..=most).contains(block)).collect();
        if fitting.is_empty() { least } else { self.pick(&fitting) }
    }

    /// A depth from 2 on at which the outstanding blocks take at most two seconds of the drive's media.
    pub(crate) fn depth(&mut self, block: u64) -> u64 {
        let most = bytes_per_s(self.spec) * 2 / block;
        let fitting: Vec<u64> = DEPTHS.into_iter().filter(|depth| *depth <= most.max(2)).collect();
        self.pick(&fitting)
    }

    /// The drive as its file has it, with the write cache off, or with an elevator in front of it.
    pub(crate) fn machine(&mut self) -> Machine {
        let machine = self.machine_with_cache();
        if self.chance(0.5) { machine.without_write_cache() } else { machine }
    }

    /// The drive with its write cache as its file has it, and none of Linux's elevators or one.
    pub(crate) fn machine_with_cache(&mut self) -> Machine {
        let machine = Machine::new(&self.spec.name);
        match self.pick(&["", "", "", "mq-deadline", "none"]) {
            "" => machine,
            elevator => machine.with("host.queue.elevator", elevator),
        }
    }

    /// Bytes that any load may read and write: of a host-managed disk, its conventional zones.
    pub(crate) fn usable_bytes(&self) -> u64 {
        usable_bytes(self.spec)
    }

    /// The first byte of a stream: somewhere in the first nine tenths, in whole MiB.
    pub(crate) fn offset(&mut self) -> u64 {
        let most = self.usable_bytes() / MIB * 9 / 10;
        self.within(0..most) * MIB
    }

    /// A region for random requests: the whole disk, or a short stroke of it.
    pub(crate) fn region(&mut self, job: JobKeys) -> JobKeys {
        let usable = self.usable_bytes();
        let short = [MIB * 512, GIB, 3 * GIB, 16 * GIB, 100 * GIB];
        let fitting: Vec<u64> = short.into_iter().filter(|size| *size < usable / 2).collect();
        let is_host_managed = self.spec.zones.is_some();
        if fitting.is_empty() || self.chance(0.4) {
            return if is_host_managed { job.with("size", bytes(usable)) } else { job };
        }
        let size = self.pick(&fitting);
        let offset = self.within(0..(usable - size) / MIB) * MIB;
        job.with("offset", bytes(offset)).with("size", bytes(size))
    }

    /// A stream of one direction from a drawn place.
    pub(crate) fn stream(&mut self, rw: &str, block: u64, depth: u64) -> JobText {
        let job = JobKeys::new("stream").with("rw", rw).with("bs", bytes(block)).with("iodepth", depth);
        let offset = self.offset();
        let job = if offset > 0 && self.chance(0.7) { job.with("offset", bytes(offset)) } else { job };
        let rest = self.rest_of(&job);
        let job = if self.spec.zones.is_some() { job.with("size", bytes(rest)) } else { job };
        timed_stream(self.spec, block, vec![job])
    }

    fn rest_of(&self, job: &JobKeys) -> u64 {
        self.usable_bytes() - job.number("offset").unwrap_or(0)
    }

    /// A job of any kind.
    pub(crate) fn any_job(&mut self, name: &str) -> JobKeys {
        let rw =
            self.pick(&["read", "write", "rw", "randread", "randread", "randwrite", "randwrite", "randrw"]);
        let block = self.block(KIB * 4, MIB);
        let depth = if self.chance(0.4) { 1 } else { self.depth(block) };
        let mut job = JobKeys::new(name).with("rw", rw).with("bs", bytes(block)).with("iodepth", depth);
        job = if job.is_sequential() { job.with("offset", bytes(self.offset())) } else { self.region(job) };
        if job.is_sequential() && self.spec.zones.is_some() {
            job = job.clone().with("size", bytes(self.rest_of(&job)));
        }
        if rw != "read" && rw != "randread" {
            job = match self.pick(&["", "", "", "sync", "fsync"]) {
                "" => job,
                "sync" => job.with("sync", "sync"),
                _ => job.with("fsync", self.pick(&[1, 8, 64])),
            };
        }
        match self.pick(&["", "", "", "", "rate", "think"]) {
            "rate" => job.with("rate_iops", self.pick(&[1, 10, 50, 200])),
            "think" => job.with("thinktime", self.pick(&[100, 1_000, 20_000])),
            _ => job,
        }
    }

    /// One to four jobs of any kind.
    pub(crate) fn any_load(&mut self, seconds: u64) -> JobText {
        let count = self.pick(&[1, 2, 2, 2, 3, 4]);
        let jobs = ["a", "b", "c", "d"][..count].iter().map(|name| self.any_job(name)).collect();
        JobText::timed(1, seconds, jobs)
    }

    /// Whether the drive's file has a write cache.
    pub(crate) fn has_write_cache(&self) -> bool {
        self.spec.cache.write_cache != WriteCache::None
    }

    /// Whether the drive was introduced in this year or later.
    pub(crate) fn is_from(&self, year: u32) -> bool {
        self.spec.year.is_some_and(|introduced| introduced >= year)
    }

    /// Whether the drive speaks SATA.
    pub(crate) fn is_sata(&self) -> bool {
        self.spec.bus.interface == Some(Interface::Sata)
    }
}

/// Bytes that any load may read and write: of a host-managed disk, its conventional zones.
pub(crate) fn usable_bytes(spec: &DriveSpec) -> u64 {
    let sector = u64::from(spec.sector_bytes);
    let all = spec.capacity_sectors * sector / MIB * MIB;
    spec.zones.as_ref().map_or(all, |zones| u64::from(zones.conventional) * zones.zone_sectors * sector)
}

/// Bytes a second that the media of the drive's time pass at least, to set the length of a run; no relation depends on it.
pub(crate) fn bytes_per_s(spec: &DriveSpec) -> u64 {
    match spec.year.unwrap_or(2000) {
        ..1996 => MIB,
        1996..2000 => 5 * MIB,
        2000..2008 => 25 * MIB,
        _ => 60 * MIB,
    }
}

/// A load of streams that runs for a hundred of its largest requests at least. Writes warm up for the time that a write cache takes to
/// fill; small ones, of which there are many a second, arrive more slowly than the media write, so that it does not fill.
pub(crate) fn timed_stream(spec: &DriveSpec, block: u64, jobs: Vec<JobKeys>) -> JobText {
    let requests_s = 100 * block / bytes_per_s(spec);
    let writes = jobs.iter().any(|job| job.rw() == "write");
    let (warm_up, least) = match block {
        ..16_384 => (1, 1),
        _ if writes => (5, 5),
        _ => (1, 3),
    };
    JobText::timed(warm_up + requests_s / 20, requests_s.clamp(least, 60), jobs)
}
