//! TLS: what crosses within it, and what must not.

use crate::authority::{Authority, have, run};
use crate::client::*;
use crate::server::{Setup, null, setup_as};
use headstack_host::{Answer, ClientCertificates, Operation, Rules, TlsSettings};
use headstack_model::{Instant, Nanos};
use headstack_nbd::{Breach, Ending, Handshake, Limits, Machine, Session, Tls, Transport, Wire};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const ACK: u32 = 1;
const INVALID: u32 = 0x8000_0003;
const UNSUP: u32 = 0x8000_0001;
const TLS_REQD: u32 = 0x8000_0005;

fn starttls() -> Vec<u8> {
    option(5, &[])
}

/// A server that speaks TLS.
fn serve(settings: &TlsSettings) -> Setup {
    let tls = Some(settings.load().expect("openssl made the files"));
    setup_as(null(), Rules { tls, ..Rules::default() })
}

/// A connection on which TLS was agreed on.
fn agree(setup: &Setup) -> UnixStream {
    let mut stream = UnixStream::connect(&setup.path).expect("the server listens");
    assert_eq!(crate::server::hear(&mut stream, 18), greeting());
    stream.write_all(&[client_flags(0b11), starttls()].concat()).expect("it reads");
    assert_eq!(crate::server::hear(&mut stream, 20), option_reply(5, ACK, &[]));
    stream
}

fn secure(setup: &Setup, client: ClientConnection) -> StreamOwned<ClientConnection, UnixStream> {
    StreamOwned::new(client, agree(setup))
}

/// Chooses the default export within TLS.
fn go(stream: &mut (impl Read + Write)) {
    stream.write_all(&choose(7, "", &[])).expect("it reads");
    let heard = crate::server::hear(stream, 32 + 34 + 20);
    assert_eq!(heard[66..], option_reply(7, ACK, &[]));
}

#[test]
fn bytes_cross_tls_unchanged() {
    let Some(authority) = Authority::new() else { return };
    let setup = serve(&authority.settings(ClientCertificates::Required, true));
    let mut stream = secure(&setup, authority.client(Some("client")));
    go(&mut stream);
    let data: Vec<u8> = (0..3 << 20).map(|at: u32| (at / 7) as u8).collect();
    // Longer than any record, and several together.
    stream.write_all(&request(0, WRITE, 1, 4096, 3 << 20)).expect("it reads");
    stream.write_all(&data).expect("it reads");
    stream.write_all(&request(0, FLUSH, 2, 0, 0)).expect("it reads");
    let mut heard = [crate::server::hear(&mut stream, 16), crate::server::hear(&mut stream, 16)];
    heard.sort();
    assert_eq!(heard, [simple(OK, 1), simple(OK, 2)]);
    stream.write_all(&request(0, READ, 3, 4096, 3 << 20)).expect("it reads");
    assert_eq!(crate::server::hear(&mut stream, 16), simple(OK, 3));
    assert!(crate::server::hear(&mut stream, 3 << 20) == data);
    stream.write_all(&request(0, DISC, 4, 0, 0)).expect("it reads");
    // An end within TLS, which only the server can have sent.
    assert_eq!(stream.read(&mut [0; 1]).expect("the end is said"), 0);
}

#[test]
fn real_clients_connect_over_tls() {
    let Some(authority) = Authority::new() else { return };
    let setup = serve(&authority.settings(ClientCertificates::Required, true));
    let (path, folder) = (setup.path.display(), authority.folder().display());
    let uri = format!("nbds+unix:///d?socket={path}&tls-certificates={folder}");
    if have(&["nbdinfo"]) {
        assert_eq!(run("nbdinfo", &["--size", &uri]), (true, "536870912\n".to_string()));
        let (success, text) = run("nbdinfo", &["--is", "tls", &uri]);
        assert!(success, "{text}");
        let plain = format!("nbd+unix:///d?socket={path}");
        let (success, text) = run("nbdinfo", &["--size", &plain]);
        assert!(!success && text.contains("TLS"), "{text}");
    }
    if have(&["qemu-img"]) {
        let object = format!("tls-creds-x509,id=tls,dir={folder},endpoint=client");
        let image = format!(
            "driver=nbd,server.type=unix,server.path={path},export=d,tls-creds=tls,tls-hostname=localhost"
        );
        let (success, text) = run("qemu-img", &["info", "--object", &object, "--image-opts", &image]);
        assert!(success && text.contains("512 MiB"), "{text}");
    }
    if have(&["nbdcopy", "qemu-io"]) {
        let file = authority.path("data");
        let file = file.display().to_string();
        std::fs::File::create_new(authority.path("data"))
            .and_then(|file| file.set_len(17 << 20))
            .expect("there is room");
        let (success, text) =
            run("qemu-io", &["-f", "raw", "-c", "write -P 77 0 16M", "-c", "write -P 3 16M 1M", &file]);
        assert!(success, "{text}");
        let (success, text) = run("nbdcopy", &[&file, &uri]);
        assert!(success, "{text}");
        let back = authority.path("back").display().to_string();
        let (success, text) = run("nbdcopy", &[&uri, &back]);
        assert!(success, "{text}");
        let (success, text) = run("cmp", &["-n", &(17 << 20).to_string(), &file, &back]);
        assert!(success, "{text}");
    }
}

#[test]
fn client_without_a_valid_certificate_is_rejected() {
    let Some(authority) = Authority::new() else { return };
    let stranger = Authority::new().expect("there was one before");
    // One that the same authority signed, for servers.
    authority.sign("wrong", "server", "alice", Some("ca"));
    // Who knows the server, and not the other way round.
    std::fs::copy(stranger.path("client-cert.pem"), authority.path("mallory-cert.pem"))
        .expect("there is room");
    std::fs::copy(stranger.path("client-key.pem"), authority.path("mallory-key.pem")).expect("there is room");
    let required = serve(&authority.settings(ClientCertificates::Required, true));
    let optional = serve(&authority.settings(ClientCertificates::Optional, true));
    let none = serve(&authority.settings(ClientCertificates::None, true));
    let serves = |setup: &Setup, shown| {
        let mut stream = secure(setup, authority.client(shown));
        stream.write_all(&choose(7, "", &[])).is_ok() && stream.read(&mut [0; 1]).is_ok_and(|bytes| bytes > 0)
    };
    for (setup, expected) in [
        (&required, [true, false, false, false]),
        (&optional, [true, true, false, false]),
        (&none, [true; 4]),
    ] {
        let shown = [Some("client"), None, Some("mallory"), Some("wrong")];
        assert_eq!(shown.map(|shown| serves(setup, shown)), expected);
    }
}

#[test]
fn wrong_tls_file_is_rejected_by_its_setting() {
    let Some(authority) = Authority::new() else { return };
    let good = authority.settings(ClientCertificates::Required, true);
    let error = |settings: TlsSettings| settings.load().expect_err("it is wrong").to_string();
    let text = error(TlsSettings { certificate: authority.path("nothing"), ..good.clone() });
    assert!(text.starts_with("certificate: ") && text.contains("nothing"), "{text}");
    let text = error(TlsSettings { certificate: authority.path("config"), ..good.clone() });
    assert!(text.contains("no certificate"), "{text}");
    let text = error(TlsSettings { key: authority.path("client-key.pem"), ..good.clone() });
    assert!(text.starts_with("key: "), "{text}");
    let text = error(TlsSettings { client_ca: None, ..good.clone() });
    assert!(text.contains("client_ca") && text.contains("required"), "{text}");
    let usual = TlsSettings { clients: None, ..good };
    usual.load().expect("with an authority, clients must show certificates");
}

/// A handshake with TLS, and the bytes of its client's TLS.
fn transport(authority: &Authority, required: bool) -> (Transport<Handshake>, Tls) {
    let settings = authority.settings(ClientCertificates::Optional, required);
    let tls = settings.load().expect("openssl made the files");
    let handshake = Handshake::new(exports(), limits(), Instant::ZERO).with_tls(Some(tls.clone()));
    let mut transport = Transport::new(handshake, &limits());
    assert_eq!(get(&mut transport, Instant::ZERO), greeting());
    (transport, tls)
}

/// Says something without TLS and hears the answer.
fn say(transport: &mut Transport<Handshake>, bytes: &[u8]) -> Vec<u8> {
    put(transport, Instant::ZERO, bytes, usize::MAX);
    get(transport, Instant::ZERO)
}

fn kinds(bytes: &[u8]) -> Vec<u32> {
    option_replies(bytes).into_iter().map(|(_, kind, _)| kind).collect()
}

/// Both ends say what they have to say until neither has more, or the server takes no more, which is then left unread; what the
/// client heard.
fn exchange<W: Machine>(
    (client, unread): (&mut ClientConnection, &mut Vec<u8>),
    server: &mut Transport<W>,
    said: &[u8],
    piece: &mut impl FnMut() -> usize,
) -> Vec<u8> {
    let (mut heard, mut rest) = (Vec::new(), said);
    loop {
        let mut moved = false;
        if !client.is_handshaking() && !rest.is_empty() {
            let count = rest.len().min(piece());
            client.writer().write_all(&rest[..count]).expect("it has room");
            rest = &rest[count..];
            moved = true;
        }
        while client.wants_write() {
            client.write_tls(unread).expect("a vector takes all");
            moved = true;
        }
        let count = put(server, Instant::ZERO, unread, piece());
        unread.drain(..count);
        moved |= count > 0;
        let output = server.output();
        let count = output.len().min(piece());
        let mut part = &output[..count];
        while !part.is_empty() {
            client.read_tls(&mut part).expect("a slice can be read");
            client.process_new_packets().expect("the server speaks TLS");
            // For now there is no more.
            let _ = client.reader().read_to_end(&mut heard);
        }
        server.sent(Instant::ZERO, count);
        moved |= count > 0;
        if !moved {
            return heard;
        }
    }
}

#[test]
fn options_agreed_before_tls_are_discarded() {
    let Some(authority) = Authority::new() else { return };
    let (mut server, _) = transport(&authority, false);
    say(
        &mut server,
        &[client_flags(0b11), option(8, &[]), contexts(10, "disk", &["base:allocation"])].concat(),
    );
    assert_eq!(kinds(&say(&mut server, &starttls())), [ACK]);
    let (mut client, mut unread) = (authority.client(None), Vec::new());
    let heard = exchange(
        (&mut client, &mut unread),
        &mut server,
        &contexts(10, "disk", &["base:allocation"]),
        &mut || 1 << 20,
    );
    assert_eq!(kinds(&heard), [INVALID], "structured replies must be asked for again");
    let heard = exchange((&mut client, &mut unread), &mut server, &starttls(), &mut || 1 << 20);
    assert_eq!(kinds(&heard), [INVALID], "there is TLS already");
    exchange((&mut client, &mut unread), &mut server, &choose(7, "disk", &[]), &mut || 1 << 20);
    let mut session =
        server.with(Instant::ZERO, |handshake| handshake.into_session(Instant::ZERO)).expect("it is chosen");
    let heard =
        exchange((&mut client, &mut unread), &mut session, &request(0, WRITE, 1, 1, 0), &mut || 1 << 20);
    assert!(heard.is_empty());
    assert_eq!(session.next_request(), None, "it is refused");
    assert_eq!(exchange((&mut client, &mut unread), &mut session, &[], &mut || 1 << 20), simple(EINVAL, 1));
}

#[test]
fn bytes_injected_before_tls_are_rejected() {
    let Some(authority) = Authority::new() else { return };
    for injected in [vec![0], option(8, &[]), choose(7, "disk", &[])] {
        let (mut server, _) = transport(&authority, false);
        say(&mut server, &client_flags(0b11));
        let heard = say(&mut server, &[starttls(), injected.clone()].concat());
        assert!(heard.is_empty(), "{heard:?}");
        let expected = Ending::Broken(Breach::BeforeTls { bytes: injected.len() });
        assert_eq!(server.ending(), Some(&expected));
        assert!(server.is_over() && !server.wants_input());
    }
    // What comes after the answer must be TLS.
    let (mut server, _) = transport(&authority, false);
    say(&mut server, &[client_flags(0b11), starttls()].concat());
    say(&mut server, &choose(7, "disk", &[]));
    let Some(Ending::Broken(Breach::Tls { .. })) = server.ending() else { panic!("{:?}", server.ending()) };
    assert_eq!(server.machine.chosen(), None);
    assert!(server.is_over());
}

#[test]
fn required_tls_rejects_every_option_before_it() {
    let Some(authority) = Authority::new() else { return };
    let (mut server, _) = transport(&authority, true);
    let said =
        [option(3, &[]), choose(6, "disk", &[]), choose(7, "disk", &[]), option(8, &[]), option(99, b"x")];
    let heard = say(&mut server, &[client_flags(0b11), said.concat()].concat());
    assert_eq!(kinds(&heard), [TLS_REQD; 5]);
    let heard = say(&mut server, &option(5, b"x"));
    assert_eq!(kinds(&heard), [INVALID]);
    assert_eq!(kinds(&say(&mut server, &starttls())), [ACK]);
    let (mut server, _) = transport(&authority, true);
    assert!(say(&mut server, &[client_flags(0b11), option(1, b"disk")].concat()).is_empty());
    assert_eq!(server.ending(), Some(&Ending::Broken(Breach::TlsRequired)));
    let (mut server, _) = transport(&authority, true);
    assert_eq!(kinds(&say(&mut server, &[client_flags(0b11), option(2, &[])].concat())), [ACK]);
    let mut server = greeted(0b11);
    assert_eq!(kinds(&hear(&mut server, &starttls())), [UNSUP], "where it is not spoken");
}

#[test]
fn tls_records_are_accepted_in_any_pieces() {
    let Some(authority) = Authority::new() else { return };
    for seed in 0..20 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let most = [1, 7, 300, 20_000, 200_000][seed as usize % 5];
        let mut piece = || random.random_range(1..=most);
        let (mut server, _) = transport(&authority, true);
        say(&mut server, &[client_flags(0b11), starttls()].concat());
        let (mut client, mut unread) = (authority.client(Some("client")), Vec::new());
        client.set_buffer_limit(None);
        exchange((&mut client, &mut unread), &mut server, &choose(7, "disk", &[]), &mut piece);
        let session = server.with(Instant::ZERO, |handshake| handshake.into_session(Instant::ZERO));
        let mut session: Transport<Session> = session.expect("it is chosen");
        let longest = (most as u32 * 512).min(200 << 10);
        let write = |turn: u64| {
            let length = if turn.is_multiple_of(3) { 512 } else { longest };
            [request(0, WRITE, turn, 0, length), vec![turn as u8; length as usize]].concat()
        };
        let read = |turn: u64| request(0, READ, turn, 0, longest);
        let mut rest: Vec<u8> = (0..12).flat_map(write).collect();
        let mut pending = 0;
        let mut heard = Vec::new();
        while pending < 24 {
            heard.extend(exchange((&mut client, &mut unread), &mut session, &rest, &mut piece));
            rest.clear();
            while let Some(request) = session.next_request() {
                match request.operation {
                    Operation::Write { data, .. } => {
                        assert!(
                            data.iter().all(|byte| *byte == pending as u8),
                            "request {pending} of {seed}"
                        );
                        session.machine.answer(Instant::ZERO, request.handle, Ok(Answer::Done));
                    }
                    _ => session.machine.answer_read(Instant::ZERO, request.handle, |room| {
                        room.fill(pending as u8);
                        Ok(())
                    }),
                }
                pending += 1;
                if pending == 12 {
                    rest = (12..24).flat_map(read).collect();
                }
            }
        }
        heard.extend(exchange((&mut client, &mut unread), &mut session, &[], &mut piece));
        let replies = replies(&heard, |cookie| if cookie < 12 { 0 } else { longest as usize });
        assert_eq!(replies.iter().map(|reply| reply.cookie).collect::<Vec<_>>(), (0..24).collect::<Vec<_>>());
        assert!(
            replies.iter().all(|reply| reply.payload.iter().all(|byte| u64::from(*byte) == reply.cookie))
        );
        assert_eq!(session.machine.said(), session.machine.taken());
    }
}

/// A session within TLS with these limits, and its client.
fn secured(authority: &Authority, limits: Limits) -> (Transport<Session>, ClientConnection) {
    let tls = authority.settings(ClientCertificates::Optional, true).load().expect("openssl made the files");
    let handshake = Handshake::new(exports(), limits.clone(), Instant::ZERO).with_tls(Some(tls));
    let mut server = Transport::new(handshake, &limits);
    get(&mut server, Instant::ZERO);
    say(&mut server, &[client_flags(0b11), starttls()].concat());
    let (mut client, mut unread) = (authority.client(Some("client")), Vec::new());
    exchange((&mut client, &mut unread), &mut server, &choose(7, "disk", &[]), &mut || 1 << 20);
    let session = server.with(Instant::ZERO, |handshake| handshake.into_session(Instant::ZERO));
    (session.expect("it is chosen"), client)
}

/// What a client says, as records.
fn records(client: &mut ClientConnection, said: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    client.set_buffer_limit(None);
    client.writer().write_all(said).expect("it has room");
    while client.wants_write() {
        client.write_tls(&mut records).expect("a vector takes all");
    }
    records
}

#[test]
fn requests_before_close_notify_are_all_served() {
    let Some(authority) = Authority::new() else { return };
    let (mut server, mut client) = secured(&authority, Limits::default());
    // More than there is room for at a time.
    let write = |cookie: u64, length: u32| {
        [request(0, WRITE, cookie, 0, length), vec![cookie as u8; length as usize]].concat()
    };
    let mut said = records(&mut client, &[write(1, 256 << 10), write(2, 512), write(3, 512)].concat());
    client.send_close_notify();
    said.extend(records(&mut client, &[]));
    let mut rest = &said[..];
    let mut pending = Vec::new();
    while !rest.is_empty() {
        let taken = put(&mut server, Instant::ZERO, rest, usize::MAX);
        rest = &rest[taken..];
        let requests: Vec<_> = std::iter::from_fn(|| server.next_request()).collect();
        assert!(taken > 0 || !requests.is_empty(), "{} bytes are not taken", rest.len());
        pending.extend(requests);
    }
    pending.extend(std::iter::from_fn(|| server.next_request()));
    assert_eq!(pending.len(), 3);
    assert_eq!(server.ending(), Some(&Ending::HungUp));
    for request in pending {
        server.machine.answer(Instant::ZERO, request.handle, Ok(Answer::Done));
    }
    let heard = exchange((&mut client, &mut Vec::new()), &mut server, &[], &mut || 1 << 20);
    assert_eq!(heard, [simple(OK, 1), simple(OK, 2), simple(OK, 3)].concat());
    assert!(server.is_over());
}

#[test]
fn request_timeout_restarts_once_reading_resumes() {
    let Some(authority) = Authority::new() else { return };
    let patience = Nanos::from_secs(1);
    let (mut server, mut client) =
        secured(&authority, Limits { requests: 1, request: patience, ..Limits::default() });
    let first = records(&mut client, &request(0, READ, 1, 0, 512).repeat(2));
    let second = records(&mut client, &request(0, READ, 2, 0, 512));
    let (begun, rest) = second.split_at(9);
    put(&mut server, Instant::ZERO, &[&first[..], begun].concat(), usize::MAX);
    let one = server.next_request().expect("it is a request");
    assert_eq!(server.next_request(), None, "one at a time");
    assert!(!server.wants_input());
    // The disk takes longer than a client may.
    let late = Instant::from_secs(10);
    server.handle_timeout(late);
    assert_eq!((server.ending(), server.poll_timeout()), (None, None), "it could not continue");
    let answer = |server: &mut Transport<Session>, handle| {
        server.machine.answer_read(late, handle, |room| {
            room.fill(1);
            Ok(())
        });
        get(server, late);
    };
    answer(&mut server, one.handle);
    let two = server.next_request().expect("there is room for another");
    answer(&mut server, two.handle);
    assert_eq!(server.next_request(), None);
    assert!(server.wants_input());
    server.handle_timeout(late);
    assert_eq!(server.poll_timeout(), Some(late + patience), "now it is the client's turn");
    put(&mut server, late + patience, rest, usize::MAX);
    server.handle_timeout(late + patience);
    assert!(server.ending().is_none() && server.next_request().is_some());
}

#[test]
fn stalled_tls_client_is_disconnected() {
    let Some(authority) = Authority::new() else { return };
    let tls = authority.settings(ClientCertificates::Required, true).load().expect("openssl made the files");
    let limits = Limits { handshake: Nanos::from_secs(1), ..Limits::default() };
    let setup = setup_as(null(), Rules { limits, tls: Some(tls), ..Rules::default() });
    let mut said = Vec::new();
    authority.client(Some("client")).write_tls(&mut said).expect("a vector takes all");
    for cut in [0, 1, 5, 100, said.len() - 1, said.len()] {
        let mut stream = agree(&setup);
        stream.write_all(&said[..cut]).expect("it reads");
        let mut heard = Vec::new();
        // What the server says, if it has heard enough, and the end.
        let _ = stream.read_to_end(&mut heard);
    }
    // A record that is begun, and never completed.
    let limits = Limits { request: Nanos(20_000_000), ..Limits::default() };
    let tls = authority.settings(ClientCertificates::Required, true).load().expect("openssl made the files");
    let setup = setup_as(null(), Rules { limits, tls: Some(tls), ..Rules::default() });
    let mut stream = secure(&setup, authority.client(Some("client")));
    go(&mut stream);
    stream.sock.write_all(&[23, 3, 3, 64, 0, 1]).expect("it reads");
    assert!(!matches!(stream.sock.read(&mut [0; 1]), Ok(1..)), "it is closed");
}
