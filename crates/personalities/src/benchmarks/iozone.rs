//! IOzone in its throughput mode: processes that each write a file of their own, then read it, in records.

use super::pieces;
use crate::ext2::{BenchmarkPhase, FileCall, ProcessCalls};

/// The benchmark. Its phases are `write` and `read`.
///
/// *Source:* W. Norcott, IOzone 3 (throughput mode), for the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iozone {
    /// Processes.
    pub processes: u32,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Bytes of a read or write.
    pub record_bytes: u64,
}

impl Iozone {
    /// Its phases.
    pub fn phases(self) -> Vec<BenchmarkPhase> {
        let phase = |name, calls: &dyn Fn(u32) -> ProcessCalls| BenchmarkPhase {
            name,
            bytes: self.file_bytes * u64::from(self.processes),
            operations: self.file_bytes.div_ceil(self.record_bytes) * u64::from(self.processes),
            processes: (0..self.processes).map(calls).collect(),
        };
        let write = |file| -> ProcessCalls {
            let record = move |(offset, bytes)| FileCall::Write { file, offset, bytes };
            let records = pieces(self.file_bytes, self.record_bytes).map(record);
            let start = [FileCall::Create { file, directory: 0 }];
            Box::new(start.into_iter().chain(records).chain([FileCall::Close(file)]))
        };
        let read = |file| -> ProcessCalls {
            let record = move |(offset, bytes)| FileCall::Read { file, offset, bytes };
            Box::new(pieces(self.file_bytes, self.record_bytes).map(record))
        };
        vec![phase("write", &write), phase("read", &read)]
    }
}
