//! A load file: whatever the bytes, reading ends in a load or in an error of one line. A load that was read is written and
//! read again unchanged, and asks for nothing beyond its volumes, or does not fit them, which is one line too.

#![no_main]

use headstack_model::Instant;
use headstack_personalities::LoadFile;
use headstack_workload::{Poll, VolumeInfo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let file = match LoadFile::parse(text, "fuzz.toml") {
        Ok(file) => file,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    let again = LoadFile::from_spec(file.spec(), "again.toml").expect("a load that was written can be read");
    assert_eq!(again.spec(), file.spec());
    let volume = |name: &str, sectors| VolumeInfo { name: name.to_string(), sectors, sector_bytes: 512 };
    let volumes = [volume("sda", 1_000_000), volume("sdb", 5000)];
    let mut load = match file.build(&volumes, 1) {
        Ok(load) => load,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for _ in 0..1000 {
        match load.poll(now) {
            Poll::Issue(issue) => {
                let volume = &volumes[issue.device as usize];
                assert!(issue.request.sectors > 0 && issue.request.end().0 <= volume.sectors);
                out.push(issue.id);
            }
            Poll::Compute { id, time } => load.handle_computed(now, id, now + time),
            Poll::Later(at) => {
                assert!(at > now);
                now = at;
            }
            Poll::Waiting => load.handle_completion(now, out.pop().expect("it waits for something")),
            Poll::Done => return assert!(out.is_empty()),
        }
    }
});
