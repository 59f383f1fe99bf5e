//! Rules: the layout from the order of tracks and the lengths of some.

use super::ScsiError;
use super::found::{FoundZone, Pattern, SlippedCylinder};
use crate::places::Spot;

/// The order of blocks over tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From head 0 to the last on every cylinder.
    Cylinder,
    /// Alternately to the last head and back.
    Serpentine,
}

/// Where spares are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// None, or none that show: no track is short, and no defect is slipped.
    None,
    /// On every track: defects take no block from theirs.
    EveryTrack,
    /// At the end of every cylinder.
    CylinderEnd,
    /// At the front of every cylinder.
    CylinderFront,
    /// At the end of every zone: sectors.
    ZoneEnd,
    /// At the end of every zone: whole tracks.
    ZoneTracks,
    /// At the end of the disk: defects take blocks from their zones, which end in whole tracks.
    DiskEnd,
}

/// The order that a change from a track to the next shows: `None` if no rule fits, `Some(None)` if both orders fit.
pub(super) fn step(heads: u32, from: &Spot, to: &Spot) -> Option<Option<Order>> {
    let (last, same) = (heads - 1, from.cylinder == to.cylinder);
    // Spares and zones without blocks may lie between cylinders.
    let onward = to.cylinder > from.cylinder;
    match (from.head, to.head) {
        (from, to) if same && to == from + 1 => Some(None),
        (from, to) if same && from == to + 1 => Some(Some(Order::Serpentine)),
        (0, 0) if onward && heads == 1 => Some(None),
        (_, 0) if onward && from.head == last => Some(Some(Order::Cylinder)),
        (from, to) if onward && from == to && (from == 0 || from == last) => Some(Some(Order::Serpentine)),
        // A zone begins with head 0, wherever the last one ended.
        (_, 0) if onward => Some(None),
        _ => None,
    }
}

/// The scheme that the zones and the cylinders with slips show.
pub(super) fn scheme(zones: &[FoundZone], slipped: &[SlippedCylinder]) -> Result<Scheme, ScsiError> {
    let patterns: Vec<Pattern> = zones.iter().filter_map(|zone| zone.pattern).collect();
    let is_all = |pattern| !patterns.is_empty() && patterns.iter().all(|one| *one == pattern);
    if is_all(Pattern::ShortLast) {
        return Ok(Scheme::CylinderEnd);
    }
    if is_all(Pattern::ShortFirst) {
        return Ok(Scheme::CylinderFront);
    }
    if !is_all(Pattern::Equal) {
        let zone = zones.iter().find(|zone| zone.pattern != Some(Pattern::Equal)).unwrap_or(&zones[0]);
        let what = "some zones have spares on every cylinder and some have not".to_string();
        return Err(ScsiError::Scheme { cylinder: zone.first_cylinder, what });
    }
    if let Some(ranges) = zones.windows(5).find(|zones| are_ranges(zones)) {
        let every = ranges[0].cylinders();
        let what = format!("spares at the end of every {every} cylinders (sectors per range)");
        return Err(ScsiError::Scheme { cylinder: ranges[0].first_cylinder, what });
    }
    let shifts = slipped.iter().filter(|cylinder| cylinder.lost > 0).count();
    if shifts == 0 && !slipped.is_empty() {
        return Ok(Scheme::EveryTrack);
    }
    if let Some(odd) = slipped.iter().find(|cylinder| cylinder.lost > cylinder.slips) {
        let what = format!("{} slips take {} blocks from a cylinder", odd.slips, odd.lost);
        return Err(ScsiError::Scheme { cylinder: odd.cylinder, what });
    }
    let inner = zones.split_last().map_or(zones, |(_, inner)| if inner.is_empty() { zones } else { inner });
    let short = inner.iter().filter(|zone| zone.is_short).count();
    Ok(match (short, shifts) {
        (0, 0) if !zones.last().is_some_and(|last| last.is_short) => Scheme::None,
        (0, _) => Scheme::DiskEnd,
        _ if inner.iter().any(|zone| zone.is_short && !zone.ends_in_whole_track) => Scheme::ZoneEnd,
        _ => Scheme::ZoneTracks,
    })
}

/// Whether zones are ranges of cylinders with spares at the end of each.
fn are_ranges(zones: &[FoundZone]) -> bool {
    zones.windows(2).all(|pair| {
        let is_next = pair[0].is_short && pair[0].last_cylinder + 1 == pair[1].first_cylinder;
        let is_alike = pair[0].sectors_per_track == pair[1].sectors_per_track;
        is_next && is_alike && pair[0].cylinders() == pair[1].cylinders()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(cylinder: u32, head: u32) -> Spot {
        Spot { cylinder, head, sector: 0 }
    }

    #[test]
    fn track_steps_distinguish_layout_orders() {
        let step = |from, to| step(6, &from, &to);
        assert_eq!(step(spot(3, 2), spot(3, 3)), Some(None));
        assert_eq!(step(spot(3, 5), spot(4, 0)), Some(Some(Order::Cylinder)));
        assert_eq!(step(spot(3, 5), spot(4, 5)), Some(Some(Order::Serpentine)));
        assert_eq!(step(spot(3, 3), spot(3, 2)), Some(Some(Order::Serpentine)));
        assert_eq!(step(spot(3, 0), spot(4, 0)), Some(Some(Order::Serpentine)));
        // Along a surface: there is no rule for it.
        assert_eq!(step(spot(3, 2), spot(4, 2)), None);
        assert_eq!(step(spot(3, 2), spot(2, 2)), None);
    }

    #[test]
    fn short_first_or_last_track_is_detected() {
        assert_eq!(Pattern::from_tracks(&[9, 9, 9]), Some(Pattern::Equal));
        assert_eq!(Pattern::from_tracks(&[9, 9, 5]), Some(Pattern::ShortLast));
        assert_eq!(Pattern::from_tracks(&[5, 9, 9]), Some(Pattern::ShortFirst));
        assert_eq!(Pattern::from_tracks(&[9, 5, 9]), None);
    }
}
