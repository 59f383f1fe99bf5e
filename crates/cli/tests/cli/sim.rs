//! `headstack sim`: its results, its files, and what it says of bad input.

use crate::common::{headstack, json, printed, refused};
use headstack_prerequisites::{have_programs, skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes a DiskSim trace of `requests` requests, ten milliseconds apart, a third of them writes.
fn trace(folder: &Path, requests: u64) -> String {
    let line = |index: u64| {
        let (lbn, flag) = (index * 7_919_317 % 17_000_000, u64::from(!index.is_multiple_of(3)));
        format!("{}.000000 0 {lbn} 8 {flag}\n", index * 10)
    };
    let path = folder.join("made.trace");
    fs::write(&path, (0..requests).map(line).collect::<String>()).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// The results of a run without what depends on the machine.
fn timeless(args: &[&str]) -> Value {
    let mut found = json(&[&["sim"], args, &["--json", "-"]].concat());
    for key in ["cpu_s", "requests_per_cpu_s"] {
        found["headstack"][key] = Value::Null;
    }
    found
}

#[test]
fn equal_seeds_give_equal_results() {
    let folder = folder();
    let trace = trace(folder.path(), 400);
    let found = |seed: &str| timeless(&["wd800jd", &trace, "--seed", seed]);
    assert_eq!(found("7"), found("7"));
    assert_eq!(found("7")["headstack"]["seed"], 7);
}

#[test]
fn response_times_are_split_by_priority_as_in_fio() {
    let folder = folder();
    let job = folder.path().join("classes.fio");
    let text = "[mix]\nioengine=libaio\ndirect=1\nfilename=/dev/sdX\nrw=randread\nbs=4k\niodepth=32\n\
                number_ios=4000\ncmdprio_percentage=20\n[plain]\nioengine=libaio\ndirect=1\nfilename=/dev/sdX\n\
                rw=randread\nbs=4k\nnumber_ios=50\n";
    fs::write(&job, text).expect("the folder is writable");
    let job = job.to_string_lossy();
    let args = ["exos-x18", &job, "--set", "drive.queue.urgent_first=true", "--set", "drive.queue.depth=32"];
    let found = timeless(&args);
    let read = &found["jobs"][0]["read"];
    let classes = read["prios"].as_array().expect("two priorities were met");
    let of = |key: &str| classes.iter().map(|class| class[key].clone()).collect::<Vec<_>>();
    assert_eq!(
        (of("prioclass"), of("prio"), of("priohint")),
        (vec![0.into(), 1.into()], vec![0.into(); 2], vec![0.into(); 2])
    );
    let count = |class: usize| classes[class]["clat_ns"]["N"].as_u64().expect("it is a number");
    assert_eq!(count(0) + count(1), 4000);
    assert!((700..900).contains(&count(1)), "{} of 4000 are a fifth", count(1));
    let p99 =
        |class: usize| classes[class]["clat_ns"]["percentile"]["99.000000"].as_u64().expect("it is a number");
    assert!(4 * p99(1) < p99(0), "high priority {} ns, none {} ns", p99(1), p99(0));
    assert!(found["jobs"][1]["read"].get("prios").is_none(), "all requests of the other job are alike");
    let shown = printed(&[&["sim"], &args[..]].concat());
    for row in ["mix read, no priority", "mix read, high priority"] {
        assert!(shown.contains(row), "{shown}");
    }
}

#[test]
fn counts_and_means_agree_across_the_report() {
    let folder = folder();
    let found = timeless(&["atlas-10k", &trace(folder.path(), 900)]);
    let ours = &found["headstack"];
    assert_eq!((&ours["requests"], &ours["reads"]["requests"]), (&900.into(), &600.into()));
    let job = &found["jobs"][0];
    assert_eq!((&job["read"]["total_ios"], &job["write"]["total_ios"]), (&600.into(), &300.into()));
    assert_eq!(job["read"]["io_bytes"], 600 * 4096);
    let mean = ours["response_ms"]["mean"].as_f64().expect("it is a number");
    let parts = ours["parts_ms"].as_object().expect("it is an object");
    let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
    assert!((sum - mean).abs() < 1e-9, "{sum} is not {mean}");
    let all = ["read", "write"].map(|kind| {
        let times = &job[kind]["clat_ns"];
        times["mean"].as_f64().expect("it is a number") * times["N"].as_f64().expect("it is a number")
    });
    assert!(((all[0] + all[1]) / 900.0 / 1e6 - mean).abs() < 1e-6);
    let device = &ours["devices"][0];
    assert_eq!((&device["commands"], &ours["volumes"][0]["requests"]), (&900.into(), &900.into()));
    assert!(device["utilisation"].as_f64().is_some_and(|share| (0.1..1.0).contains(&share)), "{device}");
    assert_eq!(ours["rig"]["drive"][0]["name"], "atlas-10k");
    let confidence = &ours["confidence"]["iops"];
    assert!(confidence["plus_minus"].as_f64().is_some_and(|width| width > 0.0), "{confidence}");
}

/// The paths of all keys of a document; those of a list's elements are one.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                // What users name is theirs.
                if !["global options", "job options", "headstack"].contains(&key.as_str()) {
                    keys(value, &format!("{path}/{key}"), found);
                }
                found.insert(format!("{path}/{key}"));
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, &format!("{path}[]"), found)),
        _ => {}
    }
}

#[test]
fn json_keys_match_those_of_fio() {
    let folder = folder();
    let real = folder.path().join("real.fio");
    let text = |file: &str| format!("[global]\nbs=4k\nsize=8m\n{file}[one]\nrw=randrw\n[two]\nrw=read\n");
    let named = format!("filename={}\n", folder.path().join("data").display());
    fs::write(&real, text(&named)).expect("the folder is writable");
    if !have_programs(&["fio"]) {
        return;
    }
    let output = Command::new("fio").arg("--output-format=json").arg(&real).output().expect("fio starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let begin = printed.find('{').expect("fio prints an object");
    let fios: Value = serde_json::from_str(&printed[begin..]).expect("fio prints JSON");
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    keys(&fios, "", &mut wanted);
    let ours = timeless(&["atlas-10k", &job(folder.path(), &text(""))]);
    assert_eq!(ours["global options"]["bs"], fios["global options"]["bs"]);
    let mut shown = fios["jobs"][1]["job options"].clone();
    // fio-plot finds a result by these.
    (shown["iodepth"], shown["numjobs"]) = ("1".into(), "1".into());
    assert_eq!(ours["jobs"][1]["job options"], shown);
    keys(&ours, "", &mut found);
    // No date, as the same seed gives the same bytes. Where fio finds no disk under its file it says nothing of disks; on
    // a disk of several parts it adds sums.
    let dates = ["/time", "/timestamp", "/timestamp_ms"];
    wanted.retain(|key| !dates.contains(&key.as_str()) && !key.contains("/aggr_"));
    found.remove("/headstack");
    if !wanted.contains("/disk_util[]/util") {
        skip(format_args!("in part: fio says nothing of the disk under {}", folder.path().display()));
        found.retain(|key| !key.starts_with("/disk_util"));
        wanted.retain(|key| !key.starts_with("/disk_util"));
    }
    let missing: Vec<_> = wanted.difference(&found).collect();
    let more: Vec<_> = found.difference(&wanted).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, beyond fio {more:?}");
}

#[test]
fn request_log_lists_every_request_in_issue_order() {
    let folder = folder();
    let csv = folder.path().join("requests.csv");
    let trace = trace(folder.path(), 300);
    printed(&["sim", "atlas-10k", &trace, "--requests", csv.to_str().expect("the path is UTF-8")]);
    let text = fs::read_to_string(&csv).expect("it was written");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("it has a head").split(',').collect();
    let column = |name: &str| {
        columns.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name} in {columns:?}"))
    };
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 300);
    let number = |row: &[&str], name: &str| row[column(name)].parse::<u64>().expect("it is a number");
    assert!(rows.windows(2).all(|two| number(&two[0], "time_ns") <= number(&two[1], "time_ns")));
    let parts = ["queued", "overhead", "seek", "rotational_latency", "retries", "media", "bus", "cache"];
    for row in &rows {
        let sum: u64 = parts.iter().map(|part| number(row, &format!("{part}_ns"))).sum();
        assert_eq!(sum, number(row, "response_ns"), "{row:?}");
        assert_eq!(number(row, "completed_ns") - number(row, "time_ns"), sum, "{row:?}");
    }
    // The file is a trace itself: it asks for the same again.
    let path = csv.to_str().expect("the path is UTF-8");
    let (once, again) = (timeless(&["atlas-10k", &trace]), timeless(&["atlas-10k", path]));
    assert_eq!(once["jobs"][0]["read"], again["jobs"][0]["read"]);
    assert_eq!(once["headstack"]["devices"], again["headstack"]["devices"]);
}

/// Writes a fio job file.
fn job(folder: &Path, text: &str) -> String {
    let path = folder.join("made.fio");
    fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

#[test]
fn fio_jobs_run_with_their_ramps_and_groups() {
    let folder = folder();
    let text = "[global]\nbs=4k\nsize=1g\nrw=randread\nioengine=libaio\nthread\n\
        [warm]\niodepth=4\nramp_time=10\ntime_based\nruntime=10\n\
        [twins]\nnumjobs=2\ngroup_reporting\nstonewall\nnumber_ios=50\n[alone]\nrw=write\nbs=64k\nnumber_ios=30\n";
    let found = timeless(&["atlas-10k", &job(folder.path(), text)]);
    let jobs = found["jobs"].as_array().expect("it is a list");
    let names: Vec<&str> = jobs.iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert_eq!(names, ["warm", "twins", "alone"]);
    assert_eq!(jobs[1]["read"]["total_ios"], 100, "the twins are one");
    assert_eq!(jobs[2]["write"]["io_bytes"], 30 * 65_536);
    let (warm, ours) = (&jobs[0], &found["headstack"]);
    assert_eq!((&warm["latency_depth"], &warm["job options"]["iodepth"]), (&4.into(), &"4".into()));
    let runtime = warm["read"]["runtime"].as_u64().expect("it is a number");
    assert!((9_900..=10_100).contains(&runtime), "{runtime} ms without the ramp");
    let left_out = ours["requests_not_counted"].as_u64().expect("it is a number");
    let counted = warm["read"]["total_ios"].as_u64().expect("it is a number");
    assert!(
        counted > 500 && left_out * 10 > counted * 9 && left_out * 9 < counted * 10,
        "{left_out}, {counted}"
    );
    assert_eq!(ours["remarks"][0], "keys without effect here: thread");
}

#[test]
fn summary_is_complete_and_piped_error_output_is_empty() {
    let folder = folder();
    let done = headstack(&["sim", "atlas-10k", &trace(folder.path(), 900)]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "no bar where there is no terminal");
    for word in ["Atlas 10K", "made.trace", "900 (600 read, 300 written)", "IOPS", "±", "p99.9", "arm"] {
        assert!(done.out.contains(word), "{word} in {}", done.out);
    }
}

#[test]
fn setting_changes_the_rig() {
    let folder = folder();
    let trace = trace(folder.path(), 100);
    let found = timeless(&["atlas-10k", &trace, "--set", "drive.order=sptf", "--set", "drive.queue_depth=4"]);
    let queue = &found["headstack"]["rig"]["drive"][0]["queue"];
    assert_eq!((&queue["order"], &queue["depth"]), (&"sptf".into(), &4.into()));
}

#[test]
fn guard_holds_and_worst_overtaking_are_reported() {
    let folder = folder();
    let text = "[j]\nfilename=/dev/sdX\nrw=randread\nbs=4k\nioengine=libaio\niodepth=16\nnumber_ios=2000\nrandom_distribution=zoned:90/5:10/95\n";
    let job = job(folder.path(), text);
    let guard = ["--set", "host.queue.guard=counting", "--set", "host.queue.guard_threshold=20"];
    let args = [&["exos-x16", &job], &guard[..]].concat();
    let found = &timeless(&args)["headstack"]["devices"][0]["guard"];
    let (holds, worst) = (found["holds"].as_u64(), found["worst_overtaken"].as_u64());
    assert!(holds > Some(0) && worst > Some(20) && worst <= Some(20 + 15), "{found}");
    let said = printed(&[&["sim"], &args[..]].concat());
    let line = format!("{} holds, a command overtaken {} times", holds.unwrap_or(0), worst.unwrap_or(0));
    assert!(said.contains(&line), "{said}");
    assert_eq!(timeless(&["exos-x16", &job])["headstack"]["devices"][0]["guard"], Value::Null);
}

#[test]
fn bad_simulation_input_is_rejected_with_a_remedy() {
    let folder = folder();
    let good = trace(folder.path(), 10);
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("the folder is writable");
        path.to_string_lossy().into_owned()
    };
    let beyond = file("beyond.trace", "0.0 0 99999999 8 1\n");
    let devices = file("devices.trace", "0.0 3 0 8 1\n1.0 4 0 8 1\n");
    let broken = file("broken.trace", "0.0 0 0 8 1\n1.0 0 zero 8 1\n");
    let late = file("late.trace", "0.0 0 0 8 1\n1.0 0 0 8\n");
    let empty = file("empty.trace", "");
    let rig = file("rig.toml", "[drive]\npreset = \"atlas-10\"\n");
    let keyless = file("keyless.toml", "[drive]\npreset = \"atlas-10k\"\ncuont = 3\n");
    let odd = job(folder.path(), "[a]\nrw=randread\nbs=4k\nsize=1g\niodpeth=3\n");
    let refuse = |args: &[&str]| refused(&[&["sim"], args].concat(), 2);
    for option in ["--json", "--requests", "--report"] {
        let reported = refuse(&["atlas-10k", &good, option, "/nowhere/out"]);
        assert_eq!(
            reported.split(" (os").next(),
            Some("headstack: /nowhere/out: the folder /nowhere: No such file or directory"),
            "{reported}"
        );
    }
    let cases: [(&[&str], String); 14] = [
        (&["atlas-10k", &odd], format!("{odd}:5: iodpeth: unknown key; did you mean `iodepth`?")),
        (&["atlas-10", &good], "rigs: no rig or drive `atlas-10`; did you mean `atlas-10k`?".to_string()),
        (&["/nowhere.toml", &good], "/nowhere.toml: No such file or directory (os error 2)".to_string()),
        (&["atlas-10k", "/nowhere"], "/nowhere: No such file or directory (os error 2)".to_string()),
        (
            &["atlas-10k", &good, "--set", "drive.ordr=sptf"],
            "atlas-10k: drive.ordr=sptf: a rig has no key `drive.ordr`; did you mean `drive.order`?"
                .to_string(),
        ),
        (
            &["atlas-10k", &good, "--set", "drive.order"],
            "--set drive.order: must be KEY=VALUE, such as drive.order=sptf".to_string(),
        ),
        (
            &["atlas-10k", &good, "--set", "drive.order=sptff"],
            "atlas-10k: drive.queue.order: no order is called `sptff`; the nearest is `sptf`".to_string(),
        ),
        (
            &["atlas-10k", &beyond],
            format!(
                "{beyond}: request 1: block 100000006 is not on disk0, which has 17966953 (--wrap puts such blocks on it all the same)"
            ),
        ),
        (
            &["atlas-10k", &devices],
            format!(
                "{devices}: request 2: device 4 is number 2, and the rig has 1 volumes (--all-to 0 sends all to one)"
            ),
        ),
        (
            &["atlas-10k", &broken],
            format!("{broken}: line 2: lbn is `zero`, where a whole number below 2^54 is allowed"),
        ),
        (
            &["atlas-10k", &late],
            format!("{late}: line 2: 4 fields, where `time_ms device lbn sectors flags` are 5"),
        ),
        (
            &["atlas-10k", &good, "--format", "validate"],
            format!("{good}: line 1: 5 fields, where `R|W action lbn sectors measured_us think_us` are 6"),
        ),
        (
            &["atlas-10k", &good, "--all-to", "3"],
            format!("{good}: request 1: device 0 is to go to volume 3, and the rig has 1"),
        ),
        (
            &[&rig, &good],
            format!("{rig}:2: drive.preset: drives: no drive `atlas-10`; did you mean `atlas-10k`?"),
        ),
    ];
    let wrong: Vec<String> = cases
        .into_iter()
        .map(|(args, wanted)| (refuse(args), format!("headstack: {wanted}")))
        .filter(|(found, wanted)| found != wanted)
        .map(|(found, wanted)| format!("found  {found}\nwanted {wanted}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refuse(&["atlas-10k", &empty]).contains("empty.trace: no known format begins like this"));
    assert!(refuse(&[&keyless, &good]).contains("keyless.toml:3: drive.cuont: unknown field `cuont`"));
}

#[test]
fn failed_run_leaves_no_output_file() {
    let folder = folder();
    let bad = folder.path().join("bad.trace");
    fs::write(&bad, "0.0 0 0 8 1\n1.0 0 zero 8 1\n").expect("the folder is writable");
    let (csv, page) = (folder.path().join("out.csv"), folder.path().join("out.html"));
    let text = |path: &Path| path.to_string_lossy().into_owned();
    refused(&["sim", "atlas-10k", &text(&bad), "--requests", &text(&csv), "--report", &text(&page)], 2);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it is a folder").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn group_reporting_merges_jobs_but_json_keeps_each() {
    let folder = folder();
    let path = folder.path().join("group.fio");
    let text = "[global]\nfilename=/dev/sda\ngroup_reporting\nnumber_ios=200\nbs=4k\n\
                [mixed]\nrw=randrw\nnumjobs=2\n[log]\nrw=write\n";
    fs::write(&path, text).expect("the folder is writable");
    let load = path.to_string_lossy();
    let found = json(&["sim", "atlas-10k", &load, "--json", "-"]);
    assert_eq!(found["jobs"].as_array().map(Vec::len), Some(1), "fio reports the group as one");
    let jobs = &found["headstack"]["jobs"];
    let count = |job: usize, kind: &str| jobs[job][kind]["requests"].as_u64();
    assert_eq!((&jobs[0]["name"], &jobs[0]["clones"]), (&"mixed".into(), &2.into()));
    assert_eq!(count(0, "reads").zip(count(0, "writes")).map(|(reads, writes)| reads + writes), Some(400));
    assert_eq!(
        (&jobs[1]["name"], count(1, "writes"), &jobs[1]["reads"]),
        (&"log".into(), Some(200), &Value::Null)
    );
    let out = printed(&["sim", "atlas-10k", &load]);
    for start in ["  mixed read ", "  mixed write "] {
        assert!(out.lines().any(|line| line.starts_with(start)), "{start} in {out}");
    }
}

#[test]
fn page_draws_the_response_times_of_each_job() {
    let folder = folder();
    let (load, page) = (folder.path().join("two.fio"), folder.path().join("out.html"));
    let text = "[global]\nfilename=/dev/sda\nnumber_ios=200\n[one]\nrw=randread\n[two]\nrw=write\n";
    fs::write(&load, text).expect("the folder is writable");
    printed(&["sim", "atlas-10k", &load.to_string_lossy(), "--report", &page.to_string_lossy()]);
    let html = fs::read_to_string(&page).expect("it was written");
    for part in ["Response times by job", "\"one read\"", "\"two write\""] {
        assert!(html.contains(part), "{part}");
    }
}
