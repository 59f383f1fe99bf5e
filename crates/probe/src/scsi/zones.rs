//! Zone after zone: some tracks are probed, and one block certifies the rest of many cylinders.

use super::ScsiError;
use super::found::{FoundZone, Pattern, SlippedCylinder};
use crate::Disk;
use crate::places::{Places, length};
use crate::query::end_of;
use headstack_model::Lbn;
use headstack_tracks::TrackMap;
use std::collections::BTreeMap;

/// Consecutive zones after which they are tested for being ranges with spares of their own.
const MOST_ALIKE: usize = 12;

pub(super) struct Found {
    pub(super) map: TrackMap,
    pub(super) zones: Vec<FoundZone>,
    pub(super) slipped: Vec<SlippedCylinder>,
}

/// Walks over all zones; `slips` returns the number of slips on a cylinder.
pub(super) async fn walk(
    disk: &Disk,
    places: &mut Places,
    heads: u32,
    slips: &BTreeMap<u32, u32>,
) -> Result<Found, ScsiError> {
    let mut walk = ZoneWalk {
        places,
        heads,
        slips,
        found: Found { map: TrackMap::new(), zones: Vec::new(), slipped: Vec::new() },
    };
    while walk.found.map.end() < walk.places.sectors() {
        walk.zone().await?;
        disk.report_progress(
            "measuring zones",
            walk.found.map.end().0 as f64 / walk.places.sectors().0 as f64,
        );
        let zones = &walk.found.zones;
        if zones.len() > MOST_ALIKE {
            // Ends the walk if zones turn out to be ranges.
            super::rules::scheme(&zones[zones.len() - MOST_ALIKE..], &[])?;
        }
    }
    Ok(walk.found)
}

struct Cylinder {
    number: u32,
    tracks: Vec<u32>,
}

impl Cylinder {
    fn sectors(&self) -> u64 {
        self.tracks.iter().map(|track| u64::from(*track)).sum()
    }
}

struct ZoneWalk<'a> {
    places: &'a mut Places,
    heads: u32,
    slips: &'a BTreeMap<u32, u32>,
    found: Found,
}

impl ZoneWalk<'_> {
    /// The next zone: from its first cylinder to the one where blocks no longer match its lengths.
    async fn zone(&mut self) -> Result<(), ScsiError> {
        let first = self.found.map.end();
        let front = self.cylinder(&[]).await?;
        let mut zone = FoundZone {
            first_cylinder: front.number,
            last_cylinder: front.number,
            first,
            sectors_per_track: front.tracks.iter().copied().max().unwrap_or(0),
            pattern: None,
            is_short: false,
            ends_in_whole_track: true,
        };
        // The first cylinder may have a gap in front; the first one after it without slips is like the rest.
        let mut usual: Option<Cylinder> = None;
        let mut last = front;
        loop {
            let guess = [zone.sectors_per_track];
            let end = self.found.map.end();
            if end >= self.places.sectors() || !self.continues(&zone, last.number).await? {
                break;
            }
            if let Some(usual) = &usual {
                let regular = self.regular(last.number + 1, usual).await?;
                (0..regular)
                    .for_each(|_| usual.tracks.iter().for_each(|track| self.found.map.push(*track, 1)));
                if regular > 0 {
                    last = Cylinder { number: last.number + regular, tracks: usual.tracks.clone() };
                    continue;
                }
            }
            last = self.cylinder(&guess).await?;
            let slips = self.slips.get(&last.number).copied().unwrap_or(0);
            let most = last.tracks.iter().copied().max().unwrap_or(0);
            if usual.is_none()
                && slips == 0
                && last.tracks.len() as u32 == self.heads
                && most == zone.sectors_per_track
            {
                zone.pattern = Pattern::from_tracks(&last.tracks);
                if zone.pattern.is_none() && self.cylinder_follows(last.number).await? {
                    let what = format!("its tracks hold {:?} blocks", last.tracks);
                    return Err(ScsiError::Scheme { cylinder: last.number, what });
                }
                usual = Some(Cylinder { number: last.number, tracks: last.tracks.clone() });
            }
            self.note_slips(&last, usual.as_ref(), slips);
            let is_last =
                usual.as_ref().is_some_and(|usual| last.sectors() + u64::from(slips) < usual.sectors());
            if is_last {
                break;
            }
        }
        zone.last_cylinder = last.number;
        let slips = self.slips.get(&last.number).copied().unwrap_or(0);
        zone.is_short =
            usual.as_ref().is_some_and(|usual| last.sectors() + u64::from(slips) < usual.sectors());
        zone.ends_in_whole_track =
            last.tracks.last().is_some_and(|track| track + slips >= zone.sectors_per_track);
        if zone.pattern.is_none() {
            zone.pattern = Pattern::from_tracks(&last.tracks).filter(|pattern| *pattern == Pattern::Equal);
        }
        self.found.zones.push(zone);
        Ok(())
    }

    /// Whether the zone continues with the next cylinder, whose first track then has the usual length, or is short and the only one.
    async fn continues(&mut self, zone: &FoundZone, last: u32) -> Result<bool, ScsiError> {
        let (first, limit) = (self.found.map.end(), self.places.sectors());
        let spot = self.places.spot_of(first).await?;
        if spot.cylinder != last + 1 {
            return Ok(false);
        }
        let (end, _) = end_of(self.places, first, spot, limit, &[zone.sectors_per_track]).await?;
        let (length, slips) =
            (length(first, end - first)?, self.slips.get(&spot.cylinder).copied().unwrap_or(0));
        let is_like = length.abs_diff(zone.sectors_per_track) <= slips;
        if is_like || zone.pattern == Some(Pattern::ShortFirst) {
            return Ok(true);
        }
        // The zone's first cylinder may have had a gap in front, and its second shows the pattern.
        let follows = end < limit && self.places.spot_of(end).await?.cylinder == spot.cylinder;
        Ok(length < zone.sectors_per_track && (!follows || self.second_is_like(zone, end).await?))
    }

    /// Whether the track at `first` holds as many blocks as those of the zone.
    async fn second_is_like(&mut self, zone: &FoundZone, first: Lbn) -> Result<bool, ScsiError> {
        let spot = self.places.spot_of(first).await?;
        let limit = self.places.sectors();
        let (end, _) = end_of(self.places, first, spot, limit, &[zone.sectors_per_track]).await?;
        Ok(end - first == u64::from(zone.sectors_per_track))
    }

    async fn cylinder_follows(&mut self, last: u32) -> Result<bool, ScsiError> {
        let end = self.found.map.end();
        Ok(end < self.places.sectors() && self.places.spot_of(end).await?.cylinder == last + 1)
    }

    fn note_slips(&mut self, cylinder: &Cylinder, usual: Option<&Cylinder>, slips: u32) {
        let Some(usual) = usual.filter(|_| slips > 0) else { return };
        let lost = usual.sectors().saturating_sub(cylinder.sectors()) as u32;
        // The last cylinder of a zone lacks its spares.
        if lost <= slips {
            self.found.slipped.push(SlippedCylinder { cylinder: cylinder.number, slips, lost });
        }
    }

    async fn cylinder(&mut self, guess: &[u32]) -> Result<Cylinder, ScsiError> {
        let mut spot = self.places.spot_of(self.found.map.end()).await?;
        let mut cylinder = Cylinder { number: spot.cylinder, tracks: Vec::new() };
        let mut guesses = guess.to_vec();
        while spot.cylinder == cylinder.number {
            let first = self.found.map.end();
            let (end, next) = end_of(self.places, first, spot, self.places.sectors(), &guesses).await?;
            let sectors = length(first, end - first)?;
            self.found.map.push(sectors, 1);
            cylinder.tracks.push(sectors);
            if guesses.is_empty() {
                guesses.push(sectors);
            }
            if end >= self.places.sectors() {
                break;
            }
            spot = match next {
                Some(next) => next,
                None => self.places.spot_of(end).await?,
            };
        }
        Ok(cylinder)
    }

    /// Number of cylinders from `next` on that equal the usual one: up to the next with slips, as far as blocks match.
    async fn regular(&mut self, next: u32, usual: &Cylinder) -> Result<u32, ScsiError> {
        let most = self.slips.range(next..).next().map_or(u32::MAX, |(cylinder, _)| cylinder - next);
        let room = (self.places.sectors() - self.found.map.end()) / usual.sectors();
        let most = most.min(room.min(u64::from(u32::MAX)) as u32);
        // All are, up to `good`; not all are, up to `bad`.
        let (mut good, mut bad, mut step) = (0, most + 1, 64);
        while good + 1 < bad {
            let probe = good + if bad > most { step.min(most - good) } else { (bad - good) / 2 };
            if self.are_regular(next, probe, usual).await? {
                (good, step) = (probe, step * 4)
            } else {
                bad = probe
            }
        }
        Ok(good)
    }

    /// Whether `cylinders` from `next` on equal the usual one: the block behind them then begins the next cylinder.
    async fn are_regular(&mut self, next: u32, cylinders: u32, usual: &Cylinder) -> Result<bool, ScsiError> {
        let behind = self.found.map.end() + u64::from(cylinders) * usual.sectors();
        let last = self.places.spot_of(Lbn(behind.0 - 1)).await?;
        if last.cylinder != next + cylinders - 1 {
            return Ok(false);
        }
        Ok(behind >= self.places.sectors() || self.places.spot_of(behind).await?.cylinder != last.cylinder)
    }
}
