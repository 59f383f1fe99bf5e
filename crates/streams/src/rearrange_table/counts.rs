//! Saved counts of references. They only improve the next hot list, so a save that a crash tears is ignored.

use super::PAGE_BYTES;
use super::page::{is_whole, put, sealed, u32_at, u64_at};
use crate::rearrange::HotBlock;
use headstack_model::Nanos;

const MAGIC: &[u8; 8] = b"\x89HSRC\r\n\x1a";

/// Bytes of a count.
const COUNT_BYTES: usize = 24;

/// Bytes of an area for this number of counts.
pub(super) fn area_bytes(counters: u32) -> u64 {
    let counts = u64::from(counters) * COUNT_BYTES as u64;
    PAGE_BYTES as u64 + counts.next_multiple_of(PAGE_BYTES as u64)
}

/// The counts of references at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedCounts {
    /// Rises with every save.
    pub sequence: u64,
    /// Time that was left of the period.
    pub left: Nanos,
    /// The counts, by falling count.
    pub hot: Vec<HotBlock>,
}

impl SavedCounts {
    /// The bytes of an area: a head and the counts, in whole pages. Shorter than the area where there are fewer counts.
    pub fn encode(&self, id: &[u8; 16]) -> Vec<u8> {
        let mut counts = Vec::with_capacity(self.hot.len() * COUNT_BYTES);
        for HotBlock { block, count, error } in &self.hot {
            [block, count, error].into_iter().for_each(|number| counts.extend(number.to_le_bytes()));
        }
        let mut head = vec![0; PAGE_BYTES];
        put(&mut head, 0, MAGIC);
        put(&mut head, 8, id);
        put(&mut head, 24, &self.sequence.to_le_bytes());
        put(&mut head, 32, &self.left.0.to_le_bytes());
        put(&mut head, 40, &(self.hot.len() as u32).to_le_bytes());
        put(&mut head, 44, &crc32fast::hash(&counts).to_le_bytes());
        let mut area = sealed(head);
        area.extend(counts);
        area.resize(area.len().next_multiple_of(PAGE_BYTES), 0);
        area
    }

    /// The counts in an area; `None` if it holds no whole save of this region.
    pub fn decode(id: &[u8; 16], area: &[u8]) -> Option<SavedCounts> {
        let (head, rest) = area.split_at_checked(PAGE_BYTES)?;
        if head[..8] != MAGIC[..] || !is_whole(head) || head[8..24] != id[..] {
            return None;
        }
        let counts = rest.get(..(u32_at(head, 40) as usize).checked_mul(COUNT_BYTES)?)?;
        if crc32fast::hash(counts) != u32_at(head, 44) {
            return None;
        }
        let hot = counts.chunks_exact(COUNT_BYTES).map(|count| HotBlock {
            block: u64_at(count, 0),
            count: u64_at(count, 8),
            error: u64_at(count, 16),
        });
        let hot: Vec<HotBlock> = hot.filter(|hot| hot.error <= hot.count).collect();
        Some(SavedCounts { sequence: u64_at(head, 24), left: Nanos(u64_at(head, 32)), hot })
    }
}
