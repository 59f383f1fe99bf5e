//! Places to tracks for the seek-first layouts `ff`, `af`, `fa` and `aa`.
//!
//! A zone is divided into *bands* of some hundred cylinders. LBNs fill one surface of a band track by track, then the next
//! surface, then the next band. Modelled: the four orders, each of which starts again, inward, with every band; a number of
//! sectors per track for every surface. Not modelled: surfaces whose bands lie at different radii.
//!
//! *Source:* the names are those of H. Wong, who found these layouts in drives of 2003 and later.

use super::TrackSpan;
use super::fixed::{Divisor, SectorWidth, Turns};
use crate::Angle;
use crate::spec::{BandZone, GeometrySpec, Layout};
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Surface {
    head: u32,
    /// Sectors of one track of each surface read before this one.
    before: u32,
    sectors: Divisor,
}

#[derive(Clone, Debug)]
pub(super) struct BandedTracks {
    first_cylinder: u32,
    cylinders: u32,
    heads: u64,
    /// Cylinders of a band, and of the last band.
    tracks: Divisor,
    last_tracks: Divisor,
    last: u64,
    /// Places of a band other than the last.
    band: Divisor,
    /// Surfaces in the order of even bands, followed by their order in odd bands where that differs.
    surfaces: Vec<Surface>,
    /// The `before` of each surface, contiguous because every look-up searches them.
    before: Vec<i32>,
    /// Whether every other surface of a band is read outward.
    alternates: bool,
    /// Whether every other band runs through the surfaces from the last to the first.
    reverses: bool,
    first: Turns,
    track_skew: Turns,
    head_skew: Turns,
}

impl BandedTracks {
    pub(super) fn new(spec: &GeometrySpec, zone: &BandZone) -> BandedTracks {
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let tracks = zone.band_tracks.min(cylinders);
        let last = (cylinders - 1) / tracks;
        let reverses = matches!(spec.layout, Layout::Fa | Layout::Aa);
        let mut surfaces = surfaces(0..spec.heads, zone);
        let slice = surfaces.last().map_or(0, |surface| u64::from(surface.before) + surface.sectors.value());
        if reverses {
            surfaces.extend(self::surfaces((0..spec.heads).rev(), zone));
        }
        BandedTracks {
            first_cylinder: zone.first_cylinder,
            cylinders,
            before: surfaces.iter().map(|surface| surface.before as i32).collect(),
            heads: u64::from(spec.heads),
            tracks: Divisor::new(u64::from(tracks)),
            last_tracks: Divisor::new(u64::from(cylinders - last * tracks)),
            last: u64::from(last),
            band: Divisor::new(slice * u64::from(tracks)),
            surfaces,
            alternates: matches!(spec.layout, Layout::Af | Layout::Aa),
            reverses,
            first: Turns::of_turns(zone.first_sector_offset_turns),
            track_skew: Turns::of_turns(zone.track_skew_turns),
            head_skew: Turns::of_turns(zone.head_skew_turns),
        }
    }

    pub(super) fn first_cylinder(&self) -> u32 {
        self.first_cylinder
    }

    pub(super) fn places(&self) -> u64 {
        self.band.value() / self.tracks.value() * u64::from(self.cylinders)
    }

    #[inline(always)]
    pub(super) fn span_at(&self, place: u64) -> TrackSpan {
        let band = self.band.divide(place).0.min(self.last);
        let tracks = if band == self.last { self.last_tracks } else { self.tracks };
        let into = place - band * self.band.value();
        let surfaces = self.of_band(band);
        let slice = tracks.divide(into).0;
        let order = self.order_at(band, slice as i32);
        let surface = &surfaces[order];
        let (track, sector) = surface.sectors.divide(into - u64::from(surface.before) * tracks.value());
        self.span(place - sector, band, order, track, tracks.value())
    }

    /// Up to `most` tracks from the one that begins at `place`, if it follows the track of `cylinder` and `head` on the same surface of
    /// a band: how many lie on that surface, and the last of them.
    #[inline]
    pub(super) fn tracks_after(
        &self,
        cylinder: u32,
        head: u32,
        place: u64,
        most: u64,
    ) -> Option<(u64, TrackSpan)> {
        let within = cylinder.checked_sub(self.first_cylinder).filter(|within| *within < self.cylinders)?;
        let (band, along) = self.tracks.divide(u64::from(within));
        let tracks = if band == self.last { self.last_tracks } else { self.tracks }.value();
        let backward = self.reverses && band & 1 == 1;
        let order = if backward { self.heads - 1 - u64::from(head) } else { u64::from(head) };
        let track = self.turned(order, along, tracks) + 1;
        if track >= tracks || most == 0 || self.start(band, order as usize, track, tracks) != place {
            return None;
        }
        let count = most.min(tracks - track);
        let last = track + count - 1;
        let start = self.start(band, order as usize, last, tracks);
        Some((count, self.span(start, band, order as usize, last, tracks)))
    }

    /// The angle from the start of a track to that of the next on the same surface.
    pub(super) fn track_skew(&self) -> Angle {
        self.track_skew.angle()
    }

    /// The track with the number `track` on the surface with the number `order` of a band of `tracks` tracks a surface.
    #[inline(always)]
    fn span(&self, start: u64, band: u64, order: usize, track: u64, tracks: u64) -> TrackSpan {
        let surface = &self.of_band(band)[order];
        let along = self.turned(order as u64, track, tracks);
        TrackSpan {
            start,
            places: surface.sectors.value() as u32,
            first_sector: 0,
            sectors_per_track: surface.sectors.value() as u32,
            cylinder: self.first_cylinder + (band * self.tracks.value() + along) as u32,
            head: surface.head,
            angle: self.turns(band, order as u64, tracks, track).angle(),
            width: SectorWidth::for_sectors(surface.sectors),
        }
    }

    /// The place of a sector, if it lies in the zone.
    pub(super) fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let within = cylinder.checked_sub(self.first_cylinder).filter(|within| *within < self.cylinders)?;
        let (band, along) = self.tracks.divide(u64::from(within));
        let tracks = if band == self.last { self.last_tracks } else { self.tracks }.value();
        let order = self.of_band(band).iter().position(|surface| surface.head == head)?;
        let surface = &self.of_band(band)[order];
        if u64::from(sector) >= surface.sectors.value() {
            return None;
        }
        let track = self.turned(order as u64, along, tracks);
        Some(self.start(band, order, track, tracks) + u64::from(sector))
    }

    /// The place at which a track begins.
    #[inline]
    fn start(&self, band: u64, order: usize, track: u64, tracks: u64) -> u64 {
        let surface = &self.of_band(band)[order];
        band * self.band.value() + u64::from(surface.before) * tracks + track * surface.sectors.value()
    }

    /// Index, in a band's order, of the surface that holds a sector of a slice. A slice is one track of each surface.
    #[inline]
    fn order_at(&self, band: u64, sector: i32) -> usize {
        // Counts for several at once without branches; a binary search would wait for each comparison.
        let before = &self.before[self.order_of(band)];
        before.iter().map(|before| u32::from(*before <= sector)).sum::<u32>() as usize - 1
    }

    #[inline]
    fn of_band(&self, band: u64) -> &[Surface] {
        &self.surfaces[self.order_of(band)]
    }

    /// Range of `surfaces` that has a band's order.
    #[inline]
    fn order_of(&self, band: u64) -> Range<usize> {
        let heads = self.heads as usize;
        if self.reverses && band & 1 == 1 { heads..2 * heads } else { 0..heads }
    }

    /// Rank of a track along the radius from its rank in LBN order, and the reverse.
    #[inline]
    fn turned(&self, order: u64, track: u64, tracks: u64) -> u64 {
        if self.alternates && order % 2 == 1 { tracks - 1 - track } else { track }
    }

    /// Angle of a track: the sum of the skews of all track and surface changes before it.
    #[inline]
    fn turns(&self, band: u64, order: u64, tracks: u64, track: u64) -> Turns {
        let changes_a_band = if self.reverses || self.heads == 1 { self.heads - 1 } else { self.heads };
        let surface_changes = band * changes_a_band + order;
        let all = band * self.heads * self.tracks.value() + order * tracks + track;
        let turns = self.first.plus(self.head_skew.times(surface_changes));
        turns.plus(self.track_skew.times(all - surface_changes))
    }
}

fn surfaces(order: impl Iterator<Item = u32>, zone: &BandZone) -> Vec<Surface> {
    let mut before = 0;
    order
        .map(|head| {
            let sectors = *zone.sectors_per_track.get(head as usize).unwrap_or(&zone.sectors_per_track[0]);
            let surface = Surface { head, sectors: Divisor::new(u64::from(sectors)), before };
            before += sectors;
            surface
        })
        .collect()
}
