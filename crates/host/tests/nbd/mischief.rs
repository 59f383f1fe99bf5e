//! The effect of a hostile client on another client of the same disk: no client waits long, whatever another does.
//!
//! Each kind of mischief is limited in number. A polite client reads 4 KiB at a time during it and after it, over an earlier connection and
//! over new ones, and its longest wait is compared with the bound. The machine may be busy: a wait that is too long counts if it occurs in
//! each of three tries.

use crate::client::*;
use crate::server::{connect_by, hear, null};
use headstack_host::disk::Kind;
use headstack_host::node::{Backend, Node};
use headstack_host::{Address, Clock, Disk, Listener, Rules, Served, Server, Target, Timing};
use headstack_nbd::{Budget, Export};
use headstack_streams::streams::Config;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest that a polite client may wait.
const LONGEST: Duration = Duration::from_millis(1500);

/// Reads of a polite client that follow the mischief.
const AFTERWARDS: u64 = 100;

const MIB: u32 = 1 << 20;

/// What all clients may hold together.
const MEMORY: usize = 128 << 20;

/// A server of one disk, and the ways to it.
struct Victim {
    unix: PathBuf,
    tcp: SocketAddr,
    node: Option<Node>,
    // Dropped in this order.
    _server: Server,
    _disk: Option<Disk>,
    _folder: TempDir,
}

impl Victim {
    fn serve(target: Target, export: Export, node: Option<Node>, disk: Option<Disk>) -> Victim {
        let folder = tempfile::tempdir().expect("there is room for it");
        let unix = folder.path().join("nbd");
        let at = |address: &Address| Listener::bind(address).expect("it is free");
        let any = "127.0.0.1:0".parse().expect("it is an address");
        let listeners = vec![at(&Address::Unix(unix.clone())), at(&any)];
        let rules = Rules { connections: 256, budget: Some(Budget::new(MEMORY)), ..Rules::default() };
        let server =
            Server::start(listeners, vec![Served { export, target }], rules).expect("it can be served");
        let Address::Tcp(tcp) = server.addresses()[1] else { panic!("{:?}", server.addresses()) };
        Victim { unix, tcp, node, _server: server, _disk: disk, _folder: folder }
    }

    /// A storage node on a disk in memory.
    fn node() -> Victim {
        let backend = Backend::memory(1 << 30).expect("it is in whole blocks");
        let node = Node::start("n", backend, Config::default()).expect("there are threads");
        let handle = node.handle();
        Victim::serve(Target::Node(handle.clone()), handle.export("d"), Some(node), None)
    }

    /// An emulated disk that takes no time.
    fn disk() -> Victim {
        let clock = Clock::new(1.0).expect("it is allowed");
        let disk = Disk::start("d", null(), clock, Timing::default()).expect("there are threads");
        let handle = disk.handle();
        let export = Export::new("d", handle.volumes()[0].bytes());
        Victim::serve(Target::Disk { disk: handle, volume: 0 }, export, None, Some(disk))
    }

    /// A connection that has chosen the export.
    fn unix(&self) -> UnixStream {
        patient(connect_by(|| UnixStream::connect(&self.unix)))
    }

    #[allow(clippy::disallowed_methods, reason = "a client has a socket")]
    fn tcp(&self) -> TcpStream {
        connect_by(|| TcpStream::connect(self.tcp))
    }

    /// A connection on which nothing was said.
    fn silent(&self) -> UnixStream {
        patient(UnixStream::connect(&self.unix).expect("the server listens"))
    }
}

/// A server that does not read must not block the mischief.
fn patient(stream: UnixStream) -> UnixStream {
    let time = Some(Duration::from_millis(100));
    stream.set_write_timeout(time).and_then(|()| stream.set_read_timeout(time)).expect("it is no zero");
    stream
}

/// Says it, or as much of it as the server takes.
fn say(stream: &mut impl Write, said: &[u8]) {
    // The server may have had enough of the client.
    let _ = stream.write_all(said);
}

/// `count` large reads, all over the disk.
fn large_reads(count: u64) -> Vec<u8> {
    let read = |cookie| request(0, READ, cookie, (cookie % 15) << 25, 32 * MIB);
    (0..count).flat_map(read).collect()
}

/// `count` requests, which differ in their cookie.
fn many(count: u64, request: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(request).collect()
}

/// A connection that offers structured replies and wants to know the allocation.
fn structured(victim: &Victim) -> UnixStream {
    let mut stream = victim.silent();
    let said =
        [client_flags(0b11), option(8, &[]), contexts(10, "d", &["base:allocation"]), choose(7, "d", &[])];
    say(&mut stream, &said.concat());
    let _ = stream.read(&mut [0; 512]);
    stream
}

/// A kind of mischief.
type Mischief = fn(&Victim);

/// All kinds, each bounded.
const KINDS: [(&str, Mischief); 25] = [
    ("large reads abandoned at a Unix socket", |victim| say(&mut victim.unix(), &large_reads(1000))),
    ("large reads abandoned over TCP", |victim| say(&mut victim.tcp(), &large_reads(1000))),
    ("large reads abandoned after a half-close", |victim| {
        let mut stream = victim.tcp();
        say(&mut stream, &large_reads(1000));
        let _ = stream.shutdown(Shutdown::Write);
    }),
    ("large reads abandoned by a reset", |victim| {
        let mut stream = victim.tcp();
        say(&mut stream, &large_reads(1000));
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("it is a TCP socket");
    }),
    ("large reads never taken", |victim| {
        let mut streams: Vec<_> = (0..20).map(|_| victim.unix()).collect();
        streams.iter_mut().for_each(|stream| say(stream, &large_reads(20)));
        polite(victim, 20);
    }),
    ("large reads taken slowly", |victim| {
        let mut streams: Vec<_> = (0..8).map(|_| victim.unix()).collect();
        streams.iter_mut().for_each(|stream| say(stream, &large_reads(20)));
        // Most clients wait for shared memory, so each of their reads times out after 100 ms.
        for _ in 0..10 {
            streams.iter_mut().for_each(|stream| drop(stream.read(&mut [0; 100])));
        }
    }),
    ("handshakes byte by byte", |victim| {
        let mut streams: Vec<_> = (0..60).map(|_| victim.silent()).collect();
        for byte in client_flags(0b11) {
            streams.iter_mut().for_each(|stream| say(stream, &[byte]));
        }
    }),
    ("options byte by byte", |victim| {
        let mut streams: Vec<_> = (0..40).map(|_| victim.silent()).collect();
        streams.iter_mut().for_each(|stream| say(stream, &client_flags(0b11)));
        for byte in choose(7, "d", &[]) {
            streams.iter_mut().for_each(|stream| say(stream, &[byte]));
        }
    }),
    ("requests byte by byte", |victim| {
        let mut streams: Vec<_> = (0..40).map(|_| victim.unix()).collect();
        for byte in &request(0, READ, 1, 0, 4096)[..27] {
            streams.iter_mut().for_each(|stream| say(stream, &[*byte]));
        }
    }),
    ("payloads byte by byte", |victim| {
        let mut streams: Vec<_> = (0..8).map(|_| victim.unix()).collect();
        streams.iter_mut().for_each(|stream| say(stream, &request(0, WRITE, 1, 0, 32 * MIB)));
        for _ in 0..50 {
            streams.iter_mut().for_each(|stream| say(stream, &[7]));
        }
    }),
    ("garbage in place of requests", |victim| {
        (0..100).for_each(|turn| say(&mut victim.unix(), &vec![turn; 4096]));
    }),
    ("lengths that are too large", |victim| {
        let reads = many(500, |cookie| request(0, READ, cookie, 0, u32::MAX));
        say(&mut victim.unix(), &reads);
        (0..50).for_each(|_| say(&mut victim.unix(), &request(0, WRITE, 1, 0, u32::MAX)));
    }),
    ("places that are out of range", |victim| {
        let reads = many(3000, |cookie| request(0, READ, cookie, u64::MAX - 511 - cookie * 512, 4096));
        say(&mut victim.unix(), &reads);
    }),
    ("unknown commands and flags", |victim| {
        let commands = many(3000, |cookie| request(cookie as u16, 8 + cookie as u16, cookie, 0, 0));
        say(&mut victim.unix(), &commands);
    }),
    ("a flood of options", |victim| {
        for _ in 0..20 {
            let said =
                [client_flags(0b11), many(300, |number| option(100 + number as u32, &[1; 500]))].concat();
            say(&mut victim.silent(), &said);
        }
    }),
    ("a flood of lists", |victim| {
        let said = [client_flags(0b11), many(120, |_| option(3, &[]))].concat();
        (0..40).for_each(|_| say(&mut victim.silent(), &said));
    }),
    ("a flood of connections", |victim| (0..500).for_each(|_| drop(victim.silent()))),
    ("a flood of flushes and forced writes", |victim| {
        let write = |cookie: u64| [request(FUA, WRITE, cookie, cookie * 4096, 4096), vec![7; 4096]].concat();
        let said = many(1000, |cookie| {
            if cookie.is_multiple_of(2) { request(0, FLUSH, cookie, 0, 0) } else { write(cookie) }
        });
        say(&mut victim.unix(), &said);
    }),
    ("a flood of zeros and trims", |victim| {
        let command = |cookie: u64| if cookie.is_multiple_of(2) { TRIM } else { WRITE_ZEROES };
        say(
            &mut victim.unix(),
            &many(3000, |cookie| request(0, command(cookie), cookie, cookie * 4096, MIB)),
        );
    }),
    ("huge zeros without holes", |victim| {
        say(&mut victim.unix(), &many(40, |cookie| request(NO_HOLE, WRITE_ZEROES, cookie, 0, 256 * MIB)));
    }),
    ("writes cut in their payload", |victim| {
        for _ in 0..30 {
            say(&mut victim.unix(), &[request(0, WRITE, 1, 0, 32 * MIB), vec![7; 100_000]].concat());
        }
    }),
    ("a flood of questions for the allocation", |victim| {
        let mut stream = structured(victim);
        say(&mut stream, &many(3000, |cookie| request(0, BLOCK_STATUS, cookie, 0, 256 * MIB)));
    }),
    ("one cookie for all requests", |victim| {
        let mut stream = victim.unix();
        say(&mut stream, &request(0, READ, 7, 0, MIB).repeat(500));
        let _ = stream.read(&mut [0; 4096]);
    }),
    ("a disconnect behind a thousand reads", |victim| {
        let mut stream = victim.unix();
        say(&mut stream, &[large_reads(1000), request(0, DISC, 0, 0, 0)].concat());
    }),
    ("seats held and not used", |victim| {
        let held: Vec<_> = (0..200).map(|_| victim.unix()).collect();
        polite(victim, 20);
        drop(held);
    }),
];

/// The longest of `reads` small reads over one connection, and one over a new connection.
fn polite(victim: &Victim, reads: u64) -> Duration {
    let mut stream = connect_by(|| UnixStream::connect(&victim.unix));
    (0..reads).map(|turn| read(&mut stream, turn)).max().unwrap_or_default().max(new_client(victim))
}

/// How long a small read takes.
#[allow(clippy::disallowed_methods, reason = "it is about how long people wait")]
fn read(stream: &mut UnixStream, turn: u64) -> Duration {
    let begun = Instant::now();
    say(stream, &request(0, READ, turn, turn * 7_919 % 50_000 * 4096, 4096));
    assert_eq!(hear(stream, 16), simple(OK, turn));
    hear(stream, 4096);
    begun.elapsed()
}

/// How long it takes to come and have a small read done.
#[allow(clippy::disallowed_methods, reason = "it is about how long people wait")]
fn new_client(victim: &Victim) -> Duration {
    let begun = Instant::now();
    read(&mut connect_by(|| UnixStream::connect(&victim.unix)), 0);
    begun.elapsed()
}

/// The longest wait of a polite client while another does mischief, and after it.
#[allow(clippy::disallowed_methods, reason = "two clients are there at a time")]
fn longest_wait(victim: &Victim, mischief: Mischief) -> Duration {
    let is_done = AtomicBool::new(false);
    let mut old = connect_by(|| UnixStream::connect(&victim.unix));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            mischief(victim);
            is_done.store(true, Ordering::Relaxed);
        });
        let (mut longest, mut left, mut turn) = (Duration::ZERO, AFTERWARDS, 0);
        while left > 0 {
            longest = longest.max(read(&mut old, turn));
            if turn % 32 == 0 {
                longest = longest.max(new_client(victim));
            }
            turn += 1;
            left -= u64::from(is_done.load(Ordering::Relaxed));
        }
        longest
    })
}

fn assert_nobody_waits(victim: impl Fn() -> Victim) {
    for (name, mischief) in KINDS {
        let waits = (0..3).map(|_| longest_wait(&victim(), mischief));
        let mut all = Vec::new();
        let is_short = waits.inspect(|wait| all.push(*wait)).any(|wait| wait <= LONGEST);
        assert!(is_short, "{name}: another client waits for {all:?}");
        eprintln!("{name}: {all:?}");
    }
}

#[test]
fn hostile_client_does_not_delay_others_of_a_node() {
    assert_nobody_waits(Victim::node);
}

#[test]
fn hostile_client_does_not_delay_others_of_an_emulated_disk() {
    assert_nobody_waits(Victim::disk);
}

#[test]
fn slow_readers_hold_no_more_than_the_shared_memory() {
    let victim = Victim::node();
    let large = 32 * MIB as usize;
    let mut streams: Vec<_> = (0..16).map(|_| victim.unix()).collect();
    streams.iter_mut().for_each(|stream| say(stream, &large_reads(4)));
    let mut polite = connect_by(|| UnixStream::connect(&victim.unix));
    let done = |polite_reads: u64| {
        let node = victim.node.as_ref().expect("it is a node").handle();
        node.view().books.count_of(Kind::Read).done - polite_reads
    };
    let filled = (1..100_000).find(|&turn| {
        read(&mut polite, turn);
        done(turn) as usize >= MEMORY / large
    });
    let filled = filled.expect("what may be held is filled");
    for turn in 1..=200 {
        read(&mut polite, turn);
    }
    assert_eq!(
        done(filled + 200) as usize,
        MEMORY / large,
        "of 64 reads of 32 MiB, that many are within the bound"
    );
    // A client that receives its replies continues, and so do others.
    drop(streams.split_off(1));
    let mut first = streams.pop().expect("there were sixteen");
    first.set_read_timeout(None).expect("it may wait");
    for _ in 0..4 {
        hear(&mut first, 16 + large);
    }
}
