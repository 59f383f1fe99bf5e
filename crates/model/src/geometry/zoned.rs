//! Places to tracks for the layouts that fill cylinder after cylinder: `cylinder` and the two serpentines.
//!
//! Modelled: track and cylinder skews, and the direction of every other cylinder. The angle of a track follows from
//! its rank in LBN order, so that a change of track or cylinder finds the next sector after exactly the skew.

use super::TrackSpan;
use super::fixed::{Divisor, SectorWidth, Turns};
use crate::spec::{GeometrySpec, Layout, Zone};

/// Which cylinders run from the last head to head 0.
#[derive(Clone, Copy, Debug)]
enum Reversed {
    None,
    /// Odd cylinders, counted from this one.
    OddFrom(u32),
}

#[derive(Clone, Debug)]
pub(super) struct ZonedTracks {
    first_cylinder: u32,
    cylinders: u32,
    sectors: Divisor,
    heads: Divisor,
    reversed: Reversed,
    first: Turns,
    track_skew: Turns,
    /// Angle from the first track of a cylinder to that of the next.
    cylinder_step: Turns,
    width: SectorWidth,
}

impl ZonedTracks {
    pub(super) fn new(spec: &GeometrySpec, zone: &Zone) -> ZonedTracks {
        let track_skew = Turns::of_sectors(zone.track_skew_sectors, zone.sectors_per_track);
        let cylinder_skew = Turns::of_sectors(zone.cylinder_skew_sectors, zone.sectors_per_track);
        ZonedTracks {
            first_cylinder: zone.first_cylinder,
            cylinders: zone.last_cylinder - zone.first_cylinder + 1,
            sectors: Divisor::new(u64::from(zone.sectors_per_track)),
            heads: Divisor::new(u64::from(spec.heads)),
            reversed: match spec.layout {
                Layout::Serpentine => Reversed::OddFrom(zone.first_cylinder),
                Layout::SerpentineAbsolute => Reversed::OddFrom(0),
                _ => Reversed::None,
            },
            first: Turns::of_sectors(zone.first_sector_offset_sectors, zone.sectors_per_track),
            track_skew,
            cylinder_step: cylinder_skew.plus(track_skew.times(u64::from(spec.heads) - 1)),
            width: SectorWidth::new(zone.sectors_per_track),
        }
    }

    /// The track of a place; slips before it have shifted its angle by `push` sectors.
    #[inline(always)]
    pub(super) fn span_at(&self, place: u64, push: u32) -> TrackSpan {
        let (track, sector) = self.sectors.divide(place);
        let (cylinder, order) = self.heads.divide(track);
        let turns = self.first.plus(self.cylinder_step.times(cylinder)).plus(self.track_skew.times(order));
        let cylinder = self.first_cylinder + cylinder as u32;
        TrackSpan {
            start: place - sector,
            places: self.sectors.value() as u32,
            first_sector: 0,
            sectors_per_track: self.sectors.value() as u32,
            cylinder,
            head: self.turned(cylinder, order as u32),
            angle: turns.plus(self.width.turns().times(u64::from(push))).angle(),
            width: self.width,
        }
    }

    pub(super) fn first_cylinder(&self) -> u32 {
        self.first_cylinder
    }

    /// The place of a sector, if it lies in the zone.
    pub(super) fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let within = cylinder.checked_sub(self.first_cylinder).filter(|within| *within < self.cylinders)?;
        if u64::from(head) >= self.heads.value() || u64::from(sector) >= self.sectors.value() {
            return None;
        }
        let order = u64::from(self.turned(cylinder, head));
        let track = u64::from(within) * self.heads.value() + order;
        Some(track * self.sectors.value() + u64::from(sector))
    }

    /// Head of the track with rank `order` on its cylinder; it also maps a head to its rank.
    #[inline]
    fn turned(&self, cylinder: u32, order: u32) -> u32 {
        match self.reversed {
            Reversed::OddFrom(first) if (cylinder - first) % 2 == 1 => self.heads.value() as u32 - 1 - order,
            _ => order,
        }
    }
}
