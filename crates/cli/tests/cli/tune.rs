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
fn load_without_a_counted_request_is_refused() {
    let (_folder, job) = job(&READERS.replace("runtime=1000", "number_ios=50\nramp_time=100"));
    let said = refused(&["tune", "st2000dm006", text(&job), "--requests", "400"], 2);
    assert!(said.contains("no request is counted"), "{said}");
}
