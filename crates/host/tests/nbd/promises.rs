//! Exports that promise something, and memory that all connections share.

use crate::client::*;
use crate::server::{connect_by, hear, null};
use headstack_host::{
    Address, Clock, Disk, Guaranteed, Listener, Promises, Rules, Served, Server, Target, Timing,
};
use headstack_model::Nanos;
use headstack_nbd::{Budget, Export};
use headstack_policy::admission::{Ability, Guarantee};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

struct Setup {
    _disk: Disk,
    _server: Server,
    path: PathBuf,
    _folder: TempDir,
}

fn serve(rules: Rules) -> Setup {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("nbd");
    let disk = Disk::start("d", null(), Clock::new(1.0).expect("it is allowed"), Timing::default());
    let disk = disk.expect("there are threads");
    let served = ["free", "video"].map(|name| Served {
        export: Export::new(name, 512 << 20),
        target: Target::Disk { disk: disk.handle(), volume: 0 },
    });
    let listener = Listener::bind(&Address::Unix(path.clone())).expect("the path is free");
    let server = Server::start(vec![listener], served.to_vec(), rules).expect("it can be served");
    Setup { _disk: disk, _server: server, path, _folder: folder }
}

/// Chooses an export; the kind and the text of the last answer, and the connection.
fn go(setup: &Setup, name: &str) -> (u32, String, UnixStream) {
    let mut stream = UnixStream::connect(&setup.path).expect("the server listens");
    hear(&mut stream, 18);
    stream.write_all(&[client_flags(0b11), choose(7, name, &[])].concat()).expect("it reads");
    loop {
        let head = hear(&mut stream, 20);
        let field = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("there are four"));
        let data = hear(&mut stream, field(16) as usize);
        if field(12) != 3 {
            return (field(12), String::from_utf8_lossy(&data).into_owned(), stream);
        }
    }
}

#[test]
fn guarantee_beyond_the_disk_ability_is_rejected() {
    let ability =
        Ability { bandwidth: 40_000_000, positioning: Nanos::from_ms(20.0), memory: 256 << 20, share: 0.8 };
    let promises = Promises::new(ability);
    let guarantee = Guarantee { rate_bytes_per_s: 10_000_000, response_ms: 5000.0 };
    let guaranteed = Guaranteed { guarantee, promises: promises.clone() };
    let guarantees = [("video".to_string(), guaranteed)].into();
    let setup = serve(Rules { guarantees, ..Rules::default() });
    let mut held: Vec<_> = (0..2).map(|_| go(&setup, "video")).collect();
    held.push(go(&setup, "video"));
    assert!(held.iter().all(|(kind, text, _)| *kind == 1 && text.is_empty()), "{held:?}");
    assert_eq!(promises.inspect(|admission| (admission.streams(), admission.rate())), (3, 30_000_000));
    let (kind, text, mut refused) = go(&setup, "video");
    assert_eq!(kind, 0x8000_0002);
    assert_eq!(text, "10000000 bytes/s would have to be kept free, and fewer than 2000000 are left");
    // It may choose another then, and to look costs nothing.
    refused.write_all(&[choose(6, "video", &[]), choose(7, "free", &[])].concat()).expect("it reads");
    assert_eq!(hear(&mut refused, 2 * 86)[172 - 20..], option_reply(7, 1, &[]));
    assert_eq!(promises.inspect(|admission| admission.streams()), 3);
    // In the form without an answer the connection ends.
    let mut old = UnixStream::connect(&setup.path).expect("the server listens");
    hear(&mut old, 18);
    old.write_all(&[client_flags(0b11), option(1, b"video")].concat()).expect("it reads");
    assert_eq!(old.read(&mut [0; 1]).expect("it is closed in order"), 0);
    // A client that disconnects releases what it held.
    drop(held.pop());
    let again = (0..100_000).map(|_| go(&setup, "video").0).find(|kind| *kind == 1);
    assert_eq!(again, Some(1));
}

#[test]
fn small_requests_never_wait_for_shared_memory() {
    let budget = Budget::new(32 << 20);
    let setup = serve(Rules { budget: Some(budget.clone()), ..Rules::default() });
    // Two that ask for much and take nothing of it spend the budget.
    let connect = || connect_by(|| UnixStream::connect(&setup.path));
    let mut idle = [connect(), connect()];
    for stream in &mut idle {
        stream.write_all(&request(0, READ, 1, 0, 512 << 10).repeat(40)).expect("it reads");
        assert_eq!(hear(stream, 16), simple(OK, 1));
    }
    let mut good = connect();
    for (cookie, length) in [(7, 4096), (8, 256 << 10), (10, 512)] {
        good.write_all(&request(0, READ, cookie, 0, length)).expect("it reads");
        assert_eq!(hear(&mut good, 16), simple(OK, cookie));
        hear(&mut good, length as usize);
        assert!(budget.spent() <= 32 << 20);
    }
    // A large one waits until others have released enough, and they get all of theirs once they receive it.
    good.write_all(&request(0, READ, 9, 0, 32 << 20)).expect("it reads");
    for stream in &mut idle {
        hear(stream, 512 << 10);
        for _ in 1..40 {
            assert_eq!(hear(stream, 16), simple(OK, 1));
            hear(stream, 512 << 10);
        }
    }
    assert_eq!(hear(&mut good, 16), simple(OK, 9));
    hear(&mut good, 32 << 20);
    drop((idle, good));
    let free = (0..100_000_000).find(|_| budget.spent() == 0);
    assert!(free.is_some(), "{} bytes are never released", budget.spent());
}
