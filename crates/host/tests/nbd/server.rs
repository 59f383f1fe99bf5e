//! The server over real sockets, with disks that take no time or little.

use crate::client::*;
use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_host::{
    Address, Answer, BlockError, Caller, Clock, Disk, Listener, Operation, Rules, Served, Server, Target,
    Timing,
};
use headstack_model::drives;
use headstack_nbd::{Export, Limits};
use headstack_sim::Rig;
use headstack_workload::VolumeInfo;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use tempfile::TempDir;

pub(crate) fn null() -> Emulator {
    let info = VolumeInfo { name: "null".to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None };
    let store = Store::memory(info.bytes()).expect("unused memory is free");
    Emulator::null(Volume::new(info, store))
}

pub(crate) fn atlas() -> Emulator {
    let rig = Rig::from_drive(drives::load("atlas-10k").expect("the drive is shipped"));
    let volume = |info: VolumeInfo| {
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Volume::new(info, store)
    };
    let volumes = rig.volumes().into_iter().map(volume).collect();
    Emulator::new(rig.build(0).expect("the drive is good"), volumes, EmulatorFaults::default())
        .expect("a drive can be emulated")
}

pub(crate) struct Setup {
    pub(crate) disk: Disk,
    server: Server,
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

pub(crate) fn setup(emulator: Emulator, most: usize) -> Setup {
    setup_with(emulator, most, Limits::default())
}

pub(crate) fn setup_with(emulator: Emulator, most: usize, limits: Limits) -> Setup {
    setup_as(emulator, Rules { limits, connections: most, ..Rules::default() })
}

pub(crate) fn setup_as(emulator: Emulator, rules: Rules) -> Setup {
    let folder = tempfile::tempdir().expect("there is room for it");
    let path = folder.path().join("nbd");
    let clock = Clock::new(1000.0).expect("it is allowed");
    let disk = Disk::start("d", emulator, clock, Timing::default()).expect("there are threads");
    let handle = disk.handle();
    let bytes = handle.volumes()[0].bytes();
    let served = Served { export: Export::new("d", bytes), target: Target::Disk { disk: handle, volume: 0 } };
    let address = Address::Unix(path.clone());
    let listener = Listener::bind(&address).expect("the path is free");
    let server = Server::start(vec![listener], vec![served], rules).expect("it can be served");
    Setup { disk, server, path, _folder: folder }
}

pub(crate) fn hear(stream: &mut impl Read, bytes: usize) -> Vec<u8> {
    let mut heard = vec![0; bytes];
    stream.read_exact(&mut heard).expect("the server answers");
    heard
}

/// A connection that has chosen the export, once the server has a place for it.
pub(crate) fn connect(path: &PathBuf) -> UnixStream {
    connect_by(|| UnixStream::connect(path))
}

pub(crate) fn connect_by<S: Read + Write>(connect: impl Fn() -> std::io::Result<S>) -> S {
    let greeted = |_| {
        let mut stream = connect().expect("the server listens");
        let mut heard = [0; 18];
        stream.read_exact(&mut heard).is_ok().then(|| {
            assert_eq!(heard[..], greeting());
            stream
        })
    };
    let mut stream = (0..100_000).find_map(greeted).expect("a place gets free");
    stream.write_all(&[client_flags(0b11), choose(7, "", &[])].concat()).expect("it reads");
    // One reply with the size and the flags, one with the block sizes, and the end.
    let info = hear(&mut stream, 20 + 12);
    assert_eq!(info[18..20], [0, 12]);
    let mut replies = info;
    while replies[replies.len().saturating_sub(20)..][..16] != option_reply(7, 1, &[])[..16] {
        replies.extend(hear(&mut stream, 1));
    }
    stream
}

#[test]
fn bytes_written_on_one_connection_are_read_on_another() {
    let setup = setup(atlas(), 16);
    let (mut one, mut other) = (connect(&setup.path), connect(&setup.path));
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
    one.write_all(&request(0, WRITE, 1, 4096, 1 << 20)).expect("it reads");
    one.write_all(&data).expect("it reads");
    assert_eq!(hear(&mut one, 16), simple(OK, 1));
    one.write_all(&request(0, FLUSH, 2, 0, 0)).expect("it reads");
    assert_eq!(hear(&mut one, 16), simple(OK, 2));
    other.write_all(&request(0, READ, 3, 4096, 1 << 20)).expect("it reads");
    assert_eq!(hear(&mut other, 16), simple(OK, 3));
    assert!(hear(&mut other, 1 << 20) == data);
    // It counts after it has sent; once it has stopped, all is counted.
    let handle = setup.disk.handle();
    setup.disk.stop().expect("there is room for 1 MiB");
    assert_eq!(handle.lateness().count(), 3);
}

#[test]
fn sent_reply_is_counted_while_others_wait() {
    let setup = setup(null(), 4);
    let mut stream = connect(&setup.path);
    let said = [request(0, READ, 1, 0, 512), request(0, READ, 2, 0, 32 << 20)].concat();
    stream.write_all(&said).expect("it reads");
    assert_eq!(hear(&mut stream, 16 + 512)[..16], simple(OK, 1));
    // The second is not taken.
    let handle = setup.disk.handle();
    let counted = (0..60_000).find(|_| {
        #[allow(clippy::disallowed_methods, reason = "the server counts after it has sent")]
        std::thread::sleep(std::time::Duration::from_millis(1));
        handle.lateness().count() > 0
    });
    assert!(counted.is_some() && handle.lateness().count() == 1, "{}", handle.lateness().count());
}

#[test]
fn clients_that_die_with_requests_in_flight_leave_no_trace() {
    let setup = setup(atlas(), 4);
    for turn in 0..200u64 {
        let mut stream = connect(&setup.path);
        for cookie in 0..16 {
            let offset = (turn * 16 + cookie) * 1_000_448;
            stream.write_all(&request(0, READ, cookie, offset, 65_536)).expect("it reads");
        }
        stream.write_all(&request(0, WRITE, 99, 0, 65_536)).expect("it reads");
        stream.write_all(&[1; 100]).expect("it reads");
    }
    // If any of the four slots were lost, no client would get one here.
    let mut stream = connect(&setup.path);
    stream.write_all(&request(0, FLUSH, 7, 0, 0)).expect("it reads");
    assert_eq!(hear(&mut stream, 16), simple(OK, 7));
}

#[test]
fn writes_sent_before_a_close_are_completed() {
    let setup = setup(null(), 4);
    for turn in 0..20u8 {
        let mut stream = connect(&setup.path);
        let write = |block: u64| {
            [request(0, WRITE, block, block * 4096, 4096), vec![turn + block as u8; 4096]].concat()
        };
        // The client is gone before the replies to the first, while the rest is still to be read.
        let said: Vec<u8> = (0..100).flat_map(write).chain(request(0, DISC, 0, 0, 0)).collect();
        stream.write_all(&said).expect("it reads");
        drop(stream);
        let mut other = connect(&setup.path);
        let expected = vec![turn + 99; 4096];
        let found = (0..100_000).find(|_| {
            other.write_all(&request(0, READ, 1, 99 * 4096, 4096)).expect("it reads");
            hear(&mut other, 16 + 4096)[16..] == expected
        });
        assert!(found.is_some(), "the last write of client {turn} is done");
    }
}

/// Tells what came of an operation.
struct Tell(Sender<Result<Answer, BlockError>>);

impl Caller for Tell {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        self.0.send(result).expect("the test waits for it");
    }
}

#[test]
fn reply_is_completed_while_the_disk_stops() {
    let Setup { disk, server: _server, path, _folder } = setup(null(), 4);
    let mut stream = connect(&path);
    stream.write_all(&request(0, READ, 1, 0, 32 << 20)).expect("it reads");
    assert_eq!(hear(&mut stream, 16), simple(OK, 1));
    let handle = disk.handle();
    let stopping = Builder::new().spawn(|| disk.stop()).expect("there are threads");
    let (tell, output) = channel();
    let stops = (0..10_000_000).find(|_| {
        handle.submit(0, Operation::Flush, Box::new(Tell(tell.clone())));
        output.recv() == Ok(Err(BlockError::ShuttingDown))
    });
    assert!(stops.is_some());
    assert!(hear(&mut stream, 32 << 20).iter().all(|byte| *byte == 0));
    assert_eq!(stopping.join().expect("it did not fail"), Ok(()));
    assert_eq!(stream.read(&mut [0; 1]).expect("it was closed in order"), 0);
}

#[test]
fn connection_beyond_the_limit_is_closed() {
    let setup = setup(null(), 3);
    let mut held: Vec<_> = (0..3).map(|_| connect(&setup.path)).collect();
    for _ in 0..100 {
        let mut stream = UnixStream::connect(&setup.path).expect("the server listens");
        assert_eq!(stream.read(&mut [0; 18]).expect("it was closed in order"), 0);
    }
    for stream in &mut held {
        stream.write_all(&request(0, READ, 5, 0, 512)).expect("it reads");
        assert_eq!(hear(stream, 16 + 512)[..16], simple(OK, 5));
    }
}

#[test]
fn power_cut_ends_the_connection() {
    let setup = setup(atlas(), 16);
    let mut stream = connect(&setup.path);
    setup.disk.handle().cut_power();
    assert_eq!(stream.read(&mut [0; 16]).expect("it was closed in order"), 0);
}

#[test]
fn socket_of_a_dead_server_is_reused_and_one_in_use_rejected() {
    let setup = setup(null(), 3);
    let address = Address::Unix(setup.path.clone());
    let served = Served {
        export: Export::new("d", 512),
        target: Target::Disk { disk: setup.disk.handle(), volume: 0 },
    };
    let again = Listener::bind(&address).expect_err("it is in use");
    assert!(again.to_string().starts_with(&address.to_string()), "{again}");
    let path = setup.path.with_extension("left");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("the path is free"));
    assert!(path.exists(), "a listener leaves its file");
    let listener = Listener::bind(&Address::Unix(path.clone())).expect("no server listens there");
    drop(Server::start(vec![listener], vec![served], Rules::default()).expect("it can be served"));
    assert!(!path.exists(), "a server takes its file along");
    drop(setup.server);
}

#[test]
fn only_the_socket_of_a_dead_server_is_removed() {
    let setup = setup(null(), 3);
    let folder = setup.path.parent().expect("it is in a folder").to_path_buf();
    let dead = folder.join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("the path is free"));
    let others = ["file", "folder", "link", "lost", "letters"].map(|name| folder.join(name));
    let [file, directory, link, lost, letters] = &others;
    std::fs::File::create_new(file).and_then(|mut file| file.write_all(b"data")).expect("there is room");
    std::fs::create_dir(directory).expect("there is room");
    std::os::unix::fs::symlink(&dead, link).expect("there is room");
    std::os::unix::fs::symlink(folder.join("nowhere"), lost).expect("there is room");
    let _letters = std::os::unix::net::UnixDatagram::bind(letters).expect("the path is free");
    for path in &others {
        let before = path.symlink_metadata().expect("it is there");
        let error = Listener::bind(&Address::Unix(path.clone())).expect_err("it is in use");
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
        let after = path.symlink_metadata().expect("it is still there");
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
    }
    assert!(dead.exists(), "who names a link does not mean what it points to");
}

#[test]
fn listen_addresses_parse_and_print_as_uris() {
    assert_eq!("unix:/tmp/x".parse(), Ok(Address::Unix(PathBuf::from("/tmp/x"))));
    let tcp: Address = "127.0.0.1:10809".parse().expect("it is an address");
    assert_eq!(tcp.uri("sda"), "nbd://127.0.0.1:10809/sda");
    assert_eq!(
        ":10809".parse::<Address>().map(|address| address.to_string()),
        Ok("0.0.0.0:10809".to_string())
    );
    let unusual = Address::Unix(PathBuf::from("/tmp/a b&c#%/nbd.1"));
    assert_eq!(unusual.uri("disk/0?"), "nbd+unix:///disk%2F0%3F?socket=/tmp/a%20b%26c%23%25/nbd.1");
    let wrong = "unix:".parse::<Address>().expect_err("it names no path");
    assert_eq!(
        wrong.to_string(),
        "`unix:` is no address: write HOST:PORT, :PORT (all IPv4 addresses) or unix:PATH"
    );
}
