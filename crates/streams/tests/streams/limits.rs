//! Duration limits of reads: which limit each command gets.

use crate::world::{BLOCK, Speed, World};
use headstack_model::{Instant, Nanos};
use headstack_streams::streams::{Config, Guarantee, RequestKind};

const DISK_BLOCKS: u64 = 1 << 20;

/// The client with a guarantee, and one without.
const GUARANTEED: u64 = 7;
const OTHER: u64 = 8;

/// The disk's limits with their numbers. They need not be in ascending order.
const LIMITS: [(u8, Nanos); 3] = [(1, Nanos(200_000_000)), (2, Nanos(50_000_000)), (3, Nanos(1_000_000_000))];

/// A disk with limits, each of whose commands takes `access_ms`, behind a scheduler with a guarantee for one client.
fn world(config: Config, access_ms: u64, guarantee: Guarantee) -> World {
    let speed = Speed { positioning: Nanos(access_ms * 1_000_000), byte_ns: 1.0 };
    let mut world = World::new(config, DISK_BLOCKS as usize, speed);
    world.is_checked = true;
    world.streams.set_read_limits(LIMITS);
    world.streams.set_guarantee(GUARANTEED, guarantee);
    world
}

fn guarantee(rate: u64, response_ms: u64) -> Guarantee {
    Guarantee { rate, response: Nanos(response_ms * 1_000_000) }
}

/// A read of 4 KiB that belongs to no stream, not even to one with constant gaps.
fn read(number: u64) -> RequestKind {
    RequestKind::Read { offset: number * number * 7919 % DISK_BLOCKS * BLOCK, bytes: BLOCK, fua: false }
}

fn finish(world: &mut World) {
    while world.outstanding() > 0 {
        assert!(world.step(Instant::MAX), "all are answered");
    }
}

fn limits(world: &World) -> Vec<u8> {
    world.limits.iter().map(|(_, limit)| *limit).collect()
}

#[test]
fn only_reads_of_a_client_with_a_guarantee_have_a_limit() {
    let mut world = world(Config::default(), 5, guarantee(1_000_000, 300));
    world.submit(GUARANTEED, read(1), 1);
    world.submit(OTHER, read(2), 1);
    world.submit(GUARANTEED, RequestKind::Write { offset: 5000 * BLOCK, bytes: BLOCK, fua: true }, 1);
    world.submit(GUARANTEED, RequestKind::Flush, 1);
    finish(&mut world);
    assert_eq!(limits(&world), [1, 0, 0, 0], "{:?}", world.limits);
}

#[test]
fn waiting_shortens_the_limit_of_a_read() {
    let config = Config { queue_depth: 1, ..Config::default() };
    let mut world = world(config, 100, guarantee(1_000_000, 350));
    for number in 1..6 {
        world.submit(GUARANTEED, read(number), 1);
    }
    finish(&mut world);
    // The remaining times are 350, 250, 150 and 50 ms, each less the time of a command, and none at all.
    assert_eq!(limits(&world), [1, 1, 2, 2, 2]);
}

#[test]
fn read_with_a_limit_precedes_those_without_in_the_queue_of_the_node() {
    let config = Config { queue_depth: 1, ..Config::default() };
    let mut world = world(config, 5, guarantee(1_000_000, 300));
    for number in 1..6 {
        world.submit(OTHER, read(number), 1);
    }
    world.submit(GUARANTEED, read(6), 1);
    finish(&mut world);
    // The first command was already at the disk: a read of the other client.
    assert_eq!(limits(&world), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn client_beyond_its_rate_gets_no_limits() {
    // The guaranteed rate allows one read of 4 KiB per 100 ms.
    let mut world = world(Config::default(), 1, guarantee(BLOCK * 10, 300));
    for number in 1..20 {
        world.submit(GUARANTEED, read(number), 1);
        finish(&mut world);
    }
    let limited = world.limits.iter().filter(|(_, limit)| *limit > 0).count();
    assert_eq!(limited, 4, "{:?}", limits(&world));
    while world.step(Instant::from_secs(10)) {}
    world.submit(GUARANTEED, read(20), 1);
    finish(&mut world);
    assert_eq!(limits(&world).last(), Some(&1), "its rate has paid for the earlier ones");
}

#[test]
fn stream_with_a_guarantee_is_read_with_limits_and_another_without() {
    let mut world = world(Config::default(), 5, guarantee(50_000_000, 300));
    for turn in 0..200 {
        for (client, first) in [(GUARANTEED, 0), (OTHER, DISK_BLOCKS / 2 * BLOCK)] {
            world.submit(
                client,
                RequestKind::Read { offset: first + (turn << 16), bytes: 1 << 16, fua: false },
                1,
            );
        }
        finish(&mut world);
    }
    assert!(world.streams.view().counters.found == 2, "both are streams");
    for (kind, limit) in &world.limits {
        let is_guaranteed = kind.run().0 < DISK_BLOCKS / 2 * BLOCK;
        assert_eq!(*limit > 0, is_guaranteed, "{kind:?}");
    }
}

#[test]
fn limits_of_the_configuration_precede_those_of_the_disk() {
    for (own, expected) in [(vec![], 0), (vec![100.0, 250.0], 2), (vec![400.0], 1)] {
        let config = Config { read_limits_ms: Some(own), ..Config::default() };
        let mut world = world(config, 5, guarantee(1_000_000, 300));
        world.submit(GUARANTEED, read(1), 1);
        finish(&mut world);
        assert_eq!(limits(&world), [expected]);
    }
}
