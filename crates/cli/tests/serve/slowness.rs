//! The metrics of a node whose disk is slow.

use crate::node::{Node, metric};
use crate::tools::{folder, text, wait_for};
use std::fs;

/// Each access loses 300 ms, so that each command takes about 200 ms longer than the slowest command of a sound disk may take. An alarm is
/// not awaited: it needs half a minute of busy time, and the detector's own tests cover it.
#[test]
fn late_commands_of_a_slow_disk_are_counted() {
    let folder = folder();
    let drive = folder.path().join("slow.toml");
    let keys = "[[drive]]\npreset = \"wd800jd\"\nmechanics.slow_periods = [{ delay_ms = 300 }]\n";
    fs::write(&drive, keys).expect("the folder is writable");
    let node = Node::start(&["--emulate", text(&drive), "--metrics", "127.0.0.1:0"]);
    let mut client = node.client();
    for read in 1..=3 {
        client.read(read * client.bytes() / 4, 4096).expect("it reads");
    }
    // The node samples its disks each second.
    let metrics = wait_for("the late reads are counted", || {
        let metrics = node.metrics();
        (metric(&metrics, "headstack_late_commands_total") == 3.0).then_some(metrics)
    });
    let lost = metric(&metrics, "headstack_late_seconds_total");
    assert!((0.5..5.0).contains(&lost), "{lost} s");
    assert_eq!(metric(&metrics, "headstack_slow"), 0.0);
    drop(client);
    node.stop();
}
