//! `[host.page_cache]`: a field here is the key in the file, its doc comment the key's documentation.

use super::host_error::HostError;
use super::processor::check_us;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.page_cache]`: memory that caches, reads ahead, and writes back later. Direct requests bypass it: a fio job with
/// `direct`, and all traces and generators, because their requests were recorded below a page cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageCacheSpec {
    /// Memory for the pages of a volume in units of 1,048,576 bytes. Default: 1024 (assumption).
    pub memory_mb: u32,
    /// Bytes of a page: a power of two from 512 to 65536, at least a block of the volume. Linux 2.2 writes buffers of a file
    /// system's block. Default: 4096 (Linux).
    #[serde(skip_serializing_if = "has_linux_pages")]
    pub page_bytes: u32,
    /// Largest read-ahead in units of 1,024 bytes; 0 for none (Linux's default: 128).
    pub read_ahead_kb: u32,
    /// Share of the memory in percent at which dirty pages are written in the background (Linux's default: 10).
    pub dirty_background_ratio: u32,
    /// Share of the memory in percent that dirty pages may take; writers wait at that share (Linux's default: 20).
    pub dirty_ratio: u32,
    /// Interval of the search for old pages, in hundredths of a second; 0 for never (Linux's default: 500).
    pub dirty_writeback_centisecs: u32,
    /// Age in hundredths of a second at which a dirty page is old (Linux's default: 3000).
    pub dirty_expire_centisecs: u32,
    /// Largest number of write-back transfers in flight. Default: 64 (assumption; Linux's limit is its queue).
    pub writeback_requests: u32,
    /// Time in µs to copy a page of 4,096 bytes to or from a process. Older name of a key of the processor, four times
    /// `host.processor.copy_us_per_kib`. Default: 0.4 (assumption: 10 GB/s).
    pub copy_us_per_page: f64,
    /// Whether direct requests use the page cache as well.
    pub buffer_direct: bool,
}

impl Default for PageCacheSpec {
    fn default() -> PageCacheSpec {
        PageCacheSpec {
            memory_mb: 1024,
            page_bytes: 4096,
            read_ahead_kb: 128,
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

impl PageCacheSpec {
    pub(super) fn check(&self) -> Result<(), HostError> {
        let values = [
            ("memory_mb", self.memory_mb, 1, 1 << 22),
            ("read_ahead_kb", self.read_ahead_kb, 0, 1 << 20),
            ("dirty_background_ratio", self.dirty_background_ratio, 1, 90),
            ("dirty_ratio", self.dirty_ratio, 1, 90),
            ("dirty_writeback_centisecs", self.dirty_writeback_centisecs, 0, u32::MAX),
            ("dirty_expire_centisecs", self.dirty_expire_centisecs, 0, u32::MAX),
            ("writeback_requests", self.writeback_requests, 1, 1 << 20),
        ];
        for (key, value, least, most) in values {
            if value < least || value > most {
                let message = format!("{value} is outside {least} to {most}");
                return Err(HostError::new(&format!("page_cache.{key}"), message));
            }
        }
        if !self.page_bytes.is_power_of_two() || !(512..=65536).contains(&self.page_bytes) {
            let message = format!("{} is no power of two from 512 to 65536", self.page_bytes);
            return Err(HostError::new("page_cache.page_bytes", message));
        }
        check_us("page_cache.copy_us_per_page", self.copy_us_per_page)
    }
}

fn has_linux_pages(bytes: &u32) -> bool {
    *bytes == PageCacheSpec::default().page_bytes
}
