//! `headstack run` on real drives.

use crate::common::{json, printed, refused};
use serde_json::Value;

const PARTS: [&str; 8] =
    ["queued", "overhead", "seek", "rotational_latency", "retries", "media", "bus", "cache"];

/// A run of 500 requests on the Atlas 10K.
fn run(args: &[&str]) -> Value {
    run_of("500", args)
}

fn run_of(count: &str, args: &[&str]) -> Value {
    json(&[&["run", "--drive", "atlas-10k", "--json", "--count", count], args].concat())
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn json_holds_every_key_of_a_run() {
    let outcome = run(&["--pattern", "random"]);
    assert_eq!(outcome["requests"], 500);
    for key in ["simulated_s", "cpu_s", "requests_per_cpu_s", "iops", "bandwidth_mb_s"] {
        assert!(number(&outcome, key) > 0.0, "{key}");
    }
    for key in ["mean", "p50", "p99", "max"] {
        assert!(number(&outcome["response_ms"], key) > 0.0, "{key}");
    }
    assert_eq!(outcome["parts_ms"].as_object().expect("it is an object").len(), PARTS.len());
}

#[test]
fn service_parts_sum_to_the_mean_response() {
    for pattern in ["random", "sequential", "streams", "aligned", "unaligned"] {
        let outcome = run(&["--pattern", pattern, "--depth", "4"]);
        let sum: f64 = PARTS.iter().map(|part| number(&outcome["parts_ms"], part)).sum();
        let mean = number(&outcome["response_ms"], "mean");
        assert!((sum - mean).abs() < 1e-9 * mean.max(1.0), "{pattern}: {sum}, mean {mean}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let timeless = |seed: &str| {
        let mut outcome =
            run(&["--pattern", "random", "--depth", "8", "--write-share", "0.3", "--seed", seed]);
        for key in ["cpu_s", "requests_per_cpu_s"] {
            outcome[key] = Value::Null;
        }
        outcome
    };
    assert_eq!(timeless("7"), timeless("7"));
    assert_ne!(timeless("7"), timeless("8"));
}

#[test]
fn throughput_follows_from_the_simulated_time() {
    let outcome = run(&["--pattern", "random", "--size", "8K"]);
    let iops = 500.0 / number(&outcome, "simulated_s");
    assert!((number(&outcome, "iops") / iops - 1.0).abs() < 1e-9);
    assert!((number(&outcome, "bandwidth_mb_s") / (iops * 8192.0 / 1e6) - 1.0).abs() < 1e-9);
}

#[test]
fn sptf_outperforms_sstf_and_sstf_outperforms_fcfs() {
    let iops =
        |order: &str| number(&run(&["--pattern", "random", "--depth", "64", "--order", order]), "iops");
    let reached = ["fcfs", "sstf", "c-look", "sptf"].map(iops);
    assert!(reached[1] > 1.2 * reached[0] && reached[3] > 1.2 * reached[1], "{reached:?}");
}

#[test]
fn aligned_request_reads_a_whole_track_without_latency() {
    // 10,025 turns a minute: in the mean over the disk a track holds 0.15 MB.
    let outcome = run(&["--pattern", "aligned"]);
    let bytes = number(&outcome, "bandwidth_mb_s") * 1e6 / number(&outcome, "iops");
    assert!((229.0 * 512.0..334.0 * 512.0).contains(&bytes), "{bytes}");
    assert!(number(&outcome["parts_ms"], "rotational_latency") < 0.1, "the drive reads on arrival");
}

#[test]
fn open_arrivals_keep_their_rate() {
    let outcome = run_of("4000", &["--pattern", "random", "--rate", "50"]);
    // The standard error of 4,000 exponential gaps is 1.6 %.
    assert!((number(&outcome, "iops") / 50.0 - 1.0).abs() < 0.06, "{outcome}");
}

#[test]
fn text_names_throughput_percentile_and_latency() {
    let out = printed(&["run", "--drive", "atlas-10k", "--pattern", "random", "--count", "100"]);
    for word in ["IOPS", "MB/s", "p99", "rotational latency", "CPU second"] {
        assert!(out.contains(word), "{word} in {out}");
    }
}

#[test]
fn invalid_run_options_are_rejected() {
    let refuse = |args: &[&str]| refused(&[&["run", "--drive", "atlas-10k"], args].concat(), 2);
    assert!(refuse(&[]).contains("--pattern"));
    assert!(refuse(&["--pattern", "zigzag"]).contains("sequential"));
    assert!(refuse(&["--pattern", "random", "--size", "0"]).contains("--size"));
    assert!(refuse(&["--pattern", "random", "--size", "1000"]).contains("512"));
    assert!(refuse(&["--pattern", "random", "--size", "100G"]).contains("no aligned request"));
    assert!(refuse(&["--pattern", "random", "--size", "4T"]).contains("too many"));
    assert!(refuse(&["--pattern", "random", "--depth", "0"]).contains("1024"));
    assert!(refuse(&["--pattern", "random", "--depth", "1025"]).contains("1024"));
    assert!(refuse(&["--pattern", "random", "--order", "sptg"]).contains("sptf"));
    assert!(refuse(&["--pattern", "random", "--order", "vr(2)"]).contains("0 to 1"));
    assert!(refuse(&["--pattern", "random", "--count", "0"]).contains("--count"));
    assert!(refuse(&["--pattern", "random", "--write-share", "1.5"]).contains("0 to 1"));
    assert!(refuse(&["--pattern", "random", "--rate", "nan"]).contains("--rate"));
    assert!(refuse(&["--pattern", "random", "--streams", "3"]).contains("--pattern streams"));
    assert!(refuse(&["--pattern", "streams", "--rate", "3"]).contains("--rate"));
    assert!(refuse(&["--pattern", "streams", "--write-share", "0.5"]).contains("read only"));
    assert!(refuse(&["--pattern", "aligned", "--write-share", "0.5"]).contains("all reads"));
}
