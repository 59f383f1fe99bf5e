//! A validation trace: whatever the bytes, reading ends, each record in a request or in an error of one line, and what was
//! read is replayed on a drive, every request once.

#![no_main]

use headstack_model::drives;
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::VolumeInfo;
use headstack_workload::trace::{self, OutOfRange, Replay, ReplayOptions, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::open(bytes, "fuzz", trace::named("validate")) else { return };
    let spec = drives::load("hp-c2247a").expect("the drive ships");
    let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive works");
    let volume = VolumeInfo {
        name: spec.name.clone(),
        sectors: spec.capacity_sectors,
        sector_bytes: spec.sector_bytes,
    };
    let options = ReplayOptions { out_of_range: OutOfRange::Wrap, ..ReplayOptions::default() };
    let mut replay = Replay::new(trace, &[volume], options);
    let mut finished = 0;
    Engine::new(vec![device]).run(&mut replay, &mut |_| finished += 1);
    assert_eq!(finished, replay.counts().issued);
    if let Some(error) = replay.error() {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
