//! A validation trace: whatever the bytes, reading ends, each record in a request or in an error of one line, and what was
//! read is replayed on a drive, every request once.

#![no_main]

use headstack_model::drives;
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::trace::validate::{Reader, Record, Replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut records: Vec<Record> = Vec::new();
    for record in Reader::new(bytes) {
        match record {
            Ok(record) => records.push(record),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
    records.truncate(64);
    let spec = drives::load("hp-c2247a").expect("the drive ships");
    let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive works");
    let mut finished = 0;
    let issued = records.len();
    Engine::new(vec![device]).run(&mut Replay::new(records.into_iter()), &mut |_| finished += 1);
    assert_eq!(finished, issued);
});
