//! Are a disk's electronics learned from outside as its drive file has them?

use headstack_model::spec::{OverheadSet, ReadAhead, Replacement, WriteCache};
use headstack_model::{DriveSpec, drives};
use headstack_tracks::learn::{LearnedElectronics, electronics};
use headstack_tracks::simulated::{Noise, SimulatedDisk};
use headstack_tracks::{Disk, Extraction, TrackMap, drive};

fn spec(name: &str) -> DriveSpec {
    drives::load(name).expect("it is shipped")
}

fn disk(spec: &DriveSpec) -> SimulatedDisk {
    SimulatedDisk::new(spec, Noise::USUAL, 7).expect("the drive file is good")
}

fn learn(spec: &DriveSpec) -> LearnedElectronics {
    let mut disk = disk(spec);
    let map = TrackMap::of_geometry(&disk.device().drive().geometry);
    let turn_ns = 60e9 / spec.mechanics.rpm;
    let facts = drive::Answers::facts(&disk);
    let mut extraction = Extraction::new(facts, |handle: Disk| electronics(handle, map, turn_ns));
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    found.expect("nobody ended it").expect("it turns")
}

/// Drives of each decade and kind of cache.
const DRIVES: [&str; 13] = [
    "hp-c2247a",
    "hp-c3323a",
    "dec-rz26",
    "atlas-iii",
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

fn near(name: &str, what: &str, found_ms: f64, real_ms: f64) {
    assert!((found_ms - real_ms).abs() < 0.012, "{name}: {what} is {real_ms} ms, and {found_ms} was found");
}

#[test]
fn are_overheads_as_long_as_they_are() {
    for name in DRIVES {
        let (real, found) = (spec(name), learn(&spec(name)));
        let (of, is) = (&real.overhead, &found.overhead);
        // Only sums show: all from the command to the end but what the media and the bus take.
        let (again, around) = (real.bus.reconnect_first_ms, of.data_preparation_ms);
        let hit = |set: &OverheadSet| set.read_hit_ms + around + of.read_completion_ms;
        let miss = |set: &OverheadSet| set.read_miss_ms + around + again + of.read_completion_ms;
        for (after, set, seen) in
            [("a read", &of.after_read, &is.after_read), ("a write", &of.after_write, &is.after_write)]
        {
            near(name, &format!("a hit after {after}"), seen.read_hit_ms + is.read_completion_ms, hit(set));
            near(
                name,
                &format!("a miss after {after}"),
                seen.read_miss_ms + is.read_completion_ms,
                miss(set),
            );
            // Of a disconnection before the data, only what the first of them shows.
            if real.bus.write_disconnect.is_none() {
                let write = set.write_ms + around + again + of.write_completion_ms;
                near(name, &format!("a write after {after}"), seen.write_ms + is.write_completion_ms, write);
            }
        }
        assert_eq!(is.first_ms, 0.0, "{name}");
        assert_eq!(is.sequential_ms, None, "{name}");
    }
}

#[test]
fn is_the_bus_as_fast_as_it_is() {
    for name in DRIVES {
        let (real, found) = (spec(name).bus, learn(&spec(name)).bus);
        let off = (found.read_us_per_sector / real.read_us_per_sector - 1.0).abs();
        assert!(
            off < 0.02 || (found.read_us_per_sector - real.read_us_per_sector).abs() < 0.1,
            "{name}: {found:?}"
        );
        assert!(
            (found.write_us_per_sector / real.write_us_per_sector - 1.0).abs() < 0.05,
            "{name}: {found:?}"
        );
        assert_eq!(found.buffer_full_ratio, real.buffer_full_ratio, "{name}");
        assert_eq!(found.write_start_sectors, real.write_start_sectors, "{name}");
    }
}

#[test]
fn is_the_cache_for_reads_what_it_is() {
    for name in DRIVES {
        let (real, found) = (spec(name).cache, learn(&spec(name)).cache);
        let segments = real.segments;
        assert_eq!((found.enabled, found.segments), (true, segments), "{name}");
        assert_eq!(
            (found.segmentation, found.segments_max),
            (real.segmentation, real.segments_max),
            "{name}"
        );
        assert_eq!((found.read_ahead, found.replacement), (real.read_ahead, real.replacement), "{name}");
        assert_eq!(found.segment_sectors, real.segment_sectors, "{name}");
        if real.read_ahead == ReadAhead::Segment {
            assert_eq!(found.read_ahead_max_sectors, real.read_ahead_max_sectors, "{name}");
        }
        assert_eq!(found.dedicated_write_segment, real.dedicated_write_segment, "{name}");
        assert_eq!(found.read_ahead_min_sectors, 0, "{name}");
        // Where a command is under way for longer than a sector, none comes just as its sector does.
        assert!(name != "dec-rz26" || !found.almost_hits);
        assert_eq!(found.read_on_arrival, real.read_on_arrival, "{name}");
        assert_eq!(found.read_hits_on_written, real.read_hits_on_written, "{name}");
        assert_eq!(found.read_ahead_on_hit, real.read_ahead_on_hit, "{name}");
    }
}

#[test]
fn is_the_cache_for_writes_what_it_is() {
    for name in DRIVES {
        let (real, found) = (spec(name).cache, learn(&spec(name)).cache);
        assert_eq!(found.write_cache, real.write_cache, "{name}");
        if real.write_cache != WriteCache::Full {
            continue;
        }
        assert!((found.destage_idle_ms - real.destage_idle_ms).abs() < 0.3, "{name}: {found:?}");
        assert_eq!(found.dirty_runs_max, real.dirty_runs_max, "{name}");
        let off = (found.dirty_max_sectors as f64 / real.dirty_max_sectors as f64 - 1.0).abs();
        assert!(off < 0.04, "{name}: {} dirty sectors", found.dirty_max_sectors);
        assert_eq!(found.dirty_start_sectors, real.dirty_start_sectors, "{name}");
        assert_eq!(found.destage_order, real.destage_order, "{name}");
        near(name, "the work after a write", found.destage_extra_ms, real.destage_extra_ms);
        near(name, "the work of a flush", found.flush_ms, real.flush_ms);
    }
}

#[test]
fn is_the_queue_what_it_is() {
    for name in DRIVES {
        let (real, found) = (spec(name).queue, learn(&spec(name)).queue);
        assert_eq!((found.depth, found.window), (real.depth, real.window), "{name}");
        assert_eq!(found.order, real.order, "{name}");
    }
}

#[test]
fn is_a_disk_without_a_cache_seen_to_have_none() {
    let found = learn(&spec("eagle-m2361a"));
    assert!(!found.cache.enabled);
    assert!(found.probes < 1000, "{}", found.probes);
}

#[test]
fn are_rules_told_apart_that_no_shipped_drive_has() {
    let of = |name: &str, change: &dyn Fn(&mut DriveSpec)| {
        let mut spec = spec(name);
        change(&mut spec);
        learn(&spec)
    };
    let with = |change: &dyn Fn(&mut DriveSpec)| of("cheetah-9lp", change);
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
        let found = of("st3300007lw", &|spec| spec.queue.order = order.to_string());
        assert_eq!(found.queue.order, order);
    }
    for order in ["fcfs", "c-look", "sptf"] {
        let found = of("wd800jd", &|spec| spec.cache.destage_order = order.to_string());
        assert_eq!(found.cache.destage_order, order);
    }
    let found = of("wd800jd", &|spec| spec.cache.flush_ms = 3.0);
    near("changed", "the work of a flush", found.cache.flush_ms, 3.0);
    // Which command is the first shows only where several are under way.
    let found = of("st3300007lw", &|spec| {
        (spec.overhead.first_ms, spec.overhead.sequential_ms) = (0.2, Some(0.04));
    });
    near("changed", "the first command", found.overhead.first_ms, 0.2);
    near("changed", "a sequential command", found.overhead.sequential_ms.unwrap_or(9.0), 0.04);
}

#[test]
fn is_a_disk_whose_turn_is_not_as_told_refused() {
    let spec = spec("wd800jd");
    let mut disk = disk(&spec);
    let map = TrackMap::of_geometry(&disk.device().drive().geometry);
    let facts = drive::Answers::facts(&disk);
    let mut extraction = Extraction::new(facts, |handle: Disk| electronics(handle, map, 7e6));
    let found = drive::run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    let error = found.expect("nobody ended it").expect_err("8.3 ms are not 7 ms");
    assert!(error.to_string().contains("turns of 7 ms"), "{error}");
}
