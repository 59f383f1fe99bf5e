//! `[host.page_cache]`: a field here is the key in the file, its doc comment the key's documentation.

use super::host_fault;
use headstack_model::spec::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.page_cache]`: memory that caches, reads ahead, and writes back later. Direct requests bypass it: a fio job with
/// `direct`, and all traces and generators, because their requests were recorded below a page cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageCacheSpec {
    /// Memory for the pages of a volume. Default: 1024 (assumption).
    #[schemars(range(min = 1, max = 1 << 22))]
    pub memory_mb: u32,
    /// Bytes of a page: a power of two, at least a block of the volume. Linux 2.2 writes buffers of a file
    /// system's block. Default: 4096 (Linux).
    #[serde(skip_serializing_if = "has_linux_pages")]
    #[schemars(range(min = 512, max = 65536))]
    pub page_bytes: u32,
    /// Largest read-ahead; 0 for none (Linux's default: 128, and above an array with a stripe unit twice the data of a stripe, if that is more).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1 << 20))]
    pub read_ahead_kb: Option<u32>,
    /// Share of the memory at which dirty pages are written in the background (Linux's default: 10).
    #[schemars(range(min = 1, max = 90), extend("x-unit" = "%"))]
    pub dirty_background_ratio: u32,
    /// Share of the memory that dirty pages may take; writers wait at that share (Linux's default: 20).
    #[schemars(range(min = 1, max = 90), extend("x-unit" = "%"))]
    pub dirty_ratio: u32,
    /// Interval of the search for old pages; 0 for never (Linux's default: 500).
    pub dirty_writeback_centisecs: u32,
    /// Age at which a dirty page is old (Linux's default: 3000).
    pub dirty_expire_centisecs: u32,
    /// Largest number of write-back transfers in flight. Default: 64 (assumption; Linux's limit is its queue).
    #[schemars(range(min = 1, max = 1 << 20), extend("x-unit" = "transfers"))]
    pub writeback_requests: u32,
    /// Time to copy a page of 4,096 bytes to or from a process. Older name of a key of the processor, four times
    /// `host.processor.copy_us_per_kib`. Default: 0.4 (assumption: 10 GB/s).
    #[schemars(range(min = 0.0, max = 1e6))]
    pub copy_us_per_page: f64,
    /// Whether direct requests use the page cache as well.
    pub buffer_direct: bool,
}

impl Default for PageCacheSpec {
    fn default() -> PageCacheSpec {
        PageCacheSpec {
            memory_mb: 1024,
            page_bytes: 4096,
            read_ahead_kb: None,
            dirty_background_ratio: 10,
            dirty_ratio: 20,
            dirty_writeback_centisecs: 500,
            dirty_expire_centisecs: 3000,
            writeback_requests: 64,
            copy_us_per_page: 0.4,
            buffer_direct: false,
        }
    }
}

/// Largest read-ahead of a disk in Linux. *Source:* Linux, `VM_READAHEAD_PAGES`.
const READ_AHEAD_KB: u64 = 128;

impl PageCacheSpec {
    /// KiB of the largest read-ahead of a volume: the key, or the default for an array whose stripe has `stripe_bytes` of data, or for a disk.
    ///
    /// *Source:* Linux 6.12, `blk_apply_bdi_limits` (twice `io_opt`), and `raid0_set_limits`, `raid10_set_queue_limits`, `raid5_set_limits`, which
    /// set `io_opt` to the data of a stripe.
    pub fn read_ahead_kib(&self, stripe_bytes: Option<u64>) -> u64 {
        let of_stripe = stripe_bytes.map_or(0, |bytes| bytes.saturating_mul(2) / 1024);
        self.read_ahead_kb.map_or(of_stripe.max(READ_AHEAD_KB), u64::from)
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.page_bytes.is_power_of_two() {
            return Ok(());
        }
        Err(host_fault("page_cache.page_bytes", format!("{} is no power of two", self.page_bytes)))
    }
}

fn has_linux_pages(bytes: &u32) -> bool {
    *bytes == PageCacheSpec::default().page_bytes
}
