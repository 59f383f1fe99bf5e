//! `cmdprio_bssplit`: priorities that depend on the size of a request.

use crate::ours::{build, parse, run};
use headstack_model::{Nanos, Op};
use headstack_workload::Issue;
use std::collections::BTreeMap;

fn issued(keys: &str) -> Vec<Issue> {
    let text = format!("[j]\nfilename=sda\nioengine=libaio\nnorandommap\nnumber_ios=4000\n{keys}");
    run(&mut build(&text, 3), Nanos(1000), 5000).into_iter().map(|timed| timed.issue).collect()
}

/// For each size in sectors, the shares of each priority and limit among its requests.
fn shares(all: &[Issue], op: Op) -> BTreeMap<u32, BTreeMap<(bool, u8), f64>> {
    let mut found: BTreeMap<u32, Vec<(bool, u8)>> = BTreeMap::new();
    for issue in all.iter().filter(|issue| issue.request.op == op) {
        found.entry(issue.request.sectors).or_default().push((issue.urgent, issue.limit));
    }
    let share = |list: Vec<(bool, u8)>| {
        let mut shares = BTreeMap::new();
        list.iter().for_each(|kind| *shares.entry(*kind).or_insert(0.0) += 1.0 / list.len() as f64);
        shares
    };
    found.into_iter().map(|(sectors, list)| (sectors, share(list))).collect()
}

#[test]
fn percentage_counts_for_the_requests_of_its_size() {
    let all = issued("rw=randread\nbssplit=4k/50:64k/50\ncmdprio_bssplit=4k/20:64k/100");
    let found = shares(&all, Op::Read);
    assert!((found[&8][&(true, 0)] - 0.2).abs() < 0.04, "{found:?}");
    assert_eq!(found[&128].keys().collect::<Vec<_>>(), [&(true, 0)]);
    // Sizes that are not listed, and those without a percentage, have the job's priority.
    let found = shares(&issued("rw=randread\nbssplit=4k/50:64k/50\ncmdprio_bssplit=32k/100:64k"), Op::Read);
    assert!(found.values().all(|kinds| kinds.keys().eq([&(false, 0)])), "{found:?}");
}

#[test]
fn job_of_class_3_is_idle_but_for_the_requests_with_a_priority_of_their_own() {
    let idle = |keys: &str| {
        let all = issued(&format!("rw=randread\nbs=4k\n{keys}"));
        all.iter().filter(|issue| issue.idle).count() as f64 / all.len() as f64
    };
    assert_eq!(
        [idle("prioclass=3"), idle("prioclass=2"), idle("prioclass=1"), idle("")],
        [1.0, 0.0, 0.0, 0.0]
    );
    let share = idle("prioclass=3\ncmdprio_percentage=20");
    assert!((share - 0.8).abs() < 0.04, "{share}");
}

#[test]
fn entry_has_a_class_and_a_duration_limit_of_its_own() {
    let keys =
        "rw=randread\nbssplit=4k/50:64k/50\npriohint=5\ncmdprio_bssplit=4k/30/1/0:4k/40/2/7/3:64k/100/0/0/2";
    let found = shares(&issued(keys), Op::Read);
    assert!((found[&8][&(true, 0)] - 0.3).abs() < 0.04, "{found:?}");
    assert!((found[&8][&(false, 3)] - 0.4).abs() < 0.04, "{found:?}");
    assert!((found[&8][&(false, 5)] - 0.3).abs() < 0.04, "{found:?}");
    assert_eq!(found[&128].keys().collect::<Vec<_>>(), [&(false, 2)]);
    // Without one, that of all requests in percent.
    let keys = "rw=randread\nbs=4k\ncmdprio_class=2\ncmdprio_hint=4\ncmdprio_bssplit=4k/100";
    assert_eq!(shares(&issued(keys), Op::Read)[&8].keys().collect::<Vec<_>>(), [&(false, 4)]);
}

#[test]
fn reads_and_writes_have_lists_of_their_own() {
    let all = issued("rw=randrw\nbs=4k\ncmdprio_bssplit=4k/100,4k/0");
    assert_eq!(shares(&all, Op::Read)[&8].keys().collect::<Vec<_>>(), [&(true, 0)]);
    assert_eq!(shares(&all, Op::Write)[&8].keys().collect::<Vec<_>>(), [&(false, 0)]);
}

#[test]
fn malformed_priorities_by_size_are_rejected_in_one_line() {
    for (value, wanted) in [
        ("4k/101", "`101`, where a percentage from 0 to 100 is allowed"),
        ("4q/10", "`4q`, where a number of bytes such as 512, 4k, 1m or 2g is allowed"),
        (
            "4k/10/1",
            "`4k/10/1`, where bytes/percent, or bytes/percent/class/level with or without /hint is allowed",
        ),
        ("4k/10/4/0", "`4`, where a whole number from 0 to 3 is allowed"),
        ("4k/10/1/8", "`8`, where a whole number from 0 to 7 is allowed"),
        ("4k/10/1/0/8", "`8`, where a whole number from 0 to 7 is allowed"),
        (
            "4k/60:4k/50/2/0",
            "110 % of the requests of 4096 bytes have a priority, where at most 100 % are allowed",
        ),
    ] {
        let text = format!("[j]\ncmdprio_bssplit={value}");
        let error = parse(&text).expect_err(value).to_string();
        assert_eq!(error, format!("test.fio:2: cmdprio_bssplit: {wanted}"));
    }
    let both = parse("[j]\ncmdprio_percentage=10\ncmdprio_bssplit=4k/10").expect_err("one is allowed");
    assert_eq!(both.to_string(), "test.fio:3: cmdprio_bssplit: is for a job without `cmdprio_percentage`");
}
