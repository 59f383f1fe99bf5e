//! `headstack rearrange` on traces made here.

use crate::common::{json, printed, refused};
use serde_json::Value;
use std::fs;

/// Requests of a made trace.
const REQUESTS: u64 = 300;

/// A folder with a DiskSim trace of a request to 8 KiB every 50 ms, and the trace's name. `block` returns the block of each request.
fn made(block: impl Fn(u64) -> u64) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let line = |index: u64| {
        let kind = u64::from(!index.is_multiple_of(3));
        format!("{}.000000\t0\t{}\t16\t{kind}\n", index * 50, block(index) * 16)
    };
    let path = folder.path().join("made.trace");
    fs::write(&path, (0..REQUESTS).map(line).collect::<String>()).expect("it is writable");
    let name = path.to_string_lossy().into_owned();
    (folder, name)
}

/// Every second request to one of two blocks, the others each to a block of their own.
fn skewed(index: u64) -> u64 {
    match index % 4 {
        0 => 7,
        2 => 60_000,
        _ => 100 + index * 37,
    }
}

#[test]
fn analysis_finds_hot_blocks_and_what_a_region_catches() {
    let (_folder, trace) = made(skewed);
    let args = ["rearrange", "analyze", &trace, "--period", "5s", "--blocks", "2"];
    let found = json(&[&args[..], &["--json"]].concat());
    assert_eq!((found["device"].as_str(), found["counters"].as_u64()), (Some("0"), Some(8)));
    let periods = found["periods"].as_array().expect("there are periods");
    assert_eq!(periods.len(), 3);
    for (number, period) in periods.iter().enumerate() {
        assert_eq!((period["references"].as_u64(), period["blocks"].as_u64()), (Some(100), Some(52)));
        let hot: Vec<u64> = period["hot"]
            .as_array()
            .expect("there is a hot list")
            .iter()
            .filter_map(|hot| Some(hot["offset_bytes"].as_u64()? / 8192))
            .collect();
        assert_eq!(hot, [7, 60_000], "the hottest first, ties by number");
        let largest = &period["caught"].as_array().expect("regions have sizes")[1];
        assert_eq!(largest["own_share"], 0.5);
        let last = if number == 0 { Value::Null } else { 0.5.into() };
        assert_eq!(largest["last_share"], last, "period {number}");
    }
    let text = printed(&args);
    for heading in ["Skew", "Hottest blocks of the last period", "Periods", "What a region would catch"] {
        assert!(text.contains(&format!("\n{heading}\n")), "{heading}: {text}");
    }
}

#[test]
fn simulation_compares_a_rig_without_and_with_rearrangement() {
    let (folder, trace) = made(skewed);
    let page = folder.path().join("page.html").to_string_lossy().into_owned();
    let keys = ["rearrange.period_s=5", "rearrange.blocks=10", "rearrange.when=at-once"];
    let keys = keys.iter().flat_map(|key| ["--set", key]);
    let args: Vec<&str> = ["rearrange", "simulate", "hp-c2247a", &trace].into_iter().chain(keys).collect();
    let found = json(&[&args[..], &["--json"]].concat());
    for run in ["without", "with"] {
        assert_eq!(found[run]["requests"], REQUESTS, "{run}");
    }
    assert_eq!(found["without"]["volumes"][0]["rearrange"], Value::Null);
    let rearranged = &found["with"]["volumes"][0]["rearrange"];
    assert!(rearranged["hits"].as_u64().is_some_and(|hits| hits > 50), "{rearranged}");
    let text = printed(&[&args[..], &["--report", &page]].concat());
    for part in ["\nComparison\n", "\nPeriods of rearrangement\n", "served by copies", "\ncopying s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let html = fs::read_to_string(&page).expect("the page was written");
    assert!(html.contains("Block rearrangement"));
}

#[test]
fn trace_without_skew_is_refused() {
    let (_folder, trace) = made(|index| index * 37);
    let said = refused(&["rearrange", "analyze", &trace], 2);
    assert!(
        said.contains("no block of device 0 is referenced more often than the others in a period of 1day"),
        "{said}"
    );
    // Each block three times, of more blocks than the region holds.
    let (_folder, trace) = made(|index| index % 100);
    refused(&["rearrange", "analyze", &trace, "--blocks", "99"], 2);
    let all = json(&["rearrange", "analyze", &trace, "--blocks", "100", "--json"]);
    assert_eq!(
        all["periods"][0]["caught"].as_array().and_then(|sizes| sizes.last()).expect("it has a size")["own_share"],
        1.0
    );
}

#[test]
fn impossible_analysis_is_refused_in_one_line() {
    let (folder, trace) = made(skewed);
    let said = |args: &[&str]| refused(&[&["rearrange", "analyze"], args].concat(), 2);
    assert!(said(&[&trace, "--period", "0s"]).contains("must be 1 s to 100000000 s"));
    assert!(said(&[&trace, "--blocks", "0"]).contains("--blocks"));
    assert!(said(&[&trace, "--counters", "0"]).contains("--counters"));
    assert!(said(&[&trace, "--block-bytes", "100"]).contains("100 is outside 512 to 16777216 bytes"));
    assert!(said(&[&trace, "--device", "9"]).contains("no device `9` (it has 0)"));
    assert!(said(&["/nowhere/at.all"]).contains("/nowhere/at.all: No such file"));
    let empty = folder.path().join("empty.csv").to_string_lossy().into_owned();
    let head = "time_ns,device,op,offset,bytes,response_ns,think_ns,process\n";
    fs::write(&empty, format!("{head}6,sda,flush,0,0,,,\n")).expect("it is writable");
    assert!(said(&[&empty]).contains("no reads and no writes"));
}

#[test]
fn impossible_region_is_refused_before_anything_is_written() {
    let (folder, trace) = made(skewed);
    let page = folder.path().join("page.html").to_string_lossy().into_owned();
    let files = || fs::read_dir(folder.path()).expect("it is there").count();
    let before = files();
    for (key, part) in [
        ("rearrange.period_s=0", "rearrange.period_s: 0 is outside 1 to 100000000 s"),
        ("rearrange.blocks=1000000", "rearrange.blocks: 1000000 is outside the "),
        (
            "rearrange.runs=[[99999999, 8]]",
            "rearrange.runs: 8 sectors from sector 99999999 is outside the disk's",
        ),
        ("rearrange.first_lbn=99999999", "rearrange.first_lbn: 99999999 is outside 0 to "),
        ("rearrange.placement=pipe", "pipe"),
    ] {
        let args = ["rearrange", "simulate", "hp-c2247a", &trace, "--report", &page, "--set", key];
        let said = refused(&args, 2);
        assert!(said.contains(part), "{key}: {said}");
    }
    assert_eq!(files(), before, "nothing was written");
}
