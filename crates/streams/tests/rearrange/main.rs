//! The rearranger compared with a plain array: whenever blocks are copied, a read returns what was written last.

mod world;

use headstack_streams::rearrange::{CounterReplacement, HotSelection, RearrangeSpec};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use world::{Fault, World};

/// Events of a world.
const STEPS: u32 = 3000;

/// Random keys, with periods that are short enough that copies and requests often overlap.
fn drawn_spec(random: &mut impl Rng) -> RearrangeSpec {
    let counters = Some(random.random_range(1..40));
    let spec =
        RearrangeSpec { block_bytes: 512 * world::BLOCK_SECTORS, counters, ..RearrangeSpec::drawn(random) };
    // Drawn last, so that the other keys of a seed stay the same.
    match random.random_range(0..3) {
        0 => RearrangeSpec {
            selection: HotSelection::Forecast,
            copy_references: 1,
            carried_ratio: 0.0,
            ..spec
        },
        _ => spec,
    }
}

/// Runs requests, copies and faults in an order drawn from a seed. Then reads everything and dissolves the region.
fn play(seed: u64) -> World {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let spec = drawn_spec(&mut random);
    let mut world = World::new(spec, seed);
    (0..STEPS).for_each(|_| world.step());
    world.read_all();
    world.dissolve();
    world
}

#[test]
fn reads_return_what_was_last_written_in_a_hundred_worlds() {
    let worlds: Vec<World> = (0..100).map(play).collect();
    // Each situation that the test is for has occurred.
    let sum = |count: fn(&World) -> u64| worlds.iter().map(count).sum::<u64>();
    let met = [
        ("hits", sum(|world| world.counters().hits)),
        ("copies written home", sum(|world| world.counters().written_home)),
        ("copies spoiled by a write", sum(|world| world.counters().spoiled)),
        ("clean copies that left", sum(|world| world.counters().left_clean)),
        ("copies that failed", sum(|world| world.counters().failed)),
        ("writes held until the table's record", sum(|world| world.held_writes)),
        ("requests that one command serves", sum(|world| world.direct_requests)),
        ("of these, while copies are planned", sum(|world| world.direct_during_copies)),
    ];
    assert!(met.iter().all(|(_, count)| *count > 100), "{met:?}");
}

#[test]
#[ignore = "takes minutes: make rearrange-full"]
fn reads_return_what_was_last_written_in_ten_thousand_worlds() {
    (100..10_100).for_each(|seed| drop(play(seed)));
}

#[test]
fn every_planted_loss_is_noticed() {
    for fault in [Fault::LostCopyHome, Fault::LostCopyIn] {
        let noticed = (0..100).any(|seed| {
            let play = || {
                let mut random = Pcg64Mcg::seed_from_u64(seed);
                let mut world = World::new(drawn_spec(&mut random), seed);
                world.fault = Some(fault);
                (0..STEPS).for_each(|_| world.step());
                world.read_all();
                world.dissolve();
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).is_err()
        });
        assert!(noticed, "{fault:?}");
    }
}

#[test]
fn bounded_analyzers_use_no_more_counters_than_they_have() {
    for replacement in [CounterReplacement::SpaceSaving, CounterReplacement::FirstCome] {
        let mut analyzer = replacement.analyzer(64);
        (0..100_000u64).for_each(|reference| analyzer.observe(reference * reference % 7919));
        assert_eq!(analyzer.counters(), 64, "{replacement:?}");
        assert_eq!(analyzer.hot_list(usize::MAX).len(), 64, "{replacement:?}");
    }
}
