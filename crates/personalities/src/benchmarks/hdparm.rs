//! `hdparm -t`: a device read from its start, through the page cache and below the file system.

use super::pieces;
use crate::ext2::{BenchmarkPhase, FileCall, ProcessCalls};

/// The timing. Its only phase is `device-read`.
///
/// *Source:* M. Lord, hdparm 3.5 (`-t`), for the kind of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTiming {
    /// Bytes that are read.
    pub bytes: u64,
    /// Bytes of a read.
    pub request_bytes: u64,
}

impl DeviceTiming {
    /// Its phases.
    pub fn phases(self) -> Vec<BenchmarkPhase> {
        let read = |(offset, bytes)| FileCall::ReadDevice { offset, bytes };
        let reads: ProcessCalls = Box::new(pieces(self.bytes, self.request_bytes).map(read));
        let operations = self.bytes.div_ceil(self.request_bytes);
        vec![BenchmarkPhase { name: "device-read", bytes: self.bytes, operations, processes: vec![reads] }]
    }
}
