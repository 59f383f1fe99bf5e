//! `headstack tune` on real input.

use crate::common::{json, printed, refused};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with a job file.
fn job(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("job.fio");
    fs::write(&path, text).expect("there is room");
    (folder, path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("its name is UTF-8")
}

/// Sixteen random readers through the page cache, each with one request outstanding.
const READERS: &str = "[readers]\nrw=randread\nbs=4k\nsize=10g\nnumjobs=16\nioengine=libaio\ndirect=1\niodepth=1\ntime_based\nruntime=1000\nthread\n";

#[test]
fn queue_depth_of_one_is_advised_against_for_random_readers() {
    let (folder, job) = job(READERS);
    let rule = folder.path().join("60.rules");
    let args = [
        "tune",
        "st2000dm006",
        text(&job),
        "--set",
        "host.queue.depth=1",
        "--knob",
        "queue_depth",
        "--requests",
        "1000",
        "--udev",
        text(&rule),
        "--json",
    ];
    let advice = json(&args);
    let advised = &advice["advised"][0];
    assert_eq!((advised["setting"].as_str(), advised["now"].as_str()), (Some("queue_depth"), Some("1")));
    let depth = advised["advised"].as_str().expect("it is text");
    assert!(["8", "16", "32"].contains(&depth), "{advice:#}");
    assert!(advised["change"]["least_percent"].as_f64() > Some(10.0), "{advice:#}");
    assert_eq!(advice["commands"][0], format!("echo {depth} > /sys/block/sda/device/queue_depth"));
    let written = fs::read_to_string(&rule).expect("it is written");
    assert!(written.contains(&format!("ATTR{{device/queue_depth}}=\"{depth}\"")), "{written}");
    assert_eq!(advice, json(&args), "the same again");
}

#[test]
fn chunk_of_an_array_is_advised_as_an_option_of_mdadm() {
    // Reads of half a MiB at random, one at a time: a unit of 16 KiB moves every arm for each.
    let (_folder, job) = job(
        "[r]\nrw=randread\nbs=512k\nsize=1t\nnumjobs=16\nioengine=psync\ntime_based\nruntime=1000\nthread\n",
    );
    let args = ["tune", "raid5", text(&job), "--set", "array.stripe_unit_sectors=32", "--knob", "chunk"];
    let advice = json(&[&args[..], &["--requests", "400", "--json"]].concat());
    let advised = &advice["advised"][0];
    assert_eq!(
        (advised["setting"].as_str(), advised["now"].as_str()),
        (Some("chunk"), Some("16")),
        "{advice:#}"
    );
    let chunk: u64 = advised["advised"].as_str().and_then(|text| text.parse().ok()).expect("it is a number");
    assert!(chunk >= 256, "{advice:#}");
    assert_eq!(advised["key_value"], (2 * chunk).to_string(), "in sectors");
    assert_eq!(
        advice["rebuild_commands"][0],
        serde_json::json!({"command": format!("mdadm --grow /dev/mdX --chunk={chunk}"), "destroys": false}),
        "no array has this name"
    );
    assert_eq!(advice["commands"].as_array().map(Vec::len), Some(0), "{advice:#}");
    // Five drives, of which one's worth is parity.
    let layout = &advice["array_layout"];
    assert_eq!(layout["partition_multiple_kib"].as_u64(), Some(4 * chunk), "{layout:#}");
    assert_eq!(layout["mkfs_ext4"], format!("-E stride={},stripe_width={chunk}", chunk / 4));
}

#[test]
fn partition_that_cuts_physical_sectors_is_advised_to_start_at_1_mib() {
    // Pages of 4 KiB, which the disk has as physical sectors of eight blocks: from block 63 on, each write reads one first.
    let (folder, job) = job(
        "[w]\nrw=randwrite\nbs=4k\nsize=100g\nioengine=libaio\ndirect=1\niodepth=16\ntime_based\nruntime=1000\nthread\n",
    );
    let rule = folder.path().join("60.rules");
    let tune = |start: &str, knobs: &[&str], more: &[&str]| {
        let start = format!("host.partition_start={start}");
        let args = ["tune", "st2000dm006", text(&job), "--requests", "400", "--set", &start];
        let knobs = knobs.iter().flat_map(|knob| ["--knob", knob]);
        args.into_iter().chain(knobs).chain(more.iter().copied()).map(str::to_string).collect::<Vec<_>>()
    };
    let args = tune("63", &["partition_start"], &["--udev", text(&rule), "--json"]);
    let advice = json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let advised = &advice["advised"][0];
    assert_eq!(
        (advised["setting"].as_str(), advised["now"].as_str(), advised["advised"].as_str()),
        (Some("partition_start"), Some("63"), Some("2048")),
        "{advice:#}"
    );
    assert!(advised["change"]["least_percent"].as_f64() > Some(20.0), "{advice:#}");
    let command = "parted --script /dev/sda mklabel gpt mkpart data 1048576B 100%";
    let destroyer = serde_json::json!({"command": command, "destroys": true});
    assert_eq!(
        (&advice["rebuild_commands"][0], advice["commands"].as_array().map(Vec::len)),
        (&destroyer, Some(0))
    );
    assert!(!rule.exists(), "a rule of udev sets no partition");
    let args = tune("63", &["partition_start"], &[]);
    let out = printed(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        out.contains(&format!("and so LOSES ALL DATA behind it; copy them first:\n  {command}\n")),
        "{out}"
    );
    // From block 2048 on, nothing is said of it.
    let args = tune("2048", &["partition_start", "queue_depth"], &["--json"]);
    let advice = json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let settings = advice["advised"].as_array().expect("it is a list");
    assert!(settings.iter().all(|one| one["setting"] != "partition_start"), "{advice:#}");
    let args = tune("2048", &["partition_start"], &[]);
    let said = refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), 2);
    assert!(said.contains("has none of the settings that are tuned; "), "{said}");
}

#[test]
fn partition_on_an_array_is_advised_to_start_with_a_stripe() {
    // Writes of a stripe, four times 512 KiB: from 1 MiB on, each is half of two stripes, of which the rest or the parity is read first.
    let (_folder, job) =
        job("[w]\nrw=write\nbs=2m\nioengine=psync\ndirect=1\ntime_based\nruntime=1000\nthread\n");
    let args = ["tune", "raid5", text(&job), "--set", "array.stripe_unit_sectors=1024", "--requests", "200"];
    let more = ["--set", "host.partition_start=2048", "--knob", "partition_start", "--json"];
    let advice = json(&[&args[..], &more].concat());
    let advised = &advice["advised"][0];
    assert_eq!(
        (advised["now"].as_str(), advised["advised"].as_str(), advised["key_value"].as_str()),
        (Some("2048"), Some("4096"), Some("4096")),
        "{advice:#}"
    );
    let command = "parted --script /dev/mdX mklabel gpt mkpart data 2097152B 100%";
    assert_eq!(advice["rebuild_commands"][0]["command"], command);
}

#[test]
fn idle_class_is_advised_for_jobs_that_do_not_count() {
    // The backup has a turn of 125 ms again and again, for which each read of the other job waits.
    let (_folder, job) = job(
        "[global]\ndirect=1\ntime_based\nruntime=1000\nthread\n[reader]\nrw=randread\nbs=4k\nsize=100g\nioengine=psync\n\
         [backup]\nrw=randread\nbs=64k\nsize=100g\nioengine=libaio\niodepth=32\n",
    );
    let args =
        ["tune", "workstation", text(&job), "--goal", "mean", "--knob", "ionice", "--requests", "3000"];
    let bfq = ["--job", "reader", "--set", "host.queue.elevator=bfq", "--json"];
    let advice = json(&[&args[..], &bfq].concat());
    let advised = &advice["advised"][0];
    assert_eq!(
        (advised["setting"].as_str(), advised["now"].as_str(), advised["advised"].as_str()),
        (Some("ionice"), Some("none"), Some("idle")),
        "{advice:#}"
    );
    assert!(advised["change"]["most_percent"].as_f64() < Some(-50.0), "{advice:#}");
    assert_eq!((&advice["job"], &advised["key"]), (&"reader".into(), &"".into()));
    assert_eq!(advice["commands"][0], "ionice --class idle --pid PID");
    // An elevator that knows no classes gives no reason for one.
    let none = ["--job", "reader", "--set", "host.queue.elevator=noop"];
    let out = printed(&[&args[..], &none].concat());
    assert!(out.starts_with("No setting improves mean beyond chance"), "{out}");
    assert!(out.contains("The figures are those of the job reader;"), "{out}");
    let said = |more: &[&str]| refused(&[&args[..], more].concat(), 2);
    assert!(said(&["--job", "raeder"]).contains("no job is called `raeder`; did you mean `reader`?"));
    assert!(said(&[]).contains("has none of the settings that are tuned"), "without a job that counts");
}

#[test]
fn limit_of_other_jobs_is_advised_as_far_as_their_bound_permits() {
    let (_folder, job) = job(
        "[global]\ndirect=1\ntime_based\nruntime=1000\nthread\n[reader]\nrw=randread\nbs=4k\nsize=100g\nioengine=psync\n\
         [backup]\nrw=randread\nbs=64k\nsize=100g\nioengine=libaio\niodepth=32\n",
    );
    let args =
        ["tune", "workstation", text(&job), "--goal", "mean", "--knob", "io.max", "--requests", "1000"];
    let bounded = ["--job", "reader", "--bound", "others>5"];
    let advice = json(&[&args[..], &bounded, &["--json"]].concat());
    let advised = &advice["advised"][0];
    // Half of it would be less than the others must have.
    assert_eq!(
        (&advised["setting"], &advised["now"], &advised["advised"]),
        (&"io.max".into(), &"max".into(), &"8388608".into())
    );
    assert!(advised["change"]["most_percent"].as_f64() < Some(-50.0), "{advice:#}");
    let others = advice["figures"]["others"]["advised"].as_f64().expect("a number");
    assert!((5.0..8.6).contains(&others), "{others} MB/s");
    let command = advice["commands"][0].as_str().expect("a text");
    let line = "echo \"$(cat /sys/block/sda/dev) rbps=8388608 wbps=8388608\" > /sys/fs/cgroup/others/io.max";
    assert!(command.contains(line), "{command}");
    let said = |more: &[&str]| refused(&[&args[..], more].concat(), 2);
    assert!(said(&["--job", "reader"]).contains("io.max also a limit of others"));
    assert!(
        said(&["--bound", "others>5"]).contains("a limit of others is for a load with a job that counts")
    );
    let goal = ["tune", "workstation", text(&job), "--job", "reader", "--goal", "others"];
    assert!(refused(&goal, 2).contains("others is no goal"));
}

#[test]
fn limit_of_a_job_is_kept_by_the_advice_and_a_starved_job_is_named() {
    let (_folder, job) = job(
        "[global]\ndirect=1\ntime_based\nruntime=1000\nthread\n[reader]\nrw=randread\nbs=4k\nsize=100g\nioengine=psync\n\
         [nightly v1.2]\nrw=randread\nbs=64k\nsize=100g\nioengine=libaio\niodepth=32\n",
    );
    let args = ["tune", "workstation", text(&job), "--goal", "mean", "--job", "reader", "--requests", "600"];
    let elevator = ["--set", "host.queue.elevator=bfq"];
    let run = |more: &[&str]| json(&[&args[..], &elevator, more, &["--json"]].concat());
    let free = run(&["--knob", "ionice"]);
    assert_eq!(free["advised"][0]["setting"], "ionice");
    let starved = free["losses"].as_array().expect("a list").iter().any(|loss| {
        let loss = loss.as_str().expect("a text");
        loss.starts_with("nightly v1.2 read is starved") || loss.starts_with("nightly v1.2 read falls from ")
    });
    assert!(starved, "{:#}", free["losses"]);
    let kept = run(&["--knob", "ionice", "--bound", "nightly v1.2.iops>50"]);
    assert_eq!((&kept["bounds"][0], &kept["bounds_kept"]), (&"nightly v1.2.iops>50".into(), &true.into()));
    assert_eq!(kept["advised"].as_array().map(Vec::len), Some(0), "{kept:#}");
    // With a limit of each other job, io.max is tried, as far as the limit permits.
    let limited = run(&["--knob", "io.max", "--bound", "nightly v1.2.iops>50"]);
    let advised = limited["advised"][0]["advised"].as_str().and_then(|rate| rate.parse::<u64>().ok());
    assert!(advised.is_some_and(|rate| rate >= 50 * 65_536), "{limited:#}");
    let said = |more: &[&str]| refused(&[&args[..], more].concat(), 2);
    assert!(said(&["--bound", "nightly.iops>5"]).contains("no job is called `nightly`"));
    let near = said(&["--bound", "raeder.iops>5"]);
    assert!(near.contains("did you mean `reader`?"), "{near}");
    assert!(said(&["--bound", "reader.others>5"]).contains("JOB.throughput"));
    let broken = printed(
        &[&args[..], &elevator, &["--knob", "ionice", "--bound", "nightly v1.2.iops>100000"]].concat(),
    );
    assert!(broken.contains("The limit nightly v1.2.iops>100000 is not kept: "), "{broken}");
}

#[test]
fn keys_of_a_node_are_written_for_its_file() {
    // Forty sequential readers: with 64 KiB a turn, the disk seeks for each of them.
    let (folder, job) = job(
        "[s]\nrw=read\nbs=64k\nnumjobs=40\noffset_increment=2%\nioengine=psync\ntime_based\nruntime=1000\nthread\n",
    );
    let (keys, rule) = (folder.path().join("keys.toml"), folder.path().join("60.rules"));
    let now = ["node.read_ahead_bytes=65536", "node.dispatch_set=1", "node.requests_per_turn=1"];
    let mut args =
        vec!["tune", "stream-node", text(&job), "--knob", "read_ahead_bytes", "--requests", "1000"];
    args.extend(now.iter().flat_map(|key| ["--set", key]));
    args.extend(["--node", text(&keys), "--udev", text(&rule), "--json"]);
    let advice = json(&args);
    let advised = advice["advised"][0]["advised"].as_str().expect("longer turns need fewer seeks");
    assert!(advised.parse::<u64>().is_ok_and(|bytes| bytes >= 1 << 20), "{advice:#}");
    assert_eq!(
        advice["commands"][0],
        format!("headstack serve node.toml --set disk.streams.read_ahead_bytes={advised}")
    );
    let written = fs::read_to_string(&keys).expect("it is written");
    assert!(written.ends_with(&format!("\nstreams.read_ahead_bytes = {advised}\n")), "{written}");
    assert!(!rule.exists(), "no setting is of the disk");
}

#[test]
fn settings_without_effect_are_left_as_they_are() {
    // One request at a time leaves nothing to order.
    let (_folder, job) = job(&READERS.replace("numjobs=16", "numjobs=1"));
    let out = printed(&["tune", "st2000dm006", text(&job), "--requests", "500", "--knob", "queue_depth"]);
    assert!(out.starts_with("No setting improves throughput beyond chance"), "{out}");
    assert!(out.contains("Not simulated"), "{out}");
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let (_folder, job) = job(READERS);
    let said = |more: &[&str]| refused(&[&["tune", "st2000dm006", text(&job)], more].concat(), 2);
    assert!(said(&["--goal", "p98"]).contains("did you mean `p99`?"));
    assert!(said(&["--knob", "read_ahaed_kb"]).contains("did you mean `read_ahead_kb`?"));
    assert!(said(&["--bound", "p99>200"]).contains("a limit of p99 is p99<NUMBER"));
    assert!(said(&["--bound", "p99<0"]).contains("`0` is no number above 0"));
    assert!(said(&["--knob", "read_ahead_kb"]).contains("has none of the settings"));
}

#[test]
fn fio_job_for_the_disk_is_written() {
    let (folder, job) = job(READERS);
    let written = folder.path().join("verify.fio");
    let args =
        ["tune", "st2000dm006", text(&job), "--knob", "queue_depth", "--requests", "400", "--disk", "sdq"];
    printed(&[&args[..], &["--fio", text(&written)]].concat());
    let found = fs::read_to_string(&written).expect("it is written");
    assert!(found.starts_with("[global]\nfilename=/dev/sdq\ntime_based\nruntime=60\n"), "{found}");
    assert!(found.contains("\n[readers]\nrw=randread\nbs=4k\n"), "{found}");
    // The job is one that the simulator runs, too.
    printed(&["sim", "st2000dm006", text(&written), "--json", "-"]);
    let trace = folder.path().join("a.trace");
    fs::write(&trace, "0.000000 0 8 8 1\n10.000000 0 80 8 0\n").expect("there is room");
    let said = refused(&["tune", "st2000dm006", text(&trace), "--fio", text(&written)], 2);
    assert!(said.contains("no fio job"), "{said}");
}

#[test]
fn recording_of_blktrace_is_a_load() {
    // Reads of 4 KiB by sixteen processes, as the kernel's binary trace has them.
    let (folder, _job) = job("");
    let (table, trace) = (folder.path().join("reads.csv"), folder.path().join("sda.blktrace.0"));
    let row = |index: u64| {
        format!(
            "{},0,read,{},4096,,,\n",
            index * 2_000_000,
            (index * 7_919_123_456) % 1_000_000_000_000 / 4096 * 4096
        )
    };
    let rows: String = (0..600).map(row).collect();
    fs::write(&table, format!("time_ns,device,op,offset,bytes,response_ns,think_ns,process\n{rows}"))
        .expect("there is room");
    printed(&["trace", "convert", text(&table), text(&trace), "--to", "blktrace"]);
    let args =
        ["tune", "st2000dm006", text(&trace), "--goal", "mean", "--knob", "queue_depth", "--requests", "600"];
    let advice = json(&[&args[..], &["--set", "host.queue.depth=1", "--all-to", "0", "--json"]].concat());
    assert_eq!(advice["advised"][0]["setting"], "queue_depth", "{advice:#}");
    assert!(advice["change"]["percent"].as_f64() < Some(-10.0), "{advice:#}");
}

#[test]
fn load_without_a_counted_request_is_refused() {
    let (_folder, job) = job(&READERS.replace("runtime=1000", "number_ios=50\nramp_time=100"));
    let said = refused(&["tune", "st2000dm006", text(&job), "--requests", "400"], 2);
    assert!(said.contains("no request is counted"), "{said}");
}
