//! Does a request allocate? Over NBD a read must not, and a write only for its data, which the disk keeps. In a node's core none must,
//! except for streams of writes occasionally. A program without the test harness, whose threads would allocate, too.

use std::alloc::System;

use headstack_host::node::{Action, Command, Ended, NodeCore, RequestKind, Shape};
use headstack_host::{Answer, Operation};
use headstack_model::{Instant, Nanos};
use headstack_nbd::{Export, Exports, Handshake, Limits, Session, Wire};
use headstack_streams::streams::Config;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Instant = Instant::ZERO;

fn say(wire: &mut impl Wire, bytes: &[u8]) {
    wire.input_space()[..bytes.len()].copy_from_slice(bytes);
    wire.filled(NOW, bytes.len());
}

fn session() -> Session {
    let exports = Exports::new(vec![Export::new("disk", 1 << 30)]).expect("it can be exported");
    let mut handshake = Handshake::new(exports, Limits::default(), NOW);
    let (flags, structured, choose) = (&[0, 0, 0, 3], &[0, 0, 0, 8, 0, 0, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 0]);
    say(&mut handshake, &[&flags[..], b"IHAVEOPT", structured, b"IHAVEOPT", choose].concat());
    handshake.into_session(NOW).expect("the default export was chosen")
}

fn request(command: u8, cookie: u8, offset: u64) -> Vec<u8> {
    let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, command, 0, 0, 0, 0, 0, 0, 0, cookie];
    let mut bytes = [&head[..], &offset.to_be_bytes(), &4096_u32.to_be_bytes()].concat();
    if command == 1 {
        bytes.extend([cookie; 4096]);
    }
    bytes
}

/// Allocations of some rounds of these 32 requests, the second half of them answered first.
fn allocations(session: &mut Session, burst: &[u8], rounds: usize) -> usize {
    let mut handles = Vec::with_capacity(32);
    let before = ALLOCATOR.stats().allocations;
    for _ in 0..rounds {
        // In two parts, so that a request lies across their border.
        for part in burst.chunks(burst.len() / 2 + 3) {
            say(session, part);
            while let Some(request) = session.next_request() {
                handles.push((request.handle, matches!(request.operation, Operation::Read { .. })));
            }
        }
        assert_eq!(handles.len(), 32);
        handles.rotate_left(16);
        for (handle, reads) in handles.drain(..) {
            if reads {
                session.answer_read(NOW, handle, |room| {
                    room.fill(1);
                    Ok(())
                });
            } else {
                session.answer(NOW, handle, Ok(Answer::Done));
            }
        }
        while !session.output().is_empty() {
            let part = session.output().len().min(50_000);
            session.sent(NOW, part);
        }
    }
    ALLOCATOR.stats().allocations - before
}

/// A node's core over a disk that takes a tenth of a millisecond, which keeps nothing.
struct Node {
    core: NodeCore<u64>,
    now: Instant,
    started: Vec<Command>,
    room: Vec<u8>,
}

impl Node {
    fn new() -> Node {
        let shape = Shape { bytes: 1 << 40, block_bytes: 512, read_only: false };
        let core = NodeCore::new(Config::default(), shape).expect("the defaults suit");
        Node { core, now: NOW, started: Vec::with_capacity(64), room: vec![0; 64 << 10] }
    }

    /// Asks, and carries out all that comes of it.
    fn ask(&mut self, client: u64, operation: Operation) {
        self.core.submit(self.now, client, operation, client);
        self.act();
        while let Some(command) = self.started.pop() {
            self.now += Nanos(100_000);
            match command.kind {
                RequestKind::Read { .. } => self.core.buffer(&command)[0] = 1,
                _ => assert!(!self.core.data(&command).is_empty()),
            }
            self.core.end(self.now, command, Ok(Ended::Done));
            self.act();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Start(command) => self.started.push(command),
                Action::Answer(answered) => {
                    if let Ok(headstack_host::node::Outcome::Read { bytes, data, .. }) = answered.result {
                        assert!(self.core.fill(&data, &mut self.room[..bytes as usize]));
                        self.core.release(data);
                    }
                }
            }
        }
    }

    /// Allocations of some rounds of requests that `make` makes beforehand.
    fn allocations(&mut self, rounds: u64, make: impl Fn(u64) -> Operation) -> usize {
        let pending: Vec<Operation> = (0..rounds).map(make).collect();
        let before = ALLOCATOR.stats().allocations;
        pending.into_iter().enumerate().for_each(|(turn, operation)| self.ask(turn as u64 % 8, operation));
        ALLOCATOR.stats().allocations - before
    }
}

/// The most that a core allocates for 4,096 requests in the steady state for random reads and writes, and for streams of both.
fn of_core() -> [Option<usize>; 4] {
    let mut node = Node::new();
    let random = |turn: u64| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 28) * 4096;
    let stream = |turn: u64| (turn % 8) << 36 | (turn / 8) << 16;
    let read = |offset, bytes| Operation::Read { offset, bytes, fua: false };
    let write = |offset, bytes| Operation::Write { offset, data: vec![1; bytes], fua: false };
    let mut done = 0;
    let mut most = |make: &dyn Fn(u64) -> Operation| {
        // The first fill tables and memory, and the second the buffers of reads that bypass the scheduler on trial.
        let figures = (0..8).map(|_| {
            let before = done;
            done += 4096;
            node.allocations(4096, |turn| make(before + turn))
        });
        figures.skip(2).max()
    };
    [
        most(&|turn| read(random(turn), 4096)),
        most(&|turn| write(random(turn), 4096)),
        most(&|turn| read(stream(turn), 64 << 10)),
        most(&|turn| write(1 << 39 | stream(turn), 64 << 10)),
    ]
}

fn main() {
    does_a_request_allocate_no_more_than_its_own_data();
}

fn does_a_request_allocate_no_more_than_its_own_data() {
    let burst = |command: u8| -> Vec<u8> {
        (0..32).flat_map(|cookie| request(command, cookie, u64::from(cookie) << 20)).collect()
    };
    let mut session = session();
    let (reads, writes) = (burst(0), burst(1));
    allocations(&mut session, &reads, 10);
    allocations(&mut session, &writes, 10);
    assert_eq!(allocations(&mut session, &reads, 200), 0);
    assert_eq!(allocations(&mut session, &writes, 200), 6400);
    let [random_reads, random_writes, streams, written] = of_core();
    assert_eq!([random_reads, random_writes, streams], [Some(0); 3]);
    // The tree of frames that gather grows and shrinks by a node now and then.
    assert!(written.is_some_and(|count| count < 4096 / 10), "{written:?}");
}
