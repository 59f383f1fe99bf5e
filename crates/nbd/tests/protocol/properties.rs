//! Properties of every session, with any requests of the client and any division of its bytes into pieces.

use headstack_model::Instant;
use headstack_nbd::{Answer, BlockError, Operation, StatusExtent};
use headstack_nbd::{Ending, Handshake, Limits, Request, Session, Wire};
use proptest::prelude::*;

use crate::client::*;

const NOW: Instant = Instant::ZERO;
const SIZE: u64 = 1 << 20;
const MAXIMUM: u32 = 256 << 10;

/// A valid or invalid command of a client.
#[derive(Clone, Debug)]
struct Command {
    flags: u16,
    command: u16,
    offset: u64,
    length: u32,
}

impl Command {
    /// Its bytes. The cookie is its index in the session.
    fn bytes(&self, cookie: usize) -> Vec<u8> {
        let mut bytes = request(self.flags, self.command, cookie as u64, self.offset, self.length);
        if self.command == WRITE {
            bytes.extend((0..self.length as usize).map(|at| content(self.offset + at as u64)));
        }
        bytes
    }

    /// The errors with which the protocol allows the server to refuse it. Empty if the command must be passed on.
    fn errors(&self, structured: bool) -> Vec<u32> {
        let allowed = FUA
            | match self.command {
                READ if structured => DF,
                WRITE_ZEROES => NO_HOLE | FAST_ZERO,
                BLOCK_STATUS if structured => REQ_ONE,
                READ | WRITE | FLUSH | TRIM | CACHE => 0,
                _ => return vec![EINVAL],
            };
        let end = u128::from(self.offset) + u128::from(self.length);
        let transfer = matches!(self.command, READ | WRITE);
        let part = self.command != FLUSH;
        let room = matches!(self.command, WRITE | WRITE_ZEROES);
        let faults = [
            (self.flags & !allowed != 0, EINVAL),
            (!part && (self.offset, self.length) != (0, 0), EINVAL),
            (part && self.length == 0, EINVAL),
            (part && (!self.offset.is_multiple_of(512) || !self.length.is_multiple_of(512)), EINVAL),
            (part && end > u128::from(SIZE), if room { ENOSPC } else { EINVAL }),
            (transfer && self.length > MAXIMUM, if self.flags & DF != 0 { EOVERFLOW } else { EINVAL }),
            (self.flags & allowed & FAST_ZERO != 0, ENOTSUP),
        ];
        faults.into_iter().filter(|(is_met, _)| *is_met).map(|(_, error)| error).collect()
    }

    /// The operation that the session must pass on for it.
    fn operation(&self) -> Operation {
        let Command { offset, length, .. } = *self;
        let (bytes, fua) = (u64::from(length), self.flags & FUA != 0);
        match self.command {
            READ => Operation::Read { offset, bytes: length, fua },
            WRITE => {
                Operation::Write { offset, data: (0..bytes).map(|at| content(offset + at)).collect(), fua }
            }
            FLUSH => Operation::Flush,
            TRIM if fua => Operation::WriteZeroes { offset, bytes, may_trim: true, fua },
            TRIM => Operation::Trim { offset, bytes },
            CACHE => Operation::Prefetch { offset, bytes },
            WRITE_ZEROES => {
                Operation::WriteZeroes { offset, bytes, may_trim: self.flags & NO_HOLE == 0, fua }
            }
            _ => Operation::Allocation { offset, bytes },
        }
    }
}

/// The byte that the disk holds at an offset.
fn content(place: u64) -> u8 {
    (place ^ place >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

fn command() -> impl Strategy<Value = Command> {
    let good = (0..8_u16, any::<u8>(), 0..2048_u64, 1..64_u32).prop_map(|(kind, flags, block, blocks)| {
        let command = if kind == DISC { READ } else { kind };
        let mask = FUA
            | match command {
                WRITE_ZEROES => NO_HOLE,
                BLOCK_STATUS => REQ_ONE,
                _ => 0,
            };
        let (offset, length) = if command == FLUSH { (0, 0) } else { (block * 512, blocks * 512) };
        Command { flags: u16::from(flags) & mask, command, offset, length }
    });
    let large = (prop_oneof![Just(READ), Just(WRITE)], 0..1024_u64, 100..600_u32).prop_map(
        |(command, block, blocks)| Command { flags: 0, command, offset: block * 512, length: blocks * 512 },
    );
    let flags = prop_oneof![3 => Just(0), 1 => 0..64_u16, 1 => any::<u16>()];
    let kind = prop_oneof![5 => 0..9_u16, 1 => any::<u16>()];
    let offset = prop_oneof![(0..2050_u64).prop_map(|block| block * 512), 0..SIZE + 512, any::<u64>()];
    let length = prop_oneof![(0..1100_u32).prop_map(|blocks| blocks * 512), 0..5000_u32];
    let any = (flags, kind, offset, length).prop_map(|(flags, kind, offset, length)| {
        let command = if kind == DISC { 100 } else { kind };
        Command { flags, command, offset, length }
    });
    prop_oneof![6 => good, 1 => large, 3 => any]
}

/// A disk's answer to a request. Every seventh request fails.
fn work(request: &Request, count: usize) -> Result<Answer, BlockError> {
    if count % 7 == 6 {
        return Err(BlockError::Medium);
    }
    Ok(match request.operation {
        Operation::Read { offset, bytes, .. } => {
            Answer::Data((0..u64::from(bytes)).map(|at| content(offset + at)).collect())
        }
        Operation::Allocation { bytes, .. } => {
            let half = bytes / 1024 * 512;
            Answer::Allocation(vec![
                StatusExtent { bytes: half, hole: true },
                StatusExtent { bytes: bytes - half, hole: false },
            ])
        }
        _ => Answer::Done,
    })
}

/// The payload of a reply without an error.
fn payload(command: &Command, structured: bool) -> Vec<u8> {
    let data = || (0..u64::from(command.length)).map(|at| content(command.offset + at));
    match command.command {
        READ if structured => Message::default().u64(command.offset).bytes(&data().collect::<Vec<_>>()).0,
        READ => data().collect(),
        BLOCK_STATUS => {
            let half = command.length / 1024 * 512;
            let mut descriptors = vec![(half, 3), (command.length - half, 0)];
            descriptors.retain(|(bytes, _)| *bytes > 0);
            if command.flags & REQ_ONE != 0 {
                descriptors.truncate(1);
            }
            let message = Message::default().u32(1);
            descriptors.iter().fold(message, |message, (bytes, state)| message.u32(*bytes).u32(*state)).0
        }
        _ => Vec::new(),
    }
}

/// Passes bytes to a session in pieces of these lengths, which are repeated, while it wants input. Returns the requests.
fn ask_in_pieces(session: &mut Session, mut bytes: &[u8], pieces: &[usize]) -> Vec<Request> {
    let mut requests = Vec::new();
    for piece in pieces.iter().cycle() {
        let taken = put(session, NOW, bytes, (*piece).min(bytes.len()));
        bytes = &bytes[taken..];
        requests.extend(std::iter::from_fn(|| session.next_request()));
        if bytes.is_empty() || taken == 0 {
            return requests;
        }
    }
    requests
}

/// A session in progress: the bytes that the client has not sent, the requests at the disk, and the bytes received.
struct Talk<'a> {
    session: Session,
    rest: &'a [u8],
    in_flight: Vec<(usize, Request)>,
    passed_on: Vec<Operation>,
    output: Vec<u8>,
}

impl Talk<'_> {
    fn new(session: Session, rest: &[u8]) -> Talk<'_> {
        Talk { session, rest, in_flight: Vec::new(), passed_on: Vec::new(), output: Vec::new() }
    }

    /// Passes all waiting requests to the disk.
    fn pass_on(&mut self) {
        while let Some(request) = self.session.next_request() {
            self.passed_on.push(request.operation.clone());
            self.in_flight.push((self.passed_on.len() - 1, request));
        }
    }

    fn say(&mut self, bytes: usize) {
        let taken = put(&mut self.session, NOW, self.rest, bytes.min(self.rest.len()));
        self.rest = &self.rest[taken..];
        self.pass_on();
    }

    fn answer(&mut self, choice: usize) {
        if !self.in_flight.is_empty() {
            let (count, request) = self.in_flight.swap_remove(choice % self.in_flight.len());
            let result = work(&request, count);
            self.session.answer(NOW, request.handle, result);
            self.pass_on();
        }
    }

    fn take(&mut self, bytes: usize) {
        let bytes = bytes.min(self.session.output().len());
        self.output.extend(&self.session.output()[..bytes]);
        self.session.sent(NOW, bytes);
        self.pass_on();
    }

    /// Whether all bytes were sent, all requests answered and all output taken, and the session wants more input.
    fn is_through(&self) -> bool {
        let done = self.rest.is_empty() && self.in_flight.is_empty() && !self.session.has_output();
        done && self.session.wants_input() && self.session.ending().is_none()
    }
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..40_usize, 1..3000_usize, 1..400_000_usize], 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn session_is_independent_of_input_pieces(
        structured: bool,
        commands in prop::collection::vec(command(), 1..30),
        pieces in pieces(),
        tail in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut bytes: Vec<u8> = commands.iter().enumerate().flat_map(|(at, command)| command.bytes(at)).collect();
        bytes.extend(tail);
        let converse = |pieces: &[usize]| {
            let mut session = session(structured, limits());
            let requests = ask_in_pieces(&mut session, &bytes, pieces);
            let operations: Vec<Operation> = requests.iter().map(|request| request.operation.clone()).collect();
            for (count, request) in requests.into_iter().enumerate().rev() {
                let result = work(&request, count);
                session.answer(NOW, request.handle, result);
            }
            let output = get(&mut session, NOW);
            session.input_ended();
            assert!(session.next_request().is_none() && session.is_over());
            (operations, output, session.ending().cloned())
        };
        let (requests, output, ending) = converse(&[usize::MAX]);
        let (other_requests, other_output, other_ending) = converse(&pieces);
        prop_assert_eq!(requests, other_requests);
        prop_assert!(output == other_output);
        prop_assert_eq!(ending, other_ending);
    }

    #[test]
    fn every_request_is_answered_once_in_any_order(
        structured: bool,
        commands in prop::collection::vec(command(), 1..40),
        most in 1..6_usize,
        held_bytes in prop_oneof![Just(0_usize), 1000..200_000_usize],
        steps in prop::collection::vec((0..3_u8, any::<u16>()), 1..200),
    ) {
        let limits = Limits { requests: most, held_bytes, ..limits() };
        let bytes: Vec<u8> = commands.iter().enumerate().flat_map(|(at, command)| command.bytes(at)).collect();
        let mut talk = Talk::new(session(structured, limits), &bytes);
        for (step, amount) in steps {
            match step {
                0 => talk.say(usize::from(amount) * 8),
                1 => talk.answer(amount.into()),
                _ => talk.take(usize::from(amount) * 4),
            }
            prop_assert!(talk.in_flight.len() <= most && talk.session.in_flight() == talk.in_flight.len());
        }
        // Each round answers a request or takes more input, so that this number is enough.
        for round in 0..4 * commands.len() + 100 {
            talk.say(usize::MAX);
            talk.answer(round);
            talk.take(usize::MAX);
        }
        prop_assert!(talk.is_through(), "a conversation gets stuck: {:?}", talk.session);
        let Talk { output, passed_on, .. } = talk;

        let good = commands.iter().filter(|command| command.errors(structured).is_empty());
        prop_assert!(passed_on.iter().eq(good.map(Command::operation).collect::<Vec<_>>().iter()));
        let mut heard = replies(&output, |cookie| match commands[cookie as usize] {
            Command { command: READ, length, .. } => length as usize,
            _ => 0,
        });
        heard.sort_by_key(|reply| reply.cookie);
        prop_assert!(heard.iter().map(|reply| reply.cookie).eq(0..commands.len() as u64), "each once");
        let mut count = 0;
        for (reply, command) in heard.iter().zip(&commands) {
            let errors = command.errors(structured);
            if !errors.is_empty() {
                prop_assert!(errors.contains(&reply.error), "{command:?} {reply:?}");
            } else if count % 7 == 6 {
                prop_assert_eq!(reply.error, EIO);
            } else {
                prop_assert_eq!(reply.error, OK);
                prop_assert!(reply.payload == payload(command, structured), "{:?}", command);
            }
            count += usize::from(errors.is_empty());
        }
    }

    #[test]
    fn handshake_is_independent_of_input_pieces(
        flags in 0..5_u32,
        options in prop::collection::vec(handshake_option(), 0..12),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        pieces in pieces(),
    ) {
        let bytes = [client_flags(flags), options.concat(), tail].concat();
        let converse = |pieces: &[usize]| {
            let mut handshake = Handshake::new(exports(), limits(), NOW);
            let (mut rest, mut heard) = (&bytes[..], Vec::new());
            for piece in pieces.iter().cycle() {
                let taken = put(&mut handshake, NOW, rest, (*piece).min(rest.len()));
                rest = &rest[taken..];
                heard.extend(get(&mut handshake, NOW));
                if taken == 0 || rest.is_empty() {
                    break;
                }
            }
            if handshake.chosen().is_none() {
                handshake.input_ended();
                assert!(handshake.is_over());
            }
            let ended = (handshake.chosen(), handshake.ending().cloned(), heard);
            let followed = handshake.into_session(NOW).map(|mut session| {
                let requests = ask_in_pieces(&mut session, rest, pieces);
                (requests, session.ending().cloned())
            });
            (ended, followed)
        };
        prop_assert_eq!(converse(&[usize::MAX]), converse(&pieces));
    }

    #[test]
    fn noise_breaks_a_session_only_by_a_bad_magic(bytes in prop::collection::vec(any::<u8>(), 0..2000), structured: bool) {
        let mut handshake = Handshake::new(exports(), limits(), NOW);
        put(&mut handshake, NOW, &bytes, usize::MAX);
        get(&mut handshake, NOW);
        handshake.input_ended();
        prop_assert!(handshake.is_over());
        let mut session = session(structured, limits());
        ask(&mut session, NOW, &bytes);
        session.input_ended();
        prop_assert!(session.next_request().is_none());
        let by_magic = bytes.len() >= 28 && bytes[..4] != [0x25, 0x60, 0x95, 0x13];
        prop_assert_eq!(matches!(session.ending(), Some(Ending::Broken(_))), by_magic);
    }
}

/// An option that is valid or nearly valid.
fn handshake_option() -> impl Strategy<Value = Vec<u8>> {
    let name = || prop_oneof![3 => Just("disk"), 1 => Just("tape"), 1 => Just(""), 1 => Just("dsk"), 1 => Just("\n")];
    let items = prop::collection::vec(0..5_u16, 0..5);
    let queries = prop::collection::vec(
        prop_oneof![Just("base:allocation"), Just("base:"), Just("qemu:x"), Just("")],
        0..6,
    );
    let data = || prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        (6..8_u32, name(), items).prop_map(|(number, name, items)| choose(number, name, &items)),
        (9..11_u32, name(), queries).prop_map(|(number, name, queries)| contexts(number, name, &queries)),
        Just(option(8, &[])),
        Just(option(3, &[])),
        (0..14_u32, data()).prop_map(|(number, data)| option(number, &data)),
        (0..14_u32, 8000..9000_usize).prop_map(|(number, length)| option(number, &vec![0; length])),
        data(),
    ]
}
