//! Clients that disconnect with requests in flight leave nothing behind in the emulator: no memory and no descriptors.

use crate::emulator::{Emulator, Setup};
use crate::noise::Noise;
use crate::tools::{have, program, wait_for};
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

/// The number of descriptors that a process has open, and its resident memory in KiB.
fn held(process: u32) -> (usize, u64) {
    let open = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count();
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux reports it");
    (open, line.trim().trim_end_matches(" kB").parse().expect("it is a number"))
}

/// Connects and disconnects in the handshake or with requests in flight, of which the last may be sent in part. `noise` decides.
fn die(emulator: &Emulator, noise: &mut Noise) {
    if noise.below(8) == 0 {
        // In the handshake.
        let mut stream = UnixStream::connect(emulator.socket()).expect("it listens");
        let sent = noise.below(20) as usize;
        let bytes = [&3u32.to_be_bytes(), b"IHAVEOPT".as_slice(), &[0, 0, 0, 7, 0, 0, 0, 6]].concat();
        return stream.write_all(&bytes[..sent]).expect("the server takes them");
    }
    let mut client = emulator.client();
    for _ in 0..=noise.below(48) {
        let place = noise.below(WRITTEN / 4096 - 16) * 4096;
        let sent = match noise.below(8) {
            0 => client.send_flush(),
            1..=4 => client.send_read(place, 4096 << noise.below(5)),
            _ => client.send_write(place, &[noise.next() as u8; 8192], noise.below(4) == 0),
        };
        sent.expect("the server takes requests");
    }
    if noise.below(2) == 0 {
        client.send(&noise.bytes(27)[..noise.below(27) as usize]).ok();
    }
}

/// The clients that disconnect write only below this byte.
const WRITTEN: u64 = 16 << 20;

#[test]
fn killed_clients_leak_neither_memory_nor_descriptors() {
    let deaths = 1000;
    let emulator = Emulator::start(&Setup::default());
    let open = settled(emulator.process());
    let mut noise = Noise(deaths);
    let data = noise.bytes(64 << 10);
    let mut client = emulator.client();
    for place in (0..=WRITTEN).step_by(data.len()) {
        client.write(place, &data, false).expect("it is a good write");
    }
    drop(client);
    // The first disconnects make the emulator's buffers as large as they get.
    for _ in 0..deaths / 10 + 20 {
        die(&emulator, &mut noise);
    }
    let memory =
        || wait_for("connections end", || Some(held(emulator.process())).filter(|held| held.0 <= open)).1;
    let before = memory();
    for _ in 0..deaths {
        die(&emulator, &mut noise);
    }
    let after = memory();
    assert!(after < before + 4096, "{before} KiB before, {after} KiB after");
    let mut client = emulator.client();
    assert!(client.read(WRITTEN, 64 << 10).expect("it answers as before") == data);
    client.flush().expect("it answers as before");
    drop(client);
    emulator.stop();
}

/// The number of descriptors that a process has open, once 20 samples in a row are equal.
fn settled(process: u32) -> usize {
    let mut looks = (0, 0);
    wait_for("it comes to rest", || {
        let open = held(process).0;
        looks = if open == looks.0 { (open, looks.1 + 1) } else { (open, 0) };
        (looks.1 == 20).then_some(open)
    })
}

#[test]
fn killed_fio_does_not_disturb_other_clients() {
    if !have(&["fio"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { speed: "1", ..Setup::default() });
    let open = settled(emulator.process());
    let uri = format!("--uri={}", emulator.uri());
    let args =
        ["--name=w", "--thread", "--ioengine=nbd", "--rw=randwrite", "--iodepth=32", "--size=1g", &uri];
    for _ in 0..5 {
        let mut fio = program("fio", &args).stdout(Stdio::null()).spawn().expect("it is here");
        wait_for("fio connects", || (held(emulator.process()).0 > open).then_some(()));
        fio.kill().expect("it runs");
        fio.wait().expect("it is a child of this process");
        emulator.client().read(0, 4096).expect("it answers as before");
    }
    wait_for("connections end", || (held(emulator.process()).0 <= open).then_some(()));
}
