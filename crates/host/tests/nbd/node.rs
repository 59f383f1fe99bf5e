//! A storage node over real sockets, over each kind of disk that it can have.

use crate::client::*;
use crate::loops::Loop;
use crate::server::{atlas, connect, hear};
use headstack_host::disk::Kind;
use headstack_host::node::{Backend, Node, NodeHandle, Opening};
use headstack_host::{Address, Clock, Disk, Listener, Rules, Served, Server, Target, Timing};
use headstack_streams::streams::Config;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

const BYTES: u64 = 8 << 20;

/// What is read and written at random.
const USED: u64 = 4 << 20;

struct Setup {
    node: Node,
    server: Server,
    path: PathBuf,
    _folder: TempDir,
    /// What is behind it where that is a file.
    files: Option<TempDir>,
    /// The disk behind it where that is emulated.
    disk: Option<Disk>,
}

fn serve(backend: Backend, disk: Option<Disk>) -> Setup {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("nbd");
    let node = Node::start("n", backend, Config::default()).expect("there are threads");
    let handle = node.handle();
    let served = Served { export: handle.export("n"), target: Target::Node(handle) };
    let address = Address::Unix(path.clone());
    let listener = Listener::bind(&address).expect("the path is free");
    let rules = Rules { connections: 16, ..Rules::default() };
    let server = Server::start(vec![listener], vec![served], rules).expect("it can be served");
    Setup { node, server, path, _folder: folder, files: None, disk }
}

/// Each kind of disk.
fn setups() -> Vec<(&'static str, Setup)> {
    let memory = Backend::memory(BYTES).expect("it is in whole blocks");
    let clock = Clock::new(1000.0).expect("it is allowed");
    let disk = Disk::start("d", atlas(), clock, Timing::default()).expect("there are threads");
    let emulated = Backend::emulated(disk.handle(), 0).expect("there are events");
    let mut all = vec![("memory", serve(memory, None)), ("emulated", serve(emulated, Some(disk)))];
    let ring = Opening::default();
    let ways = [
        ("ring", ring),
        ("buffered ring", Opening { buffered: true, ..ring }),
        ("threads", Opening { threads: true, ..ring }),
        ("buffered threads", Opening { threads: true, buffered: true, ..ring }),
    ];
    all.extend(ways.map(|(name, opening)| (name, file(opening))));
    all
}

/// A file that is as long as the others.
fn file(opening: Opening) -> Setup {
    let (folder, path) = holes();
    let backend = Backend::open(&path, opening).expect("it is a file");
    backend.notes().iter().for_each(|note| eprintln!("{note}"));
    Setup { files: Some(folder), ..serve(backend, None) }
}

/// A file of holes, in a folder that goes away.
fn holes() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("disk");
    let file = OpenOptions::new().write(true).create_new(true).open(&path).expect("it is new");
    file.set_len(BYTES).expect("there is room");
    (folder, path)
}

impl Setup {
    fn handle(&self) -> NodeHandle {
        self.node.handle()
    }

    /// Stops all; whether what was written is on the media.
    fn stop(self) {
        assert_eq!(self.node.stop(), Ok(()));
        drop(self.server);
        if let Some(disk) = self.disk {
            assert_eq!(disk.stop(), Ok(()));
        }
    }
}

fn say(stream: &mut UnixStream, said: &[u8]) {
    stream.write_all(said).expect("it reads");
}

fn write(stream: &mut UnixStream, flags: u16, offset: u64, data: &[u8]) -> Vec<u8> {
    say(stream, &request(flags, WRITE, 7, offset, data.len() as u32));
    say(stream, data);
    hear(stream, 16)
}

fn read(stream: &mut UnixStream, flags: u16, offset: u64, bytes: u32) -> Vec<u8> {
    say(stream, &request(flags, READ, 8, offset, bytes));
    assert_eq!(hear(stream, 16), simple(OK, 8), "{bytes} bytes at {offset}");
    hear(stream, bytes as usize)
}

fn ask(stream: &mut UnixStream, flags: u16, command: u16, offset: u64, bytes: u32) -> Vec<u8> {
    say(stream, &request(flags, command, 9, offset, bytes));
    hear(stream, 16)
}

#[test]
fn reads_return_the_last_write_on_every_backend() {
    for (name, setup) in setups() {
        let (mut one, mut other) = (connect(&setup.path), connect(&setup.path));
        let mut random = Pcg64Mcg::seed_from_u64(6);
        let mut known = vec![0; USED as usize];
        for turn in 0..400u32 {
            let bytes = 512 * random.random_range(1..=if turn % 16 == 0 { 2048 } else { 64u64 });
            let offset = 512 * random.random_range(0..=(USED - bytes) / 512);
            let run = offset as usize..(offset + bytes) as usize;
            let flags = if random.random_range(0..4) == 0 { FUA } else { 0 };
            match random.random_range(0..10) {
                0..4 => {
                    known[run.clone()].fill(turn as u8 | 1);
                    assert_eq!(write(&mut one, flags, offset, &known[run]), simple(OK, 7), "{name}");
                }
                4..8 => {
                    let found = read(&mut other, flags, offset, bytes as u32);
                    assert!(found == known[run], "{name}: turn {turn}, {bytes} bytes at {offset}");
                }
                8 => {
                    known[run].fill(0);
                    let command = if turn % 2 == 0 { TRIM } else { WRITE_ZEROES };
                    let reply = ask(&mut one, flags, command, offset, bytes as u32);
                    assert_eq!(reply, simple(OK, 9), "{name}");
                }
                _ => assert_eq!(ask(&mut other, 0, FLUSH, 0, 0), simple(OK, 9), "{name}"),
            }
        }
        let last = read(&mut other, 0, 0, USED as u32);
        assert!(last == known, "{name}");
        assert_eq!(setup.handle().view().books.all().failed, 0);
        setup.stop();
    }
}

#[test]
fn clients_that_die_with_queued_writes_leave_no_trace() {
    let setup = serve(Backend::memory(BYTES).expect("it is in whole blocks"), None);
    let said: Vec<u8> = (0..20)
        .flat_map(|turn| [request(0, WRITE, turn, turn * 4096, 4096), vec![turn as u8 + 1; 4096]].concat())
        .collect();
    for _ in 0..1000 {
        // One that finds all seats taken by those before comes again.
        while connect(&setup.path).write_all(&said).is_err() {}
    }
    let kept = || (setup.handle().view(), setup.handle().inspect(|streams| streams.view().clients));
    let is_gone = |_: &u64| {
        let (view, clients) = kept();
        let is_gone = view.connections == 0 && view.outstanding == 0 && clients == 0;
        #[allow(
            clippy::disallowed_methods,
            reason = "without a pause, a million turns end before the last connection does"
        )]
        std::thread::sleep(std::time::Duration::from_millis(u64::from(!is_gone)));
        is_gone
    };
    assert!((0..60_000).any(|turn| is_gone(&turn)), "{} connections are open", kept().0.connections);
    let mut stream = connect(&setup.path);
    assert_eq!(read(&mut stream, 0, 19 * 4096, 4096), [20; 4096], "all was done that they asked for");
    setup.stop();
}

#[test]
fn commands_beyond_the_end_of_the_disk_are_rejected() {
    for (name, setup) in setups() {
        let end = setup.handle().shape().bytes;
        let mut stream = connect(&setup.path);
        assert_eq!(write(&mut stream, FUA, end - 512, &[5; 512]), simple(OK, 7), "{name}");
        assert_eq!(read(&mut stream, 0, end - 1024, 1024)[512..], [5; 512], "{name}");
        assert_eq!(ask(&mut stream, 0, READ, end, 512), simple(EINVAL, 9), "{name}");
        assert_eq!(ask(&mut stream, 0, READ, 0, 100), simple(EINVAL, 9), "{name}");
        assert_eq!(write(&mut stream, 0, end - 512, &[5; 1024]), simple(ENOSPC, 7), "{name}");
        assert_eq!(ask(&mut stream, 0, CACHE, 0, 4096), simple(OK, 9), "{name}");
        setup.stop();
    }
}

#[test]
fn stopping_node_answers_requests_in_flight() {
    for (name, setup) in setups() {
        let mut stream = connect(&setup.path);
        for cookie in 0..8 {
            say(&mut stream, &request(0, WRITE, cookie, cookie * 4096, 4096));
            say(&mut stream, &[3; 4096]);
        }
        assert_eq!(hear(&mut stream, 16)[..8], simple(OK, 0)[..8]);
        let handle = setup.handle();
        setup.stop();
        // Requests that had arrived by then are done, the others get the reason.
        let mut heard = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut heard).expect("it is closed in order");
        let replies = replies(&heard, |_| 0);
        let done = replies.iter().filter(|reply| reply.error == OK).count() as u64 + 1;
        assert!(replies.iter().all(|reply| [OK, ESHUTDOWN].contains(&reply.error)), "{name}");
        assert_eq!(handle.view().books.count_of(Kind::Write).done, done, "{name}");
        assert_eq!(handle.view().outstanding, 0);
    }
}

#[test]
fn errors_of_an_emulated_disk_reach_clients() {
    let clock = Clock::new(1000.0).expect("it is allowed");
    let disk = Disk::start("d", atlas(), clock, Timing::default()).expect("there are threads");
    let setup = serve(Backend::emulated(disk.handle(), 0).expect("there are events"), None);
    let mut stream = connect(&setup.path);
    assert_eq!(read(&mut stream, 0, 0, 512), [0; 512]);
    disk.handle().cut_power();
    assert_eq!(ask(&mut stream, 0, READ, 1 << 20, 512), simple(EIO, 9));
    assert_eq!(ask(&mut stream, 0, FLUSH, 0, 0), simple(EIO, 9));
    assert!(setup.node.stop().is_err(), "the contents of the media are unknown");
}

#[test]
fn gathered_writes_reach_the_file_before_the_node_stops() {
    for threads in [false, true] {
        let setup = file(Opening { threads, ..Opening::default() });
        let path = setup.files.as_ref().expect("it is a file").path().join("disk");
        let mut stream = connect(&setup.path);
        for part in 0..64 {
            assert_eq!(write(&mut stream, 0, (1 << 20) + (part << 16), &[7; 64 << 10]), simple(OK, 7));
        }
        let gathered = setup.handle().inspect(|streams| streams.view().memory.coalesced_bytes);
        assert!(gathered > 0, "writes of a stream are answered before they are on the disk");
        let again = Backend::open(&path, Opening::default()).expect_err("it is served").to_string();
        assert!(again.ends_with(&format!("process {}) has it as a disk", std::process::id())), "{again}");
        assert_eq!(setup.node.stop(), Ok(()));
        let mut found = vec![0; BYTES as usize];
        let file = OpenOptions::new().read(true).open(&path).expect("it is there");
        file.read_exact_at(&mut found, 0).expect("it is as long");
        assert!(found[1 << 20..][..4 << 20].iter().all(|byte| *byte == 7));
        assert!(found[..1 << 20].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn read_only_file_rejects_writes() {
    for threads in [false, true] {
        let setup = file(Opening { threads, read_only: true, ..Opening::default() });
        assert!(setup.handle().export("n").read_only);
        let mut stream = connect(&setup.path);
        assert_eq!(read(&mut stream, 0, 0, 4096), [0; 4096]);
        assert_eq!(write(&mut stream, 0, 0, &[1; 512]), simple(EPERM, 7));
        setup.stop();
    }
}

#[test]
fn reads_beyond_a_truncated_file_fail_with_eio() {
    for threads in [false, true] {
        let setup = file(Opening { threads, ..Opening::default() });
        let path = setup.files.as_ref().expect("it is a file").path().join("disk");
        let file = OpenOptions::new().write(true).open(&path).expect("it is there");
        file.set_len(1 << 20).expect("it may be shorter");
        let mut stream = connect(&setup.path);
        assert_eq!(ask(&mut stream, 0, READ, (1 << 20) - 4096, 8192), simple(EIO, 9));
        assert_eq!(ask(&mut stream, 0, READ, 2 << 20, 4096), simple(EIO, 9));
        assert_eq!(read(&mut stream, 0, (1 << 20) - 4096, 4096), [0; 4096]);
        setup.stop();
    }
}

#[test]
fn block_device_is_held_exclusively_in_its_own_block_size() {
    for threads in [false, true] {
        let (_folder, path) = holes();
        let Some(device) = Loop::on(&path, &["--sector-size", "4096"]) else { return };
        let opening = Opening { threads, ..Opening::default() };
        let backend = Backend::open(&device.device, opening).expect("it is a device");
        assert_eq!(backend.notes(), [""; 0]);
        let again = Backend::open(&device.device, opening).expect_err("it is served").to_string();
        assert!(again.ends_with("it is mounted, or another program has it"), "{again}");
        let setup = serve(backend, None);
        assert_eq!((setup.handle().shape().bytes, setup.handle().shape().block_bytes), (BYTES, 4096));
        let mut stream = connect(&setup.path);
        assert_eq!(write(&mut stream, 0, 512, &[9; 512]), simple(EINVAL, 7));
        assert_eq!(write(&mut stream, FUA, 8192, &[9; 128 << 10]), simple(OK, 7));
        assert_eq!(ask(&mut stream, 0, TRIM, 8192, 4096), simple(OK, 9));
        assert_eq!(ask(&mut stream, FUA, WRITE_ZEROES, 16384, 8192), simple(OK, 9));
        assert_eq!(ask(&mut stream, FUA | NO_HOLE, WRITE_ZEROES, 65536, 4096), simple(OK, 9));
        let mut known = vec![9; 128 << 10];
        for run in [0..4096, 8192..16384, 57344..61440] {
            known[run].fill(0);
        }
        assert!(read(&mut stream, 0, 8192, 128 << 10) == known);
        setup.stop();
    }
}

#[test]
fn read_only_block_device_opens_read_only() {
    let (_folder, path) = holes();
    let Some(device) = Loop::on(&path, &["--read-only"]) else { return };
    let backend = Backend::open(&device.device, Opening::default()).expect("it is a device");
    assert!(backend.shape().read_only);
    assert!(backend.notes()[0].ends_with("writing is not allowed: it is read-only"), "{:?}", backend.notes());
}
