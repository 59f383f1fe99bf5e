//! Random clients, with data: no read returns old data, no flushed data are missing, and each request is answered once.

use crate::world::{BLOCK, Speed, World};
use headstack_model::{Instant, Nanos};
use headstack_streams::streams::{Classifier, Config, RegionForm, RequestKind};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// A value that a block may have.
struct Content {
    value: u64,
    /// The request that writes it.
    ticket: u64,
    /// The event at which that request was answered; `MAX` before.
    over: u64,
}

/// An outstanding request.
struct Submitted {
    client: usize,
    kind: RequestKind,
    /// The event at which it was submitted.
    since: u64,
    /// For a read: the values that it may return, for each block.
    may: Vec<Vec<u64>>,
}

struct Drawn {
    world: World,
    random: Pcg64Mcg,
    blocks: Vec<Vec<Content>>,
    /// Number of events so far: submissions and answers of requests.
    events: u64,
    submitted: BTreeMap<u64, Submitted>,
    /// For each client, where it continues and how.
    places: Vec<(u64, u8)>,
    numbers: u64,
    seed: u64,
}

const DISK_BLOCKS: u64 = 4096;

fn run_of(kind: &RequestKind) -> (u64, u64) {
    let (offset, bytes) = kind.run();
    (offset / BLOCK, bytes / BLOCK)
}

fn values(block: &[Content]) -> Vec<u64> {
    block.iter().map(|content| content.value).collect()
}

impl Drawn {
    fn new(seed: u64) -> Drawn {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let memory = [256 << 10, 512 << 10, 1 << 20, 4 << 20][random.random_range(0..4)];
        let dispatch_set = [None, Some(1), Some(3)][random.random_range(0..3)];
        let requests_per_turn = [None, Some(1), Some(5)][random.random_range(0..3)];
        // With one stream and one request at a time, a request may take all of the memory.
        let most = if (dispatch_set, requests_per_turn) == (Some(1), Some(1)) { memory } else { memory / 4 };
        let config = Config {
            memory_bytes: memory,
            read_ahead_bytes: [None, Some(most), Some(64 << 10)][random.random_range(0..3)],
            dispatch_set,
            requests_per_turn,
            arms: [None, Some(2), Some(3)][random.random_range(0..3)],
            queue_depth: [1, 2, 32][random.random_range(0..3)],
            coalesce_ms: 20.0,
            idle_ms: [50.0, 1000.0][random.random_range(0..2)],
            coalesce_writes: random.random_bool(0.8),
            direct_bytes: [64 << 10, 4 << 20][random.random_range(0..2)],
            classifier: Classifier {
                form: if seed % 4 == 3 { RegionForm::Around } else { RegionForm::Fixed },
                ..Classifier::default()
            },
            ..Config::default()
        };
        let speed = Speed { positioning: Nanos(2_000_000), byte_ns: 20.0 };
        let mut world = World::new(config, DISK_BLOCKS as usize, speed);
        world.is_checked = true;
        let clients = random.random_range(1..12);
        let places =
            (0..clients).map(|_| (random.random_range(0..DISK_BLOCKS), random.random_range(0..8))).collect();
        let blocks = (0..DISK_BLOCKS).map(|_| vec![Content { value: 0, ticket: 0, over: 0 }]).collect();
        Drawn { world, random, blocks, submitted: BTreeMap::new(), places, numbers: 0, events: 0, seed }
    }

    fn draw_kind(&mut self, client: usize) -> RequestKind {
        let (place, way) = self.places[client];
        let most = [1, 4, 16, 40][self.random.random_range(0..4)];
        let count = if way < 6 { 16 } else { self.random.random_range(1..=most) };
        let (at, next) = match way {
            0..3 => (place, place + count),
            3 => (place, place + count + self.random.random_range(0..3)),
            4 => (place, place.wrapping_sub(count)),
            5 => (place, place + 100),
            _ => (place, self.random.random_range(0..DISK_BLOCKS)),
        };
        let at = if at >= DISK_BLOCKS { 0 } else { at };
        let count = count.min(DISK_BLOCKS - at);
        self.places[client].0 =
            if next >= DISK_BLOCKS { self.random.random_range(0..DISK_BLOCKS) } else { next };
        let (offset, bytes) = (at * BLOCK, count * BLOCK);
        let fua = self.random.random_bool(0.03);
        match self.random.random_range(0..100) {
            0..2 => RequestKind::Flush,
            2..4 => RequestKind::Trim { offset, bytes },
            4..5 => RequestKind::BlockStatus { offset, bytes },
            _ if way % 3 == 1 || way > 5 && self.random.random_bool(0.5) => {
                RequestKind::Write { offset, bytes, fua }
            }
            _ => RequestKind::Read { offset, bytes, fua },
        }
    }

    fn issue(&mut self, client: usize) {
        let kind = self.draw_kind(client);
        self.numbers += 1;
        let number = if matches!(kind, RequestKind::Trim { .. }) { 0 } else { self.numbers };
        let (first, count) = run_of(&kind);
        let run = first as usize..(first + count) as usize;
        let may = match kind {
            RequestKind::Read { .. } => self.blocks[run.clone()].iter().map(|block| values(block)).collect(),
            _ => Vec::new(),
        };
        self.events += 1;
        let ticket = self.world.submit(client as u64, kind, number);
        if matches!(kind, RequestKind::Write { .. } | RequestKind::Trim { .. }) {
            let content = || Content { value: number, ticket, over: u64::MAX };
            self.blocks[run.clone()].iter_mut().for_each(|block| block.push(content()));
            // Outstanding reads may return the new value.
            for other in
                self.submitted.values_mut().filter(|other| matches!(other.kind, RequestKind::Read { .. }))
            {
                let (begin, _) = run_of(&other.kind);
                let places = other.may.iter_mut().enumerate();
                places
                    .filter(|(place, _)| run.contains(&(begin as usize + place)))
                    .for_each(|(_, may)| may.push(number));
            }
        }
        self.submitted.insert(ticket, Submitted { client, kind, since: self.events, may });
    }

    fn take_answers(&mut self) {
        for (ticket, result) in std::mem::take(&mut self.world.answered) {
            self.events += 1;
            let Submitted { kind, since, may, .. } =
                self.submitted.remove(&ticket).expect("it was submitted");
            let data = result.expect("the disk works");
            let (first, count) = run_of(&kind);
            match kind {
                RequestKind::Read { .. } => {
                    assert_eq!(data.len(), may.len());
                    for (place, (met, may)) in data.iter().zip(&may).enumerate() {
                        let block = first as usize + place;
                        assert!(
                            may.contains(met),
                            "seed {}: block {block} is {met}, not of {may:?}",
                            self.seed
                        );
                    }
                }
                RequestKind::Write { .. } | RequestKind::Trim { .. } => {
                    for block in &mut self.blocks[first as usize..(first + count) as usize] {
                        // Values that were final before this write was submitted are overwritten.
                        block.retain(|content| content.over > since);
                        let own = block.iter_mut().find(|content| content.ticket == ticket);
                        own.expect("it was added").over = self.events;
                    }
                }
                _ => {}
            }
        }
    }

    fn run(mut self, steps: u32) {
        for _ in 0..steps {
            let client = self.random.random_range(0..self.places.len());
            let busy = self.submitted.values().filter(|submitted| submitted.client == client).count();
            if busy < 4 {
                self.issue(client);
            }
            self.take_answers();
            let pause = Nanos(self.random.random_range(0..6_000_000));
            let until = self.world.now + pause;
            while self.world.step(until) {
                self.take_answers();
            }
        }
        for _ in 0..100_000 {
            if self.submitted.is_empty() {
                break;
            }
            self.world.step(Instant::MAX);
            self.take_answers();
        }
        assert!(self.submitted.is_empty(), "seed {}: {} are never answered", self.seed, self.submitted.len());
        let ticket = self.world.submit(0, RequestKind::Flush, 0);
        while self.world.outstanding() > 0 {
            assert!(self.world.step(Instant::MAX), "seed {}: flush {ticket} ends", self.seed);
        }
        for (place, block) in self.blocks.iter().enumerate() {
            let met = self.world.disk[place];
            assert!(values(block).contains(&met), "seed {}: block {place} is {met} after a flush", self.seed);
        }
    }
}

#[test]
fn no_read_is_stale_and_no_flushed_write_is_lost() {
    #[allow(clippy::disallowed_methods, reason = "to draw more, or one again: SEED or FIRST..END")]
    let submitted = std::env::var("HEADSTACK_SEEDS").unwrap_or_else(|_| "0..300".to_string());
    let (first, end) = submitted.split_once("..").unwrap_or((&submitted, ""));
    let first: u64 = first.parse().expect("a number");
    let seeds = first..end.parse().unwrap_or(first + 1);
    seeds.for_each(|seed| Drawn::new(seed).run(400));
}
