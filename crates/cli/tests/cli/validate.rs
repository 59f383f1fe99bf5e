//! `headstack validate` on traces made here and on real ones.

use crate::common::{json, printed, refused};
use serde_json::Value;
use std::fs;
use std::path::Path;

const KEYS: [&str; 9] = [
    "requests",
    "mean_measured_ms",
    "mean_simulated_ms",
    "demerit_ms",
    "demerit_bucketed_ms",
    "mae_ms",
    "median_ae_ms",
    "within_10_percent",
    "correlation",
];

/// Writes a trace of some reads and writes with round measured times.
fn trace(folder: &Path) -> String {
    let line = |index: u64| {
        let kind = if index.is_multiple_of(3) { "W" } else { "R" };
        let lbn = index * 7_919_317 % 17_000_000;
        let measured_us = 3000 + index % 7 * 1000;
        format!("{kind} Miss {lbn} 8 {measured_us}.0 20000.0\n")
    };
    let path = folder.join("made.trace");
    fs::write(&path, (0..300).map(line).collect::<String>()).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

#[test]
fn every_key_is_present_for_all_reads_and_writes() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let trace = trace(folder.path());
    let found = json(&["validate", "--drive", "atlas-10k", "--trace", &trace, "--json"]);
    for class in [&found, &found["reads"], &found["writes"]] {
        for key in KEYS {
            assert!(class[key].is_number(), "{key} in {class}");
        }
    }
    let requests = |class: &Value| class["requests"].as_u64();
    assert_eq!(
        (requests(&found), requests(&found["reads"]), requests(&found["writes"])),
        (Some(300), Some(200), Some(100))
    );
}

#[test]
fn report_shows_measured_and_simulated_distributions() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let trace = trace(folder.path());
    let page = folder.path().join("report.html");
    let page_name = page.to_string_lossy();
    let out = printed(&["validate", "--drive", "atlas-10k", "--trace", &trace, "--report", &page_name]);
    for word in ["all", "reads", "writes", "demerit"] {
        assert!(out.contains(word), "{word} in {out}");
    }
    let html = fs::read_to_string(page).expect("it was written");
    for part in ["All requests", "Reads", "Writes", "\"measured\"", "\"simulated\"", "made.trace"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn bad_trace_is_rejected_with_its_line() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("bad.trace");
    let name = path.to_string_lossy().into_owned();
    let refuse = |text: &str| {
        fs::write(&path, text).expect("the folder is writable");
        refused(&["validate", "--drive", "atlas-10k", "--trace", &name], 2)
    };
    assert!(refuse("R Miss 1 1 1 1\nR Miss x 1 1 1\n").contains("line 2"));
    assert!(refuse("").contains("empty"));
    assert!(refuse("R Miss 17966952 1 1 1\nR Miss 17966952 2 1 1\n").contains("request 2"));
    assert!(refused(&["validate", "--drive", "atlas-10k", "--trace", "/nowhere"], 2).contains("/nowhere"));
}

#[test]
fn reference_traces_replay_completely() {
    let Some(traces) = headstack_prerequisites::reference_data("disksim/traces") else { return };
    let drives = [("atlas-10k", "atlas10k", 10_000), ("hp-c2247a", "hp_c2247a", 9999)];
    for (drive, trace, requests) in drives {
        let trace = traces.join(format!("{trace}.trace"));
        let trace = trace.to_str().expect("the path is UTF-8");
        let found = json(&["validate", "--drive", drive, "--trace", trace, "--json"]);
        assert_eq!(found["requests"], requests, "{drive}");
    }
}
