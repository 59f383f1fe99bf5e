//! `headstack reproduce`: the list, the table, the JSON, the page, the exit codes.

use crate::common::{headstack, json, printed, refused};
use serde_json::Value;
use std::fs;

const KEYS: [&str; 11] = [
    "id",
    "what",
    "published",
    "ours",
    "unit",
    "kind",
    "tolerance",
    "source",
    "basis",
    "first_run",
    "verdict",
];

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let out = folder.path().join("new/out").to_string_lossy().into_owned();
    (folder, out)
}

/// Whether a row has every key and a verdict that follows from the others.
fn holds(row: &Value) -> bool {
    let keys: Vec<&str> = row.as_object().expect("a row is an object").keys().map(String::as_str).collect();
    let output = row["reason"].as_str().is_some_and(|reason| !reason.is_empty());
    let off = row["ours"].as_f64().zip(row["published"].as_f64()).map(|(ours, published)| ours - published);
    let room = row["tolerance"].as_f64();
    let within = off.zip(room).map(|(off, room)| match row["kind"].as_str() {
        Some("at-most") => off <= room,
        Some("at-least") => -off <= room,
        _ => off.abs() <= room,
    });
    let follows = match row["verdict"].as_str() {
        Some("pass") => row["basis"] == "published" && within == Some(true) && !output,
        Some("held") => row["basis"] != "published" && within == Some(true) && !output,
        Some("off") => within != Some(true),
        Some("not comparable") => output,
        _ => false,
    };
    follows && keys.starts_with(&KEYS) && keys[KEYS.len()..].iter().all(|key| *key == "reason")
}

#[test]
fn every_listed_study_is_named_in_the_help() {
    let (list, help) = (printed(&["reproduce", "--list"]), printed(&["reproduce", "--help"]));
    let ids: Vec<&str> = list.lines().skip(2).filter_map(|line| line.split(' ').next()).collect();
    assert!(ids.contains(&"st2000dm006") && ids.contains(&"validation"), "{list}");
    for id in ids {
        assert!(help.contains(&format!("- {id}:")), "{id}");
    }
}

#[test]
fn study_prints_its_rows_and_writes_its_page() {
    let (_folder, out) = folder();
    let done = headstack(&["reproduce", "st2000dm006", "--quick", "-o", &out]);
    let off = "headstack: st2000dm006: 1 of 21 rows off (sequential_write_mb_s)\n";
    assert_eq!((done.code, done.err.as_str()), (1, off), "no bar where there is no terminal");
    for part in [
        "metric",
        "published",
        "difference",
        "random_read_qd32_iops",
        "21 published rows that parameters were taken from: 20 held, 1 off.",
        "short form",
    ] {
        assert!(done.out.contains(part), "{part} in {}", done.out);
    }
    let html = fs::read_to_string(format!("{out}/st2000dm006.html")).expect("it was written");
    assert_eq!(html.matches("class=\"chart\"").count(), 2);
    for part in ["Throughput over queue depth", "random 4 KiB reads at depth 8: rate", "Sources, and reasons"]
    {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn json_holds_one_row_with_a_verdict_per_figure() {
    let (_folder, out) = folder();
    let found = json(&["reproduce", "modern-drives", "validation", "--quick", "--json", "--out", &out]);
    let studies = found.as_array().expect("of several studies it is a list");
    assert_eq!(studies.len(), 2);
    for (study, rows) in studies.iter().zip([39, 18]) {
        assert_eq!(study["quick"], true);
        let all = study["rows"].as_array().expect("there are rows");
        assert_eq!(all.len(), rows);
        for row in all {
            assert!(holds(row), "{row}");
        }
    }
    assert_eq!(studies[1]["rows"][0]["verdict"], "not comparable", "the traces were not handed in");
    assert_eq!(studies[1]["rows"][0]["ours"], Value::Null);
}

#[test]
fn row_outside_its_tolerance_fails_the_command() {
    // A trace of one request, measured as if the drive were a minute slow.
    let (folder, out) = folder();
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).expect("the folder is writable");
    fs::write(traces.join("atlas10k.trace"), "R Miss 1000 8 60000000.0 0.0\n").expect("it is writable");
    let traces = traces.to_string_lossy();
    let args = ["reproduce", "validation", "--quick", "--json", "--out", &out, "--traces", &traces];
    let done = headstack(&args);
    assert_eq!(done.code, 1, "{}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(
        done.err.starts_with("headstack: validation: 3 of 18 rows off (atlas-10k demerit bucketed, "),
        "{}",
        done.err
    );
    let found = crate::common::schema::parsed(&["reproduce"], &done.out);
    assert_eq!(found["rows"][0]["verdict"], "off");
    assert!(found["rows"].as_array().expect("there are rows").iter().all(holds));
}

#[test]
fn refuted_figure_is_marked_off_with_its_reason() {
    let (_folder, out) = folder();
    let done = headstack(&["reproduce", "scheduling", "--quick", "--json", "--out", &out]);
    assert_eq!(done.code, 1, "{}", done.err);
    let found = crate::common::schema::parsed(&["reproduce"], &done.out);
    let rows = found["rows"].as_array().expect("there are rows");
    assert!(rows.iter().all(holds));
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).expect("the row is there");
    let refuted = row("thesis.stf-like-c-scan.q100");
    assert_eq!(refuted["verdict"], "off");
    assert!(refuted["reason"].as_str().is_some_and(|reason| reason.contains("the thesis is wrong")));
    let unknown = row("short-queue.gain.q2");
    assert_eq!((&unknown["published"], &unknown["tolerance"]), (&Value::Null, &Value::Null));
    let html = fs::read_to_string(format!("{out}/scheduling.html")).expect("it was written");
    assert!(html.matches("class=\"chart\"").count() >= 12);
}

#[test]
fn wrong_reproduce_usage_is_rejected_in_one_line() {
    assert!(refused(&["reproduce"], 2).contains("<ID>"));
    let unknown = refused(&["reproduce", "st2000"], 2);
    assert!(unknown.contains("no study is called `st2000`; did you mean `st2000dm006`?"), "{unknown}");
    assert!(refused(&["reproduce", "--list", "all"], 2).contains("--list"));
    let (folder, out) = folder();
    let nowhere = refused(&["reproduce", "validation", "--out", &out, "--traces", "/nowhere"], 2);
    assert!(nowhere.starts_with("headstack: validation: /nowhere/atlas10k.trace: "), "{nowhere}");
    fs::write(folder.path().join("atlas10k.trace"), "R Miss x\n").expect("the folder is writable");
    let traces = folder.path().to_string_lossy();
    let bad = refused(&["reproduce", "validation", "--out", &out, "--traces", &traces], 2);
    assert!(bad.contains("atlas10k.trace") && bad.contains("line 1"), "{bad}");
}
