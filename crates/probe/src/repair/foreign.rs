//! Detects the map of another disk by random tracks.
//!
//! Grown defects move boundaries by some blocks; those of another disk are anywhere. So a wrong boundary is evidence against a
//! map only if no track begins nearby, and a track only if its middle half spans several tracks.

use super::{Channel, MOST_SHIFT, RepairError, Tracks};
use headstack_model::Lbn;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

/// Number of random tracks.
const DRAWN: usize = 32;
/// One of this number of them may be changed beyond recognition, such as a track taken out of use.
const CHANGED: u64 = 8;

/// Checks random tracks, and returns a boundary that does not match if the map is of this disk.
///
/// *Errors:* [`RepairError::Other`], and those of the disk.
pub(super) async fn refuse(channel: &mut Channel, tracks: &Tracks<'_>) -> Result<Option<Lbn>, RepairError> {
    if tracks.number() == 0 {
        return Ok(None);
    }
    let mut random = Pcg64Mcg::seed_from_u64(tracks.number());
    let mut drawn = BTreeSet::new();
    // In random order: a map that is foreign only in parts then fails early.
    let mut order = Vec::new();
    for _ in 0..DRAWN {
        let number = random.random_range(0..tracks.number());
        if drawn.insert(number) {
            order.push(number);
        }
    }
    let most = order.len() as u64 / CHANGED;
    let (mut boundaries, mut none, mut looked, mut several) = (0, 0, 0, 0);
    let mut moved = None;
    for number in order {
        if number > 0 {
            boundaries += 1;
            let first = tracks.boundary(number);
            if !channel.begins(first).await? {
                moved.get_or_insert(first);
                none += u64::from(!channel.begins_near(first).await?);
            }
        }
        looked += 1;
        several += u64::from(!channel.is_one(tracks.boundary(number), tracks.boundary(number + 1)).await?);
        if none > most {
            let (wrong, looked, what) = (none, boundaries, "boundaries looked at are none");
            return Err(RepairError::Other { wrong, looked, what });
        }
        if several > most {
            return Err(RepairError::Other { wrong: several, looked, what: "tracks looked at are several" });
        }
    }
    Ok(moved)
}

impl Channel {
    /// Whether a track may begin within the maximum shift of a block.
    async fn begins_near(&mut self, lbn: Lbn) -> Result<bool, RepairError> {
        Ok(match self {
            Channel::Places(places) => {
                let last = places.sectors().0 - 1;
                let before = places.spot_of(Lbn(lbn.0.saturating_sub(MOST_SHIFT))).await?;
                let behind = places.spot_of(Lbn((lbn.0 + MOST_SHIFT).min(last))).await?;
                !before.is_adjacent(&behind)
            }
            Channel::Ear(ear) => ear.begins_before(lbn, MOST_SHIFT).await?,
        })
    }

    /// Whether the blocks from one to another may belong to one track.
    async fn is_one(&mut self, first: Lbn, end: Lbn) -> Result<bool, RepairError> {
        Ok(match self {
            Channel::Places(places) => {
                // A small shift moves neither of them to another track.
                let quarter = (end - first) / 4;
                let last = Lbn(end.0 - 1 - quarter);
                places.spot_of(first + quarter).await?.is_adjacent(&places.spot_of(last).await?)
            }
            Channel::Ear(ear) => ear.fits_a_turn(first, end).await?,
        })
    }
}
