//! Clients that are slow, wrong, dead or many, over real sockets: they harm themselves alone.

use crate::client::*;
use crate::server::{Setup, atlas, connect, connect_by, hear, null, setup, setup_with};
use headstack_host::{Address, Listener, Rules, Served, Server, Target};
use headstack_model::Nanos;
use headstack_nbd::{Export, Limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A short time; no client in time depends on being quicker.
const SOON: Nanos = Nanos(20_000_000);

/// Reads to the end. A connection that is closed with unread input ends by an error, which is an end too.
fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    heard
}

/// Whether the server still serves another client.
fn serves(setup: &Setup) -> bool {
    let mut stream = connect(&setup.path);
    stream.write_all(&request(0, READ, 5, 512, 512)).expect("it reads");
    hear(&mut stream, 16 + 512)[..16] == simple(OK, 5)
}

#[test]
fn stalled_handshake_is_disconnected() {
    // Long enough for those who do not stop, on a busy machine too.
    let setup = setup_with(null(), 64, Limits { handshake: Nanos::from_secs(1), ..Limits::default() });
    // In every state of the handshake.
    let said = [client_flags(0b11), option(3, &[]), choose(7, "d", &[])].concat();
    let mut streams: Vec<_> = (0..said.len())
        .map(|cut| {
            let mut stream = UnixStream::connect(&setup.path).expect("the server listens");
            stream.write_all(&said[..cut]).expect("it reads");
            stream
        })
        .collect();
    for stream in &mut streams {
        assert_eq!(rest(stream)[..18], greeting());
    }
    assert!(serves(&setup));
}

#[test]
fn incomplete_request_is_disconnected() {
    let setup = setup_with(null(), 16, Limits { request: SOON, ..Limits::default() });
    for (offset, length, sent) in [(0, 4096, 128), (0, 1 << 20, 5028), (1, 4096, 128), (0, 512, 27)] {
        let mut stream = connect(&setup.path);
        let said = [request(0, WRITE, 1, offset, length), vec![7; 5000]].concat();
        stream.write_all(&said[..sent]).expect("it reads");
        assert!(rest(&mut stream).is_empty());
    }
    assert!(serves(&setup));
}

#[test]
fn client_that_reads_no_replies_is_disconnected() {
    let setup = setup_with(null(), 16, Limits { held_bytes: 1 << 20, reply: SOON, ..Limits::default() });
    let mut stream = connect(&setup.path);
    let reads = request(0, READ, 1, 0, 65_536).repeat(1000);
    stream.write_all(&reads).expect("it reads");
    assert!(serves(&setup));
    // Waits for the other end to be closed, and reads nothing.
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut closed = [PollFd::new(&stream, PollFlags::empty())];
    assert_eq!(poll(&mut closed, Some(&minute)), Ok(1));
    assert!(closed[0].revents().contains(PollFlags::HUP));
    assert!(serves(&setup));
}

#[test]
fn nonsense_ends_only_its_own_connection() {
    let setup = setup(null(), 16);
    let mut good = connect(&setup.path);
    let nonsense = [
        b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec(),
        vec![0xff; 4096],
        request(0, WRITE, 1, 0, u32::MAX),
        vec![0; 28],
    ];
    for said in &nonsense {
        let mut stream = connect(&setup.path);
        // Earlier requests were valid, but a client that breaks the protocol gets no replies to them.
        stream.write_all(said).expect("it reads");
        assert!(rest(&mut stream).is_empty());
    }
    for said in [&nonsense[0], &nonsense[1]] {
        let mut stream = UnixStream::connect(&setup.path).expect("the server listens");
        stream.write_all(said).expect("it reads");
        assert_eq!(rest(&mut stream), greeting());
    }
    good.write_all(&request(0, FLUSH, 7, 0, 0)).expect("it reads");
    assert_eq!(hear(&mut good, 16), simple(OK, 7));
}

#[test]
fn rejections_keep_the_connection_in_step() {
    let setup = setup(null(), 16);
    let mut stream = connect(&setup.path);
    let mut said = Vec::new();
    let write = |cookie, offset, length: u32| {
        [request(0, WRITE, cookie, offset, length), vec![cookie as u8; length as usize]].concat()
    };
    said.extend(write(1, 1, 512));
    said.extend(write(2, 512 << 20, 4096));
    said.extend(write(3, 0, (33 << 20) + 512));
    said.extend(request(0, 77, 4, 0, 0));
    said.extend(request(0, READ, 5, 0, 0));
    said.extend(request(FAST_ZERO, WRITE_ZEROES, 6, 0, 512));
    said.extend(request(0, BLOCK_STATUS, 7, 0, 512));
    said.extend(write(8, 512, 512));
    stream.write_all(&said).expect("it reads");
    let errors = [(EINVAL, 1), (ENOSPC, 2), (EINVAL, 3), (EINVAL, 4), (EINVAL, 5), (ENOTSUP, 6), (EINVAL, 7)];
    for (error, cookie) in errors {
        assert_eq!(hear(&mut stream, 16), simple(error, cookie));
    }
    assert_eq!(hear(&mut stream, 16), simple(OK, 8));
    stream.write_all(&request(0, READ, 9, 0, 1024)).expect("it reads");
    assert_eq!(hear(&mut stream, 16), simple(OK, 9));
    assert!(hear(&mut stream, 1024) == [[0; 512], [8; 512]].concat(), "only the good write was done");
}

#[test]
fn flood_of_silent_clients_does_not_disturb_others() {
    let setup = setup(null(), 300);
    let mut good = connect(&setup.path);
    let flood: Vec<_> = (0..500).map(|_| UnixStream::connect(&setup.path)).collect();
    for cookie in 0..100 {
        good.write_all(&request(0, READ, cookie, 0, 4096)).expect("it reads");
        assert_eq!(hear(&mut good, 16 + 4096)[..16], simple(OK, cookie));
    }
    drop(flood);
    assert!(serves(&setup));
}

#[test]
fn pipeline_of_10_000_requests_is_answered() {
    let setup = setup(null(), 4);
    let mut stream = connect(&setup.path);
    let mut speaker = stream.try_clone().expect("a socket has two ends");
    std::thread::scope(|scope| {
        // A client cannot send all this before it receives: the server stops reading.
        #[allow(clippy::disallowed_methods, reason = "a client that speaks and listens at once")]
        scope.spawn(move || {
            for cookie in 0..10_000 {
                let length = if cookie % 100 == 0 { 1 << 20 } else { 4096 };
                speaker.write_all(&request(0, READ, cookie, 0, length)).expect("it reads");
            }
        });
        let mut met = vec![false; 10_000];
        for _ in 0..10_000 {
            let head = hear(&mut stream, 16);
            let cookie = u64::from_be_bytes(head[8..].try_into().expect("there are eight"));
            assert_eq!(head, simple(OK, cookie));
            hear(&mut stream, if cookie % 100 == 0 { 1 << 20 } else { 4096 });
            assert!(!std::mem::replace(&mut met[cookie as usize], true), "{cookie} is answered once");
        }
    });
}

#[test]
fn replies_beyond_the_memory_limit_come_one_by_one() {
    let setup = setup(null(), 4);
    let mut stream = connect(&setup.path);
    let most = 32 << 20;
    stream.write_all(&request(0, READ, 1, 0, most).repeat(5)).expect("it reads");
    for _ in 0..5 {
        assert_eq!(hear(&mut stream, 16), simple(OK, 1));
        hear(&mut stream, most as usize);
    }
}

#[test]
fn half_closed_client_receives_every_reply() {
    let setup = setup(atlas(), 4);
    let mut stream = connect(&setup.path);
    for cookie in 0..100 {
        stream.write_all(&request(0, READ, cookie, cookie << 20, 4096)).expect("it reads");
    }
    stream.shutdown(Shutdown::Write).expect("it is open");
    let heard = replies(&rest(&mut stream), |_| 4096);
    assert_eq!(heard.len(), 100);
    assert!(heard.iter().all(|reply| reply.error == OK));
}

#[test]
fn disconnect_closes_after_pending_replies() {
    let setup = setup(atlas(), 4);
    let mut stream = connect(&setup.path);
    let said = [request(0, READ, 1, 1 << 30, 4096), request(0, DISC, 2, 0, 0), request(0, FLUSH, 3, 0, 0)];
    stream.write_all(&said.concat()).expect("it reads");
    let heard = replies(&rest(&mut stream), |_| 4096);
    assert_eq!(heard.iter().map(|reply| (reply.cookie, reply.error)).collect::<Vec<_>>(), [(1, OK)]);
}

#[test]
fn clients_that_die_in_mid_request_leave_no_trace() {
    let limits = Limits { requests: 2, ..Limits::default() };
    let setup = setup_with(atlas(), 8, limits);
    let write = [request(0, WRITE, 1, 0, 200_000), vec![1; 200_000]].concat();
    for turn in 0..1000_usize {
        let mut stream = connect(&setup.path);
        let reads: Vec<u8> = (0..8)
            .flat_map(|cookie| request(0, READ, cookie, (turn as u64 * 8 + cookie) << 18, 4096))
            .collect();
        let said = if turn % 3 == 0 { &write[..turn * 197 + 1] } else { &reads[..turn % reads.len() + 1] };
        stream.write_all(said).expect("it reads");
    }
    // If any of the eight slots were lost, no client would get one here.
    assert!(serves(&setup));
}

#[test]
fn reset_tcp_connections_leave_no_trace() {
    let setup = setup(atlas(), 1);
    let handle = setup.disk.handle();
    let served = Served {
        export: Export::new("d", handle.volumes()[0].bytes()),
        target: Target::Disk { disk: handle, volume: 0 },
    };
    let any = "127.0.0.1:0".parse().expect("it is an address");
    let listener = Listener::bind(&any).expect("a port is free");
    let rules = Rules { connections: 4, ..Rules::default() };
    let server = Server::start(vec![listener], vec![served], rules).expect("it can be served");
    let [Address::Tcp(address)] = *server.addresses() else { panic!("{:?}", server.addresses()) };
    #[allow(clippy::disallowed_methods, reason = "a client has a socket")]
    let connect = || connect_by(|| TcpStream::connect(address));
    for turn in 0..200_u64 {
        let mut stream = connect();
        for cookie in 0..16 {
            let offset = (turn * 16 + cookie) * 1_000_448;
            stream.write_all(&request(0, READ, cookie, offset, 65_536)).expect("it reads");
        }
        // Closed like this, the other end hears of an error and not of an end.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("it is a TCP socket");
    }
    // If any of the four slots were lost, no client would get one here; and both servers have the same disk.
    let mut stream = connect();
    stream.write_all(&[request(0, WRITE, 1, 0, 4096), vec![9; 4096]].concat()).expect("it reads");
    assert_eq!(hear(&mut stream, 16), simple(OK, 1));
    let mut other = crate::server::connect(&setup.path);
    other.write_all(&request(0, READ, 2, 0, 4096)).expect("it reads");
    assert_eq!(hear(&mut other, 16), simple(OK, 2));
    assert!(hear(&mut other, 4096) == vec![9; 4096]);
}
