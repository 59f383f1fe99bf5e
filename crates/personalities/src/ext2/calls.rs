//! Calls of programs on files, and their processor time.

use headstack_model::Nanos;

/// A call of a program. The next one is made when it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// Makes a directory of this number in the root.
    MakeDirectory(u32),
    /// Makes an empty file in a directory; directory 0 is the root.
    Create {
        /// The number that programs give the file.
        file: u32,
        /// The directory.
        directory: u32,
    },
    /// Reads from a file.
    Read {
        /// The file.
        file: u32,
        /// The first byte.
        offset: u64,
        /// Number of bytes; those beyond the file's end are not read.
        bytes: u64,
    },
    /// Writes to a file, and extends it if the write reaches beyond its end.
    Write {
        /// The file.
        file: u32,
        /// The first byte; at most the file's length.
        offset: u64,
        /// How much.
        bytes: u64,
    },
    /// Closes a file.
    Close(u32),
    /// Deletes a file with its name.
    Delete(u32),
    /// Reads from the device itself, below the file system and through the page cache.
    ReadDevice {
        /// The first byte, from the area's start.
        offset: u64,
        /// How much.
        bytes: u64,
    },
    /// Computes on the host's processor for this long.
    Compute(Nanos),
}

/// The calls of a process.
pub type ProcessCalls = Box<dyn Iterator<Item = FileCall>>;

/// Processes that run in parallel, and the work by which their rate is measured. The next phase begins when all have ended.
pub struct BenchmarkPhase {
    /// The name in results.
    pub name: &'static str,
    /// Bytes that all its processes read or write.
    pub bytes: u64,
    /// Operations of all its processes.
    pub operations: u64,
    /// Their calls.
    pub processes: Vec<ProcessCalls>,
}

/// Processor time of the file system's own work, in addition to what the host's keys say; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileWorkCosts {
    /// For each call that reads or writes.
    pub call: Nanos,
    /// For 1,024 bytes that are written to a file.
    pub write_kib: Nanos,
}

impl FileWorkCosts {
    /// The time of a call that reads, or writes, this number of bytes.
    pub(super) fn time(&self, written_bytes: u64) -> Nanos {
        self.call + Nanos(self.write_kib.0 * written_bytes / 1024)
    }
}
