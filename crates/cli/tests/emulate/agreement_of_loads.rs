//! Whether the emulator runs the loads of the search for faults at the rate that `headstack sim` computes: streams with a queue, flushes,
//! and a reader next to a copy, over NBD in real time.

use crate::emulator::{Emulator, Setup};
use crate::tools::{folder, have, run, text};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A rig with its settings, and fio jobs. Requests are so large that the path to the emulator keeps up with the disk. A reader next to a
/// stream thinks for longer than the emulator's path delays its next read: a simulated host's next read arrives before the drive has
/// chosen (`queue.choice_ms`), and the drive serves it before the stream's; one that comes 0.1 ms later waits for the stream.
const LOADS: [(&str, &str); 14] = [
    ("exos-x18", "[a]\nrw=read\nbs=128k\niodepth=2"),
    ("exos-x18", "[a]\nrw=read\nbs=64k\niodepth=32"),
    ("exos-x18", "[a]\nrw=write\nbs=128k\niodepth=8"),
    ("exos-x18 --set drive.cache.write_cache=none", "[a]\nrw=write\nbs=256k\niodepth=16"),
    ("exos-x18 --set drive.cache.write_cache=none", "[a]\nrw=randwrite\nbs=4k\niodepth=8"),
    ("st2000dm006", "[a]\nrw=read\nbs=64k\niodepth=4"),
    ("st2000dm006", "[a]\nrw=randread\nbs=4k\niodepth=32"),
    ("st2000dm006", "[a]\nrw=write\nbs=64k\nfsync=1"),
    ("st2000dm006 --set drive.cache.write_cache=none", "[a]\nrw=write\nbs=4k\nfsync=1"),
    ("samsung-hd103sj", "[a]\nrw=read\nbs=128k\niodepth=8"),
    ("ultrastar-7k6000", "[a]\nrw=randread\nbs=16k\niodepth=16"),
    ("wd800jd", "[a]\nrw=read\nbs=64k\n[b]\nrw=randread\nthinktime=1ms\noffset=40g\nsize=20g"),
    (
        "st2000dm006",
        "[a]\nrw=read\nbs=256k\niodepth=2\n[b]\nrw=randread\nthinktime=1ms\noffset=1000g\nsize=100g",
    ),
    ("ultrastar-hc570", "[a]\nrw=randrw\nbs=8k\niodepth=16"),
];

/// Percent by which the emulator's rate may differ.
const OFF: f64 = 5.0;

/// The bytes a second of each job, as fio and the simulator print them.
fn rates(document: &Value) -> Vec<f64> {
    let rate = |job: &Value| -> f64 {
        ["read", "write"].iter().filter_map(|kind| job[kind]["bw_bytes"].as_f64()).sum()
    };
    document["jobs"].as_array().expect("there are jobs").iter().map(rate).collect()
}

/// The rates of a load on the emulated and on the simulated disk.
fn both(rig: &str, jobs: &str) -> (Vec<f64>, Vec<f64>) {
    let folder = folder();
    let emulator = Emulator::start(&Setup { rig, speed: "1", ..Setup::default() });
    let shared = "time_based\nruntime=8\nramp_time=2\nnorandommap";
    let at = |name: &str, disk: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("[global]\n{shared}\n{disk}\n{jobs}\n")).expect("the folder is writable");
        path
    };
    let (real, table) = (
        at("real.fio", &format!("ioengine=nbd\nuri={}\nthread", emulator.uri())),
        folder.path().join("real.json"),
    );
    run("fio", &["--output-format=json", &format!("--output={}", text(&table)), text(&real)]);
    // fio writes its remarks before the document.
    let measured = fs::read_to_string(table).expect("fio wrote it");
    let measured = &measured[measured.find('{').expect("it has a document")..];
    let simulated = at("simulated.fio", "ioengine=libaio\ndirect=1\nfilename=/dev/disk");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
    let (drive, settings) = rig.split_once(' ').unwrap_or((rig, ""));
    command.args(["sim", drive, text(&simulated), "--json", "-"]).args(settings.split_whitespace());
    let done = command.output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let read = |text: &[u8]| rates(&serde_json::from_slice(text).expect("it is JSON"));
    (read(measured.as_bytes()), read(&done.stdout))
}

#[test]
#[ignore = "three minutes of a quiet machine: make emulate-agreement"]
fn emulator_runs_queued_streams_and_flushes_at_the_simulated_rate() {
    if !have(&["fio"]) {
        return;
    }
    let mut off = Vec::new();
    for (rig, jobs) in LOADS {
        let (measured, simulated) = both(rig, jobs);
        for (job, (measured, simulated)) in measured.iter().zip(&simulated).enumerate() {
            let percent = 100.0 * (measured / simulated - 1.0);
            let line = format!(
                "{rig}, {}, job {job}: {:.2} MB/s emulated, {:.2} simulated, {percent:+.1} %",
                jobs.replace('\n', " "),
                measured / 1e6,
                simulated / 1e6
            );
            println!("{line}");
            if percent.abs() > OFF {
                off.push(line);
            }
        }
    }
    assert!(off.is_empty(), "off by more than {OFF} %:\n{}", off.join("\n"));
}
