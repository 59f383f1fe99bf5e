//! `headstack compare`: the grid, its table, its files, and what it says of bad input.

use crate::common::{headstack, json, printed, refused};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A fio job of random reads at depth 32, the least that lets orders differ.
fn job(folder: &Path) -> String {
    let path = folder.join("load.fio");
    let text =
        "[load]\nrw=randrw\nrwmixread=80\nbs=4k\nsize=4g\nioengine=libaio\niodepth=32\nnumber_ios=3000\n";
    fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

const GRID: [&str; 4] = ["--vary", "drive.order=fcfs,sptf", "--vary", "drive.queue_depth=1,32"];

/// The results of a grid, without what depends on the machine.
fn grid(load: &str, more: &[&str]) -> Value {
    let mut found = json(&[&["compare", "atlas-10k", load, "--json", "-"], &GRID[..], more].concat());
    for run in found["runs"].as_array_mut().expect("it is a list") {
        for key in ["cpu_s", "requests_per_cpu_s"] {
            run["headstack"][key] = Value::Null;
        }
    }
    found
}

#[test]
fn grid_runs_in_order_and_repeats_exactly() {
    let folder = folder();
    let load = job(folder.path());
    let found = grid(&load, &[]);
    let runs = found["runs"].as_array().expect("it is a list");
    let settings: Vec<(&str, &str)> = runs
        .iter()
        .map(|run| &run["settings"])
        .map(|set| (&set["drive.order"], &set["drive.queue_depth"]))
        .map(|(order, depth)| (order.as_str().expect("a word"), depth.as_str().expect("a word")))
        .collect();
    assert_eq!(settings, [("fcfs", "1"), ("fcfs", "32"), ("sptf", "1"), ("sptf", "32")]);
    let iops = |index: usize| runs[index]["headstack"]["iops"].as_f64().expect("it is a number");
    assert_eq!(iops(0), iops(2), "with one command at the drive its order has nothing to choose");
    assert!(iops(3) > 1.3 * iops(1), "{} of {}", iops(3), iops(1));
    assert_eq!(found, grid(&load, &[]), "the cores finish in any order");
    assert_ne!(found, grid(&load, &["--seed", "5"]));
}

#[test]
fn run_in_a_grid_equals_the_run_alone() {
    let folder = folder();
    let load = job(folder.path());
    let set = ["--set", "drive.order=sptf", "--set", "drive.queue_depth=32"];
    let alone = json(&[&["sim", "atlas-10k", &load, "--json", "-"], &set[..]].concat());
    let among = &grid(&load, &[])["runs"][3]["headstack"];
    for key in ["response_ms", "parts_ms", "devices", "confidence", "iops"] {
        assert_eq!(&alone["headstack"][key], &among[key], "{key}");
    }
}

#[test]
fn table_shows_the_differences_to_the_first_run() {
    let folder = folder();
    let load = job(folder.path());
    let done = headstack(&[&["compare", "atlas-10k", &load], &GRID[..]].concat());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "no bar where there is no terminal");
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[2].starts_with("order  queue_depth"), "{}", done.out);
    // Four setups and notes on them follow.
    assert!(lines.len() >= 11 + 4, "{}", done.out);
    assert!(lines[0].ends_with(", 3,000 requests a run, seed 0"), "{}", done.out);
    assert_eq!(lines[10], "--jobs shows the reads, writes and flushes of each job.");
    assert!(lines[4].starts_with("fcfs") && !lines[4].contains('+'), "the first has nothing to differ from");
    assert!(lines[6].contains("≈ +0.0 %") && lines[7].contains('+'), "{}", done.out);
    let out = printed(&["compare", "atlas-10k", "cheetah-9lp", &load]);
    assert!(
        out.contains("cheetah-9lp") && out.lines().nth(2).is_some_and(|line| line.starts_with("rig")),
        "{out}"
    );
}

#[test]
fn report_shows_the_metric_charts_and_both_drives() {
    let folder = folder();
    let (load, page) = (job(folder.path()), folder.path().join("out.html"));
    let page_name = page.to_string_lossy();
    printed(&[&["compare", "atlas-10k", "wd800jd", &load, "--report", &page_name], &GRID[..]].concat());
    let html = fs::read_to_string(&page).expect("it was written");
    let parts =
        ["Throughput", "Mean response", "Slowest hundredth", "error_y", "wd800jd, sptf, 32", "Seek curve"];
    for part in parts {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("The disk: Quantum") && html.contains("The disk: Western Digital"));
}

#[test]
fn bad_grid_is_rejected_in_one_line_with_a_remedy() {
    let folder = folder();
    let load = job(folder.path());
    let depths = (1..=200).map(|depth| depth.to_string()).collect::<Vec<_>>().join(",");
    let (long, wide) = (format!("drive.queue_depth={depths}"), format!("drive.window={depths}"));
    let cases: [(&[&str], &str); 10] = [
        (
            &[],
            "one rig alone compares with nothing: name another, --vary one of its keys, or --repeat it with more seeds",
        ),
        (
            &["--vary", "drive.order"],
            "--vary drive.order: must be KEY=VALUE,VALUE…, such as drive.order=fcfs,sptf",
        ),
        (&["--vary", "=fcfs"], "--vary =fcfs: must be KEY=VALUE,VALUE…, such as drive.order=fcfs,sptf"),
        (&["--vary", "drive.order=fcfs,,sptf"], "--vary drive.order=fcfs,,sptf: one of the values is empty"),
        (&["--vary", "drive.order=fcfs,fcfs"], "--vary drive.order=fcfs,fcfs: fcfs is there twice"),
        (
            &["--vary", "drive.order=fcfs,best"],
            "--vary: atlas-10k: drive.queue.order: no order is called `best`; the nearest is `n-step`",
        ),
        (
            &["--vary", "drive.ordr=fcfs"],
            "--vary: atlas-10k: drive.ordr=fcfs: a rig has no key `drive.ordr`; did you mean `drive.order`?",
        ),
        (
            &["--vary", "drive.order=fcfs", "--vary", "drive.order=sptf"],
            "--vary drive.order: the key is varied twice",
        ),
        (&["--vary", &long, "--vary", &wide], "--vary: more than 10000 runs"),
        (
            &["--vary", "drive.order=fcfs,sptf", "--baseline", "drive.order=look"],
            "--baseline drive.order=look: no run is called so; give the number of its line or its label, such as `atlas-10k drive.order=fcfs`",
        ),
    ];
    let output = |args: &[&str]| refused(&[&["compare", "atlas-10k", &load], args].concat(), 2);
    let wrong: Vec<String> = cases
        .into_iter()
        .map(|(args, wanted)| (output(args), format!("headstack: {wanted}")))
        .filter(|(found, wanted)| found != wanted)
        .map(|(found, wanted)| format!("found  {found}\nwanted {wanted}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let nowhere = refused(&["compare", "atlas-10k", "wd800jd", "/nowhere.fio"], 2);
    assert_eq!(nowhere, "headstack: atlas-10k: /nowhere.fio: No such file or directory (os error 2)");
}

/// A job file with two jobs that run for `seconds` seconds: the number of requests depends on the disk.
fn two_jobs(folder: &Path) -> String {
    let path = folder.join("two.fio");
    let text = "[global]\nfilename=/dev/sda\ngroup_reporting\nruntime=20\n\
                [queries]\nrw=randread\nbs=8k\nioengine=libaio\niodepth=8\n\
                [wal]\nrw=write\nbs=16k\nsize=100m\nfsync=1\nrate_iops=20\n";
    fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

#[test]
fn jobs_are_reported_separately_in_table_and_json() {
    let folder = folder();
    let load = two_jobs(folder.path());
    let args = ["compare", "atlas-10k", "wd800jd", &load];
    let found = json(&[&args[..], &["--json", "-"]].concat());
    for run in found["runs"].as_array().expect("it is a list") {
        let jobs = run["headstack"]["jobs"].as_array().expect("it is a list");
        assert_eq!(jobs.iter().map(|job| &job["name"]).collect::<Vec<_>>(), ["queries", "wal"]);
        assert!(jobs[0]["reads"]["response_ms"]["p99"].as_f64().is_some_and(|p99| p99 > 0.0));
        assert!(jobs[1]["flushes"]["requests"].as_u64().is_some_and(|count| count > 10), "{}", jobs[1]);
        let sum = jobs[0]["reads"]["requests"].as_u64().zip(jobs[1]["writes"]["requests"].as_u64());
        let all = run["headstack"]["requests"].as_u64().zip(run["headstack"]["flushes"]["requests"].as_u64());
        assert_eq!(sum.map(|(one, other)| one + other), all.map(|(all, flushes)| all - flushes));
    }
    let out = printed(&[&args[..], &["--jobs"]].concat());
    let header = out.lines().next().expect("it prints");
    assert!(header.contains(" to ") && header.ends_with(" requests a run, seed 0"), "{header}");
    for start in ["queries read  atlas-10k", "wal write     wd800jd", "wal flush     wd800jd"] {
        assert!(out.lines().any(|line| line.starts_with(start)), "{start} in {out}");
    }
}

#[test]
fn named_run_becomes_the_baseline() {
    let folder = folder();
    let load = job(folder.path());
    let args =
        ["compare", "atlas-10k", &load, "--vary", "drive.order=fcfs,sptf", "--set", "drive.queue_depth=32"];
    let out = printed(&[&args[..], &["--baseline", "drive.order=sptf"]].concat());
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[4].contains("-") && lines[4].contains('%') && !lines[5].contains('+'), "{out}");
    assert!(out.contains("Differences are to atlas-10k drive.order=sptf;"), "{out}");
    assert_eq!(out, printed(&[&args[..], &["--baseline", "2"]].concat()));
    let found = json(&[&args[..], &["--baseline", "2", "--json", "-"]].concat());
    assert_eq!(found["baseline"], "atlas-10k drive.order=sptf");
    let share = |run: usize| &found["runs"][run]["figures"]["iops"]["difference_share"];
    assert!(share(0).as_f64().is_some_and(|share| share < -0.1) && share(1).is_null(), "{found}");
}

#[test]
fn repeated_run_reports_the_mean_over_its_seeds() {
    let folder = folder();
    let load = job(folder.path());
    let found = json(&["compare", "atlas-10k", &load, "--repeat", "3", "--seed", "5", "--json", "-"]);
    let run = &found["runs"][0];
    let object = |seed: usize| if seed == 0 { &run["headstack"] } else { &run["other_seeds"][seed - 1] };
    let seeds: Vec<u64> = (0..3).filter_map(|index| object(index)["seed"].as_u64()).collect();
    assert_eq!(seeds, [5, 6, 7]);
    let iops: Vec<f64> = (0..3).filter_map(|index| object(index)["iops"].as_f64()).collect();
    let mean = run["figures"]["iops"]["mean"].as_f64().expect("it is a number");
    assert!((mean - iops.iter().sum::<f64>() / 3.0).abs() < 1e-9);
    assert!(run["figures"]["p99_ms"]["plus_minus"].as_f64().is_some_and(|width| width > 0.0), "{run}");
    let alone = json(&["sim", "atlas-10k", &load, "--seed", "6", "--json", "-"]);
    assert_eq!(alone["headstack"]["iops"], object(1)["iops"]);
    let out = printed(&["compare", "atlas-10k", "cheetah-9lp", &load, "--repeat", "3"]);
    assert!(out.contains(", 3 seeds from 0 on") && out.contains("Means over 3 seeds"), "{out}");
    assert!(out.contains("to the first line, seed by seed;"), "{out}");
}

#[test]
fn goal_marks_meeting_runs_and_fails_without_any() {
    let folder = folder();
    let load = job(folder.path());
    let args = [&["compare", "atlas-10k", &load], &GRID[..]].concat();
    let found = grid(&load, &[]);
    let iops = |run: usize| found["runs"][run]["headstack"]["iops"].as_f64().expect("it is a number");
    let bound = format!("iops>{}", (iops(1) + iops(3)) / 2.0);
    let out = printed(&[&args[..], &["--goal", &bound]].concat());
    assert_eq!(out.lines().filter(|line| line.ends_with("  met")).count(), 1, "{out}");
    let last = out.lines().last().expect("it prints");
    assert!(
        last.contains("1 of 4 runs, the first is atlas-10k drive.order=sptf drive.queue_depth=32"),
        "{last}"
    );
    let done = headstack(&[&args[..], &["--goal", "p99_ms<0.1"]].concat());
    assert_eq!(done.code, 1);
    assert!(
        done.err.starts_with("headstack: no run meets p99_ms<0.1; the closest is atlas-10k"),
        "{}",
        done.err
    );
}

#[test]
fn page_shows_12_distributions_and_hides_the_others() {
    let folder = folder();
    let load = folder.path().join("short.fio");
    fs::write(&load, "[load]\nrw=randread\nsize=1m\nioengine=libaio\niodepth=4\n")
        .expect("the folder is writable");
    let page = folder.path().join("out.html");
    let depths = (1..=14).map(|depth| depth.to_string()).collect::<Vec<_>>().join(",");
    let vary = format!("drive.queue_depth={depths}");
    let args = ["compare", "atlas-10k", &load.to_string_lossy(), "--vary", &vary];
    printed(&[&args[..], &["--report", &page.to_string_lossy()]].concat());
    let html = fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("The first 12 of 14 runs are shown; a click on a name shows or hides its line."));
    assert_eq!(html.matches("\"visible\":\"legendonly\"").count(), 2);
}

#[test]
fn failed_cell_loses_none_of_the_others() {
    let folder = folder();
    let path = folder.path().join("large.fio");
    std::fs::write(
        &path,
        "[reads]\nrw=randread\nbs=4k\nsize=5g\nnumber_ios=200\nioengine=libaio\ndirect=1\n",
    )
    .expect("there is room");
    let load = path.to_str().expect("its name is UTF-8");
    // The DEC RZ26 has one gigabyte.
    let rigs = ["compare", "atlas-10k", "dec-rz26", "wd800jd", load];
    let done = headstack(&[&rigs[..], &["--json", "-"]].concat());
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.starts_with("headstack: 1 of 3 cells failed: dec-rz26: "), "{}", done.err);
    let compared = crate::common::schema::parsed(&["compare"], &done.out);
    let labels: Vec<&Value> =
        compared["runs"].as_array().expect("a list").iter().map(|run| &run["label"]).collect();
    assert_eq!(labels, ["atlas-10k", "wd800jd"]);
    assert_eq!(compared["failed"][0]["label"], "dec-rz26");
    let done = headstack(&rigs);
    assert!(done.out.contains("\nFailed: dec-rz26: "), "{}", done.out);
}
