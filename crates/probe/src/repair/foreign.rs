//! Whether a map is of the disk at all, by tracks drawn by chance.
//!
//! What grows on a disk moves boundaries by some blocks; a map of another disk has them anywhere. So a boundary that is none
//! speaks against a map only where no track begins near by, and a track only where its middle half is not of one piece.

use super::{Channel, MOST_SHIFT, RepairError, Tracks};
use headstack_model::Lbn;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

/// Tracks that are drawn.
const DRAWN: usize = 32;
/// One of this number of them may be changed beyond recognition, such as a track taken out of use.
const CHANGED: u64 = 8;

/// Checks random tracks, and returns the boundary that does not hold where the map is of this disk.
///
/// *Errors:* [`RepairError::Other`], and those of the disk.
pub(super) async fn refuse(channel: &mut Channel, tracks: &Tracks<'_>) -> Result<Option<Lbn>, RepairError> {
    if tracks.number() == 0 {
        return Ok(None);
    }
    let mut random = Pcg64Mcg::seed_from_u64(tracks.number());
    let mut drawn = BTreeSet::new();
    // In the order in which they were drawn: those of a map that is foreign in parts only are met early.
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
    /// Whether a track may begin within the blocks by which one may have moved.
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

    /// Whether the blocks from one to another may be those of one track.
    async fn is_one(&mut self, first: Lbn, end: Lbn) -> Result<bool, RepairError> {
        Ok(match self {
            Channel::Places(places) => {
                // What moves by some blocks moves neither of them to another track.
                let quarter = (end - first) / 4;
                let last = Lbn(end.0 - 1 - quarter);
                places.spot_of(first + quarter).await?.is_adjacent(&places.spot_of(last).await?)
            }
            Channel::Ear(ear) => ear.fits_a_turn(first, end).await?,
        })
    }
}
