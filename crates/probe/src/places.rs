//! Address translation by a disk.

use crate::{Disk, Outcome, ProbeCommand};
use headstack_model::Lbn;

/// Why an extraction by translation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TranslationError {
    #[error("the disk does not translate addresses; find its tracks by time (lattice, timing)")]
    Unable,
    #[error("block {lbn}: the disk does not say where it lies")]
    Refused { lbn: u64 },
    #[error("block {lbn}: its track would hold {blocks} blocks; at most {} are possible", u32::MAX)]
    Long { lbn: u64, blocks: u64 },
}

/// Blocks of a track that begins at `first`, as `u32`.
pub(crate) fn length(first: Lbn, blocks: u64) -> Result<u32, TranslationError> {
    u32::try_from(blocks).map_err(|_| TranslationError::Long { lbn: first.0, blocks })
}

/// A place in the disk's own numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    pub(crate) sector: u32,
}

impl Spot {
    /// Whether both lie on one track.
    pub(crate) fn is_adjacent(&self, other: &Spot) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }
}

/// Translates addresses, and counts the translations.
#[derive(Debug)]
pub(crate) struct Places {
    disk: Disk,
    pub(crate) requested: u64,
}

impl Places {
    pub(crate) fn new(disk: Disk) -> Result<Places, TranslationError> {
        if disk.info().translates { Ok(Places { disk, requested: 0 }) } else { Err(TranslationError::Unable) }
    }

    pub(crate) fn sectors(&self) -> Lbn {
        Lbn(self.disk.info().sectors)
    }

    pub(crate) async fn spot_of(&mut self, lbn: Lbn) -> Result<Spot, TranslationError> {
        self.requested += 1;
        match self.disk.execute(ProbeCommand::Locate(lbn)).await.outcome {
            Outcome::Place { cylinder, head, sector } => Ok(Spot { cylinder, head, sector }),
            _ => Err(TranslationError::Refused { lbn: lbn.0 }),
        }
    }

    /// The block at a place; `None` also if there is no such place.
    pub(crate) async fn block_at(&mut self, spot: Spot) -> Option<Lbn> {
        self.requested += 1;
        match self.disk.execute(ProbeCommand::BlockAt(spot.cylinder, spot.head, spot.sector)).await.outcome {
            Outcome::Block(lbn) => lbn,
            _ => None,
        }
    }

    /// The defective sectors, by place.
    pub(crate) async fn defects(&mut self) -> Option<Vec<Spot>> {
        match self.disk.execute(ProbeCommand::Defects).await.outcome {
            Outcome::Defects(defects) => {
                let spot = |(cylinder, head, sector)| Spot { cylinder, head, sector };
                let mut spots: Vec<Spot> = defects.into_iter().map(spot).collect();
                spots.sort_unstable();
                spots.dedup();
                Some(spots)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn track_of_more_than_32_bit_length_is_rejected() {
        assert_eq!(length(Lbn(9), u64::from(u32::MAX)), Ok(u32::MAX));
        let error = length(Lbn(9), 1 << 32).expect_err("it is too long").to_string();
        assert_eq!(error, "block 9: its track would hold 4294967296 blocks; at most 4294967295 are possible");
    }
}
