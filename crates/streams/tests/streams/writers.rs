//! Writers with many long requests outstanding, which leave gaps and overwrite each other's blocks.

use crate::world::{BLOCK, Speed, World};
use headstack_model::{Instant, Nanos};
use headstack_streams::streams::{Config, RequestKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

const DISK_BLOCKS: u64 = 1 << 14;

/// A client that writes upward. It sometimes leaves a gap, overwrites its own blocks, or writes where another client writes.
struct Writer {
    block: u64,
    outstanding: usize,
}

/// Runs random writers, and checks that each of their requests is answered.
fn run_writers(seed: u64, requests: usize) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let config = Config {
        memory_bytes: [1 << 20, 8 << 20, 32 << 20][random.random_range(0..3)],
        arms: [None, Some(2)][random.random_range(0..2)],
        queue_depth: [1, 4, 32][random.random_range(0..3)],
        coalesce_ms: [1.0, 20.0][random.random_range(0..2)],
        ..Config::default()
    };
    let speed = Speed { positioning: Nanos(random.random_range(100_000..9_000_000)), byte_ns: 5.0 };
    let mut world = World::new(config, DISK_BLOCKS as usize, speed);
    world.is_checked = true;
    if random.random_bool(0.5) {
        world.streams.set_write_zones(random.random_range(100..2000) * BLOCK);
    }
    let depth = random.random_range(1..24);
    let most_blocks = [16, 64, 256][random.random_range(0..3)];
    let gaps = [0.0, 0.02, 0.2][random.random_range(0..3)];
    let clients = random.random_range(1..5);
    let mut writers: Vec<Writer> =
        (0..clients).map(|client| Writer { block: client * 3000, outstanding: 0 }).collect();
    let (mut owners, mut submitted) = (BTreeMap::new(), 0);
    while submitted < requests || !owners.is_empty() {
        for client in 0..writers.len() {
            while writers[client].outstanding < depth && submitted < requests {
                let other = writers[random.random_range(0..writers.len())].block;
                let block = match random.random_bool(gaps) {
                    false => writers[client].block,
                    true if random.random_bool(0.3) => other,
                    true if random.random_bool(0.3) => writers[client].block.saturating_sub(100),
                    true => writers[client].block + random.random_range(1..3000),
                };
                let blocks =
                    if random.random_bool(0.8) { most_blocks } else { random.random_range(1..=most_blocks) };
                let block = if block + blocks > DISK_BLOCKS { random.random_range(0..2000) } else { block };
                let fua = random.random_bool(0.02);
                let kind = RequestKind::Write { offset: block * BLOCK, bytes: blocks * BLOCK, fua };
                writers[client].block = block + blocks;
                writers[client].outstanding += 1;
                submitted += 1;
                owners.insert(world.submit(client as u64, kind, 1), client);
            }
        }
        assert!(
            !world.answered.is_empty() || world.step(Instant::MAX),
            "seed {seed}: a write is never answered"
        );
        for (ticket, result) in std::mem::take(&mut world.answered) {
            result.expect("the disk works");
            writers[owners.remove(&ticket).expect("it was submitted")].outstanding -= 1;
        }
    }
}

#[test]
fn every_write_is_answered_whatever_gaps_and_overlaps_writers_leave() {
    for seed in 0..400 {
        run_writers(seed, 400);
    }
}
