//! Bonnie: one file written and read by characters and by blocks, then random seeks by several processes.

use super::pieces;
use crate::ext2::{BenchmarkPhase, FileCall, ProcessCalls};
use headstack_model::Nanos;
use headstack_workload::{generator, seed_of};
use rand::RngExt;

/// The file's number.
const FILE: u32 = 0;

/// The benchmark. Its phases are `char-write`, `rewrite`, `block-write`, `char-read`, `block-read` and `seeks`.
///
/// A phase that writes a new file deletes the old one first. In the phase `seeks`, each process reads chunks at random places, and
/// writes every [`rewrite_every`](Bonnie::rewrite_every)-th chunk back.
///
/// *Source:* T. Bray, Bonnie (1990 to 1996), for the order of the phases, and the number of seeks that its processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bonnie {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of a read or write.
    pub chunk_bytes: u64,
    /// Processes that seek.
    pub children: u32,
    /// Seeks of all processes together.
    pub seeks: u64,
    /// One seek in this number writes its chunk back.
    pub rewrite_every: u64,
    /// Processor time of the program to write a chunk by characters.
    pub put_chunk: Nanos,
    /// Processor time of the program to read a chunk by characters.
    pub get_chunk: Nanos,
    /// Seed of the places.
    pub seed: u64,
}

impl Bonnie {
    /// Its phases.
    pub fn phases(self) -> Vec<BenchmarkPhase> {
        let phase = |name, calls: ProcessCalls| BenchmarkPhase {
            name,
            bytes: self.file_bytes,
            operations: self.file_bytes.div_ceil(self.chunk_bytes),
            processes: vec![calls],
        };
        vec![
            phase("char-write", self.write(self.put_chunk)),
            phase("rewrite", self.rewrite()),
            phase("block-write", self.write(Nanos::ZERO)),
            phase("char-read", self.read(self.get_chunk)),
            phase("block-read", self.read(Nanos::ZERO)),
            BenchmarkPhase {
                name: "seeks",
                bytes: self.seeks * self.chunk_bytes,
                operations: self.seeks,
                processes: (0..self.children).map(|child| self.seek(child)).collect(),
            },
        ]
    }

    fn write(self, compute: Nanos) -> ProcessCalls {
        let chunk = move |(offset, bytes)| {
            [FileCall::Compute(compute), FileCall::Write { file: FILE, offset, bytes }]
        };
        let start = [FileCall::Delete(FILE), FileCall::Create { file: FILE, directory: 0 }];
        let chunks = pieces(self.file_bytes, self.chunk_bytes).flat_map(chunk);
        Box::new(start.into_iter().chain(chunks).chain([FileCall::Close(FILE)]))
    }

    fn rewrite(self) -> ProcessCalls {
        let chunk = |(offset, bytes)| {
            [FileCall::Read { file: FILE, offset, bytes }, FileCall::Write { file: FILE, offset, bytes }]
        };
        Box::new(pieces(self.file_bytes, self.chunk_bytes).flat_map(chunk).chain([FileCall::Close(FILE)]))
    }

    fn read(self, compute: Nanos) -> ProcessCalls {
        let chunk =
            move |(offset, bytes)| [FileCall::Read { file: FILE, offset, bytes }, FileCall::Compute(compute)];
        Box::new(pieces(self.file_bytes, self.chunk_bytes).flat_map(chunk))
    }

    /// The seeks of a child: an equal share; the first children take the remainder.
    fn seek(self, child: u32) -> ProcessCalls {
        let children = u64::from(self.children);
        let seeks = self.seeks / children + u64::from(u64::from(child) < self.seeks % children);
        let mut random = generator(seed_of(self.seed, u64::from(child)));
        let chunks = (self.file_bytes / self.chunk_bytes).max(1);
        let seek = move |index: u64| {
            let (offset, bytes) = (random.random_range(0..chunks) * self.chunk_bytes, self.chunk_bytes);
            let write = FileCall::Write { file: FILE, offset, bytes };
            let rewrites = (index + 1).is_multiple_of(self.rewrite_every);
            [Some(FileCall::Read { file: FILE, offset, bytes }), rewrites.then_some(write)]
        };
        Box::new((0..seeks).flat_map(seek).flatten())
    }
}
