//! The cost of an NBD request in its session, without the socket. The session receives 32 requests at a time, answers them and sends the replies.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headstack_model::Instant;
use headstack_nbd::{Answer, Operation};
use headstack_nbd::{Export, Exports, Handshake, Limits, Session, Wire};

const NOW: Instant = Instant::ZERO;
const DEPTH: u64 = 32;

fn say(wire: &mut impl Wire, bytes: &[u8]) {
    wire.input_space()[..bytes.len()].copy_from_slice(bytes);
    wire.filled(NOW, bytes.len());
}

/// A session with structured replies, which most clients request.
fn session() -> Session {
    let exports = Exports::new(vec![Export::new("disk", 1 << 30)]).unwrap_or_else(|error| panic!("{error}"));
    let mut handshake = Handshake::new(exports, Limits::default(), NOW);
    let (flags, structured, choose) = (&[0, 0, 0, 3], &[0, 0, 0, 8, 0, 0, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 0]);
    say(&mut handshake, &[&flags[..], b"IHAVEOPT", structured, b"IHAVEOPT", choose].concat());
    handshake.into_session(NOW).unwrap_or_else(|| panic!("the default export was chosen"))
}

fn burst(command: u8, bytes: u32) -> Vec<u8> {
    let request = |cookie: u64| {
        let mut request = [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, command], &cookie.to_be_bytes()[..]].concat();
        request.extend((cookie << 20).to_be_bytes());
        request.extend(bytes.to_be_bytes());
        request.resize(request.len() + if command == 1 { bytes as usize } else { 0 }, 7);
        request
    };
    (0..DEPTH).flat_map(request).collect()
}

fn turn(session: &mut Session, said: &[u8], data: &[u8]) {
    let mut rest = said;
    while !rest.is_empty() {
        let count = session.input_space().len().min(rest.len());
        say(session, &rest[..count]);
        rest = &rest[count..];
        while let Some(request) = session.next_request() {
            if let Operation::Read { .. } = request.operation {
                session.answer_read(NOW, request.handle, |room| {
                    room.copy_from_slice(&data[..room.len()]);
                    Ok(())
                });
            } else {
                session.answer(NOW, request.handle, Ok(Answer::Done));
            }
        }
    }
    let bytes = session.output().len();
    session.sent(NOW, bytes);
}

fn requests(criterion: &mut Criterion) {
    let data = vec![1; 1 << 20];
    let mut group = criterion.benchmark_group("nbd");
    group.throughput(Throughput::Elements(DEPTH));
    for (name, command, bytes) in [
        ("read 4 KiB", 0, 4 << 10),
        ("write 4 KiB", 1, 4 << 10),
        ("read 1 MiB", 0, 1 << 20),
        ("write 1 MiB", 1, 1 << 20),
    ] {
        let (mut session, said) = (session(), burst(command, bytes));
        group.bench_function(name, |b| b.iter(|| turn(&mut session, &said, &data)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = requests
}
criterion_main!(benches);
