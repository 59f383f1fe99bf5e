//! What differs between listeners, what changes while a server runs, and who gives way where all seats are taken.

use crate::authority::Authority;
use crate::client::*;
use crate::server::{connect, connect_by, hear, null, setup_as};
use headstack_host::{
    Address, ClientCertificates, Clock, Disk, Listener, Rules, Served, Server, Target, Timing, TlsUse,
};
use headstack_model::Nanos;
use headstack_nbd::Export;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Setup {
    server: Server,
    paths: Vec<PathBuf>,
    _disk: Disk,
    _folder: TempDir,
}

/// A server at a socket for each of these ways to speak TLS.
fn serve(tls: &[Option<TlsUse>], rules: Rules) -> Setup {
    let folder = tempfile::tempdir().expect("there is room");
    let clock = Clock::new(1.0).expect("it is allowed");
    let disk = Disk::start("d", null(), clock, Timing::default()).expect("there are threads");
    let export = Export::new("d", disk.handle().volumes()[0].bytes());
    let served = Served { export, target: Target::Disk { disk: disk.handle(), volume: 0 } };
    let paths: Vec<PathBuf> =
        (0..tls.len()).map(|number| folder.path().join(format!("nbd{number}"))).collect();
    let at = |(path, tls): (&PathBuf, &Option<TlsUse>)| {
        Listener::bind(&Address::Unix(path.clone())).expect("the path is free").with_tls(*tls)
    };
    let listeners = paths.iter().zip(tls).map(at).collect();
    let server = Server::start(listeners, vec![served], rules).expect("it can be served");
    Setup { server, paths, _disk: disk, _folder: folder }
}

/// The kind of the first answer to the choice of the export, without TLS.
fn choice(path: &Path) -> u32 {
    let mut stream = UnixStream::connect(path).expect("the server listens");
    hear(&mut stream, 18);
    stream.write_all(&[client_flags(0b11), choose(7, "d", &[])].concat()).expect("it reads");
    let head = hear(&mut stream, 20);
    u32::from_be_bytes(head[12..16].try_into().expect("there are four"))
}

const INFO: u32 = 3;
const TLS_REQUIRED: u32 = 0x8000_0005;
const UNKNOWN: u32 = 0x8000_0006;

#[test]
fn each_listener_has_its_own_tls_use() {
    let Some(authority) = Authority::new() else { return };
    let tls = authority.settings(ClientCertificates::None, true).load().expect("the files are good");
    let ways = [None, Some(TlsUse::Off), Some(TlsUse::Optional), Some(TlsUse::Required)];
    let setup = serve(&ways, Rules { tls: Some(tls), ..Rules::default() });
    let choices: Vec<u32> = setup.paths.iter().map(|path| choice(path)).collect();
    assert_eq!(choices, [TLS_REQUIRED, INFO, INFO, TLS_REQUIRED]);
    let starts = |path: &Path| {
        let mut stream = UnixStream::connect(path).expect("the server listens");
        hear(&mut stream, 18);
        stream.write_all(&[client_flags(0b11), option(5, &[])].concat()).expect("it reads");
        hear(&mut stream, 20)[12..16] == [0, 0, 0, 1]
    };
    assert!(starts(&setup.paths[0]) && !starts(&setup.paths[1]) && starts(&setup.paths[2]));
}

#[test]
fn changed_rules_apply_to_new_clients_only() {
    let setup = serve(&[None], Rules::default());
    let path = &setup.paths[0];
    let mut old = connect(path);
    let nobody = vec!["192.0.2.0/24".parse().expect("it names clients")];
    let allow = [("d".to_string(), nobody)].into();
    setup.server.change(Rules::default(), &allow).expect("the exports are the same");
    let refused = (0..100_000).find(|_| choice(path) == UNKNOWN);
    assert!(refused.is_some(), "the export is hidden from new clients");
    old.write_all(&request(0, READ, 7, 0, 512)).expect("it reads");
    assert_eq!(hear(&mut old, 16 + 512)[..16], simple(OK, 7));
    let all = [("d".to_string(), Vec::new())].into();
    setup.server.change(Rules::default(), &all).expect("the exports are the same");
    assert!((0..100_000).any(|_| choice(path) == INFO), "and may be shown again");
}

#[test]
fn idle_client_is_evicted_if_all_seats_are_taken() {
    let rules = Rules { connections: 2, idle: Nanos::from_ms(1.0), ..Rules::default() };
    let setup = setup_as(null(), rules);
    let mut idle = [connect(&setup.path), connect(&setup.path)];
    let mut new_client = connect_by(|| UnixStream::connect(&setup.path));
    new_client.write_all(&request(0, READ, 1, 0, 512)).expect("it reads");
    assert_eq!(hear(&mut new_client, 16 + 512)[..16], simple(OK, 1));
    idle.iter().for_each(|stream| stream.set_nonblocking(true).expect("it is a socket"));
    // Its disk's thread finds out within a second.
    let mut is_closed = |_| idle.iter_mut().any(|stream| matches!(stream.read(&mut [0; 1]), Ok(0)));
    assert!((0..50_000_000).any(&mut is_closed), "one of them is closed");
}
