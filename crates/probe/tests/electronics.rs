//! Are a disk's electronics learned from outside as its drive file has them?

use headstack_model::spec::{Layout, OverheadSet, ReadAhead, Replacement, WriteCache};
use headstack_model::{DriveSpec, Geometry, Lbn, drives};
use headstack_probe::learn::electronics::FindingConfidence;
use headstack_probe::learn::{LearnedElectronics, electronics};
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::synthetic::in_bands;
use headstack_probe::{Disk, DiskInfo, Extraction, Probe, ProbeCommand, drive};
use headstack_tracks::TrackMap;

fn spec(name: &str) -> DriveSpec {
    drives::load(name).expect("it is shipped")
}

fn disk(spec: &DriveSpec, seed: u64) -> SimulatedDisk {
    SimulatedDisk::new(spec, Noise::USUAL, seed).expect("the drive file is good")
}

fn learn_by(spec: &DriveSpec, seed: u64, may_write: bool) -> LearnedElectronics {
    let mut disk = disk(spec, seed);
    let map = TrackMap::of_geometry(&disk.device().drive().geometry);
    let turn_ns = 60e9 / spec.mechanics.rpm;
    let info = DiskInfo { may_write, ..drive::ProbeTarget::info(&disk) };
    let mut extraction = Extraction::new(info, |handle: Disk| electronics(handle, map, turn_ns));
    let is_read = |probe: &Probe| matches!(probe.command, ProbeCommand::Read { .. });
    let found = drive::run(&mut extraction, &mut disk, |probe, _, _| may_write || is_read(probe));
    found.expect("it cannot fail").expect("it is not cancelled").expect("it turns")
}

fn learn(spec: &DriveSpec) -> LearnedElectronics {
    learn_by(spec, 7, true)
}

/// Drives of each decade and kind of cache.
const DRIVES: [&str; 12] = [
    "hp-c2247a",
    "hp-c3323a",
    "dec-rz26",
    "ultrastar-18es",
    "cheetah-9lp",
    "atlas-10k",
    "atlas-10k-ii",
    "wd800jd",
    "st3300007lw",
    "toshiba-x300",
    "st2000dm006",
    "exos-x18",
];

fn near(what: &str, found_ms: f64, real_ms: f64) {
    assert!(is_near(found_ms, real_ms), "{what} is {real_ms} ms, and {found_ms} was found");
}

fn is_near(found_ms: f64, real_ms: f64) -> bool {
    (found_ms - real_ms).abs() < 0.012
}

/// K and P of an order that bounds overtaking.
fn bound(order: &str) -> Option<[f64; 2]> {
    let values = order.strip_prefix("bounded-sptf")?.trim_matches(['(', ')']);
    let mut values = values.split(',').filter_map(|value| value.trim().parse().ok());
    Some([values.next().unwrap_or(1.2), values.next().unwrap_or(1.0)])
}

fn is_like(found: [f64; 2], real: [f64; 2]) -> bool {
    (found[0] / real[0] - 1.0).abs() < 0.1 && (found[1] - real[1]).abs() < 0.1
}

/// What was learned wrong of a drive, as far as it shows.
struct Wrong(Vec<String>);

impl Wrong {
    fn of(real: &DriveSpec, found: &LearnedElectronics) -> Vec<String> {
        let mut wrong = Wrong(Vec::new());
        wrong.compare_overheads(real, found);
        wrong.compare_bus(real, found);
        wrong.compare_reads(real, found);
        wrong.compare_writes(real, found);
        wrong.0
    }

    fn unless(&mut self, is_right: bool, what: impl std::fmt::Display) {
        if !is_right {
            self.0.push(what.to_string());
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, real: T, found: T) {
        self.unless(real == found, format_args!("{what} is {real:?}, and {found:?} was found"));
    }

    fn near(&mut self, what: &str, found_ms: f64, real_ms: f64) {
        let message = format!("{what} is {real_ms} ms, and {found_ms} was found");
        self.unless(is_near(found_ms, real_ms), message);
    }

    fn compare_overheads(&mut self, real: &DriveSpec, found: &LearnedElectronics) {
        let (of, is) = (&real.overhead, &found.overhead);
        // Only sums show: all from the command to the end but what the media and the bus take.
        let (again, around) = (real.bus.reconnect_first_ms, of.data_preparation_ms);
        let hit = |set: &OverheadSet| set.read_hit_ms + around + of.read_completion_ms;
        let miss = |set: &OverheadSet| set.read_miss_ms + around + again + of.read_completion_ms;
        for (after, set, seen) in
            [("a read", &of.after_read, &is.after_read), ("a write", &of.after_write, &is.after_write)]
        {
            // Without a cache there is no hit.
            if real.cache.enabled {
                let seen_hit = seen.read_hit_ms + is.read_completion_ms;
                self.near(&format!("a hit after {after}"), seen_hit, hit(set));
                let seen_miss = seen.read_miss_ms + is.read_completion_ms;
                self.near(&format!("a miss after {after}"), seen_miss, miss(set));
            }
            // Of a disconnection before the data, only what the first of them shows.
            if real.bus.write_disconnect.is_none() && real.cache.enabled {
                let write = set.write_ms + around + again + of.write_completion_ms;
                let seen_write = seen.write_ms + is.write_completion_ms;
                self.near(&format!("a write after {after}"), seen_write, write);
            }
        }
        self.same("the first command's time", 0.0, is.first_ms);
        // Where it is nearly all of the overhead, it does not show.
        if let Some(seen) = is.pipelined_ms {
            self.near("the part that overlaps no other", seen, of.pipelined_ms.unwrap_or(9.0));
        }
        self.same("sequential_ms", None, is.sequential_ms);
    }

    fn compare_bus(&mut self, drive: &DriveSpec, learned: &LearnedElectronics) {
        let (real, found, has_cache) = (&drive.bus, &learned.bus, drive.cache.enabled);
        let off = |found: f64, real: f64, share: f64| (found / real - 1.0).abs() < share;
        let read = (found.read_us_per_sector, real.read_us_per_sector);
        self.unless(
            !has_cache || off(read.0, read.1, 0.02) || (read.0 - read.1).abs() < 0.1,
            format!("read bus {read:?}"),
        );
        let write = (found.write_us_per_sector, real.write_us_per_sector);
        // Of data that go to the media at once, a bus quicker than these does not show.
        let track = Geometry::new(drive).expect("the drive file is good").track_at(Lbn(0));
        let media_us = 60e6 / drive.mechanics.rpm / f64::from(track.sectors_per_track);
        if drive.cache.write_cache == WriteCache::None && write.1 < media_us {
            self.same(
                "the write bus",
                FindingConfidence::Default,
                learned.findings.confidence_of("bus.write_us_per_sector"),
            );
        } else {
            self.unless(!has_cache || off(write.0, write.1, 0.05), format!("write bus {write:?}"));
        }
        self.same("buffer_full_ratio", real.buffer_full_ratio, found.buffer_full_ratio);
        // Where the shortest seek takes longer than that, it does not show.
        let start_us = f64::from(real.write_start_sectors) * real.write_us_per_sector;
        if start_us > real.write_seek_min_ms * 1e3 {
            self.same("write_start_sectors", real.write_start_sectors, found.write_start_sectors);
        }
    }

    fn compare_reads(&mut self, drive: &DriveSpec, found: &LearnedElectronics) {
        let (real, found) = (&drive.cache, &found.cache);
        self.same("enabled", real.enabled, found.enabled);
        if !real.enabled {
            return;
        }
        // Of very many, those found are a few less where an answer is late.
        let segments = real.segments.abs_diff(found.segments) * 100 <= real.segments;
        self.unless(segments, format!("{} segments, {} found", real.segments, found.segments));
        self.same("segmentation", real.segmentation, found.segmentation);
        self.same("segments_max", real.segments_max, found.segments_max);
        self.same("segment_sectors", real.segment_sectors, found.segment_sectors);
        self.same("read_ahead", real.read_ahead, found.read_ahead);
        if matches!(real.read_ahead, ReadAhead::Segment | ReadAhead::Sequence) {
            self.same("read_ahead_max", real.read_ahead_max_sectors, found.read_ahead_max_sectors);
        }
        self.same("read_ahead_min", real.read_ahead_min_sectors, found.read_ahead_min_sectors);
        self.same("read_ahead_on_hit", real.read_ahead_on_hit, found.read_ahead_on_hit);
        self.same("replacement", real.replacement, found.replacement);
        self.same("dedicated_write_segment", real.dedicated_write_segment, found.dedicated_write_segment);
        self.same("read_on_arrival", real.read_on_arrival, found.read_on_arrival);
        self.same("read_hits_on_written", real.read_hits_on_written, found.read_hits_on_written);
        // On other drives a command is in flight for less than a sector, or for several, and none arrives just as its sector does.
        if drive.name == "dec-rz26" {
            self.same("almost_hits", real.almost_hits, found.almost_hits);
        }
    }

    fn compare_writes(&mut self, drive: &DriveSpec, found: &LearnedElectronics) {
        let (real, learned) = (&drive.cache, &found.cache);
        // One command at a time, none ends while another's data go to the media.
        let shows = real.write_cache != WriteCache::Sequential || drive.queue.depth > 1;
        let kind = if shows { real.write_cache } else { WriteCache::None };
        self.same("write_cache", kind, learned.write_cache);
        self.same("queue", (drive.queue.depth, drive.queue.window), (found.queue.depth, found.queue.window));
        // Of drives that choose.
        if drive.queue.order != "fcfs" && drive.queue.depth > 3 {
            self.same("committed", drive.queue.committed, found.queue.committed);
        }
        self.near("the choice", found.queue.choice_ms, drive.queue.choice_ms);
        match bound(&drive.queue.order) {
            Some(real) => self.unless(
                bound(&found.queue.order).is_some_and(|found| is_like(found, real)),
                format!("order {} found for {}", found.queue.order, drive.queue.order),
            ),
            // `spctf` differs from `sptf` in what is cached, which does not show.
            None => self.same("order", &drive.queue.order.replace("spctf", "sptf"), &found.queue.order),
        }
        if kind != WriteCache::Full || learned.write_cache != kind {
            return;
        }
        let idle = (learned.destage_idle_ms - real.destage_idle_ms).abs() < 0.3;
        self.unless(idle, format!("destage_idle_ms {} found", learned.destage_idle_ms));
        // Of very many, those found are a few less or more: some are destaged meanwhile.
        let runs = real.dirty_runs_max.abs_diff(learned.dirty_runs_max) * 100 <= real.dirty_runs_max;
        self.unless(runs, format!("{} dirty runs, {} found", real.dirty_runs_max, learned.dirty_runs_max));
        let off = (learned.dirty_max_sectors as f64 / real.dirty_max_sectors as f64 - 1.0).abs();
        self.unless(off < 0.04, format!("dirty_max_sectors {} found", learned.dirty_max_sectors));
        self.same("dirty_start_sectors", real.dirty_start_sectors, learned.dirty_start_sectors);
        self.same("destage_order", &real.destage_order, &learned.destage_order);
        self.near("the work after a write", learned.destage_extra_ms, real.destage_extra_ms);
        self.near("the work of a flush", learned.flush_ms, real.flush_ms);
    }
}

/// A drive that reads to the end of the track through a segment of a quarter of a track: a revolution later the buffer holds none of the
/// requested blocks.
#[test]
fn cache_overwritten_by_its_read_ahead_is_not_detected() {
    let found = learn(&spec("atlas-iii"));
    assert!(!found.cache.enabled, "{:?}", found.cache);
    assert_eq!(found.cache.read_ahead, ReadAhead::None);
}

#[test]
fn learned_electronics_match_drive_file() {
    for name in DRIVES {
        let mut real = spec(name);
        // A log on the media, to which writes go that are asked to reach the media, is not learned (`studies/validation/probing.md`).
        real.media_cache = None;
        let wrong = Wrong::of(&real, &learn(&real));
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}

#[test]
#[ignore = "every drive, twenty times: make probe-full"]
fn wrong_findings_of_every_drive_are_printed() {
    for (name, _) in drives::all() {
        let real = spec(name);
        let (mut runs, mut probes) = (0, 0);
        for seed in 0..20 {
            let found = learn_by(&real, seed, true);
            let wrong = Wrong::of(&real, &found);
            runs += usize::from(!wrong.is_empty());
            probes += found.probes / 20;
            wrong.iter().for_each(|what| println!("{name}, seed {seed}: {what}"));
        }
        println!("{name}: something wrong in {runs} of 20 runs of {probes} probes");
    }
}

#[test]
fn read_only_disk_is_learned_by_reads_alone() {
    for name in ["hp-c2247a", "toshiba-x300"] {
        let (real, found) = (spec(name), learn_by(&spec(name), 7, false));
        let (of, is) = (&real.overhead, &found.overhead);
        let read = of.after_read.read_hit_ms + of.data_preparation_ms + of.read_completion_ms;
        near("a hit", is.after_read.read_hit_ms + is.read_completion_ms, read);
        assert_eq!(found.findings.confidence_of("cache.write_cache"), FindingConfidence::Default);
        assert_eq!(found.findings.confidence_of("cache.segments"), FindingConfidence::Measured);
        assert_eq!(found.cache.segment_sectors, real.cache.segment_sectors);
    }
}

#[test]
fn absent_cache_is_detected() {
    let found = learn(&spec("eagle-m2361a"));
    assert!(!found.cache.enabled);
    assert!(found.probes < 1000, "{}", found.probes);
}

#[test]
fn rules_beyond_shipped_drives_are_distinguished() {
    let of = |name: &str, change: &dyn Fn(&mut DriveSpec)| {
        let mut spec = spec(name);
        change(&mut spec);
        learn(&spec)
    };
    let with = |change: &dyn Fn(&mut DriveSpec)| of("cheetah-9lp", change);
    // Its own bands are a quarter of its cylinders, over which block numbers say little of distances.
    let banded = |change: &dyn Fn(&mut DriveSpec)| {
        let mut spec = in_bands(spec("st3300007lw"), Layout::Aa, 32);
        change(&mut spec);
        learn(&spec)
    };
    for kind in [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::OnArrival] {
        let found = with(&|spec| {
            (spec.cache.read_ahead, spec.cache.segment_sectors) = (kind, 8192);
            spec.cache.read_ahead_max_sectors = 8191;
        });
        assert_eq!(found.cache.read_ahead, kind);
    }
    for rule in [Replacement::Fifo, Replacement::Random] {
        assert_eq!(with(&|spec| spec.cache.replacement = rule).cache.replacement, rule);
    }
    let found = with(&|spec| spec.cache.read_ahead_min_sectors = 200);
    // It is cut off at the end of a sector.
    assert!((200..=202).contains(&found.cache.read_ahead_min_sectors), "{found:?}");
    for order in ["fcfs", "sstf", "look", "c-look", "sptf"] {
        let found = banded(&|spec| spec.queue.order = order.to_string());
        assert_eq!(found.queue.order, order);
    }
    for (order, choice_ms) in
        [("bounded-sptf(0.6)", 0.2), ("bounded-sptf(3)", 0.0), ("bounded-sptf(2, 0.5)", 0.05)]
    {
        let found = banded(&|spec| {
            (spec.queue.order, spec.queue.choice_ms) = (order.to_string(), choice_ms);
        });
        let [learned, real] =
            [&found.queue.order, order].map(|order| bound(order).unwrap_or_else(|| panic!("{order} found")));
        assert!(is_like(learned, real), "{} found for {order}", found.queue.order);
        near("the choice", found.queue.choice_ms, choice_ms);
    }
    for order in ["fcfs", "c-look", "sptf"] {
        let found = of("wd800jd", &|spec| spec.cache.destage_order = order.to_string());
        assert_eq!(found.cache.destage_order, order);
    }
    let found = of("wd800jd", &|spec| spec.cache.flush_ms = 3.0);
    near("the work of a flush", found.cache.flush_ms, 3.0);
    // Which command is the first shows only if several are in flight.
    let found = banded(&|spec| {
        (spec.overhead.first_ms, spec.overhead.sequential_ms) = (0.2, Some(0.04));
    });
    near("the first command", found.overhead.first_ms, 0.2);
    near("a sequential command", found.overhead.sequential_ms.unwrap_or(9.0), 0.04);
}

#[test]
fn wrong_turn_time_is_rejected() {
    let spec = spec("wd800jd");
    let mut disk = disk(&spec, 7);
    let map = TrackMap::of_geometry(&disk.device().drive().geometry);
    let info = drive::ProbeTarget::info(&disk);
    let mut extraction = Extraction::new(info, |handle: Disk| electronics(handle, map, 7e6));
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    let error = found.expect("it is not cancelled").expect_err("8.3 ms are not 7 ms");
    assert!(error.to_string().contains("turns of 7 ms"), "{error}");
}
