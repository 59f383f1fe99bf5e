//! The keys of benchmarks, and their checks without a rig.

use headstack_model::spec::Fault;
use serde::{Deserialize, Serialize};

use super::area::Area;

/// Most processes of a benchmark.
const PROCESSES: u64 = 1 << 10;

/// Most bytes of a read or write.
const REQUEST_BYTES: u64 = 1 << 26;

/// Most bytes of a file: that of the format with blocks of 8,192 bytes exceeds it.
const FILE_BYTES: u64 = 1 << 41;

/// Longest processor time that a key accepts, in µs.
const US_MAX: f64 = 1e6;

/// The ext2 that a benchmark makes in its area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ext2Spec {
    /// Size of blocks.
    pub block_bytes: u32,
    /// Bytes of the area for each inode.
    pub bytes_per_inode: u32,
    /// Whether a growing file gets eight blocks at a time.
    pub preallocate: bool,
}

impl Default for Ext2Spec {
    fn default() -> Ext2Spec {
        Ext2Spec { block_bytes: 1024, bytes_per_inode: 4096, preallocate: true }
    }
}

/// Processor time of a benchmark and of the file system for it, on the rig's host; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramCostsSpec {
    /// Time of each call that reads or writes.
    pub call_us: f64,
    /// Time of the file system for 1,024 bytes that are written to a file.
    pub write_us_per_kib: f64,
    /// Time of the program for a byte that it writes by characters.
    pub put_us_per_byte: f64,
    /// Time of the program for a byte that it reads by characters.
    pub get_us_per_byte: f64,
}

impl ProgramCostsSpec {
    fn check(&self, key: &str) -> Result<(), Fault> {
        let times = [
            ("call_us", self.call_us),
            ("write_us_per_kib", self.write_us_per_kib),
            ("put_us_per_byte", self.put_us_per_byte),
            ("get_us_per_byte", self.get_us_per_byte),
        ];
        match times.into_iter().find(|(_, us)| !(0.0..=US_MAX).contains(us)) {
            Some((name, us)) => {
                Err(Fault::new(format!("{key}.costs.{name}"), format!("{us} us is outside 0 to 1000000 us")))
            }
            None => Ok(()),
        }
    }
}

/// The benchmark Bonnie: a file written and read by characters and by blocks, then random seeks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BonnieSpec {
    /// The blocks used.
    pub area: Area,
    /// The file system.
    pub ext2: Ext2Spec,
    /// Size of the file.
    pub file_bytes: u64,
    /// Size of reads and writes.
    pub chunk_bytes: u64,
    /// Processes that seek.
    pub children: u32,
    /// Seeks of all of them.
    pub seeks: u64,
    /// Of this number of seeks one writes its chunk back.
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

/// The benchmark `hdparm -t`: the area read from its start, without a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HdparmSpec {
    /// The blocks used.
    pub area: Area,
    /// Bytes that are read.
    pub bytes: u64,
    /// Size of reads.
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

/// The benchmark IOzone in its throughput mode: processes write a file each, and then read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IozoneSpec {
    /// The blocks used.
    pub area: Area,
    /// The file system.
    pub ext2: Ext2Spec,
    /// Processes.
    pub processes: u32,
    /// Size of all files together.
    pub total_bytes: u64,
    /// Size of each file, in place of `total_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Size of reads and writes.
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

fn within(key: &str, name: &str, value: u64, most: u64) -> Result<(), Fault> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Fault::new(format!("{key}.{name}"), format!("{value} is outside 1 to {most}")))
}

impl BonnieSpec {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let key = "bonnie";
        within(key, "file_bytes", self.file_bytes, FILE_BYTES)?;
        within(key, "chunk_bytes", self.chunk_bytes, REQUEST_BYTES)?;
        within(key, "children", u64::from(self.children), PROCESSES)?;
        within(key, "seeks", self.seeks, u64::from(u32::MAX))?;
        within(key, "rewrite_every", self.rewrite_every, u64::from(u32::MAX))?;
        if self.chunk_bytes > self.file_bytes {
            let message = format!("{} is more than file_bytes", self.chunk_bytes);
            return Err(Fault::new("bonnie.chunk_bytes", message));
        }
        self.costs.check(key)
    }
}

impl HdparmSpec {
    pub(super) fn check(&self) -> Result<(), Fault> {
        within("hdparm", "bytes", self.bytes, FILE_BYTES)?;
        within("hdparm", "request_bytes", self.request_bytes, REQUEST_BYTES)?;
        self.costs.check("hdparm")
    }
}

impl IozoneSpec {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let key = "iozone";
        within(key, "processes", u64::from(self.processes), PROCESSES)?;
        within(key, "total_bytes", self.total_bytes, FILE_BYTES)?;
        within(key, "file_bytes", self.bytes_each(), FILE_BYTES)?;
        within(key, "record_bytes", self.record_bytes, REQUEST_BYTES)?;
        self.costs.check(key)
    }

    /// Bytes of each file.
    pub(super) fn bytes_each(&self) -> u64 {
        self.file_bytes.unwrap_or(self.total_bytes / u64::from(self.processes.max(1)))
    }
}
