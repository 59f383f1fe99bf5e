//! Who sees which export, and how many may come.

use crate::authority::{Authority, have, run};
use crate::client::*;
use crate::server::{hear, null};
use headstack_host::{
    Address, ClientCertificates, Clock, Disk, Listener, Rules, Served, Server, Target, Timing,
};
use headstack_model::Instant;
use headstack_nbd::{Allow, Export, Exports, Handshake, Limits, Origin, Peer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ACK: u32 = 1;
const UNKNOWN: u32 = 0x8000_0006;

fn allow(texts: &[&str]) -> Vec<Allow> {
    texts.iter().map(|text| text.parse().expect("it names clients")).collect()
}

/// Three exports: of alice, of the network, and of everybody.
fn exports() -> Exports {
    let export = |name: &str, texts: &[&str]| Export { allow: allow(texts), ..Export::new(name, 1 << 20) };
    let all = vec![
        export("secret", &["cert:alice"]),
        export("inner", &["10.0.0.0/8", "unix"]),
        export("open", &[]),
    ];
    Exports::new(all).expect("these can be exported")
}

fn greeted(origin: Origin, names: &[&str]) -> Handshake {
    let peer = Peer { origin, names: names.iter().map(ToString::to_string).collect() };
    let mut handshake = Handshake::new(exports(), Limits::default(), Instant::ZERO).with_peer(peer);
    get(&mut handshake, Instant::ZERO);
    put(&mut handshake, Instant::ZERO, &client_flags(0b11), usize::MAX);
    handshake
}

#[test]
fn hidden_export_is_reported_as_unknown() {
    let network = |text: &str| Origin::Network(text.parse().expect("it is an address"));
    let cases: [(_, &[&str], &[&str]); 5] = [
        (network("192.168.0.1"), &[], &["open"]),
        (network("10.0.0.1"), &[], &["inner", "open"]),
        (network("10.0.0.1"), &["alice"], &["secret", "inner", "open"]),
        (Origin::Local { uid: 3 }, &["bob"], &["inner", "open"]),
        (Origin::Unknown, &[], &["open"]),
    ];
    for (origin, names, seen) in cases {
        let mut handshake = greeted(origin, names);
        let heard = option_replies(&crate::client::hear(&mut handshake, &option(3, &[])));
        let listed: Vec<String> = heard[..heard.len() - 1]
            .iter()
            .map(|(_, _, data)| String::from_utf8_lossy(&data[4..]).into_owned())
            .collect();
        assert_eq!(listed, seen);
        for name in ["secret", "inner", "open"] {
            for said in [choose(6, name, &[]), contexts(9, name, &[]), choose(7, name, &[])] {
                let mut handshake = greeted(origin, names);
                let replies = option_replies(&crate::client::hear(&mut handshake, &said));
                let (_, kind, data) = replies.last().expect("it is answered");
                assert_eq!(*kind, if seen.contains(&name) { ACK } else { UNKNOWN });
                // The nearest name is one that it sees.
                let text = String::from_utf8_lossy(data);
                let hint = text.split_once("mean").map(|(_, hint)| hint);
                assert!(hint.is_none_or(|hint| seen.iter().any(|name| hint.contains(name))), "{text}");
            }
            let mut handshake = greeted(origin, names);
            crate::client::hear(&mut handshake, &option(1, name.as_bytes()));
            assert_eq!(handshake.chosen().is_some(), seen.contains(&name));
        }
        let mut handshake = greeted(origin, names);
        crate::client::hear(&mut handshake, &choose(7, "", &[]));
        let default = handshake.chosen().map(|place| ["secret", "inner", "open"][place]);
        assert_eq!(default, Some(seen[0]), "the first that it sees");
    }
}

/// A server at two sockets, with an export for each of these.
fn serve(listeners: Vec<Listener>, exports: &[(&str, &str)], rules: Rules) -> (Disk, Server) {
    let clock = Clock::new(1.0).expect("it is allowed");
    let disk = Disk::start("d", null(), clock, Timing::default()).expect("there are threads");
    let served = exports.iter().map(|(name, text)| Served {
        export: Export { allow: allow(&[text]), ..Export::new(name, 1 << 20) },
        target: Target::Disk { disk: disk.handle(), volume: 0 },
    });
    let server = Server::start(listeners, served.collect(), rules).expect("it can be served");
    (disk, server)
}

fn chooses(stream: &mut (impl Read + Write), name: &str) -> bool {
    hear(stream, 18);
    stream.write_all(&[client_flags(0b11), choose(6, name, &[])].concat()).expect("it reads");
    hear(stream, 20)[12..16] == [0, 0, 0, 3]
}

#[test]
fn clients_are_distinguished_by_their_origin() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("nbd");
    let addresses = [Address::Unix(path.clone()), "127.0.0.1:0".parse().expect("it is an address")];
    let listeners: Vec<_> =
        addresses.iter().map(|address| Listener::bind(address).expect("it is free")).collect();
    let uid = folder.path().metadata().expect("it is there").uid();
    let (mine, others) = (format!("uid:{uid}"), format!("uid:{}", uid + 1));
    let exports = [
        ("mine", &mine[..]),
        ("others", &others),
        ("local", "unix"),
        ("loop", "127.0.0.0/8"),
        ("far", "10.0.0.1"),
    ];
    let rules = Rules { connections_per_address: 2, ..Rules::default() };
    let (_disk, server) = serve(listeners, &exports, rules);
    let [_, Address::Tcp(tcp)] = server.addresses() else { panic!("{:?}", server.addresses()) };
    #[allow(clippy::disallowed_methods, reason = "a client has a socket")]
    let far = || TcpStream::connect(tcp).expect("the server listens");
    for (name, here, there) in [
        ("mine", true, false),
        ("others", false, false),
        ("local", true, false),
        ("loop", false, true),
        ("far", false, false),
    ] {
        let mut stream = UnixStream::connect(&path).expect("the server listens");
        assert_eq!(chooses(&mut stream, name), here, "{name}");
        // The last one's seat may not be free yet.
        let mut heard =
            (0..100_000).map(|_| far()).find(|stream| stream.peek(&mut [0; 1]).is_ok_and(|bytes| bytes > 0));
        let stream = heard.as_mut().expect("a seat gets free");
        assert_eq!(chooses(stream, name), there, "{name}");
    }
    // Two from an address of a network, and any number from here.
    let found = |_| {
        Some([far(), far()])
            .filter(|two| two.iter().all(|stream| stream.peek(&mut [0; 1]).is_ok_and(|bytes| bytes > 0)))
    };
    let two = (0..100_000).find_map(found).expect("seats get free");
    assert_eq!(far().read(&mut [0; 1]).expect("it is sent away in order"), 0);
    let mut several: Vec<_> =
        (0..5).map(|_| UnixStream::connect(&path).expect("the server listens")).collect();
    assert!(several.iter_mut().all(|stream| chooses(stream, "local")));
    drop(two);
}

#[test]
fn certificate_opens_only_the_exports_that_name_it() {
    let Some(authority) = Authority::new() else { return };
    let settings = authority.settings(ClientCertificates::Optional, false);
    let tls = Some(settings.load().expect("openssl made the files"));
    if !have(&["nbdinfo"]) {
        return;
    }
    std::fs::create_dir(authority.path("other")).expect("there is room");
    authority.sign("other/client", "client", "bob", Some("ca"));
    std::fs::copy(authority.path("ca-cert.pem"), authority.path("other/ca-cert.pem")).expect("there is room");
    let path = authority.path("nbd");
    let listener = Listener::bind(&Address::Unix(path.clone())).expect("it is free");
    let exports = [("subject", "cert:alice"), ("other", "cert:client.example.org"), ("bobs", "cert:bob")];
    let (_disk, _server) = serve(vec![listener], &exports, Rules { tls, ..Rules::default() });
    let sees = |folder: &Path, name: &str| {
        let (socket, folder) = (path.display(), folder.display());
        let uri = format!("nbds+unix:///{name}?socket={socket}&tls-certificates={folder}");
        run("nbdinfo", &["--size", &uri]).0
    };
    let of = |folder: &Path| ["subject", "other", "bobs"].map(|name| sees(folder, name));
    assert_eq!(of(authority.folder()), [true, true, false]);
    assert_eq!(of(&authority.path("other")), [false, true, true]);
    let (success, text) = run("nbdinfo", &["--list", &format!("nbd+unix:///?socket={}", path.display())]);
    assert!(!text.contains("subject") && !text.contains("bobs"), "{success} {text}");
}

/// The part of the next test that systemd starts: a server at the sockets that it is handed.
#[test]
#[ignore = "another test runs it as a process of its own"]
fn server_runs_on_handed_over_sockets() {
    let listeners = Listener::handed_over().expect("they are stream sockets");
    assert_eq!(listeners.len(), 2);
    headstack_host::tell_ready();
    let (disk, server) = serve(listeners, &[("local", "unix"), ("loop", "127.0.0.0/8")], Rules::default());
    for address in server.addresses() {
        println!("serves {address}");
    }
    // Until the other test has heard enough.
    let _ = std::io::stdin().read(&mut [0; 1]);
    drop(server);
    headstack_host::tell_stopping();
    disk.stop().expect("there is room");
}

/// Ends with the test, whatever becomes of it.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sockets_are_taken_over_from_systemd() {
    if !have(&["systemd-socket-activate"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let paths: [PathBuf; 2] = ["a", "b"].map(|name| folder.path().join(name));
    let notify = folder.path().join("notify");
    let output = std::os::unix::net::UnixDatagram::bind(&notify).expect("the path is free");
    let test = std::env::current_exe().expect("it runs");
    let mut command = Command::new("systemd-socket-activate");
    for path in &paths {
        command.arg("-l").arg(path);
    }
    command.arg("-E").arg(format!("NOTIFY_SOCKET={}", notify.display())).arg(test);
    command.args(["--exact", "access::server_runs_on_handed_over_sockets", "--ignored", "--nocapture"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut guard = Guard(command.spawn().expect("it can be started"));
    // It listens at once, and starts the server for the first who comes.
    let stream = (0..100_000).find_map(|_| {
        std::thread::yield_now();
        UnixStream::connect(&paths[1]).ok()
    });
    let mut stream = stream.expect("it listens");
    assert!(chooses(&mut stream, "local"));
    let mut other = UnixStream::connect(&paths[0]).expect("it listens there too");
    assert!(chooses(&mut other, "local"));
    let mut heard = [0; 64];
    let bytes = output.recv(&mut heard).expect("it tells");
    assert_eq!(heard[..bytes], *b"READY=1\n");
    drop(guard.0.stdin.take());
    let bytes = output.recv(&mut heard).expect("it tells");
    assert_eq!(heard[..bytes], *b"STOPPING=1\n");
    assert!(guard.0.wait().expect("it ends").success());
    assert!(paths.iter().all(|path| path.exists()), "the sockets are systemd's");
}
