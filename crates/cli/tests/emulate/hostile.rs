//! Clients that break the protocol get an error or are disconnected. All other clients are still served.

use crate::emulator::{Emulator, Setup};
use crate::nbd::Client;
use crate::noise::Noise;
use crate::tools::wait_for;
use headstack_prerequisites::skip;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection to the emulator on which no byte was sent.
fn silent(emulator: &Emulator) -> UnixStream {
    let stream = UnixStream::connect(emulator.socket()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is no zero");
    stream
}

/// Whether the server sends its greeting.
fn is_greeted(stream: &mut UnixStream) -> bool {
    stream.read_exact(&mut [0; 18]).is_ok()
}

/// The number of files that a process may have open.
fn may_open() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").expect("Linux reports it");
    let line =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("there is such a limit");
    line.split_whitespace().next().and_then(|soft| soft.parse().ok()).unwrap_or(usize::MAX)
}

#[test]
fn connection_flood_is_limited_and_leaves_no_trace() {
    if may_open() < 2000 {
        return skip(format_args!("a process may open only {} files (ulimit -n)", may_open()));
    }
    let emulator = Emulator::start(&Setup::default());
    let mut client = emulator.client();
    client.write(0, &[7; 512], false).expect("it is a good write");
    let mut flood: Vec<UnixStream> = (0..1300).map(|_| silent(&emulator)).collect();
    let greeted = flood.iter_mut().map(is_greeted).filter(|greeted| *greeted).count();
    assert!((1000..=1024).contains(&greeted), "{greeted} of 1300 are greeted");
    assert!(client.read(0, 512).expect("it is served on") == [7; 512]);
    drop(flood);
    let again = || Client::connect(&emulator.socket()).ok();
    let mut next = wait_for("others are let in again", again);
    assert!(next.read(0, 512).expect("it is a good read") == [7; 512]);
}

#[test]
fn bad_requests_are_rejected_and_later_ones_served() {
    let emulator = Emulator::start(&Setup::default());
    let mut client = emulator.client();
    let end = client.bytes();
    let sector = [9; 512];
    client.write(0, &sector, false).expect("it is a good write");
    for (offset, length) in [(end, 512), (end - 512, 1024), (u64::MAX - 511, 512), (0, u32::MAX), (0, 0)] {
        let asked = client.send_read(offset, length).expect("the server takes it");
        let reply = client.reply().expect("the server answers");
        assert!(reply.cookie == asked && reply.error != 0, "{length} bytes at {offset} are read");
    }
    for (offset, bytes) in [(end, 512), (end - 512, 1024), (0, 100), (100, 512), (u64::MAX - 511, 512)] {
        let asked = client.send_write(offset, &vec![1; bytes], false).expect("the server takes it");
        let reply = client.reply().expect("the server answers");
        assert!(reply.cookie == asked && reply.error != 0, "{bytes} bytes at {offset} are written");
    }
    // BLOCK_STATUS without a negotiated context, RESIZE, and numbers that are no command.
    for kind in [7, 8, 9, 77, u16::MAX] {
        let asked = client.send_command(kind, 0, 512).expect("the server takes it");
        let reply = client.reply().expect("the server answers");
        assert!(reply.cookie == asked && reply.error != 0, "command {kind} is done");
    }
    assert!(client.read(0, 512).expect("it is a good read") == sector);
}

#[test]
fn noise_from_one_client_does_not_harm_others() {
    let emulator = Emulator::start(&Setup::default());
    let mut good = emulator.client();
    let data = Noise(1).bytes(4096);
    good.write(0, &data, false).expect("it is a good write");
    for seed in 0..300 {
        let mut noise = Noise(seed);
        let count = 1 + noise.below(3000) as usize;
        let bytes = noise.bytes(count);
        // The server closes the connection at the first violation, perhaps before all bytes are sent.
        if seed % 2 == 0 {
            let _ = silent(&emulator).write_all(&bytes);
        } else {
            let _ = emulator.client().send(&bytes);
        }
        assert!(good.read(0, 4096).expect("it is a good read") == data, "after noise {seed}");
    }
}

#[test]
fn silent_client_is_disconnected() {
    let emulator = Emulator::start(&Setup::default());
    let mut mute = silent(&emulator);
    let mut halting = silent(&emulator);
    halting.write_all(&[0, 0, 0, 3, b'I', b'H', b'A', b'V', b'E']).expect("the server takes it");
    for stream in [&mut mute, &mut halting] {
        assert!(is_greeted(stream));
        assert_eq!(stream.read(&mut [0; 1]).expect("the server ends it before long"), 0);
    }
    emulator.client().read(0, 512).expect("others are served");
}
