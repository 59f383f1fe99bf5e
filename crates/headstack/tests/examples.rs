//! The programs in `examples/` show what the README says they do.

#![allow(dead_code, reason = "the programs' `main` functions are not called")]

#[path = "../examples/sweep.rs"]
mod sweep;

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
