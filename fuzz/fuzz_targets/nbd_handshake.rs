//! The handshake of NBD: whatever the bytes and the pieces they come in, it asks for no more memory than it was granted,
//! ends or goes on the same way, and hands a client on only with an export that is there.
//!
//! The input is a list of options in short form, so that most get past the magic number: a byte for the number, one for the
//! length, the data. 255 stands for bytes as they are.

#![no_main]

use headstack_model::Instant;
use headstack_nbd::{Ending, Export, Exports, Handshake, Limits, Origin, Peer, Wire};
use libfuzzer_sys::fuzz_target;

/// What the client sends.
fn conversation(mut input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some((flags, rest)) = input.split_first() {
        bytes.extend(u32::from(*flags % 5).to_be_bytes());
        input = rest;
    }
    while let Some(([number, length], rest)) = input.split_first_chunk() {
        let (data, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        input = rest;
        if *number != 255 {
            bytes.extend(b"IHAVEOPT");
            bytes.extend(u32::from(number % 16).to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
        }
        bytes.extend(data);
    }
    bytes
}

/// Takes all that is to be sent, in pieces of so many bytes.
fn hear(handshake: &mut Handshake, heard: &mut Vec<u8>, piece: usize) {
    while !handshake.output().is_empty() {
        let count = handshake.output().len().min(piece);
        heard.extend(&handshake.output()[..count]);
        handshake.sent(Instant::ZERO, count);
    }
}

/// What came of it, read in pieces of so many bytes.
fn converse(exports: &Exports, bytes: &[u8], piece: usize) -> (Option<usize>, Option<Ending>, Vec<u8>) {
    let limits = Limits { option_bytes: 128, options: 20, queries: 3, ..Limits::default() };
    let origin = Origin::Network([10, 0, 0, 1].into());
    let peer = Peer { origin, names: vec!["alice".to_string()] };
    let mut handshake = Handshake::new(exports.clone(), limits, Instant::ZERO).with_peer(peer);
    let (mut rest, mut heard) = (bytes, Vec::new());
    while !rest.is_empty() && handshake.wants_input() {
        let space = handshake.input_space();
        assert!(!space.is_empty() && space.len() <= 144);
        let count = space.len().min(piece).min(rest.len());
        space[..count].copy_from_slice(&rest[..count]);
        handshake.filled(Instant::ZERO, count);
        rest = &rest[count..];
        hear(&mut handshake, &mut heard, piece);
        assert!(heard.len() < 100_000);
    }
    if handshake.chosen().is_none() {
        handshake.input_ended();
        hear(&mut handshake, &mut heard, piece);
        assert!(handshake.is_over());
    }
    let (chosen, ending) = (handshake.chosen(), handshake.ending().cloned());
    assert!(chosen.is_none_or(|export| (1..5).contains(&export)), "one that is not for this client");
    let said = |name: &[u8]| heard.windows(name.len()).any(|part| part == name);
    assert!(!said(b"\0\0\0\x02no") && !said(b"\0\0\0\x03bob"), "it is listed");
    assert_eq!(handshake.into_session(Instant::ZERO).map(|session| session.export()), chosen);
    (chosen, ending, heard)
}

fuzz_target!(|input: &[u8]| {
    let mut tape = Export::new("t", 4096);
    tape.read_only = true;
    let allowed = |name: &str, who: &str| Export {
        allow: vec![who.parse().expect("it names clients")],
        ..Export::new(name, 4096)
    };
    let all = vec![
        allowed("no", "10.1.0.0/16"),
        Export::new("disk", 1 << 30),
        tape,
        allowed("net", "10.0.0.0/16"),
        allowed("me", "cert:alice"),
        allowed("bob", "cert:bob"),
    ];
    let exports = Exports::new(all).expect("these can be exported");
    let bytes = conversation(input);
    let whole = converse(&exports, &bytes, usize::MAX);
    assert_eq!(whole, converse(&exports, &bytes, 1 + input.len() % 37));
});
