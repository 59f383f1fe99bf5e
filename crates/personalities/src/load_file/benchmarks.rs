//! The keys of benchmarks, and their checks without a rig.

use headstack_model::spec::{Fault, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::area::Area;

/// Most processes of a benchmark.
const PROCESSES: u64 = 1 << 10;

/// Most bytes of a read or write.
const REQUEST_BYTES: u64 = 1 << 26;

/// Most bytes of a file: that of the format with blocks of 8,192 bytes exceeds it.
const FILE_BYTES: u64 = 1 << 41;

/// The ext2 that a benchmark makes in its area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ext2Spec {
    /// Size of blocks: 1024, 2048, 4096 or 8192.
    pub block_bytes: u32,
    /// Bytes of the area for each inode.
    #[schemars(range(min = 1024, max = 4194304), extend("x-unit" = "bytes"))]
    pub bytes_per_inode: u32,
    /// Whether a growing file gets eight blocks at a time.
    pub preallocate: bool,
}

impl Default for Ext2Spec {
    fn default() -> Ext2Spec {
        Ext2Spec { block_bytes: 1024, bytes_per_inode: 4096, preallocate: true }
    }
}

/// Processor time of a benchmark and of the file system for it, on the rig's host, in addition to that of `[host.processor]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramCostsSpec {
    /// Time of each call that reads or writes.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub call_us: f64,
    /// Time of the file system for 1,024 bytes that are written to a file.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub write_us_per_kib: f64,
    /// Time of the program for a byte that it writes by characters (`bonnie`).
    #[schemars(range(min = 0.0, max = 1e6))]
    pub put_us_per_byte: f64,
    /// Time of the program for a byte that it reads by characters (`bonnie`).
    #[schemars(range(min = 0.0, max = 1e6))]
    pub get_us_per_byte: f64,
}

/// Bonnie writes and reads a file by characters and by blocks (`char-write`, `rewrite`, `block-write`, `char-read`, `block-read`), then
/// several processes read it at random places (`seeks`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BonnieSpec {
    /// The blocks used.
    pub area: Area,
    /// The file system.
    pub ext2: Ext2Spec,
    /// Size of the file.
    #[schemars(range(min = 1, max = FILE_BYTES))]
    pub file_bytes: u64,
    /// Size of reads and writes.
    #[schemars(range(min = 1, max = REQUEST_BYTES))]
    pub chunk_bytes: u64,
    /// Processes that seek.
    #[schemars(range(min = 1, max = PROCESSES))]
    pub children: u32,
    /// Seeks of all of them.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub seeks: u64,
    /// Of this number of seeks one writes its chunk back.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub rewrite_every: u64,
    /// Processor time.
    pub costs: ProgramCostsSpec,
}

impl Default for BonnieSpec {
    fn default() -> BonnieSpec {
        BonnieSpec {
            area: Area::default(),
            ext2: Ext2Spec::default(),
            file_bytes: 1 << 30,
            chunk_bytes: 8192,
            children: 3,
            seeks: 4000,
            rewrite_every: 10,
            costs: ProgramCostsSpec::default(),
        }
    }
}

/// `hdparm -t` reads the area from its start (`device-read`), without a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HdparmSpec {
    /// The blocks used.
    pub area: Area,
    /// Bytes that are read.
    #[schemars(range(min = 1, max = FILE_BYTES), extend("x-unit" = "bytes"))]
    pub bytes: u64,
    /// Size of reads.
    #[schemars(range(min = 1, max = REQUEST_BYTES))]
    pub request_bytes: u64,
    /// Processor time.
    pub costs: ProgramCostsSpec,
}

impl Default for HdparmSpec {
    fn default() -> HdparmSpec {
        HdparmSpec {
            area: Area::default(),
            bytes: 64 << 20,
            request_bytes: 1 << 20,
            costs: ProgramCostsSpec::default(),
        }
    }
}

/// IOzone in its throughput mode has processes that each write a file (`write`); when all are done, each reads its own (`read`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IozoneSpec {
    /// The blocks used.
    pub area: Area,
    /// The file system.
    pub ext2: Ext2Spec,
    /// Processes.
    #[schemars(range(min = 1, max = PROCESSES))]
    pub processes: u32,
    /// Size of all files together.
    #[schemars(range(min = 1, max = FILE_BYTES))]
    pub total_bytes: u64,
    /// Size of each file, in place of `total_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = FILE_BYTES))]
    pub file_bytes: Option<u64>,
    /// Size of reads and writes.
    #[schemars(range(min = 1, max = REQUEST_BYTES))]
    pub record_bytes: u64,
    /// Processor time.
    pub costs: ProgramCostsSpec,
}

impl Default for IozoneSpec {
    fn default() -> IozoneSpec {
        IozoneSpec {
            area: Area::default(),
            ext2: Ext2Spec::default(),
            processes: 1,
            total_bytes: 1 << 30,
            file_bytes: None,
            record_bytes: 65_536,
            costs: ProgramCostsSpec::default(),
        }
    }
}

impl BonnieSpec {
    pub(super) fn check(&self) -> Result<(), Fault> {
        within(
            "bonnie.chunk_bytes",
            self.chunk_bytes as f64,
            1.0,
            self.file_bytes as f64,
            "bytes, as the file has",
        )
    }
}

impl IozoneSpec {
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.file_bytes.is_some() {
            return Ok(());
        }
        within(
            "iozone.total_bytes",
            self.total_bytes as f64,
            f64::from(self.processes),
            FILE_BYTES as f64,
            "bytes: one for each process",
        )
    }

    /// Bytes of each file.
    pub(super) fn bytes_each(&self) -> u64 {
        self.file_bytes.unwrap_or(self.total_bytes / u64::from(self.processes.max(1)))
    }
}
