//! The five steps that learn a SCSI disk's layout by translations, whatever its size.
//!
//! 1. Capacity, heads and cylinders, and the order of blocks over tracks, by translating blocks spread over the disk.
//! 2. The list of defects.
//! 3. The sparing scheme, by rules: from a few tracks of each zone and from the effect of defects on theirs.
//! 4. Blocks per track and limits of each zone. A block at the place that a number of equal cylinders predicts certifies them
//!    all: spares and slips only ever take blocks from a cylinder, so no two errors cancel.
//! 5. Each defect is a slip, if the blocks around it follow each other, or a remap, if one is missing and lies elsewhere.
//!
//! A layout or scheme without a rule ends in an error that names what was met; [`query`](crate::query) needs no rules.
//!
//! *Source:* J. Schindler and G. R. Ganger, "Automated disk drive characterization", CMU-CS-99-176, 1999 (DIXtrac); its code,
//! `dx_layout.c`, for what to query. The certificate of step 4 is an addition.

mod found;
mod rules;
mod zones;

use crate::Disk;
use crate::places::{Places, Spot, TranslationError};
pub use found::FoundZone;
use headstack_model::Lbn;
use headstack_tracks::TrackMap;
pub use rules::{Order, Scheme};
use std::collections::BTreeMap;

/// Places where the order of tracks is probed.
const SAMPLES: u64 = 12;

/// Result of the five steps.
#[derive(Clone, Debug, PartialEq)]
pub struct ScsiMap {
    /// The tracks.
    pub map: TrackMap,
    /// The layout behind them.
    pub layout: FoundLayout,
    /// Number of translations, both ways.
    pub translations: u64,
}

/// A layout.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FoundLayout {
    /// Cylinders up to the last that holds a block.
    pub cylinders: u32,
    pub heads: u32,
    pub order: Order,
    pub scheme: Scheme,
    pub zones: Vec<FoundZone>,
    /// Cylinder, head and sector of slipped defects.
    pub slips: Vec<(u32, u32, u32)>,
    /// Cylinder, head and sector of remapped defects, with their blocks.
    pub remaps: Vec<((u32, u32, u32), Lbn)>,
}

/// Why the five steps failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ScsiError {
    #[error(transparent)]
    Translation(#[from] TranslationError),
    #[error("the disk does not tell its defects; the walk by translation (query) does without")]
    NoDefects,
    #[error(
        "block {lbn}: the layout is not understood: blocks go from cylinder {}, head {} to cylinder {}, head {}; \
         known are cylinder order and serpentine",
        from.0, from.1, to.0, to.1
    )]
    Layout { lbn: u64, from: (u32, u32), to: (u32, u32) },
    #[error("cylinder {cylinder}: the sparing scheme is not understood: {what}")]
    Scheme { cylinder: u32, what: String },
}

/// Learns the layout, and the tracks from it.
///
/// *Errors:* a disk that does not translate or list its defects, and a layout without a rule.
pub async fn extract(disk: Disk) -> Result<ScsiMap, ScsiError> {
    let mut places = Places::new(disk.clone())?;
    disk.report_progress("finding heads, cylinders and their order", 0.0);
    let (cylinders, heads) = extent(&mut places).await?;
    let order = order(&mut places, heads).await?;
    disk.report_progress("asking for defects", 0.0);
    let defects = places.defects().await.ok_or(ScsiError::NoDefects)?;
    let (mut slips, mut remaps) = (Vec::new(), Vec::new());
    for (number, group) in neighbours(&defects).into_iter().enumerate() {
        disk.report_progress("telling slips from remaps", number as f64 / defects.len() as f64);
        let moved = moved_blocks(&mut places, group).await?;
        for (at, spot) in group.iter().enumerate() {
            let place = (spot.cylinder, spot.head, spot.sector);
            match moved.get(at) {
                Some(lbn) => remaps.push((place, *lbn)),
                None => slips.push(place),
            }
        }
    }
    let mut slipped: BTreeMap<u32, u32> = BTreeMap::new();
    slips.iter().for_each(|slip| *slipped.entry(slip.0).or_default() += 1);
    let found = zones::walk(&disk, &mut places, heads, &slipped).await?;
    let scheme = rules::scheme(&found.zones, &found.slipped)?;
    let layout = FoundLayout { cylinders, heads, order, scheme, zones: found.zones, slips, remaps };
    Ok(ScsiMap { map: found.map, layout, translations: places.requested })
}

/// Cylinders and heads that hold blocks.
async fn extent(places: &mut Places) -> Result<(u32, u32), ScsiError> {
    let last = places.sectors().0 - 1;
    let mut most = places.spot_of(Lbn(last)).await?;
    // Steps that are no multiple of a number of tracks.
    for step in 0..128 {
        let spot = places.spot_of(Lbn((u128::from(last) * step / 127) as u64)).await?;
        most.cylinder = most.cylinder.max(spot.cylinder);
        most.head = most.head.max(spot.head);
    }
    // Two cylinders contain all heads.
    let mut next = Lbn(0);
    for _ in 0..2 * (most.head + 2) {
        let spot = places.spot_of(next).await?;
        most.head = most.head.max(spot.head);
        next = crate::query::end_of(places, next, spot, places.sectors(), &[]).await?.0;
        if next >= places.sectors() {
            break;
        }
    }
    Ok((most.cylinder + 1, most.head + 1))
}

/// The order of tracks, which must be the same everywhere.
async fn order(places: &mut Places, heads: u32) -> Result<Order, ScsiError> {
    let mut order = None;
    for sample in 0..SAMPLES {
        let from = Lbn(places.sectors().0 / SAMPLES * sample);
        let mut spot = places.spot_of(from).await?;
        let begin = spot.cylinder;
        let (mut first, _) = crate::query::end_of(places, from, spot, places.sectors(), &[]).await?;
        let mut length = 0;
        for _ in 0..2 * heads {
            if first >= places.sectors() {
                break;
            }
            let next = places.spot_of(first).await?;
            // This number of tracks spans two cylinders, from the middle of one.
            let step = rules::step(heads, &spot, &next).filter(|_| next.cylinder <= begin + 3);
            let step = step.ok_or(ScsiError::Layout {
                lbn: first.0,
                from: (spot.cylinder, spot.head),
                to: (next.cylinder, next.head),
            })?;
            if let Some(step) = step
                && *order.get_or_insert(step) != step
            {
                let what = "blocks go over cylinders in two orders".to_string();
                return Err(ScsiError::Scheme { cylinder: next.cylinder, what });
            }
            let (end, _) = crate::query::end_of(places, first, next, places.sectors(), &[length]).await?;
            length = crate::places::length(first, end - first)?;
            (spot, first) = (next, end);
        }
    }
    Ok(order.unwrap_or(Order::Cylinder))
}

/// Adjacent defects on a track.
fn neighbours(defects: &[Spot]) -> Vec<&[Spot]> {
    defects.chunk_by(|a, b| a.is_adjacent(b) && a.sector.checked_add(1) == Some(b.sector)).collect()
}

/// The blocks of adjacent defects that lie elsewhere: none, if the defects are slipped.
async fn moved_blocks(places: &mut Places, group: &[Spot]) -> Result<Vec<Lbn>, ScsiError> {
    let (first, last) = (group[0], group[group.len() - 1]);
    let behind = match last.sector.checked_add(1) {
        Some(sector) => places.block_at(Spot { sector, ..last }).await,
        None => None,
    };
    let before = match first.sector.checked_sub(1) {
        Some(sector) => places.block_at(Spot { sector, ..first }).await,
        None => None,
    };
    let (from, to) = match (before, behind) {
        (Some(before), Some(behind)) if behind > before => (before + 1, behind),
        // At an end of a track: the next block must lie on the next track, or elsewhere.
        (Some(before), _) => (before + 1, (before + 1 + group.len() as u64).min(places.sectors())),
        (_, Some(behind)) => (Lbn(behind.0.saturating_sub(group.len() as u64)), behind),
        // Among spares.
        (None, None) => return Ok(Vec::new()),
    };
    let mut moved = Vec::new();
    for lbn in from.0..to.0.min(from.0 + group.len() as u64) {
        let spot = places.spot_of(Lbn(lbn)).await?;
        let is_near =
            spot.cylinder.abs_diff(first.cylinder) <= 1 && (spot.sector <= 1 || !spot.is_adjacent(&first));
        if before.is_some() && behind.is_some() || !is_near {
            moved.push(Lbn(lbn));
        }
    }
    Ok(moved)
}
