//! The translation layer of a shingled disk compared with a plain array: whenever the power fails, a read returns what was written last.

mod world;

use world::{Fault, Met, World};

/// Events of a world.
const STEPS: u32 = 2000;

/// Runs writes, reads, steps of cleaning and power cuts in an order drawn from a seed. Then reads everything, cleans, and reads again.
fn play(seed: u64, fault: Option<Fault>) -> Met {
    let mut world = World::new(seed);
    world.fault = fault;
    (0..STEPS).for_each(|_| world.step());
    world.end();
    world.met
}

#[test]
fn reads_return_what_was_last_written_in_a_hundred_worlds() {
    let worlds: Vec<Met> = (0..100).map(|seed| play(seed, None)).collect();
    // Each situation that the test is for has occurred.
    let sum = |count: fn(&Met) -> u64| worlds.iter().map(count).sum::<u64>();
    let met = [
        ("records torn by a power cut", sum(|met| met.torn_records)),
        ("bands torn while they are cleaned", sum(|met| met.torn_cleanings)),
        ("bands torn while a stream writes them", sum(|met| met.torn_bands)),
        ("blocks that a torn stream left unreadable", sum(|met| met.damaged)),
        ("cleanings resumed from the scratch area", sum(|met| met.resumed)),
        ("reads from the scratch area", sum(|met| met.scratch_reads)),
        ("laps of the log", sum(|met| met.laps)),
        ("writes that found the cache full", sum(|met| met.full)),
        ("bands cleaned", sum(|met| met.cleaned)),
        ("streams over cached extents", sum(|met| met.superseded)),
    ];
    assert!(met.iter().all(|(_, count)| *count > 50), "{met:?}");
}

#[test]
#[ignore = "takes a minute: make shingled-full"]
fn reads_return_what_was_last_written_in_ten_thousand_worlds() {
    (100..10_100).for_each(|seed| {
        play(seed, None);
    });
}

#[test]
fn every_planted_loss_is_noticed() {
    for fault in [Fault::DroppedRecord, Fault::UnsafeRewrite, Fault::StaleMap] {
        let noticed = (0..100).any(|seed| std::panic::catch_unwind(move || play(seed, Some(fault))).is_err());
        assert!(noticed, "{fault:?}");
    }
}
