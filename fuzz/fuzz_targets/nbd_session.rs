//! The transmission of NBD: whatever the bytes, the pieces they come in and the order of answers, only what lies within the
//! export in whole blocks is passed on, every request is answered once, and no more is held than the limits allow.
//!
//! The input is a list of requests in short form: a byte that says what kind, then eight of fields. Other kinds are bytes as
//! they are, an answer, and replies that the client takes.

#![no_main]

use headstack_model::Instant;
use headstack_nbd::{Budget, Ending, Export, Exports, Handshake, Limits, Request, Session, Wire};
use headstack_nbd::{Answer, BlockError, Operation, StatusExtent};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 20;
const HELD: usize = 16 << 10;

/// What happens next.
enum Event {
    Say(Vec<u8>),
    Answer(usize),
    Take(usize),
}

fn events(mut input: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(([kind, fields @ ..], rest)) = input.split_first_chunk::<9>() {
        input = rest;
        let [flags, a, b, c, d, e, f, g] = *fields;
        events.push(match kind {
            0..=159 => {
                let offset = u64::from(u16::from_be_bytes([a, b])) * if c & 1 == 0 { 512 } else { 100 };
                let offset = if c & 0x80 == 0 { offset } else { u64::MAX - offset };
                let length = u32::from(u16::from_be_bytes([d, e])) * if f & 1 == 0 { 512 } else { 3 };
                let length = if f & 0x80 == 0 { length % 100_000 } else { length << 12 };
                let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
                bytes.extend(u16::from(flags).to_be_bytes());
                bytes.extend(u16::from(kind % 10).to_be_bytes());
                bytes.extend(u64::from(g).to_be_bytes());
                bytes.extend(offset.to_be_bytes());
                bytes.extend(length.to_be_bytes());
                if kind % 10 == 1 {
                    // All of the payload, or so little that the next requests are taken for it.
                    bytes.extend(vec![g; if g & 1 == 0 { length.min(200_000) as usize } else { 7 }]);
                }
                Event::Say(bytes)
            }
            160..=169 => Event::Say(fields.to_vec()),
            170..=219 => Event::Answer(usize::from(a)),
            _ => Event::Take(usize::from(u16::from_be_bytes([a, b]))),
        });
    }
    events
}

fn session(structured: bool, budget: Option<&Budget>) -> Session {
    let mut export = Export::new("disk", SIZE);
    export.blocks.maximum = 128 << 10;
    let exports = Exports::new(vec![export]).expect("it can be exported");
    let limits =
        Limits { requests: 5, held_bytes: HELD, payload_bytes: 1 << 20, extents: 3, ..Limits::default() };
    let mut said = 3_u32.to_be_bytes().to_vec();
    let mut option = |number: u32, data: &[u8]| {
        said.extend(b"IHAVEOPT");
        said.extend(number.to_be_bytes());
        said.extend((data.len() as u32).to_be_bytes());
        said.extend(data);
    };
    if structured {
        option(8, &[]);
        option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
    }
    option(7, &[0; 6]);
    let mut handshake = Handshake::new(exports, limits, Instant::ZERO).with_budget(budget.cloned());
    handshake.input_space()[..said.len()].copy_from_slice(&said);
    handshake.filled(Instant::ZERO, said.len());
    let greeting = handshake.output().len();
    handshake.sent(Instant::ZERO, greeting);
    handshake.into_session(Instant::ZERO).expect("the default export was chosen")
}

fn check(operation: &Operation) {
    let (offset, bytes) = match operation {
        Operation::Read { offset, bytes, .. } => (*offset, u64::from(*bytes)),
        Operation::Write { offset, data, .. } => (*offset, data.len() as u64),
        Operation::WriteZeroes { offset, bytes, .. }
        | Operation::Trim { offset, bytes }
        | Operation::Prefetch { offset, bytes }
        | Operation::Allocation { offset, bytes } => (*offset, *bytes),
        Operation::Flush => return,
    };
    assert!(bytes > 0 && offset % 512 == 0 && bytes % 512 == 0 && offset + bytes <= SIZE);
}

/// A session, what is with its disk, and everything that was said and heard so far.
struct Talk {
    session: Session,
    under_way: Vec<Request>,
    unsaid: Vec<u8>,
    asked: Vec<Operation>,
}

impl Talk {
    fn pass_on(&mut self) {
        while let Some(request) = self.session.next_request() {
            check(&request.operation);
            self.asked.push(request.operation.clone());
            self.under_way.push(request);
        }
        assert_eq!(self.session.in_flight(), self.under_way.len());
        assert!(self.under_way.len() <= 5);
        let weights: Vec<usize> = self
            .under_way
            .iter()
            .filter_map(|request| match &request.operation {
                Operation::Write { data, .. } => Some(data.len()),
                Operation::Read { bytes, .. } => Some(*bytes as usize),
                _ => None,
            })
            .collect();
        // A single one may be larger than all that may be held.
        assert!(weights.len() <= 1 || weights.iter().sum::<usize>() <= HELD, "{weights:?}");
    }

    fn say(&mut self, bytes: &[u8], piece: usize) {
        self.unsaid.extend(bytes);
        while !self.unsaid.is_empty() && self.session.wants_input() {
            let space = self.session.input_space();
            assert!(!space.is_empty());
            let count = space.len().min(piece).min(self.unsaid.len());
            space[..count].copy_from_slice(&self.unsaid[..count]);
            self.session.filled(Instant::ZERO, count);
            self.unsaid.drain(..count);
            self.pass_on();
        }
    }

    fn answer(&mut self, choice: usize) {
        if self.under_way.is_empty() {
            return;
        }
        let request = self.under_way.swap_remove(choice % self.under_way.len());
        let (session, handle) = (&mut self.session, request.handle);
        match request.operation {
            _ if choice % 5 == 4 => session.answer(Instant::ZERO, handle, Err(BlockError::Medium)),
            Operation::Read { .. } => session.answer_read(Instant::ZERO, handle, |room| {
                room.fill(7);
                Ok(())
            }),
            Operation::Allocation { .. } => {
                let told =
                    [(512, true), (0, false), (512, true), (1024, false), (512, true), (u64::MAX, false)];
                let told = told.map(|(bytes, hole)| StatusExtent { bytes, hole });
                session.answer(Instant::ZERO, handle, Ok(Answer::Allocation(told.to_vec())));
            }
            _ => session.answer(Instant::ZERO, handle, Ok(Answer::Done)),
        }
        self.pass_on();
    }

    fn take(&mut self, bytes: usize) {
        let bytes = bytes.min(self.session.output().len());
        self.session.sent(Instant::ZERO, bytes);
        self.pass_on();
    }
}

fn converse(events: &[Event], structured: bool, piece: usize) -> (Vec<Operation>, Option<Ending>) {
    // Smaller than what the connection may hold, so that it is met.
    let budget = (events.len() % 2 == 0).then(|| Budget::new(4 << 10));
    let mut talk = Talk {
        session: session(structured, budget.as_ref()),
        under_way: vec![],
        unsaid: vec![],
        asked: vec![],
    };
    for event in events {
        match event {
            Event::Say(bytes) => talk.say(bytes, piece),
            Event::Answer(choice) => talk.answer(*choice),
            Event::Take(bytes) => talk.take(*bytes),
        }
    }
    let mut rounds = 0;
    while talk.session.ending().is_none() {
        talk.say(&[], piece);
        talk.answer(rounds);
        talk.take(usize::MAX);
        if talk.unsaid.is_empty() {
            talk.session.input_ended();
            talk.pass_on();
        }
        rounds += 1;
        assert!(rounds < 100_000, "a session gets stuck");
    }
    while !talk.under_way.is_empty() {
        talk.answer(3);
    }
    talk.take(usize::MAX);
    assert!(talk.session.is_over());
    let ending = talk.session.ending().cloned();
    drop(talk.session);
    assert!(budget.is_none_or(|budget| budget.spent() == 0), "all is given back");
    (talk.asked, ending)
}

fuzz_target!(|input: &[u8]| {
    let events = events(input);
    let structured = input.len() % 2 == 0;
    let whole = converse(&events, structured, usize::MAX);
    assert_eq!(whole, converse(&events, structured, 1 + input.len() % 1000));
});
