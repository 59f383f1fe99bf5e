//! Random writes of 4 KiB to shingled disks, one after the other on each: 240,000 on each of eight disks, before their caches are full;
//! then 20,000 more on one of them, which wait for cleaning.
//!
//! `cargo run --release -p headstack-sim --example shingled [full]`; `time` says what it costs.

use headstack_model::{Instant, Lbn, Request, drives};
use headstack_sim::{Device, DeviceOptions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Writes this often, and returns the time at which the last has completed.
fn write(device: &mut Device, random: &mut Pcg64Mcg, mut now: Instant, count: u32) -> Instant {
    for _ in 0..count {
        let lbn = Lbn(random.random_range(0..device.sectors() / 8) * 8);
        device.submit(now, Request::write(lbn, 8)).expect("no other command is outstanding");
        while device.poll_completion().is_none() {
            now = device.poll_timeout().expect("a command is outstanding");
            device.handle_timeout(now);
        }
    }
    now
}

fn main() {
    let spec = drives::load("seagate-archive-8tb").expect("the drive ships with Headstack");
    let waits = std::env::args_os().nth(1).is_some();
    for seed in 0..if waits { 1 } else { 8 } {
        let mut device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive is valid");
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let early = write(&mut device, &mut random, Instant::ZERO, 240_000);
        println!("240,000 writes in {:.0} s: {:?}", early.as_secs(), device.activity().shingled);
        if waits {
            let late = write(&mut device, &mut random, early, 20_000);
            println!("20,000 more in {:.0} s: {:?}", (late - early).as_secs(), device.activity().shingled);
        }
    }
}
