//! Simulation of a node from a seed, in virtual time: drawn clients, the node's core with its real bytes, and an emulated disk.
//!
//! A seed draws a disk, a configuration, perhaps an order of the disk's commands (by its own drive file or by that of another disk),
//! clients, bad blocks, all delays, and clients that disconnect with requests in flight. It also draws an end: quiet, a power cut in the
//! middle of writes, a killed node, or a disk that dies.
//!
//! After every step the node stays within its memory. Every request is answered once; no read returns data that it must not; flushed data
//! are there in the end; and no request waits forever. A failure names its seed, and `HEADSTACK_SEED=n` runs that seed alone and prints its
//! events.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "seeds run on all cores, and one is given by the environment"
)]

mod clients;
mod device;
mod draw;
mod expected_data;
mod world;

use draw::Drawable;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use world::{Books, World};

/// Runs a seed, and reports the seed of a failure.
fn run(seed: u64, drives: &[Drawable], is_reported: bool) -> Books {
    let found = catch_unwind(AssertUnwindSafe(|| World::new(seed, drives, is_reported).run()));
    found.unwrap_or_else(|failure| {
        let said = failure.downcast_ref::<String>().map(String::as_str);
        let said = said.or(failure.downcast_ref::<&str>().copied()).unwrap_or("it failed");
        panic!("seed {seed}: {said}\nHEADSTACK_SEED={seed} tells what happens in it")
    })
}

/// Runs seeds on all cores, or the one that the environment names; what happened in all of them.
fn run_seeds(seeds: Range<u64>) -> Books {
    if let Ok(seed) = std::env::var("HEADSTACK_SEED") {
        let seed = seed.parse().expect("HEADSTACK_SEED is a number");
        return run(seed, &draw::drives(), true);
    }
    let next = AtomicU64::new(seeds.start);
    let turn = || {
        let (drives, mut books) = (draw::drives(), Books::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return books;
            }
            books.add(&run(seed, &drives, false));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(turn)).collect();
        let mut books = Books::default();
        for thread in threads {
            let found = thread.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure));
            books.add(&found);
        }
        books
    })
}

/// A fifth of 10,000 seeds a day; all with `HEADSTACK_LONG=1`.
#[test]
fn node_keeps_its_invariants_in_thousands_of_simulations() {
    let books = run_seeds(headstack_prerequisites::todays_part(10_000, 5));
    if std::env::var_os("HEADSTACK_SEED").is_none() {
        books.assert_all_was_met();
    }
    // With --nocapture, or one seed.
    eprintln!("{books:?}");
}
