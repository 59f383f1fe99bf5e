//! What each recipe answers, checked on the results of the commands of its page.

use super::page::Page;
use crate::tools::have;
use headstack_prerequisites::have_devices;

/// The pages, by name.
pub(crate) const ALL: [&str; 10] = [
    "backup-drives",
    "raid5-rebuild",
    "filesystem",
    "read-ahead",
    "queue-depth",
    "crash-safety",
    "video-recorder",
    "second-arm",
    "alignment",
    "trace",
];

/// Asserts that a ratio is within a range.
fn assert_ratio(what: &str, value: f64, base: f64, range: std::ops::RangeInclusive<f64>) {
    let ratio = value / base;
    assert!(range.contains(&ratio), "{what}: {value} is {ratio:.3} of {base}, not within {range:?}");
}

#[test]
fn shingled_drives_take_archives_in_sequence_but_not_with_an_index() {
    let results = Page::read("backup-drives").run();
    let [night, alone] = &results[..] else { panic!("the page compares twice") };
    let archives = |rig: &str| night.job(rig, "archives", "writes", "bandwidth_mb_s");
    for rig in ["exos-x18", "toshiba-x300", "st2000dm006"] {
        assert!(archives(rig) > 40.0, "{rig}: {}", archives(rig));
        assert!(night.figure(rig, "max_ms") < 1000.0, "{rig} answers within a second");
    }
    for rig in ["wd40efax", "seagate-archive-8tb"] {
        assert!(archives(rig) < 30.0, "{rig}: {}", archives(rig));
        assert!(night.figure(rig, "max_ms") > 15_000.0, "{rig} makes the index wait for more than 15 s");
        assert!(alone.figure(rig, "mb_s") > 60.0, "{rig}: {}", alone.figure(rig, "mb_s"));
    }
    assert!(
        archives("exos-x18") > archives("toshiba-x300") && archives("toshiba-x300") > archives("st2000dm006")
    );
}

#[test]
fn rebuild_takes_days_and_its_limit_moves_more_than_the_order() {
    let results = Page::read("raid5-rebuild").run();
    let [idle, busy] = &results[..] else { panic!("the page compares twice") };
    let hours = |label: &str| busy.figure(label, "rebuild_h");
    let slowed = |label: &str| busy.figure(label, "mean_ms");
    assert!(
        (15.0..24.0).contains(&idle.figure("rebuild_mb_s=1000", "rebuild_h")),
        "without a load it takes less than a day"
    );
    for order in ["fcfs", "sptf"] {
        let [free, half, slow] = [1000, 20, 5].map(|rate| format!("order={order} rebuild_mb_s={rate}"));
        assert!((72.0..144.0).contains(&hours(&free)), "{}", hours(&free));
        assert_ratio("20 MB/s", hours(&half), 250.0, 0.98..=1.02);
        assert_ratio("5 MB/s", hours(&slow), 1000.0, 0.98..=1.02);
        assert!(slowed(&free) > slowed(&half) && slowed(&half) > slowed(&slow));
    }
    let [fcfs, sptf] = ["fcfs", "sptf"].map(|order| format!("order={order} rebuild_mb_s=1000"));
    assert_ratio("the order and the rebuild", hours(&sptf), hours(&fcfs), 0.85..=0.97);
    assert_ratio("the order and the load", slowed(&sptf), slowed(&fcfs), 0.80..=0.92);
}

#[test]
fn copy_on_write_bounds_commits_and_slows_a_scan_of_updated_records() {
    let results = Page::read("filesystem").run();
    let [both] = &results[..] else { panic!("the page compares once") };
    for rig in ["ultrastar-7k8", "exos-x18"] {
        let worst = |job: &str| both.job(rig, job, "flushes", "p99_ms");
        assert!(worst("ext4-commits") > 4.0 * worst("zfs-commits"), "{rig}");
        let scan = |job: &str| both.job(rig, job, "reads", "bandwidth_mb_s");
        assert!(scan("ext4-backup") > 30.0 * scan("zfs-backup"), "{rig}");
        let lookups = |job: &str, metric: &str| both.job(rig, job, "reads", metric);
        assert!(lookups("ext4-lookups", "p99_ms") > lookups("zfs-lookups", "p99_ms"), "{rig}");
        assert_ratio(rig, lookups("ext4-lookups", "mean_ms"), lookups("zfs-lookups", "mean_ms"), 1.0..=1.4);
    }
}

#[test]
fn four_mebibytes_of_read_ahead_triple_a_hundred_readers_and_more_stalls_them() {
    let results = Page::read("read-ahead").run();
    let [runs] = &results[..] else { panic!("the page compares once") };
    let [rates, waits] = ["mb_s", "max_ms"].map(|metric| {
        [0, 128, 512, 1024, 4096, 16384].map(|kb| runs.figure(&format!("read_ahead_kb={kb}"), metric))
    });
    assert!(rates[..5].is_sorted(), "each step to 4096 reads more: {rates:?}");
    assert_ratio("4096 against the kernel's 128", rates[4], rates[1], 2.7..=4.0);
    assert!(rates[5] < rates[4], "16384 reads no more: {rates:?}");
    assert!(waits[1..].is_sorted() && waits[5] > 10_000.0, "the longest wait grows: {waits:?}");
    assert!(rates[0] < rates[1] / 8.0 && waits[0] > waits[1], "without read-ahead each page is a request");
}

#[test]
fn queue_depth_helps_a_saturated_disk_and_nearly_nothing_below() {
    let results = Page::read("queue-depth").run();
    let [full, half] = &results[..] else { panic!("the page compares twice") };
    let each =
        |metric: &str| [1, 2, 4, 8, 16, 32].map(|depth| full.figure(&format!("queue_depth={depth}"), metric));
    assert!(each("iops").is_sorted(), "{:?}", each("iops"));
    assert_ratio("depth 32 against 1", each("iops")[5], each("iops")[0], 2.1..=2.7);
    let p99 = each("p99_ms");
    assert!(p99[3] < p99[0] && p99[5] > p99[3], "p99 is least in between: {p99:?}");
    let mean = |depth: u32| half.figure(&format!("queue_depth={depth}"), "mean_ms");
    assert_ratio("depth 4 at half the load", mean(4), mean(1), 0.88..=0.97);
    assert_ratio("more than 4 at half the load", mean(32), mean(4), 0.99..=1.01);
}

#[test]
fn recorder_needs_large_writes_and_no_shingled_disk() {
    let results = Page::read("video-recorder").run();
    let [large, small] = &results[..] else { panic!("the page compares twice") };
    for rig in ["st2000dm006", "ultrastar-7k8"] {
        assert!(large.job(rig, "cameras", "writes", "max_ms") < 100.0, "{rig} keeps up");
        assert_ratio(rig, large.job(rig, "cameras", "writes", "bandwidth_mb_s"), 33.55, 0.99..=1.01);
    }
    for rig in ["wd40efax", "seagate-archive-8tb"] {
        assert!(large.job(rig, "cameras", "writes", "max_ms") > 5_000.0, "{rig} stalls");
        assert!(large.job(rig, "cameras", "writes", "bandwidth_mb_s") < 32.0, "{rig} loses pictures");
    }
    assert_ratio("64 KiB", small.job("st2000dm006", "cameras", "writes", "bandwidth_mb_s"), 33.55, 0.1..=0.3);
    assert_ratio(
        "window of 4,096 writes",
        small.job("ultrastar-7k8", "cameras", "writes", "bandwidth_mb_s"),
        33.55,
        0.97..=1.01,
    );
}

#[test]
fn second_arm_gains_two_thirds_with_many_requests_and_nothing_with_one() {
    let results = Page::read("second-arm").run();
    let [runs] = &results[..] else { panic!("the page compares once") };
    let gain = |job: &str, range| {
        let rate = |rig: &str| runs.job(rig, job, "reads", "iops");
        assert_ratio(job, rate("exos-2x18-sata"), rate("exos-x18"), range);
    };
    gain("random-32", 1.55..=1.8);
    gain("random-1", 0.95..=1.05);
    gain("one-stream", 0.95..=1.07);
    gain("streams-8", 1.4..=1.9);
}

#[test]
fn misaligned_partition_costs_drives_of_4096_bytes_a_sector_half_their_random_writes() {
    let results = Page::read("alignment").run();
    let [runs] = &results[..] else { panic!("the page compares once") };
    let share = |rig: &str, what: &str, range| {
        let rate = |place: &str| runs.job(rig, &format!("{what}-at-{place}"), "writes", "iops");
        assert_ratio(&format!("{rig} {what}"), rate("63"), rate("1MiB"), range);
    };
    share("samsung-hd103sj", "random", 0.9..=1.05);
    share("st2000dm006", "random", 0.35..=0.55);
    share("exos-x18", "random", 0.2..=0.35);
    share("samsung-hd103sj", "sequential", 0.95..=1.1);
    share("st2000dm006", "sequential", 0.95..=1.05);
    share("exos-x18", "sequential", 0.95..=1.05);
}

#[test]
fn trace_of_a_failing_disk_is_slower_than_the_model_of_that_disk() {
    let results = Page::read("trace").run();
    let [runs] = &results[..] else { panic!("the page compares once") };
    // The mean and p99 that the trace was measured with, which the page quotes from `trace stat`.
    let (mean_ms, p99_ms) = (58.83, 818.9);
    assert_ratio("mean of the same drive", runs.figure("st2000dm006", "mean_ms"), mean_ms, 0.05..=0.15);
    assert_ratio("p99 of the same drive", runs.figure("st2000dm006", "p99_ms"), p99_ms, 0.02..=0.1);
    assert!(runs.figure("st2000dm006", "arm_share") < 0.4, "the load leaves the arm idle");
}

#[test]
fn commits_cost_a_revolution_each_and_ten_share_one() {
    let results = Page::read("crash-safety").run();
    let [runs] = &results[..] else { panic!("the page compares once") };
    for (rig, turns_per_s) in [("st2000dm006", 120.0), ("exos-x18", 120.0)] {
        let commits = |job: &str| runs.job(rig, job, "writes", "iops");
        assert_ratio(rig, commits("flush-each"), turns_per_s, 0.9..=1.02);
        assert_ratio(rig, commits("flush-tenth"), 10.0 * commits("flush-each"), 0.9..=1.1);
    }
}

#[test]
fn power_cut_loses_committed_transactions_only_on_a_disk_that_ignores_flush() {
    if !have_devices(&["/dev/fuse"]) || !have(&["fusermount3", "python3"]) {
        return;
    }
    // A power cut loses what the disk's cache holds, which once in a while is not the log.
    let is_caught = (0..5).any(|_| {
        let printed = Page::read("crash-safety").run_in_real_time();
        let numbers: Vec<u64> =
            printed.iter().filter_map(|text| text.split(' ').next()?.parse().ok()).collect();
        let [committed, there, promised, left] = numbers[..] else { panic!("{printed:?}") };
        assert!(committed > 0 && (committed..=committed + 1).contains(&there), "{there} of {committed}");
        left < promised
    });
    assert!(is_caught, "a disk that ignores FLUSH loses nothing in five power cuts");
}
