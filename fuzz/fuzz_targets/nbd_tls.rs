//! NBD behind STARTTLS: what a client says within TLS comes to the same as what it says without, whatever it is and the pieces that
//! records come in; and of records that were tampered with nothing is taken.
//!
//! The client is one of rustls; the server's certificate and key stand in `nbd_tls.pem` and are good for nothing else. The
//! input is three bytes for the way, and then a list of options and requests in short form, nine bytes each; where records are
//! tampered with, first up to three of places and bits, three bytes each.

#![no_main]

use headstack_model::Instant;
use headstack_nbd::{
    Ending, Export, Exports, Handshake, Limits, Request, Session, Tls, Transport, Wire,
};
use headstack_nbd::{Answer, Operation, StatusExtent};
use libfuzzer_sys::fuzz_target;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, LazyLock};

static PEM: &[u8] = include_bytes!("nbd_tls.pem");

static SERVER: LazyLock<Tls> = LazyLock::new(|| {
    let chain = vec![CertificateDer::from_pem_slice(PEM).expect("it is a certificate")];
    let key = PrivateKeyDer::from_pem_slice(PEM).expect("it is a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("there are versions");
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).expect("they go together");
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Tls { config: Arc::new(config), required: true }
});

static CLIENTS: LazyLock<[Arc<ClientConfig>; 2]> = LazyLock::new(|| [client(&TLS13), client(&TLS12)]);

fn client(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(PEM).expect("it is a certificate")).expect("it can be trusted");
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_protocol_versions(&[version]).expect("it is known");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [&b"IHAVEOPT"[..], &number.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// What the client says: some options, a choice, and requests.
fn conversation(options: usize, mut input: &[u8]) -> Vec<u8> {
    let mut said = Vec::new();
    let mut number = 0;
    let go = option(7, &[0; 6]);
    while let Some(([kind, fields @ ..], rest)) = input.split_first_chunk::<9>() {
        input = rest;
        let [flags, a, b, c, d, e, f, g] = *fields;
        number += 1;
        if number == options + 1 {
            said.extend(&go);
        }
        if number <= options {
            // STARTTLS is answered otherwise within TLS.
            let wanted = u32::from(kind % 16);
            said.extend(option(
                if wanted == 5 { 8 } else { wanted },
                &fields[..usize::from(flags % 9).min(8)],
            ));
            continue;
        }
        let offset = u64::from(u16::from_be_bytes([a, b])) * if c & 1 == 0 { 512 } else { 100 };
        let length = u32::from(u16::from_be_bytes([d, e])) * if f & 1 == 0 { 512 } else { 3 } % 300_000;
        let command = u16::from(kind % 10);
        said.extend(0x2560_9513_u32.to_be_bytes());
        said.extend([u16::from(flags), command].map(u16::to_be_bytes).concat());
        said.extend([u64::from(g), offset].map(u64::to_be_bytes).concat());
        said.extend(length.to_be_bytes());
        if command == 1 {
            // All of the payload, or so little that the next requests are taken for it.
            said.extend(vec![g; if *kind < 230 { length as usize } else { 7 }]);
        }
    }
    if number <= options {
        said.extend(&go);
    }
    said
}

enum Side {
    Greeting(Transport<Handshake>),
    Serving(Transport<Session>),
    /// Nobody is there any more.
    Gone,
}

/// A server's side of a connection, and its disk.
struct Server {
    side: Side,
    under_way: VecDeque<Request>,
    asked: Vec<Operation>,
}

impl Server {
    /// A server whose greeting was read, and answered.
    fn greeted(tls: Option<Tls>) -> Server {
        let mut export = Export::new("disk", 1 << 20);
        export.blocks.maximum = 256 << 10;
        let exports = Exports::new(vec![export]).expect("it can be exported");
        let limits =
            Limits { requests: 3, held_bytes: 16 << 10, payload_bytes: 1 << 20, ..Limits::default() };
        let handshake = Handshake::new(exports, limits.clone(), Instant::ZERO).with_tls(tls);
        let side = Side::Greeting(Transport::new(handshake, &limits));
        let mut server = Server { side, under_way: VecDeque::new(), asked: Vec::new() };
        server.output(usize::MAX);
        server.put(&3_u32.to_be_bytes(), usize::MAX);
        server
    }

    fn wire(&mut self) -> &mut dyn Wire {
        match &mut self.side {
            Side::Greeting(transport) => transport,
            Side::Serving(transport) => transport,
            Side::Gone => unreachable!("it goes only to come back as another"),
        }
    }

    /// Puts in as much as it takes, at most so many at a time.
    fn put(&mut self, bytes: &[u8], piece: usize) -> usize {
        if !self.wire().wants_input() {
            return 0;
        }
        let space = self.wire().input_space();
        assert!(!space.is_empty(), "who wants input has space for it");
        let count = space.len().min(bytes.len()).min(piece);
        space[..count].copy_from_slice(&bytes[..count]);
        if count > 0 {
            self.wire().filled(Instant::ZERO, count);
        }
        count
    }

    /// Whether it would read some of these now: what was refused may have made room, and is neither asked nor answered yet.
    fn listens_to(&mut self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.wire().wants_input()
    }

    /// What was asked, and how it ended.
    fn outcome(mut self) -> (Vec<Operation>, Option<Ending>) {
        let ending = self.wire().ending().cloned();
        (self.asked, ending)
    }

    fn output(&mut self, piece: usize) -> Vec<u8> {
        let output = self.wire().output();
        let output = output[..output.len().min(piece)].to_vec();
        self.wire().sent(Instant::ZERO, output.len());
        output
    }

    /// Goes over to the transmission, and takes what is asked; whether there was anything.
    fn turn(&mut self) -> bool {
        let before = self.asked.len();
        match std::mem::replace(&mut self.side, Side::Gone) {
            Side::Greeting(handshake) if handshake.machine.chosen().is_some() => {
                let session = handshake.with(Instant::ZERO, |handshake| handshake.into_session(Instant::ZERO));
                self.side = Side::Serving(session.expect("an export was chosen"));
                self.turn();
                return true;
            }
            side => self.side = side,
        }
        if let Side::Serving(session) = &mut self.side {
            while let Some(request) = session.next_request() {
                self.asked.push(request.operation.clone());
                self.under_way.push_back(request);
            }
            assert!(self.under_way.len() <= 3 && session.machine.in_flight() == self.under_way.len());
        }
        self.asked.len() > before
    }

    /// Answers the oldest request; whether there was one.
    fn answer(&mut self) -> bool {
        let (Side::Serving(session), Some(request)) = (&mut self.side, self.under_way.pop_front()) else {
            return false;
        };
        let session = &mut session.machine;
        match request.operation {
            Operation::Read { .. } => session.answer_read(Instant::ZERO, request.handle, |room| {
                room.fill(7);
                Ok(())
            }),
            Operation::Allocation { bytes, .. } => {
                let told = vec![StatusExtent { bytes, hole: true }];
                session.answer(Instant::ZERO, request.handle, Ok(Answer::Allocation(told)));
            }
            _ => session.answer(Instant::ZERO, request.handle, Ok(Answer::Done)),
        }
        true
    }
}

/// Says it without TLS.
fn plain(said: &[u8], piece: usize) -> (Vec<Operation>, Option<Ending>) {
    let mut server = Server::greeted(None);
    let (mut rest, mut is_told) = (said, false);
    loop {
        let count = server.put(rest, piece);
        rest = &rest[count..];
        let is_asked = server.turn();
        let is_heard = !server.output(piece).is_empty();
        if count > 0 || is_asked || is_heard || server.listens_to(rest) || server.answer() {
            continue;
        }
        assert!(rest.is_empty() || server.wire().ending().is_some(), "it gets stuck");
        if is_told || !rest.is_empty() {
            return server.outcome();
        }
        is_told = true;
        server.wire().input_ended();
    }
}

/// Says it within TLS, of whose records some bits are turned; what was asked, and how it ended.
fn secret(
    config: &Arc<ClientConfig>,
    said: &[u8],
    piece: usize,
    turned: &[(usize, u8)],
) -> (Vec<Operation>, Option<Ending>) {
    let mut server = Server::greeted(Some(SERVER.clone()));
    server.put(&option(5, &[]), usize::MAX);
    server.output(usize::MAX);
    let name = ServerName::try_from("localhost").expect("it is a name");
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("the configuration is good");
    client.set_buffer_limit(None);
    let (mut unread, mut written, mut is_said, mut is_told, mut is_lost) =
        (Vec::new(), 0, false, false, false);
    loop {
        if !client.is_handshaking() && !is_said {
            client.writer().write_all(said).expect("it has room");
            client.send_close_notify();
            is_said = true;
        }
        let from = unread.len();
        while !is_lost && client.wants_write() {
            client.write_tls(&mut unread).expect("a vector takes all");
        }
        for (place, bits) in turned {
            if let Some(byte) = place.checked_sub(written).and_then(|at| unread[from..].get_mut(at)) {
                *byte ^= bits;
            }
        }
        written += unread.len() - from;
        let count = server.put(&unread, piece);
        unread.drain(..count);
        let mut is_moved = count > 0 || server.turn();
        let output = server.output(piece);
        let mut part = &output[..];
        while !part.is_empty() && !is_lost {
            client.read_tls(&mut part).expect("a slice can be read");
            match client.process_new_packets() {
                Ok(state) => {
                    let mut heard = vec![0; state.plaintext_bytes_to_read()];
                    std::io::Read::read_exact(&mut client.reader(), &mut heard).expect("it is there");
                }
                Err(error) => {
                    assert!(!turned.is_empty(), "the server speaks TLS: {error}");
                    is_lost = true;
                }
            }
        }
        is_moved |= !output.is_empty();
        if is_moved || server.listens_to(&unread) || server.answer() {
            continue;
        }
        assert!(unread.is_empty() || server.wire().ending().is_some(), "it gets stuck");
        if is_told || server.wire().is_over() {
            server.wire().handle_timeout(Instant::from_secs(1 << 30));
            server.turn();
            return server.outcome();
        }
        is_told = true;
        server.wire().input_ended();
    }
}

fuzz_target!(|input: &[u8]| {
    let Some(([way, options, piece], mut rest)) = input.split_first_chunk::<3>() else { return };
    let mut turned = Vec::new();
    if way & 1 == 1 {
        for _ in 0..1 + way % 3 {
            let Some(([high, low, bits], behind)) = rest.split_first_chunk::<3>() else { return };
            turned.push((usize::from(u16::from_be_bytes([*high, *low])), bits | 1));
            rest = behind;
        }
    }
    let said = conversation(usize::from(options % 4), rest);
    let piece = if *piece == 0 { usize::MAX } else { usize::from(*piece).pow(2) };
    let (asked, ending) = plain(&said, usize::MAX);
    let config = &CLIENTS[usize::from(way >> 1 & 1)];
    let (heard, how) = secret(config, &said, piece, &turned);
    if turned.is_empty() {
        assert_eq!((heard, how), (asked, ending));
    } else {
        assert!(heard.len() <= asked.len() && heard[..] == asked[..heard.len()], "what nobody said");
    }
});
