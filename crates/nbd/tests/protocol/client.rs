//! A client that is written from the protocol's text alone. It shares no code with the server.

use headstack_model::Instant;
use headstack_nbd::{Export, Exports, Handshake, Limits, Request, Session, Wire};

pub(crate) const OK: u32 = 0;
pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const EOVERFLOW: u32 = 75;
pub(crate) const ENOTSUP: u32 = 95;
pub(crate) const ESHUTDOWN: u32 = 108;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const REQ_ONE: u16 = 8;
pub(crate) const FAST_ZERO: u16 = 16;

/// A message that is built field by field.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn u16(mut self, field: u16) -> Message {
        self.0.extend([(field >> 8) as u8, field as u8]);
        self
    }

    pub(crate) fn u32(self, field: u32) -> Message {
        self.u16((field >> 16) as u16).u16(field as u16)
    }

    pub(crate) fn u64(self, field: u64) -> Message {
        self.u32((field >> 32) as u32).u32(field as u32)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Message {
        self.0.extend(bytes);
        self
    }

    /// Appends the text's length and the text.
    pub(crate) fn string(self, text: &str) -> Message {
        self.u32(text.len() as u32).bytes(text.as_bytes())
    }
}

pub(crate) fn greeting() -> Vec<u8> {
    Message::default().bytes(b"NBDMAGICIHAVEOPT").u16(0b11).0
}

pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    Message::default().bytes(b"IHAVEOPT").u32(number).u32(data.len() as u32).bytes(data).0
}

pub(crate) fn client_flags(flags: u32) -> Vec<u8> {
    Message::default().u32(flags).0
}

/// The option GO (7) or INFO (6).
pub(crate) fn choose(number: u32, name: &str, items: &[u16]) -> Vec<u8> {
    let data = Message::default().string(name).u16(items.len() as u16);
    option(number, &items.iter().fold(data, |data, item| data.u16(*item)).0)
}

/// The option LIST_META_CONTEXT (9) or SET_META_CONTEXT (10).
pub(crate) fn contexts(number: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let data = Message::default().string(name).u32(queries.len() as u32);
    option(number, &queries.iter().fold(data, |data, query| data.string(query)).0)
}

pub(crate) fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    Message::default().u32(0x2560_9513).u16(flags).u16(command).u64(cookie).u64(offset).u32(length).0
}

pub(crate) fn option_reply(number: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    Message::default().u64(0x3_e889_0455_65a9).u32(number).u32(kind).u32(data.len() as u32).bytes(data).0
}

pub(crate) fn simple(error: u32, cookie: u64) -> Vec<u8> {
    Message::default().u32(0x6744_6698).u32(error).u64(cookie).0
}

pub(crate) fn last_chunk(kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let head = Message::default().u32(0x668e_33ef).u16(1).u16(kind).u64(cookie);
    head.u32(payload.len() as u32).bytes(payload).0
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn cut<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(count);
    *bytes = rest;
    first
}

/// A reply to an option: its option, kind and data.
pub(crate) type OptionReply = (u32, u32, Vec<u8>);

/// Parses replies to options. The bytes must contain nothing else.
pub(crate) fn option_replies(mut bytes: &[u8]) -> Vec<OptionReply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(number(cut(&mut bytes, 8)), 0x3_e889_0455_65a9);
        let (option, kind) = (number(cut(&mut bytes, 4)) as u32, number(cut(&mut bytes, 4)) as u32);
        let length = number(cut(&mut bytes, 4)) as usize;
        replies.push((option, kind, cut(&mut bytes, length).to_vec()));
    }
    replies
}

/// The reply to a request: its error, and the payload if there is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    pub(crate) error: u32,
    /// The type of the chunk; none in a simple reply.
    pub(crate) kind: Option<u16>,
    pub(crate) payload: Vec<u8>,
}

/// Parses replies. `length_of` returns the length of a read by its cookie, because a simple reply does not have it.
pub(crate) fn replies(mut bytes: &[u8], length_of: impl Fn(u64) -> usize) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let magic = number(cut(&mut bytes, 4));
        if magic == 0x6744_6698 {
            let error = number(cut(&mut bytes, 4)) as u32;
            let cookie = number(cut(&mut bytes, 8));
            let length = if error == OK { length_of(cookie) } else { 0 };
            replies.push(Reply { cookie, error, kind: None, payload: cut(&mut bytes, length).to_vec() });
            continue;
        }
        assert_eq!(magic, 0x668e_33ef, "a reply begins with a magic number");
        assert_eq!(number(cut(&mut bytes, 2)), 1, "each chunk is its reply's last");
        let kind = number(cut(&mut bytes, 2)) as u16;
        let cookie = number(cut(&mut bytes, 8));
        let length = number(cut(&mut bytes, 4)) as usize;
        let payload = cut(&mut bytes, length);
        let error = if kind == 0x8001 {
            assert_eq!(number(&payload[4..6]) as usize, payload.len() - 6);
            let message = std::str::from_utf8(&payload[6..]).expect("messages are text");
            assert!(!message.is_empty() && message.lines().count() == 1, "{message:?} is one line");
            number(&payload[..4]) as u32
        } else {
            OK
        };
        replies.push(Reply { cookie, error, kind: Some(kind), payload: payload.to_vec() });
    }
    replies
}

/// An export of 1 MiB, called `disk`, and a read-only one that serves nothing else, called `tape`.
pub(crate) fn exports() -> Exports {
    let mut disk = Export::new("disk", 1 << 20);
    disk.description = "a disk".to_string();
    disk.blocks.maximum = 256 << 10;
    let mut tape = Export::new("tape", 1 << 20);
    tape.read_only = true;
    (tape.rotational, tape.flush, tape.fua, tape.trim) = (false, false, false, false);
    (tape.write_zeroes, tape.multi_conn, tape.cache) = (false, false, false);
    Exports::new(vec![disk, tape]).expect("these can be exported")
}

/// Limits that are small enough for tests to reach them.
pub(crate) fn limits() -> Limits {
    Limits { option_bytes: 8192, options: 32, queries: 4, payload_bytes: 1 << 20, ..Limits::default() }
}

/// Passes bytes to a state machine while it wants input, at most `most` at a time. Returns the number of bytes that it took.
pub(crate) fn put(wire: &mut impl Wire, now: Instant, bytes: &[u8], most: usize) -> usize {
    let mut taken = 0;
    while taken < bytes.len() && wire.wants_input() {
        let space = wire.input_space();
        assert!(!space.is_empty(), "a machine that wants input has space for it");
        let count = space.len().min(bytes.len() - taken).min(most.max(1));
        space[..count].copy_from_slice(&bytes[taken..taken + count]);
        wire.filled(now, count);
        taken += count;
        if taken == most {
            break;
        }
    }
    taken
}

/// Takes all output of a state machine.
pub(crate) fn get(wire: &mut impl Wire, now: Instant) -> Vec<u8> {
    let mut output = Vec::new();
    while !wire.output().is_empty() {
        output.extend(wire.output());
        let count = wire.output().len();
        wire.sent(now, count);
    }
    output
}

/// A handshake after the greeting, with these client flags.
pub(crate) fn greeted(flags: u32) -> Handshake {
    let mut handshake = Handshake::new(exports(), limits(), Instant::ZERO);
    assert_eq!(get(&mut handshake, Instant::ZERO), greeting());
    put(&mut handshake, Instant::ZERO, &client_flags(flags), usize::MAX);
    handshake
}

/// Passes bytes to a handshake and returns its output.
pub(crate) fn hear(handshake: &mut Handshake, bytes: &[u8]) -> Vec<u8> {
    put(handshake, Instant::ZERO, bytes, usize::MAX);
    get(handshake, Instant::ZERO)
}

/// A session with `disk`, with or without structured replies and allocation.
pub(crate) fn session(structured: bool, limits: Limits) -> Session {
    session_with("disk", structured, limits)
}

pub(crate) fn session_with(name: &str, structured: bool, limits: Limits) -> Session {
    let mut handshake = Handshake::new(exports(), limits, Instant::ZERO);
    let mut said = client_flags(0b11);
    if structured {
        said.extend(option(8, &[]));
        said.extend(contexts(10, name, &["base:allocation"]));
    }
    said.extend(choose(7, name, &[]));
    hear(&mut handshake, &said);
    handshake.into_session(Instant::ZERO).expect("the export is there")
}

/// Passes bytes to a session and returns the requests that it passes on.
pub(crate) fn ask(session: &mut Session, now: Instant, bytes: &[u8]) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut rest = bytes;
    loop {
        let space = if session.wants_input() { session.input_space().len() } else { 0 };
        let taken = put(session, now, rest, space);
        rest = &rest[taken..];
        requests.extend(std::iter::from_fn(|| session.next_request()));
        if taken == 0 || rest.is_empty() {
            return requests;
        }
    }
}
