//! Programs: the benchmarks of the study of track-aligned extents.

use super::BLOCK_BYTES;
use super::program::{Call, Handle};
use headstack_workload::generator;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Blocks that `cp` reads and writes at a time.
const COPY_BLOCKS: u64 = 8;

fn blocks(bytes: u64) -> u32 {
    bytes.div_ceil(BLOCK_BYTES) as u32
}

/// Reads a file of `bytes` bytes (file 0) from its start to its end.
pub fn scan(bytes: u64) -> impl Iterator<Item = Call> {
    std::iter::once(Call::Open(0)).chain((0..blocks(bytes)).map(|block| Call::Read(0, block)))
}

/// Compares two files of `bytes` bytes (files 0 and 1), alternating between their blocks.
pub fn diff(bytes: u64) -> impl Iterator<Item = Call> {
    let pairs = (0..blocks(bytes)).flat_map(|block| [Call::Read(0, block), Call::Read(1, block)]);
    [Call::Open(0), Call::Open(1)].into_iter().chain(pairs)
}

/// Copies a file of `bytes` bytes (file 0) to a new one (file 1), 64 KB at a time.
pub fn copy(bytes: u64) -> impl Iterator<Item = Call> {
    let step = COPY_BLOCKS * BLOCK_BYTES;
    let piece = move |at: u64| {
        let length = step.min(bytes - at);
        let first = (at / BLOCK_BYTES) as u32;
        let reads = (first..first + blocks(length)).map(|block| Call::Read(0, block));
        reads.chain(std::iter::once(Call::Append(1, length)))
    };
    let pieces = (0..bytes.div_ceil(step)).flat_map(move |index| piece(index * step));
    [Call::Open(0), Call::Create(1)].into_iter().chain(pieces).chain(std::iter::once(Call::Close(1)))
}

/// Reads the first byte of each of `files` files (0, 1 and so on).
pub fn head(files: u32) -> impl Iterator<Item = Call> {
    (0..files).flat_map(|file| [Call::Open(file), Call::Read(file, 0)])
}

/// The benchmark PostMark: small files made, read, lengthened and removed, as a mail server does. It marks the start and the end of its
/// transactions.
///
/// *Source:* J. Katcher, "PostMark: a new file system benchmark" (1997), and the defaults of its program, version 1.5. The
/// program's own random numbers are not reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postmark {
    /// Files at the start.
    pub files: u32,
    /// Transactions: each reads or lengthens a file, and makes or removes one, with equal chances.
    pub transactions: u32,
    /// Bytes of the smallest file.
    pub least_bytes: u64,
    /// Bytes of the largest one.
    pub most_bytes: u64,
    /// Seed.
    pub seed: u64,
}

impl Default for Postmark {
    /// The program's defaults: 500 files of 500 to 10,000 bytes, 500 transactions.
    fn default() -> Postmark {
        Postmark { files: 500, transactions: 500, least_bytes: 500, most_bytes: 10_000, seed: 42 }
    }
}

impl Postmark {
    /// Its calls.
    pub fn calls(self) -> impl Iterator<Item = Call> {
        let mut run = Running { plan: self, random: generator(self.seed), files: Vec::new(), made: 0 };
        let mut calls = Vec::new();
        (0..self.files).for_each(|_| run.create(&mut calls));
        calls.push(Call::Mark);
        for _ in 0..self.transactions {
            run.transaction(&mut calls);
        }
        calls.push(Call::Mark);
        while !run.files.is_empty() {
            run.delete(&mut calls);
        }
        calls.into_iter()
    }
}

struct Running {
    plan: Postmark,
    random: Pcg64Mcg,
    /// Files with their bytes.
    files: Vec<(Handle, u64)>,
    made: Handle,
}

impl Running {
    fn transaction(&mut self, calls: &mut Vec<Call>) {
        if self.random.random_bool(0.5) {
            self.read(calls)
        } else {
            self.append(calls)
        }
        if self.random.random_bool(0.5) { self.create(calls) } else { self.delete(calls) }
    }

    fn create(&mut self, calls: &mut Vec<Call>) {
        let bytes = self.random.random_range(self.plan.least_bytes..=self.plan.most_bytes);
        let file = self.made;
        self.made += 1;
        self.files.push((file, bytes));
        calls.extend([Call::Create(file), Call::Append(file, bytes), Call::Close(file)]);
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.files.is_empty()).then(|| self.random.random_range(0..self.files.len()))
    }

    fn read(&mut self, calls: &mut Vec<Call>) {
        let Some((file, bytes)) = self.pick().map(|index| self.files[index]) else { return };
        calls.push(Call::Open(file));
        calls.extend((0..blocks(bytes)).map(|block| Call::Read(file, block)));
    }

    fn append(&mut self, calls: &mut Vec<Call>) {
        let Some(index) = self.pick() else { return };
        let (file, bytes) = self.files[index];
        let room = self.plan.most_bytes.saturating_sub(bytes);
        if room > 0 {
            let more = self.random.random_range(1..=room);
            self.files[index].1 += more;
            calls.extend([Call::Open(file), Call::Append(file, more), Call::Close(file)]);
        }
    }

    fn delete(&mut self, calls: &mut Vec<Call>) {
        if let Some(index) = self.pick() {
            let (file, _) = self.files.swap_remove(index);
            calls.push(Call::Delete(file));
        }
    }
}

/// Sources of the program that is built, and the bytes of each, of an object file and of a program: about those of SSH 1.2.27.
const SOURCES: u32 = 400;
const SOURCE_BYTES: (u64, u64) = (1_000, 24_000);
const OBJECTS: u32 = 150;
const OBJECT_BYTES: (u64, u64) = (4_000, 40_000);
const PROGRAMS: u32 = 10;
const PROGRAM_BYTES: u64 = 500_000;
/// Tests of the configuration: each makes a source, an object and a program, and removes them.
const TESTS: u32 = 300;

/// A load like the benchmark SSH-build: it unpacks sources, configures with many short-lived files, compiles each source (with ten others
/// read as headers) and links programs. It has about the same kinds and numbers of calls, and none of the processor time.
///
/// *Source:* the study of track-aligned extents (5.2) for the phases; the counts are an assumption.
pub fn build(seed: u64) -> impl Iterator<Item = Call> {
    let mut random = generator(seed);
    let mut calls = Vec::new();
    let mut made = 0;
    let mut make = |calls: &mut Vec<Call>, bytes: u64| {
        let file: Handle = made;
        made += 1;
        calls.extend([Call::Create(file), Call::Append(file, bytes), Call::Close(file)]);
        file
    };
    let read = |calls: &mut Vec<Call>, file: Handle, bytes: u64| {
        calls.push(Call::Open(file));
        calls.extend((0..blocks(bytes)).map(|block| Call::Read(file, block)));
    };
    let mut sources = Vec::new();
    for _ in 0..SOURCES {
        let bytes = random.random_range(SOURCE_BYTES.0..=SOURCE_BYTES.1);
        sources.push((make(&mut calls, bytes), bytes));
    }
    calls.push(Call::Mark);
    for _ in 0..TESTS {
        let files = [200, 1_000, 12_000].map(|bytes| make(&mut calls, bytes));
        calls.extend(files.map(Call::Delete));
    }
    calls.push(Call::Mark);
    let mut objects = Vec::new();
    for (source, length) in sources.iter().take(OBJECTS as usize) {
        read(&mut calls, *source, *length);
        for _ in 0..10 {
            let (header, bytes) = sources[random.random_range(OBJECTS as usize..sources.len())];
            read(&mut calls, header, bytes);
        }
        let bytes = random.random_range(OBJECT_BYTES.0..=OBJECT_BYTES.1);
        objects.push((make(&mut calls, bytes), bytes));
    }
    for _ in 0..PROGRAMS {
        objects.iter().for_each(|(object, bytes)| read(&mut calls, *object, *bytes));
        make(&mut calls, PROGRAM_BYTES);
    }
    calls.into_iter()
}
