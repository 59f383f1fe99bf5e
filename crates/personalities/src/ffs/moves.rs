//! Blocks that are moved, and the requests that move them.

use super::layout::Layout;
use super::{BLOCK_SECTORS, sector_of};
use headstack_model::{Lbn, Request};

/// The most sectors of a request: 1 MB.
const MOST_SECTORS: u64 = 2048;

/// A block that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedBlock {
    /// Where it was.
    pub from: u32,
    /// Where it goes.
    pub to: u32,
}

/// Moves that are done together: all blocks are read, then all are written.
pub type MoveBatch = Vec<MovedBlock>;

/// The transfers of a batch: reads in ascending order, then writes in ascending order.
pub fn transfers_of(batch: &[MovedBlock], layout: &Layout) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut from: Vec<u32> = batch.iter().map(|moved| moved.from).collect();
    let mut to: Vec<u32> = batch.iter().map(|moved| moved.to).collect();
    from.sort_unstable();
    to.sort_unstable();
    for (first, end) in runs(&from, layout) {
        requests.push(Request::read(Lbn(first), (end - first) as u32));
    }
    for (first, end) in runs(&to, layout) {
        requests.push(Request::write(Lbn(first), (end - first) as u32));
    }
    requests
}

/// Runs of sectors of ascending blocks, which end with tracks where requests of the file system do.
pub(super) fn runs(blocks: &[u32], layout: &Layout) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        let (first, end) = (sector_of(*block), sector_of(*block) + u64::from(BLOCK_SECTORS));
        match runs.last_mut() {
            Some(last) if last.1 == first && end - last.0 <= MOST_SECTORS => last.1 = end,
            _ => runs.push((first, end)),
        }
    }
    if !layout.variant().ends_with_tracks() {
        return runs;
    }
    let mut pieces = Vec::new();
    for (mut first, end) in runs {
        while first < end {
            let to = end.min(layout.tracks().end_of(first));
            pieces.push((first, to));
            first = to;
        }
    }
    pieces
}
