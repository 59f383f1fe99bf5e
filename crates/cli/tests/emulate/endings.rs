//! How an emulator ends on a signal, with requests in flight.

use crate::emulator::{Emulator, Setup};
use crate::nbd::Client;
use crate::tools::wait_for;
use std::fs;
use std::os::unix::process::ExitStatusExt;

/// Whether a process ignores SIGHUP, as do a process that `nohup` started and its descendants.
fn ignores_hangups(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("Linux reports it");
    u64::from_str_radix(mask.trim(), 16).expect("it is a mask") & 1 == 1
}

/// An emulator with two reads in flight, on a disk that is slow enough that they stay in flight.
fn at_work(speed: &str) -> (Emulator, Client) {
    let emulator = Emulator::start(&Setup { speed, stats: true, ..Setup::default() });
    let mut client = emulator.client();
    let middle = client.bytes() / 2;
    for place in [middle, middle / 2] {
        client.send_read(place, 4096).expect("the server takes requests");
    }
    wait_for("both reads are in flight", || emulator.said().contains("| 2 in flight").then_some(()));
    (emulator, client)
}

#[test]
fn requests_in_flight_at_a_hangup_are_counted() {
    let (mut emulator, _client) = at_work("0.01");
    emulator.signal(if ignores_hangups(emulator.process()) { "TERM" } else { "HUP" });
    assert!(emulator.ended().success(), "{}", emulator.said());
    let said = emulator.said();
    assert!(said.contains("requests             2 read") && said.contains("lateness "), "{said}");
}

#[test]
fn second_signal_ends_the_emulator_without_statistics() {
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        // At this speed a read takes about 15 seconds.
        let (mut emulator, _client) = at_work("0.001");
        let status = wait_for("it ends", || {
            emulator.signal(name);
            emulator.has_ended()
        });
        assert_eq!(status.signal(), Some(number), "{}", emulator.said());
        assert!(!emulator.said().contains("requests "), "{}", emulator.said());
    }
}
