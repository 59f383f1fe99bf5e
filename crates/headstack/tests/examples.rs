//! The programs in `examples/` show what the README says they do.

#![allow(dead_code, reason = "the programs' `main` functions are not called")]

#[path = "../examples/own_parts.rs"]
mod own_parts;
#[path = "../examples/sweep.rs"]
mod sweep;

use headstack::Nanos;

#[test]
fn deeper_queues_raise_throughput_and_the_slowest_hundredth() {
    let [shallow, deep] = [1, 32].map(|depth| sweep::random_reads(depth).expect("the reads fit"));
    assert_eq!(shallow.response().count(), 5000);
    assert!(deep.iops() > 1.3 * shallow.iops(), "{:.0} and {:.0} IOPS", shallow.iops(), deep.iops());
    assert!(deep.response().p99() > shallow.response().p99());
}

#[test]
fn sweep_takes_at_most_25_lines() {
    assert!(include_str!("../examples/sweep.rs").lines().count() <= 25);
}

#[test]
fn own_order_layer_and_load_need_no_other_crate() {
    let run = |delay_ms| own_parts::run(Nanos::from_ms(delay_ms)).expect("a shipped rig runs");
    let (near, far) = (run(0.0), run(5.0));
    assert_eq!((near.response().count(), far.response().count()), (2000, 2000));
    assert!(
        near.response().min().as_ms() < 5.0 && far.response().min().as_ms() > 5.0,
        "the link delays each"
    );
    assert!(near.response().p99().as_ms() > 4.0 * near.response().mean_ms(), "the oldest starve");
    let uses = include_str!("../examples/own_parts.rs").lines().filter_map(|line| line.strip_prefix("use "));
    assert!(uses.into_iter().all(|path| path.starts_with("headstack::") || path.starts_with("std::")));
}
