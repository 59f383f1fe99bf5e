//! The scheduler writes zones in sequence, whatever mixture of writes fills them.

use crate::world::{BLOCK, Speed, World};
use headstack_model::{Instant, Nanos};
use headstack_streams::streams::{Config, RequestKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

const ZONE_BLOCKS: u64 = 200;
const ZONES: u64 = 24;

/// Number of zones that each client fills, one after another.
const ZONES_PER_CLIENT: u64 = 4;

/// A client's next write, of a random number of blocks up to the end of the zone, and the block after it.
fn next_write(random: &mut Pcg64Mcg, block: u64) -> (RequestKind, u64) {
    let left = ZONE_BLOCKS - block % ZONE_BLOCKS;
    let most = [1, 16, 16, 16, 100][random.random_range(0..5)];
    let blocks = most.min(left);
    let fua = random.random_bool(0.1);
    (RequestKind::Write { offset: block * BLOCK, bytes: blocks * BLOCK, fua }, blocks)
}

/// Runs clients that fill their zones. Returns the byte ranges of the disk's writes, in the order in which their commands began.
fn writes_of_zone_fillers(seed: u64) -> Vec<(u64, u64)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let config = Config {
        memory_bytes: [256 << 10, 1 << 20, 4 << 20][random.random_range(0..3)],
        arms: [None, Some(2)][random.random_range(0..2)],
        coalesce_ms: 20.0,
        ..Config::default()
    };
    let speed = Speed { positioning: Nanos(2_000_000), byte_ns: 20.0 };
    let mut world = World::new(config, (ZONES * ZONE_BLOCKS) as usize, speed);
    world.is_checked = true;
    world.streams.set_write_zones(ZONE_BLOCKS * BLOCK);
    let depth = random.random_range(1..5);
    let clients = (ZONES / ZONES_PER_CLIENT) as usize;
    let mut blocks: Vec<u64> =
        (0..clients as u64).map(|client| client * ZONES_PER_CLIENT * ZONE_BLOCKS).collect();
    let ends: Vec<u64> = blocks.iter().map(|first| first + ZONES_PER_CLIENT * ZONE_BLOCKS).collect();
    let (mut outstanding, mut owners) = (vec![0; clients], BTreeMap::new());
    loop {
        for client in 0..clients {
            while outstanding[client] < depth && blocks[client] < ends[client] {
                let (kind, count) = next_write(&mut random, blocks[client]);
                blocks[client] += count;
                outstanding[client] += 1;
                owners.insert(world.submit(client as u64, kind, 1), client);
            }
        }
        if owners.is_empty() {
            break;
        }
        assert!(
            !world.answered.is_empty() || world.step(Instant::MAX),
            "seed {seed}: a write is never answered"
        );
        for (ticket, result) in std::mem::take(&mut world.answered) {
            result.expect("the disk works");
            outstanding[owners.remove(&ticket).expect("it was submitted")] -= 1;
        }
    }
    world.submit(0, RequestKind::Flush, 0);
    while world.outstanding() > 0 {
        assert!(world.step(Instant::MAX), "seed {seed}: the flush is never answered");
    }
    world.writes
}

#[test]
fn writes_of_a_zone_reach_the_disk_in_the_order_of_their_blocks() {
    for seed in 0..60 {
        let mut pointers: Vec<u64> = (0..ZONES).map(|zone| zone * ZONE_BLOCKS * BLOCK).collect();
        for (offset, bytes) in writes_of_zone_fillers(seed) {
            let zone = (offset / (ZONE_BLOCKS * BLOCK)) as usize;
            assert_eq!(offset, pointers[zone], "seed {seed}: a write of zone {zone} begins at its pointer");
            pointers[zone] += bytes;
            let end = (zone as u64 + 1) * ZONE_BLOCKS * BLOCK;
            assert!(pointers[zone] <= end, "seed {seed}: a write crosses the end of zone {zone}");
        }
        let full = (1..=ZONES).map(|zone| zone * ZONE_BLOCKS * BLOCK);
        assert!(pointers.iter().copied().eq(full), "seed {seed}: all zones are full: {pointers:?}");
    }
}
