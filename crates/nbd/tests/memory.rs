//! The memory of all connections together: what the allocator gave stays within the budget and the own bytes of each, whatever clients ask
//! for and do not take. A program without the test harness, whose threads would allocate, too.

use headstack_model::Instant;
use headstack_nbd::{
    Answer, Budget, Export, Exports, Handshake, Limits, Operation, ReplyHandle, Session, Wire,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Instant = Instant::ZERO;
const CLIENTS: usize = 40;
const BUDGET: usize = 40 << 20;
/// What each connection has for itself, its input included.
const OWN: usize = 256 << 10;
const DISK: u64 = 1 << 30;

/// Bytes that are allocated now.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

struct Client {
    session: Session,
    at_disk: Vec<(ReplyHandle, usize)>,
    unsent: Vec<u8>,
}

impl Client {
    fn new(budget: &Budget) -> Client {
        let exports = Exports::new(vec![Export::new("disk", DISK)]).expect("it can be exported");
        let mut handshake = Handshake::new(exports, Limits::default(), NOW).with_budget(Some(budget.clone()));
        let said = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
        handshake.input_space()[..said.len()].copy_from_slice(&said);
        handshake.filled(NOW, said.len());
        let session = handshake.into_session(NOW).expect("the default export was chosen");
        Client { session, at_disk: Vec::new(), unsent: Vec::new() }
    }

    fn request(&mut self, command: u8, bytes: u32) {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, command, 0, 0, 0, 0, 0, 0, 0, 1];
        self.unsent.extend([&head[..], &[0; 8], &bytes.to_be_bytes()].concat());
        if command == 1 {
            self.unsent.resize(self.unsent.len() + bytes as usize, 7);
        }
    }

    /// Passes the session what it takes, and the disk its requests.
    fn advance(&mut self) {
        loop {
            while let Some(request) = self.session.next_request() {
                // The disk holds as much for a read as its reply, and the data of a write.
                let bytes = match request.operation {
                    Operation::Read { bytes, .. } => bytes as usize,
                    _ => 0,
                };
                self.at_disk.push((request.handle, bytes));
            }
            if self.unsent.is_empty() || !self.session.wants_input() {
                return;
            }
            let space = self.session.input_space();
            let part = space.len().min(self.unsent.len());
            space[..part].copy_from_slice(&self.unsent[..part]);
            self.session.filled(NOW, part);
            self.unsent.drain(..part);
        }
    }

    fn answer_all(&mut self) {
        for (handle, bytes) in self.at_disk.drain(..) {
            if bytes > 0 {
                self.session.answer_read(NOW, handle, |room| {
                    room[0] = 1;
                    Ok(())
                });
            } else {
                self.session.answer(NOW, handle, Ok(Answer::Done));
            }
        }
    }

    /// Takes some of the replies.
    fn receive(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0 && !self.session.output().is_empty() {
            let part = self.session.output().len().min(left);
            self.session.sent(NOW, part);
            left -= part;
        }
    }
}

fn main() {
    let before = allocated();
    let budget = Budget::new(BUDGET);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(&budget)).collect();
    let bound = BUDGET + CLIENTS * OWN;
    let mut peak = 0;
    let mut look = |clients: &[Client]| {
        let unsent: usize = clients.iter().map(|client| client.unsent.capacity()).sum();
        let lists: usize =
            clients.iter().map(|client| client.at_disk.capacity() * size_of::<(ReplyHandle, usize)>()).sum();
        peak = peak.max(allocated() - before - unsent - lists);
    };
    // Four reads of 32 MiB by each, none of which is taken.
    for client in &mut clients {
        (0..4).for_each(|_| client.request(0, 32 << 20));
    }
    for _ in 0..8 {
        for at in 0..clients.len() {
            clients[at].advance();
            clients[at].answer_all();
            look(&clients);
        }
    }
    assert!(clients.iter().any(|client| client.session.lacks_memory()), "the budget is used up");
    clients.iter_mut().for_each(|client| client.receive(usize::MAX));
    // Mixed sizes in any order, some of the replies taken. A fixed sequence of pseudo-random numbers (Knuth's MMIX constants).
    let mut state = 7_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let sizes = [512, 4096, 16 << 10, 20 << 10, 64 << 10, 1 << 20, 3 << 20, 9 << 20, 32 << 20];
    for _ in 0..3000 {
        let at = draw(clients.len());
        if clients[at].unsent.is_empty() {
            let command = u8::from(draw(3) == 0);
            (0..1 + draw(8)).for_each(|_| clients[at].request(command, sizes[draw(sizes.len())]));
        }
        clients[at].advance();
        if draw(2) == 0 {
            clients[at].answer_all();
        }
        clients[at].receive(draw(12 << 20));
        look(&clients);
    }
    println!("{} KiB at most, of {} KiB", peak >> 10, bound >> 10);
    assert!(peak <= bound + bound / 10, "{peak} bytes, where {bound} are the bound");
    assert!(peak > bound / 2, "{peak} bytes: the clients did not ask for enough");
    // What is idle holds no more than its own.
    for client in &mut clients {
        client.unsent.clear();
        client.answer_all();
        client.receive(usize::MAX);
        client.session.handle_timeout(NOW);
    }
    assert!(budget.spent() <= 32 << 20, "of one request that was not received in full: {}", budget.spent());
    drop(clients);
    assert_eq!(budget.spent(), 0);
}
