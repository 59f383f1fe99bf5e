//! An emulated disk returns what was written, with concurrent requests, late time steps, and power cuts at any time.
//!
//! Each write has a distinct byte, so that a block shows which write it holds. It may hold any write that no other write certainly
//! followed, i.e. that was submitted after the former had been answered, and completed in time.

mod common;

use common::emulator;
use headstack_host::Operation;
use headstack_host::disk::{Answered, Emulator, EmulatorFaults, Outcome};
use headstack_model::{Instant, Nanos};
use proptest::prelude::*;

/// Blocks that are used.
const BLOCKS: u64 = 96;
const BLOCK: u64 = 512;
/// Where they begin: over a few tracks, one of which ends among them.
const START: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Write { fua: bool },
    Zeroes,
    Trim,
    Read,
    Flush,
}

#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    first: u64,
    blocks: u64,
    /// How long until the next; the disk is turned then and not before.
    pause: Nanos,
    /// By how much the disk was turned too far when this comes, so as to tell in time what is done.
    ahead: Nanos,
}

/// What became of an operation; times count what happens.
#[derive(Debug)]
struct Event {
    kind: Kind,
    blocks: std::ops::Range<u64>,
    /// What a write leaves.
    byte: u8,
    pending: usize,
    answered: Option<usize>,
}

impl Event {
    fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Read | Kind::Flush)
    }
}

#[derive(Default)]
struct History {
    events: Vec<Event>,
    now: usize,
}

impl History {
    fn ask(&mut self, step: &Step) -> u64 {
        self.now += 1;
        let number = self.events.len();
        let byte = if matches!(step.kind, Kind::Write { .. }) { number as u8 + 1 } else { 0 };
        let blocks = START + step.first..START + (step.first + step.blocks).min(BLOCKS);
        self.events.push(Event { kind: step.kind, blocks, byte, pending: self.now, answered: None });
        number as u64
    }

    fn operation(&self, number: u64) -> Operation {
        let Event { kind, ref blocks, byte, .. } = self.events[number as usize];
        let (offset, bytes) = (blocks.start * BLOCK, (blocks.end - blocks.start) * BLOCK);
        match kind {
            Kind::Write { fua } => Operation::Write { offset, data: vec![byte; bytes as usize], fua },
            Kind::Zeroes => Operation::WriteZeroes { offset, bytes, may_trim: false, fua: false },
            Kind::Trim => Operation::Trim { offset, bytes },
            Kind::Read => Operation::Read { offset, bytes: bytes as u32, fua: false },
            Kind::Flush => Operation::Flush,
        }
    }

    fn answer(&mut self, number: u64) {
        self.now += 1;
        self.events[number as usize].answered = Some(self.now);
    }

    /// When a write is certain to outlive the power, if it is: it was answered with FUA, or by a flush that was asked for
    /// after its answer.
    fn durable(&self, write: &Event) -> Option<usize> {
        let answered = write.answered?;
        let flushes =
            self.events.iter().filter(|event| event.kind == Kind::Flush && event.pending > answered);
        let flushed = flushes.filter_map(|flush| flush.answered).min();
        let fua = (write.kind == Kind::Write { fua: true }).then_some(answered);
        flushed.into_iter().chain(fua).min()
    }

    /// Whether a block may read as `byte` to who asked at `pending`; `is_over` says when a write is certainly there.
    fn allows(
        &self,
        block: u64,
        byte: u8,
        pending: usize,
        is_over: impl Fn(&Event) -> Option<usize>,
    ) -> bool {
        let writes = || self.events.iter().filter(|event| event.writes() && event.blocks.contains(&block));
        let followed = |after: usize| {
            writes().any(|other| other.pending > after && is_over(other).is_some_and(|over| over < pending))
        };
        let fresh = byte == 0 && !followed(0);
        fresh || writes().any(|write| write.byte == byte && !write.answered.is_some_and(followed))
    }

    /// What was read, block by block.
    fn check(&self, first: u64, data: &[u8], pending: usize, is_over: impl Fn(&Event) -> Option<usize>) {
        for (block, bytes) in (first..).zip(data.chunks(BLOCK as usize)) {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block} is torn");
            let allowed = self.allows(block, bytes[0], pending, &is_over);
            assert!(allowed, "block {block} has the byte {}", bytes[0]);
        }
    }
}

/// Takes what is over and checks what was read.
fn take(emulator: &mut Emulator, history: &mut History) {
    while let Some(Answered { ticket, result, .. }) = emulator.poll_answer() {
        if emulator.is_dark() {
            // The caller gets no answer any more.
            continue;
        }
        history.answer(ticket);
        if let Outcome::Read { volume, offset, bytes } = result.expect("nothing is wrong with it") {
            let mut data = vec![0; bytes as usize];
            emulator.read(volume, offset, &mut data).expect("it is inside");
            let pending = history.events[ticket as usize].pending;
            history.check(offset / BLOCK, &data, pending, |write| write.answered);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        4 => Just(Kind::Write { fua: false }),
        1 => Just(Kind::Write { fua: true }),
        1 => Just(Kind::Zeroes),
        1 => Just(Kind::Trim),
        3 => Just(Kind::Read),
        1 => Just(Kind::Flush),
    ];
    let pause = prop_oneof![
        3 => Just(0),
        3 => 0u64..200_000,
        2 => 0u64..30_000_000,
        1 => 0u64..1_000_000_000,
    ];
    let step = (kind, 0..BLOCKS, 1u64..40, pause.prop_map(Nanos), (0u64..50_000).prop_map(Nanos));
    let step =
        step.prop_map(|(kind, first, blocks, pause, ahead)| Step { kind, first, blocks, pause, ahead });
    prop::collection::vec(step, 1..100)
}

/// With a write cache and without, queues that sort and that do not.
const DRIVES: [&str; 4] = ["atlas-10k", "cheetah-9lp", "st2000dm006", "hp-c2247a"];

/// What stands before drives, or puts them together.
const RIGS: [&str; 5] = ["mirror", "raid5", "smart-controller", "workstation", "ssa-loop"];

/// The steps, each turned to only when the next is due; when the last one was.
fn run(emulator: &mut Emulator, steps: &[Step]) -> (History, Instant) {
    let (mut history, mut now) = (History::default(), Instant::ZERO);
    for step in steps {
        emulator.handle_timeout(now + step.ahead);
        take(emulator, &mut history);
        let number = history.ask(step);
        emulator.submit(now, 0, history.operation(number), number);
        take(emulator, &mut history);
        now += step.pause;
    }
    (history, now)
}

/// Turns the disk until all is answered, each time this late; when that was.
fn finish(emulator: &mut Emulator, history: &mut History, mut now: Instant, late: u64) -> Instant {
    while emulator.outstanding() > 0 {
        now = now.max(emulator.poll_timeout().expect("operations are in flight")) + Nanos(late);
        emulator.handle_timeout(now);
        take(emulator, history);
    }
    now
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disk_is_a_plain_array_of_bytes(
        steps in steps(),
        name in prop::sample::select([&DRIVES[..], &RIGS[..]].concat()),
        late in 0u64..50_000_000,
    ) {
        let mut emulator = emulator(name, EmulatorFaults::default());
        let (mut history, now) = run(&mut emulator, &steps);
        let now = finish(&mut emulator, &mut history, now, late);
        let flush = Step { kind: Kind::Flush, first: 0, blocks: 1, pause: Nanos::ZERO, ahead: Nanos::ZERO };
        let number = history.ask(&flush);
        emulator.submit(now, 0, Operation::Flush, number);
        finish(&mut emulator, &mut history, now, late);
        prop_assert_eq!(emulator.volumes()[0].unwritten_bytes(), 0, "what is read is what the power leaves");
        let mut data = vec![0; (BLOCKS * BLOCK) as usize];
        emulator.read(0, START * BLOCK, &mut data).expect("it is inside");
        history.check(START, &data, history.now + 1, |write| write.answered);
    }

    #[test]
    fn flushed_data_survives_a_power_cut(steps in steps(), name in prop::sample::select(&DRIVES)) {
        cut_and_check(&steps, name);
    }
}

/// Takes the steps, cuts the power, and looks at what is on the media.
fn cut_and_check(steps: &[Step], name: &str) {
    let mut emulator = emulator(name, EmulatorFaults::default());
    let (mut history, now) = run(&mut emulator, steps);
    emulator.cut_power(now);
    take(&mut emulator, &mut history);
    let mut data = vec![0; (BLOCKS * BLOCK) as usize];
    emulator.volumes()[0].read_media(START * BLOCK, &mut data).expect("it is inside");
    history.check(START, &data, history.now + 1, |write| history.durable(write));
}

/// The drive takes the data of the write that was submitted last before those of one that was before the trim, and writes
/// both to a block.
#[test]
fn write_after_a_trim_survives_a_power_cut() {
    let write = Kind::Write { fua: false };
    let step = |kind, first, blocks, pause, ahead| Step {
        kind,
        first,
        blocks,
        pause: Nanos(pause),
        ahead: Nanos(ahead),
    };
    let steps = [
        step(write, 0, 1, 0, 0),
        step(write, 0, 1, 0, 0),
        step(write, 0, 1, 0, 0),
        step(write, 0, 1, 0, 0),
        step(Kind::Flush, 0, 1, 0, 0),
        step(write, 5, 31, 0, 0),
        step(Kind::Trim, 0, 14, 0, 0),
        step(write, 0, 6, 0, 1),
        step(Kind::Flush, 75, 11, 0, 42_684),
        step(Kind::Read, 2, 17, 258_441_232, 41_267),
        step(Kind::Flush, 71, 9, 156_080, 47_885),
        step(Kind::Write { fua: true }, 92, 38, 0, 46_488),
    ];
    cut_and_check(&steps, "st2000dm006");
}
