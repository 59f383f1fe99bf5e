//! Block rearrangement in a rig: the region, the copies, and what they gain, in virtual time.

use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::rig::{Rig, RigError};
use headstack_sim::{Completion, Engine, Finished, Outcome, RearrangeActivity, RearrangeLayer};
use headstack_workload::{
    Closed, Distribution, DriftShape, Drifting, Inbox, Issue, Load, Open, Pattern, Popularity, Region, Shape,
};
use std::collections::BTreeMap;

fn parse(text: &str) -> Result<Rig, RigError> {
    Rig::parse(text, "rig", &mut |name| drives::load(name))
}

fn rig(text: &str) -> Rig {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The HP C2247A with these keys of rearrangement.
fn rearranged(keys: &str) -> Rig {
    rig(&format!("[drive]\npreset = \"hp-c2247a\"\n[rearrange]\n{keys}"))
}

/// Skewed requests of 8 KiB to aligned blocks of a volume, five a second.
fn skewed(sectors: u64, requests: u64, read_share: f64) -> Open<Drifting> {
    let shape = DriftShape {
        region: Region::whole(sectors),
        group: 16,
        popularity: Popularity::Zipf { exponent: 1.2 },
        sectors: 16,
        alignment: 16,
        read_share,
        drift_per_hour: 0.0,
    };
    let gaps = Distribution::exponential(Nanos::from_ms(200.0));
    Open::from_pick(Drifting::new(shape, 5).expect("it fits"), &gaps, requests, 7).expect("it fits")
}

fn run(rig: &Rig, load: &mut dyn Load) -> (Vec<Finished>, Engine) {
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    engine.run(load, &mut |finished| all.push(*finished));
    (all, engine)
}

fn activity(engine: &Engine) -> RearrangeActivity {
    engine.layer::<RearrangeLayer>(0).expect("the volume has a rearranger").activity()
}

#[test]
fn region_shrinks_the_volume_by_whole_cylinders() {
    let whole = rig("[drive]\npreset = \"hp-c2247a\"").volumes()[0].sectors;
    for place in ["middle", "outer-edge", "inner-edge"] {
        let rig = rearranged(&format!("blocks = 500\nregion = \"{place}\""));
        let engine = rig.build(1).expect("the rig is right");
        let RearrangeActivity { reserved_sectors, first, view, .. } = activity(&engine);
        assert_eq!(rig.volumes()[0].sectors, whole - reserved_sectors, "{place}");
        assert!(view.slots >= 500 && reserved_sectors >= 8000, "{place}: {reserved_sectors}");
        let geometry = &engine.device(0).drive().geometry;
        let cylinder = |lbn: u64| geometry.track_at(Lbn(lbn)).cylinder;
        for edge in [first.0, first.0 + reserved_sectors] {
            let is_inside = edge > 0 && edge < whole;
            assert!(
                !is_inside || cylinder(edge - 1) != cylinder(edge),
                "{place}: sector {edge} begins a cylinder"
            );
        }
        let middle = cylinder(first.0 + reserved_sectors / 2).abs_diff(cylinder(whole - 1) / 2);
        assert_eq!(middle <= 2, place == "middle", "{place}: {middle} cylinders from the middle");
    }
}

#[test]
fn rearranger_without_hot_blocks_changes_no_time_in_front_of_the_region() {
    let plain = rig("[drive]\npreset = \"hp-c2247a\"");
    let other = rearranged("blocks = 100\nregion = \"inner-edge\"\nperiod_s = 1e8");
    let sectors = other.volumes()[0].sectors;
    let shape = Shape {
        region: Region::whole(sectors),
        pattern: Pattern::Random,
        sectors: 24,
        alignment: 1,
        read_share: 0.5,
    };
    let load = || Closed::new(shape, 8, 2000, 3).expect("it fits");
    let times = |rig: &Rig| -> BTreeMap<u64, Completion> {
        let (all, _) = run(rig, &mut load());
        all.into_iter().map(|finished| (finished.id, finished.completion)).collect()
    };
    assert_eq!(times(&plain), times(&other));
}

#[test]
fn every_request_is_answered_once_and_fully_accounted() {
    for keys in ["when = \"at-once\"\nparallel_copies = 4", "read_from = \"nearest\"", "when = \"share\""] {
        let rig = rearranged(&format!("blocks = 300\nperiod_s = 60\n{keys}"));
        let (all, engine) = run(&rig, &mut skewed(rig.volumes()[0].sectors, 3000, 0.5));
        let mut ids: Vec<u64> = all.iter().map(|finished| finished.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), all.len()), (3000, 3000), "{keys}");
        for Finished { completion, .. } in &all {
            assert_eq!(completion.outcome, Outcome::Done);
            assert_eq!(completion.parts.total(), completion.response(), "{completion:?}");
        }
        let view = activity(&engine).view;
        assert!(view.counters.hits > 500 && view.counters.copied_in > 50, "{keys}: {view:?}");
        assert_eq!(view.counters.requests, 3000);
    }
}

#[test]
fn copies_of_hot_blocks_shorten_seeks() {
    for placement in ["organ-pipe", "serial", "rotational"] {
        let rig = rearranged(&format!("blocks = 1000\nperiod_s = 400\nplacement = \"{placement}\""));
        let (_, engine) = run(&rig, &mut skewed(rig.volumes()[0].sectors, 6000, 0.8));
        let activity = activity(&engine);
        let last = activity.periods.last().expect("periods have ended");
        let saved = last.times.saved_share().expect("there were seeks");
        assert!(saved > 0.3, "{placement}: {saved}");
        assert!(last.record.counters.hit_share() > 0.5, "{placement}: {last:?}");
        let first = activity.periods[0];
        assert_eq!((first.record.counters.hits, first.times.copy_arm), (0, Nanos::ZERO));
        let saved = first.times.saved_share().expect("there were seeks");
        assert!(saved.abs() < 0.05, "without copies every seek is one between homes: {saved}");
    }
}

#[test]
fn same_seed_gives_identical_results() {
    let rig = rearranged("blocks = 300\nperiod_s = 60");
    let [one, other] = [0, 1].map(|_| {
        let (all, engine) = run(&rig, &mut skewed(rig.volumes()[0].sectors, 2000, 0.5));
        (all, activity(&engine))
    });
    assert_eq!(one, other);
}

#[test]
fn request_beyond_the_visible_sectors_is_rejected() {
    let rig = rearranged("blocks = 100\nperiod_s = 1e8");
    let sectors = rig.volumes()[0].sectors;
    let mut engine = rig.build(1).expect("the rig is right");
    let mut inbox = Inbox::default();
    for (id, lbn) in [(0, sectors - 8), (1, sectors), (2, sectors - 1), (3, u64::MAX - 4)] {
        let request = Request { op: Op::Read, lbn: Lbn(lbn), sectors: 8, fua: false };
        inbox.put(Instant(id), Issue::new(0, request, id));
    }
    let mut outcomes = BTreeMap::new();
    engine.run(&mut inbox, &mut |finished| {
        outcomes.insert(finished.id, finished.completion.outcome);
    });
    let beyond = Outcome::OutOfRange;
    assert_eq!(outcomes, BTreeMap::from([(0, Outcome::Done), (1, beyond), (2, beyond), (3, beyond)]));
}

#[test]
fn array_and_page_cache_work_above_and_below_a_rearranger() {
    let text = "[drive]\npreset = \"hp-c2247a\"\ncount = 3\n[array]\norganisation = \"raid-5\"\nstripe_unit_sectors = 64\n\
                drives = [\"disk0\", \"disk1\", \"disk2\"]\n[rearrange]\nblocks = 300\nperiod_s = 60\n";
    for host in ["", "[host.page_cache]\nmemory_mb = 8\n"] {
        let rig = rig(&format!("{text}{host}"));
        let sectors = rig.volumes()[0].sectors;
        let (all, engine) = run(&rig, &mut skewed(sectors, 2000, 0.7));
        assert_eq!(all.len(), 2000);
        let activity = activity(&engine);
        assert!(activity.view.counters.copied_in > 30, "{host}: {activity:?}");
        assert_eq!(activity.times.saved_share(), None, "an array hides its arms");
    }
}

#[test]
fn region_that_does_not_fit_is_rejected_with_its_key() {
    let message = |keys: &str| {
        let text = format!("[drive]\npreset = \"hp-c2247a\"\n[rearrange]\n{keys}\n");
        parse(&text).expect_err("the region does not fit").to_string()
    };
    let too_many = message("blocks = 1000000");
    assert!(too_many.starts_with("rig:4: rearrange.blocks: 1000000 is outside the 128"), "{too_many}");
    assert_eq!(message("period_s = 0"), "rig:4: rearrange.period_s: 0 is outside 1 to 100000000 s");
    assert!(
        message("first_lbn = 99999999").starts_with("rig:4: rearrange.first_lbn: 99999999 is outside 0 to ")
    );
    let at_end = message("first_lbn = 2050000");
    assert!(at_end.starts_with("rig:3: rearrange.blocks: 1000 is outside the 304 blocks"), "{at_end}");
    assert!(message("block_bytes = 1000").contains("rearrange.block_bytes: 1000 is outside the multiples"));
    assert!(
        message("runs = [[2000000, 100000]]").contains("rearrange.runs: 100000 sectors from sector 2000000")
    );
}
