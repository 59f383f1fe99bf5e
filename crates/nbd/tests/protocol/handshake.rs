//! The handshake's options one at a time, with exact input and output bytes.

use headstack_model::Instant;
use headstack_nbd::{Breach, Ending, Handshake, Limits, Wire};

use crate::client::*;

const ACK: u32 = 1;
const UNSUP: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const TOO_BIG: u32 = 0x8000_0009;

/// Transmission flags of `disk`: all but read-only, DF and resize.
const DISK_FLAGS: u16 = 0b1101_0111_1101;
/// Transmission flags of `tape`: read-only.
const TAPE_FLAGS: u16 = 0b11;
const WITH_DF: u16 = 1 << 7;

fn export_info(flags: u16) -> Vec<u8> {
    Message::default().u16(0).u64(1 << 20).u16(flags).0
}

fn kinds(bytes: &[u8]) -> Vec<u32> {
    option_replies(bytes).into_iter().map(|(_, kind, _)| kind).collect()
}

fn message(bytes: &[u8]) -> String {
    let replies = option_replies(bytes);
    let (_, _, data) = replies.last().expect("there is a reply");
    String::from_utf8(data.clone()).expect("messages are text")
}

#[test]
fn go_describes_and_chooses_the_export() {
    let mut handshake = greeted(0b11);
    let heard = hear(&mut handshake, &choose(7, "disk", &[3, 1, 2, 99]));
    let blocks = Message::default().u16(3).u32(512).u32(4096).u32(256 << 10).0;
    let expected = [
        option_reply(7, 3, &export_info(DISK_FLAGS)),
        option_reply(7, 3, &blocks),
        option_reply(7, 3, &Message::default().u16(1).bytes(b"disk").0),
        option_reply(7, 3, &Message::default().u16(2).bytes(b"a disk").0),
        option_reply(7, ACK, &[]),
    ];
    assert_eq!(heard, expected.concat());
    assert_eq!(handshake.chosen(), Some(0));
    assert!(!handshake.wants_input(), "what comes next is for the session");
}

#[test]
fn info_describes_the_export_and_chooses_none() {
    let mut handshake = greeted(0b11);
    let informed = option_replies(&hear(&mut handshake, &choose(6, "tape", &[1])));
    assert_eq!(handshake.chosen(), None);
    let gone = option_replies(&hear(&mut handshake, &choose(7, "tape", &[1])));
    assert_eq!(handshake.chosen(), Some(1));
    let without_option = |replies: Vec<OptionReply>| -> Vec<(u32, Vec<u8>)> {
        replies.into_iter().map(|(_, kind, data)| (kind, data)).collect()
    };
    let informed = without_option(informed);
    assert_eq!(informed[0], (3, export_info(TAPE_FLAGS)));
    assert_eq!(informed, without_option(gone));
}

#[test]
fn first_export_is_the_default() {
    for said in [choose(7, "", &[]), option(1, b"")] {
        let mut handshake = greeted(0b11);
        hear(&mut handshake, &said);
        assert_eq!(handshake.chosen(), Some(0));
    }
}

#[test]
fn export_name_reply_ends_with_zeros_unless_declined() {
    for (flags, zeros) in [(0b11, 0), (0b01, 124), (0b10, 0), (0b00, 124)] {
        let mut handshake = greeted(flags);
        let heard = hear(&mut handshake, &option(1, b"tape"));
        let expected = Message::default().u64(1 << 20).u16(TAPE_FLAGS).bytes(&vec![0; zeros]).0;
        assert_eq!(heard, expected, "{flags:#b}");
        assert_eq!(handshake.chosen(), Some(1));
    }
}

#[test]
fn unknown_export_is_rejected_and_a_retry_succeeds() {
    let mut handshake = greeted(0b11);
    let heard = hear(&mut handshake, &choose(7, "dsk", &[]));
    assert_eq!(kinds(&heard), [UNKNOWN]);
    assert_eq!(message(&heard), "no export `dsk`; did you mean `disk`?");
    assert_eq!(kinds(&hear(&mut handshake, &choose(6, "d\n\u{1b}", &[]))), [UNKNOWN]);
    hear(&mut handshake, &choose(7, "disk", &[]));
    assert_eq!(handshake.chosen(), Some(0));
}

#[test]
fn export_name_of_an_unknown_export_ends_the_connection() {
    let mut handshake = greeted(0b11);
    assert!(hear(&mut handshake, &option(1, b"dsk")).is_empty());
    let Some(Ending::Broken(breach @ Breach::UnknownExport { .. })) = handshake.ending() else {
        panic!("{handshake:?}")
    };
    assert_eq!(breach.to_string(), "no export `dsk`; did you mean `disk`?");
    assert!(handshake.is_over());
}

#[test]
fn every_export_is_listed() {
    let mut handshake = greeted(0b11);
    let heard = hear(&mut handshake, &option(3, &[]));
    let expected = [
        option_reply(3, 2, &Message::default().string("disk").bytes(b"a disk").0),
        option_reply(3, 2, &Message::default().string("tape").0),
        option_reply(3, ACK, &[]),
    ];
    assert_eq!(heard, expected.concat());
    assert_eq!(kinds(&hear(&mut handshake, &option(3, b"x"))), [INVALID]);
}

#[test]
fn abort_is_acknowledged_before_the_end() {
    let mut handshake = greeted(0b11);
    put(&mut handshake, Instant::ZERO, &option(2, b"data are passed over"), usize::MAX);
    assert_eq!(handshake.ending(), Some(&Ending::Disconnected));
    assert!(!handshake.is_over() && !handshake.wants_input());
    assert_eq!(get(&mut handshake, Instant::ZERO), option_reply(2, ACK, &[]));
    assert!(handshake.is_over());
}

#[test]
fn unsupported_option_is_rejected_and_skipped() {
    let mut handshake = greeted(0b11);
    // STARTTLS, the withdrawn PEEK_EXPORT, EXTENDED_HEADERS, and two unknown options.
    for number in [5, 4, 11, 0, 0xffff_ffff] {
        assert_eq!(hear(&mut handshake, &option(number, b"data")), option_reply(number, UNSUP, &[]));
    }
    assert_eq!(hear(&mut handshake, &option(77, &vec![1; 3 << 20])), option_reply(77, UNSUP, &[]));
    assert_eq!(kinds(&hear(&mut handshake, &option(6, &vec![1; 8193]))), [TOO_BIG]);
    hear(&mut handshake, &choose(7, "disk", &[]));
    assert_eq!(handshake.chosen(), Some(0));
}

#[test]
fn oversized_export_name_ends_the_connection() {
    let mut handshake = greeted(0b11);
    put(&mut handshake, Instant::ZERO, &option(1, &vec![b'x'; 8193])[..16], usize::MAX);
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::LongName { bytes: 8193, allowed: 8192 })));
}

#[test]
fn option_with_a_wrong_length_is_rejected() {
    let name = || Message::default().string("disk");
    let cases = [
        option(6, &[]),
        option(7, &Message::default().u32(5).bytes(b"disk").0),
        option(7, &Message::default().u32(u32::MAX).bytes(b"disk").u16(0).0),
        option(7, &name().0),
        option(7, &name().u16(2).u16(0).0),
        option(7, &name().u16(0).u16(0).0),
        option(9, &[]),
        option(9, &name().0),
        option(9, &name().u32(1).0),
        option(9, &name().u32(1).u32(16).bytes(b"base:allocation").0),
        option(9, &name().u32(1).string("base:").bytes(b"x").0),
        option(10, &name().u32(1).u32(u32::MAX).0),
        option(8, b"x"),
    ];
    for case in cases {
        let mut handshake = greeted(0b11);
        hear(&mut handshake, &option(8, &[]));
        assert_eq!(kinds(&hear(&mut handshake, &case)), [INVALID], "{case:?}");
        assert_eq!(handshake.chosen(), None);
        assert!(handshake.wants_input());
    }
}

#[test]
fn contexts_are_listed_and_selected() {
    let mut handshake = greeted(0b11);
    assert_eq!(kinds(&hear(&mut handshake, &contexts(10, "disk", &["base:allocation"]))), [INVALID]);
    assert_eq!(hear(&mut handshake, &option(8, &[])), option_reply(8, ACK, &[]));
    let found = |number, id| {
        let context = Message::default().u32(id).bytes(b"base:allocation").0;
        [option_reply(number, 4, &context), option_reply(number, ACK, &[])].concat()
    };
    let none = |number| option_reply(number, ACK, &[]);
    let twice: &[&str] = &["base:allocation", "base:allocation"];
    let cases: [(u32, &[&str], bool); 8] = [
        (9, &[], true),
        (9, &["base:"], true),
        (9, twice, true),
        (9, &["base:dirty", "qemu:x"], false),
        (10, &[], false),
        (10, &["base:"], false),
        (10, &["qemu:dirty-bitmap:b", "base:allocation"], true),
        (10, twice, true),
    ];
    for (number, queries, expected) in cases {
        let heard = hear(&mut handshake, &contexts(number, "disk", queries));
        let id = if number == 10 { 1 } else { 0 };
        assert_eq!(heard, if expected { found(number, id) } else { none(number) }, "{number} {queries:?}");
    }
    assert_eq!(kinds(&hear(&mut handshake, &contexts(9, "disc", &[]))), [UNKNOWN]);
    assert_eq!(kinds(&hear(&mut handshake, &contexts(9, "disk", &["a:"; 5]))), [TOO_BIG]);
}

/// Whether a BLOCK_STATUS request is served after these options.
fn may_ask(options: &[Vec<u8>]) -> bool {
    let mut handshake = greeted(0b11);
    hear(&mut handshake, &options.concat());
    let mut session = handshake.into_session(Instant::ZERO).expect("an export was chosen");
    let asked = !ask(&mut session, Instant::ZERO, &request(0, BLOCK_STATUS, 1, 0, 512)).is_empty();
    assert_eq!(asked, get(&mut session, Instant::ZERO).is_empty());
    asked
}

#[test]
fn last_context_selection_decides_on_block_status() {
    let structured = || option(8, &[]);
    let set = |name, queries: &[&str]| contexts(10, name, queries);
    let allocation = &["base:allocation"];
    assert!(may_ask(&[structured(), set("disk", allocation), choose(7, "disk", &[])]));
    assert!(may_ask(&[structured(), set("", allocation), option(1, b"disk")]));
    assert!(!may_ask(&[structured(), choose(7, "disk", &[])]));
    assert!(!may_ask(&[structured(), set("tape", allocation), choose(7, "disk", &[])]));
    assert!(!may_ask(&[structured(), contexts(9, "disk", allocation), choose(7, "disk", &[])]));
    for last in [set("disk", &[]), set("nowhere", allocation), set("disk", &["base:"; 5]), option(10, &[])] {
        let options = [structured(), set("disk", allocation), last, choose(7, "disk", &[])];
        assert!(!may_ask(&options));
    }
}

#[test]
fn structured_replies_enable_unfragmented_reads() {
    let mut handshake = greeted(0b11);
    hear(&mut handshake, &option(8, &[]));
    let heard = option_replies(&hear(&mut handshake, &choose(6, "tape", &[])));
    assert_eq!(heard[0].2, export_info(TAPE_FLAGS | WITH_DF));
    assert_eq!(
        hear(&mut handshake, &option(1, b"tape")),
        Message::default().u64(1 << 20).u16(TAPE_FLAGS | WITH_DF).0
    );
}

#[test]
fn bytes_after_the_handshake_reach_the_session() {
    let mut handshake = greeted(0b11);
    let said = [choose(7, "disk", &[]), request(0, FLUSH, 7, 0, 0), request(0, READ, 8, 0, 512)].concat();
    put(&mut handshake, Instant::ZERO, &said, usize::MAX);
    let mut session = handshake.into_session(Instant::ZERO).expect("an export was chosen");
    assert_eq!(session.export(), 0);
    assert_eq!(std::iter::from_fn(|| session.next_request()).count(), 2);
    assert_eq!(kinds(&get(&mut session, Instant::ZERO)), [3, 3, ACK], "and what was not yet sent too");
}

#[test]
fn foreign_protocol_ends_the_handshake() {
    let mut handshake = greeted(0b100);
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::ClientFlags { met: 4 })));
    assert!(handshake.is_over() && !handshake.wants_input());

    handshake = greeted(0b11);
    hear(&mut handshake, b"GET / HT");
    let met = u64::from_be_bytes(*b"GET / HT");
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::OptionMagic { met })));

    handshake = greeted(0b10);
    hear(&mut handshake, &option(3, &[]));
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::OptionBeforeFixed { met: 3 })));
}

#[test]
fn too_many_options_end_the_handshake() {
    let mut handshake = greeted(0b11);
    for _ in 0..32 {
        assert_eq!(kinds(&hear(&mut handshake, &option(3, &[]))), [2, 2, ACK]);
    }
    hear(&mut handshake, &option(3, &[]));
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::Options { allowed: 32 })));
}

#[test]
fn unread_option_replies_pause_the_input() {
    let mut limits = limits();
    limits.options = u32::MAX;
    let mut handshake = Handshake::new(exports(), limits, Instant::ZERO);
    put(&mut handshake, Instant::ZERO, &client_flags(0b11), usize::MAX);
    let lists = option(3, &[]).repeat(10_000);
    let taken = put(&mut handshake, Instant::ZERO, &lists, usize::MAX);
    assert!(
        taken < lists.len() && handshake.output().len() < 66 << 10,
        "{taken} {}",
        handshake.output().len()
    );
    let before = handshake.output().len();
    handshake.sent(Instant::ZERO, before);
    assert!(handshake.wants_input());
}

#[test]
fn handshake_times_out_without_a_choice() {
    let mut handshake = greeted(0b11);
    let deadline = Instant::from_secs(10);
    assert_eq!(handshake.poll_timeout(), Some(deadline));
    handshake.handle_timeout(Instant(deadline.0 - 1));
    assert!(handshake.wants_input());
    handshake.handle_timeout(deadline);
    assert_eq!(handshake.ending(), Some(&Ending::Broken(Breach::SlowHandshake)));
    assert!(handshake.is_over() && handshake.poll_timeout().is_none());

    handshake = greeted(0b11);
    hear(&mut handshake, &choose(7, "disk", &[]));
    handshake.handle_timeout(deadline);
    assert_eq!((handshake.poll_timeout(), handshake.ending()), (None, None));
}

#[test]
fn hangup_ends_the_handshake() {
    let mut handshake = greeted(0b11);
    put(&mut handshake, Instant::ZERO, &option(3, &[])[..9], usize::MAX);
    handshake.input_ended();
    assert_eq!(handshake.ending(), Some(&Ending::HungUp));
    assert!(handshake.is_over());
}

#[test]
fn limits_on_the_nbd_page_match_the_defaults() {
    #[allow(clippy::disallowed_methods, reason = "a test reads the page")]
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/nbd.md"))
        .expect("the page is there");
    let limits = Limits::default();
    let rows = [
        ("handshake", format!("{} s until", limits.handshake.as_secs())),
        ("a request, once begun, while the server reads", format!("{} s until", limits.request.as_secs())),
        ("replies", format!("{} s without", limits.reply.as_secs())),
        ("data of an option", format!("{} KiB", limits.option_bytes >> 10)),
        ("options before the transmission", limits.options.to_string()),
        ("queries in one option", limits.queries.to_string()),
        ("requests with the disk", format!("{} a connection", limits.requests)),
        (
            "bytes of reads, writes and untaken replies",
            format!("{} MiB a connection", limits.held_bytes >> 20),
        ),
        ("payload of a refused write", format!("{} MiB", limits.payload_bytes >> 20)),
        ("stretches in one `BLOCK_STATUS` reply", limits.extents.to_string()),
    ];
    for (what, limit) in rows {
        let row = format!("| {what} | {limit}");
        assert!(page.contains(&row), "the page does not say {row:?}");
    }
}
