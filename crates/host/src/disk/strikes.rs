//! Silent corruption of a volume's data by the faults that a test sets ([`super::rules`]).

use super::rules;
use super::volume::Volume;
use crate::{BlockError, Operation};
use std::ops::Range;

/// Changes the data of a write, or what is on the media below a read.
///
/// *Errors:* no space is left for the data.
pub(super) fn corrupt(
    volume: &mut Volume,
    operation: &mut Operation,
    blocks: &Range<u64>,
) -> Result<(), BlockError> {
    let block = u64::from(volume.info().sector_bytes);
    match operation {
        Operation::Write { offset, data, .. } => rules::corrupt(data, *offset / block, block, blocks),
        Operation::Read { .. } => {
            let end = blocks.end.min(volume.info().sectors);
            volume.corrupt_media(blocks.start * block, end.saturating_sub(blocks.start), block)?;
        }
        _ => {}
    }
    Ok(())
}
