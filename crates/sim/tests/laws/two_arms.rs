//! Disks with two arms: how the arms delay each other, and how the disk's blocks are divided between them.

use headstack_model::{Instant, Lbn, Nanos, TrackPlace, drives};
use headstack_sim::rig::Rig;
use headstack_sim::{ArmRecord, Completion, Engine};
use headstack_workload::{Closed, Member, Mix, Pattern, Region, Shape};

/// A disk with two arms, each of which is a shipped drive that does not read ahead.
fn disk(array: &str) -> Rig {
    let text = format!(
        "[drive]\npreset = \"hp-c2247a\"\ncount = 2\nvolume = \"arm\"\ncache.read_ahead = \"none\"\n\
         [array]\nname = \"disk\"\ndrives = [\"arm\"]\n{array}\n"
    );
    Rig::parse(&text, "rig", &mut |name| drives::load(name)).expect("the rig is right")
}

fn concatenation(ratio: &str) -> Rig {
    disk(&format!("organisation = \"concatenation\"\n{ratio}"))
}

fn load(rig: &Rig, pattern: Pattern, sectors: u32, depth: u32, count: u64) -> Mix {
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = Shape { region, pattern, sectors, alignment: sectors, read_share: 1.0 };
    let closed = Closed::new(shape, depth, count, 3).expect("it fits");
    let member = Member { load: Box::new(closed), device: 0, sources: 1 };
    Mix::new(vec![member], count, Instant::MAX).expect("the member is right")
}

/// Runs 400 random reads with `depth` outstanding. Returns the completions and the engine.
fn random_reads(rig: &Rig, depth: u32) -> (Vec<Completion>, Engine) {
    let mut engine = rig.build(1).expect("the rig is right");
    engine.log_arms();
    let mut completions = Vec::new();
    engine.run(&mut load(rig, Pattern::Random, 8, depth, 400), &mut |finished| {
        completions.push(finished.completion);
    });
    (completions, engine)
}

/// The accesses of an arm, each with the time that its seek would take without interference.
fn accesses(engine: &mut Engine, device: usize) -> Vec<(ArmRecord, Nanos)> {
    let records: Vec<ArmRecord> = std::iter::from_fn(|| engine.poll_arm_record(device)).collect();
    let drive = engine.device(device).drive();
    let mut place = TrackPlace::default();
    let alone = records.into_iter().map(|record| {
        let extent = drive.geometry.extent_at(record.blocks.start);
        let to = TrackPlace { cylinder: extent.cylinder, head: extent.head };
        // The seek of an access that crosses the end of a track includes the move to the next track.
        let onwards = drive.mechanics.reposition(to, record.end_place, false);
        let alone = drive.mechanics.reposition(place, to, false) + onwards;
        place = record.end_place;
        (record, alone)
    });
    alone.collect()
}

/// The time in ns for which two seeks overlap, each given by its start and its duration.
fn overlap((one, took): (Instant, Nanos), (other, other_took): (Instant, Nanos)) -> u64 {
    (one + took).min(other + other_took).since(one.max(other)).0
}

#[test]
fn one_of_two_seeks_that_overlap_is_longer_by_at_most_its_share_of_the_overlap() {
    let (_, mut engine) = random_reads(&concatenation("interference_ratio = 0.5"), 8);
    let arms = [accesses(&mut engine, 0), accesses(&mut engine, 1)];
    let mut pairs = 0;
    for (arm, others) in [(&arms[0], &arms[1]), (&arms[1], &arms[0])] {
        for (access, alone) in arm {
            let own = (access.begins, *alone);
            let shared = others.iter().map(|(other, _)| overlap(own, (other.begins, other.seek)));
            let delay = access.seek - *alone;
            assert!(2 * delay.0 <= shared.sum::<u64>(), "{delay:?} of {access:?}");
            for (other, other_alone) in others {
                // Of two seeks that begin at the same time, neither is delayed by the other.
                let is_pair =
                    access.begins != other.begins && overlap(own, (other.begins, *other_alone)) > 10;
                assert!(
                    !is_pair || delay + (other.seek - *other_alone) > Nanos::ZERO,
                    "{access:?} and {other:?}"
                );
                pairs += u32::from(is_pair);
            }
        }
    }
    assert!(pairs > 200, "{pairs} seeks of 400 overlap another");
}

#[test]
fn interference_of_zero_changes_no_completion() {
    let without = random_reads(&concatenation(""), 8).0;
    assert_eq!(random_reads(&concatenation("interference_ratio = 0.0"), 8).0, without);
    assert_ne!(random_reads(&concatenation("interference_ratio = 0.5"), 8).0, without);
}

#[test]
fn arm_that_seeks_alone_is_not_delayed() {
    let without = random_reads(&concatenation(""), 1).0;
    assert_eq!(random_reads(&concatenation("interference_ratio = 1.0"), 1).0, without);
}

#[test]
fn more_interference_makes_seeks_longer_and_loses_no_request() {
    let ratios = ["0.0", "0.25", "0.5", "1.0"];
    let seeks = ratios.map(|ratio| {
        let (completions, _) = random_reads(&concatenation(&format!("interference_ratio = {ratio}")), 8);
        assert_eq!(completions.len(), 400);
        for done in &completions {
            assert_eq!(done.parts.total(), done.completed - done.submitted, "{done:?}");
        }
        completions.iter().map(|done| done.parts.seek.0).sum::<u64>()
    });
    assert!(seeks.is_sorted() && seeks[0] < seeks[3], "{seeks:?}");
}

#[test]
fn stream_has_both_arms_where_blocks_are_split_by_surfaces() {
    let took = |array: &str, region: u64| {
        let mut rig = disk(array);
        for (key, value) in [("host.queue.elevator", "bfq"), ("host.queue.whole_disk", "true")] {
            rig.set(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        }
        assert_eq!(rig.volumes()[0].sectors / 1024, region / 1024);
        let mut engine = rig.build(1).expect("the rig is right");
        let mut ended = Instant::ZERO;
        engine.run(&mut load(&rig, Pattern::Sequential, 512, 4, 200), &mut |finished| {
            ended = ended.max(finished.completion.completed);
        });
        ended.since(Instant::ZERO)
    };
    let lbns = concatenation("").volumes()[0].sectors;
    let by_lbn = took("organisation = \"concatenation\"", lbns);
    let by_surfaces = took("organisation = \"striping\"\ntrack_aligned = true", lbns);
    // Both arms together would be twice as fast, except for positioning and for tracks of which a request reads only a part.
    assert!(by_surfaces.0 * 3 < by_lbn.0 * 2, "{by_surfaces:?} and {by_lbn:?}");
}

#[test]
fn disk_split_by_surfaces_has_one_range_of_blocks_for_the_host() {
    let ranges = |array: &str| {
        let rig = disk(array);
        rig.access_ranges(&rig.volumes()[0])
    };
    assert_eq!(ranges("organisation = \"concatenation\"").len(), 2);
    let surfaces = ranges("organisation = \"striping\"\ntrack_aligned = true");
    assert_eq!((surfaces.len(), surfaces[0].start), (1, Lbn(0)));
}
