//! `headstack stripe` on real input.

use crate::common::{json, printed, refused};
use headstack_policy::stripe::advise;

const ARRAY: [&str; 8] =
    ["stripe", "advise", "--drive", "ultrastar-dfhc-2gb", "--disks", "4", "--size", "512K"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ARRAY.iter().chain(more).copied().collect()
}

#[test]
fn every_advisor_has_a_row_in_the_table() {
    let out = printed(&with(&["--mpl", "8"]));
    for entry in advise::all() {
        assert!(out.lines().any(|line| line.split_whitespace().next() == Some(entry.name)), "{}", entry.name);
    }
}

#[test]
fn json_unit_follows_the_lee_katz_formula() {
    let advice = json(&with(&["--mpl", "8", "--json"]));
    let reach = advice["reach_kib"].as_f64().expect("it is a number");
    let rows = advice["advisors"].as_array().expect("it is a list");
    let lee_katz = rows.iter().find(|row| row["name"] == "lee-katz").expect("the rule is listed");
    let unit = lee_katz["unit_kib"].as_f64().expect("it is a number");
    assert!((unit - (reach * 7.0 * 512.0 / 4.0).sqrt()).abs() < 1e-6 * unit, "{unit} KiB");
    // Of 131 places in a unit of 265 KiB at which 512 KiB begin, all but some end in the third unit.
    let disks = lee_katz["disks"].as_f64().expect("it is a number");
    assert!((2.9..3.0).contains(&disks), "{disks}");
}

/// Six disks: of requests that begin at any 4 KiB, a unit of their size is crossed by nearly all.
#[test]
fn requests_that_begin_anywhere_get_units_that_few_of_them_cross() {
    for (size, mpl) in
        [("16K", "4"), ("16K", "19"), ("64K", "4"), ("64K", "19"), ("256K", "4"), ("256K", "19")]
    {
        let array = ["stripe", "advise", "--drive", "exos-x16", "--disks", "6", "--size", size, "--mpl", mpl];
        let disks = |more: &[&str]| {
            let advice = json(&[&array[..], more, &["--json"]].concat());
            let ours = &advice["advisors"][0];
            (ours["unit_kib"].as_f64().expect("a number"), ours["disks"].as_f64().expect("a number"))
        };
        let (unit, crossed) = disks(&[]);
        assert!(unit >= 1024.0 && crossed < 1.25, "{size}, {mpl}: {unit} KiB, {crossed} disks");
        // Where each begins at a multiple of its size, all units from there on are equal: the largest leaves room for larger ones.
        assert!(disks(&["--align", size]).0 >= 1024.0);
    }
}

#[test]
fn load_below_one_request_is_rejected() {
    assert!(refused(&with(&["--mpl", "0.5"]), 2).contains("must be 1 to 1000000 requests"));
    assert!(refused(&with(&["--mpl", "nan"]), 2).contains("must be 1 to 1000000 requests"));
}

#[test]
fn fork_join_unit_grows_with_the_load() {
    let unit = |mpl: &str| {
        let advice = json(&with(&["--mpl", mpl, "--align", "unit", "--command", "128K", "--json"]));
        assert_eq!(advice["advisors"][0]["name"], "fork-join");
        advice["advisors"][0]["unit_kib"].as_f64().expect("it is a number")
    };
    assert_eq!((unit("1"), unit("64")), (128.0, 512.0));
}

#[test]
fn command_of_partial_sectors_is_rejected() {
    let said = refused(&with(&["--mpl", "2", "--command", "700"]), 2);
    assert!(said.contains("700 bytes are no whole number"), "{said}");
}

#[test]
fn commands_for_linux_have_the_advised_unit() {
    let advice = json(&with(&["--mpl", "8", "--align", "unit", "--json"]));
    let commands = &advice["commands"];
    assert_eq!(commands["chunk_kib"], 512);
    let has = |key: &str, part: &str| commands[key].as_str().is_some_and(|command| command.contains(part));
    assert!(has("mdadm", "--raid-devices=4 --chunk=512K DISK1 DISK2 DISK3 DISK4"), "{commands}");
    assert!(has("lvm", "--stripes 4 --stripesize 512k"), "{commands}");
    assert!(has("dm_stripe", "striped 4 1024 DISK1 0 DISK2 0 DISK3 0 DISK4 0"), "{commands}");
    let table = commands["dm_stripe"].as_str().expect("it is text");
    let sectors: u64 =
        table.split(' ').find_map(|word| word.parse().ok().filter(|n| *n > 0)).expect("it has a length");
    assert_eq!(sectors % (4 * 1024), 0, "whole chunks of four disks: {table}");
}

#[test]
fn unit_below_a_page_becomes_a_page_in_the_commands() {
    let small = [
        "stripe",
        "advise",
        "--drive",
        "ultrastar-dfhc-2gb",
        "--disks",
        "4",
        "--size",
        "2K",
        "--mpl",
        "8",
        "--align",
        "unit",
        "--json",
    ];
    let advice = json(&small);
    assert_eq!(advice["advisors"][0]["unit_kib"], 2.0);
    assert_eq!(advice["commands"]["chunk_kib"], 4);
}

#[test]
fn unit_above_an_extent_has_no_lvm_command() {
    let large = [
        "stripe",
        "advise",
        "--drive",
        "ultrastar-dfhc-2gb",
        "--disks",
        "2",
        "--size",
        "64M",
        "--mpl",
        "1000",
        "--json",
    ];
    let advice = json(&large);
    let chunk = advice["commands"]["chunk_kib"].as_u64().expect("it is a number");
    assert_eq!(advice["commands"]["lvm"].is_null(), chunk > 4096, "{chunk} KiB");
}

#[test]
fn writes_on_raid_5_want_whole_rows() {
    let advice = |writes: &str| {
        let array = ["stripe", "advise", "--drive", "ultrastar-dfhc-2gb", "--disks", "5", "--size", "512K"];
        let more = ["--mpl", "8", "--align", "unit", "--level", "5", "--writes", writes, "--json"];
        json(&array.iter().chain(&more).copied().collect::<Vec<_>>())
    };
    let (reads, writes) = (advice("0"), advice("1"));
    let chunk = |advice: &serde_json::Value| advice["commands"]["chunk_kib"].as_u64().expect("a number");
    assert_eq!(chunk(&writes), 128, "four units of data are a row of five disks");
    assert!(chunk(&reads) > 128, "a read needs no row: {} KiB", chunk(&reads));
    let has =
        |key: &str, part: &str| writes["commands"][key].as_str().is_some_and(|text| text.contains(part));
    assert!(has("mdadm", "--level=5 --raid-devices=5 --chunk=128K DISK1"), "{writes}");
    assert!(has("lvm", "--type raid5 --stripes 4 --stripesize 128k"), "{writes}");
    assert!(writes["commands"]["dm_stripe"].is_null(), "{writes}");
}

#[test]
fn raid_5_of_two_disks_is_rejected() {
    let array = ["stripe", "advise", "--drive", "ultrastar-dfhc-2gb", "--disks", "2", "--size", "64K"];
    let args: Vec<_> = array.into_iter().chain(["--mpl", "2", "--level", "5"]).collect();
    assert!(refused(&args, 2).contains("RAID-5 takes 3 disks or more"));
}

/// A trace of a thousand requests of a MiB, one at a time, and a thousand of 64 KiB that come sixteen at once; fields as in MSR's traces.
fn two_phases() -> String {
    let mut text = String::new();
    // Units of 100 ns; a request of the second phase is answered after sixteen more have come.
    let (ms, mut now) = (10_000u64, 128_166_372_000_000_000u64);
    for index in 0..2000u64 {
        let (bytes, gap, response) =
            if index < 1000 { (1 << 20, 200 * ms, 150 * ms) } else { (65_536, 10 * ms, 155 * ms) };
        text += &format!("{now},usr,0,Read,{},{bytes},{response}\n", index << 20);
        now += gap;
    }
    text
}

#[test]
fn followed_unit_changes_with_the_load_of_the_trace() {
    let folder = tempfile::tempdir().expect("there is room");
    let trace = folder.path().join("phases.csv");
    std::fs::write(&trace, two_phases()).expect("the folder is writable");
    let trace = trace.to_string_lossy();
    let args = [
        "stripe",
        "follow",
        &trace,
        "--drive",
        "ultrastar-dfhc-2gb",
        "--disks",
        "4",
        "--unit",
        "1M",
        "--change",
        "1",
    ];
    let with = |more: &[&str]| {
        args.iter().copied().chain(more.iter().copied()).map(str::to_string).collect::<Vec<_>>()
    };
    let run = |more: &[&str]| json(&with(more).iter().map(String::as_str).collect::<Vec<_>>());
    let followed = run(&["--json"]);
    assert_eq!(followed["requests"], 2000);
    let units: Vec<f64> = followed["units"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|unit| unit["unit_kib"].as_f64().expect("a number"))
        .collect();
    assert_eq!(&units[..2], [1024.0, 256.0], "alone, a MiB is quickest over all four disks");
    assert!(
        units.len() > 2 && units[units.len() - 1] >= 64.0,
        "in a crowd, 64 KiB go to one disk: {units:?}"
    );
    let crowded = run(&["--json", "--mpl", "16"]);
    assert_ne!(crowded["units"], followed["units"], "a given MPL stands in place of the trace's");
}

#[test]
fn trace_without_response_times_needs_an_mpl() {
    let folder = tempfile::tempdir().expect("there is room");
    let trace = folder.path().join("plain.trace");
    std::fs::write(&trace, "0.0 0 100 8 1\n1.0 0 200 8 1\n").expect("the folder is writable");
    let trace = trace.to_string_lossy();
    let args =
        ["stripe", "follow", &trace, "--drive", "ultrastar-dfhc-2gb", "--disks", "4", "--format", "disksim"];
    assert!(refused(&args, 2).contains("--mpl"));
}
