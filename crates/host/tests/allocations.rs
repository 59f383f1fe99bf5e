//! Does a request over NBD allocate? A read must not, and a write only for its data, which the disk keeps.

use std::alloc::System;

use headstack_host::nbd::{Export, Exports, Handshake, Limits, Session, Wire};
use headstack_host::{Answer, Operation};
use headstack_model::Nanos;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Nanos = Nanos::ZERO;

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

/// Allocations of so many rounds of these 32 requests, the second half of them answered first.
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

// One test, since another would allocate beside it.
#[test]
fn does_a_request_allocate_no_more_than_its_own_data() {
    let burst = |command: u8| -> Vec<u8> {
        (0..32).flat_map(|cookie| request(command, cookie, u64::from(cookie) << 20)).collect()
    };
    let mut session = session();
    let (reads, writes) = (burst(0), burst(1));
    allocations(&mut session, &reads, 10);
    allocations(&mut session, &writes, 10);
    // The thread that runs the tests may allocate meanwhile, but hardly every time.
    let mut least = |burst: &[u8]| (0..5).map(|_| allocations(&mut session, burst, 200)).min();
    assert_eq!(least(&reads), Some(0));
    assert_eq!(least(&writes), Some(6400));
}
