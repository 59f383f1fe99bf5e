//! Where each block lies: LBN to cylinder, head, sector and angle, and back.
//!
//! Modelled: zones, every order of LBNs over tracks in [`Layout`], skews, spares, slips and remaps. Every look-up is
//! a search in a small index and some arithmetic, without allocation and whatever the size of the disk. Not modelled:
//! surfaces whose tracks are out of line with each other.

mod banded;
mod finder;
mod fixed;
mod grammar;
mod pieces;
mod sparing;
mod zoned;

use crate::spec::{Fault, Layout, Sparing};
use crate::{Angle, DriveSpec, Lbn, SpecError};
use banded::BandedTracks;
use fixed::SectorWidth;
use grammar::Grammar;
use pieces::{Pieces, Run};
use sparing::SparedZone;
use zoned::ZonedTracks;

/// A run of blocks that follow each other on one track without a gap.
///
/// Slipped and remapped sectors end a run; a remapped sector is a run of one on its spare's track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Extent {
    /// First block of the run.
    pub first: Lbn,
    pub sectors: u32,
    pub cylinder: u32,
    pub head: u32,
    /// Physical sector of `first`, counted from the track's own first sector.
    pub sector: u32,
    pub sectors_per_track: u32,
    /// Angle at which `first` begins.
    pub angle: Angle,
    /// Length of a sector in 2⁻⁶⁴ of a revolution, rounded down.
    pub sector_width: u64,
}

impl Extent {
    /// Whether `lbn` lies in the run.
    #[inline]
    pub fn contains(&self, lbn: Lbn) -> bool {
        lbn.0.wrapping_sub(self.first.0) < u64::from(self.sectors)
    }

    /// The part of a run around `lbn` that lies on the track of `lbn`.
    #[inline(always)]
    fn cut(lbn: Lbn, run: &Run, track: &TrackSpan) -> Extent {
        let from = run.from.max(track.start);
        let to = run.to.min(track.end());
        let sector = track.sector(from);
        Extent {
            first: Lbn(lbn.0 - (run.place - from)),
            sectors: (to - from) as u32,
            cylinder: track.cylinder,
            head: track.head,
            sector,
            sectors_per_track: track.sectors_per_track,
            angle: track.angle + track.width.start(sector),
            sector_width: track.width.floor(),
        }
    }
}

/// The blocks on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Track {
    /// First block on the track, not counting blocks remapped to it.
    pub first: Lbn,
    /// Blocks from `first` to the next track boundary, including blocks remapped elsewhere.
    pub sectors: u32,
    pub cylinder: u32,
    pub head: u32,
    pub sectors_per_track: u32,
}

/// Tracks of one surface that follow each other without a gap, all of whose sectors have blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WholeTracks {
    pub count: u64,
    /// Angle from the start of each track to the start of the next.
    pub skew: Angle,
    pub last: Extent,
}

/// Where one block lies, and the angle at which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Place {
    pub cylinder: u32,
    pub head: u32,
    /// Physical sector, counted from the track's own first sector.
    pub sector: u32,
    pub angle: Angle,
}

/// A track in a layout: its run of places in the zone, and its position on the disk.
#[derive(Clone, Copy, Debug)]
struct TrackSpan {
    /// Place of the first sector of the track that counts as a place.
    start: u64,
    places: u32,
    /// Number on the track of that sector.
    first_sector: u32,
    sectors_per_track: u32,
    cylinder: u32,
    head: u32,
    /// Angle of the track's sector 0.
    angle: Angle,
    width: SectorWidth,
}

impl TrackSpan {
    #[inline]
    fn end(&self) -> u64 {
        self.start + u64::from(self.places)
    }

    #[inline]
    fn sector(&self, place: u64) -> u32 {
        self.first_sector + (place - self.start) as u32
    }
}

/// The layout of a drive, ready for look-ups.
#[derive(Clone, Debug)]
pub struct Geometry {
    sectors: u64,
    pieces: Pieces,
    tracks: Tracks,
    /// Whether a remap moves a whole track with its blocks.
    moves_tracks: bool,
}

#[derive(Clone, Debug)]
enum Tracks {
    Zoned(Vec<ZonedTracks>),
    Banded(Vec<BandedTracks>),
    Grammar(Grammar),
}

impl Tracks {
    #[inline(always)]
    fn span_at(&self, zone: u32, place: u64, push: u32) -> TrackSpan {
        match self {
            Tracks::Zoned(zones) => zones[zone as usize].span_at(place, push),
            Tracks::Banded(zones) => zones[zone as usize].span_at(place),
            Tracks::Grammar(grammar) => grammar.span_at(place),
        }
    }

    fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<(u32, u64)> {
        match self {
            Tracks::Zoned(zones) => {
                let zone = zones.partition_point(|zone| zone.first_cylinder() <= cylinder).checked_sub(1)?;
                zones[zone].find(cylinder, head, sector).map(|place| (zone as u32, place))
            }
            Tracks::Banded(zones) => {
                let zone = zones.partition_point(|zone| zone.first_cylinder() <= cylinder).checked_sub(1)?;
                zones[zone].find(cylinder, head, sector).map(|place| (zone as u32, place))
            }
            Tracks::Grammar(grammar) => grammar.find(cylinder, head, sector).map(|place| (0, place)),
        }
    }
}

impl Geometry {
    /// Builds the layout of a drive.
    ///
    /// *Errors:* zones, spares and defects that do not fit each other or the capacity, with the key at fault.
    pub fn new(spec: &DriveSpec) -> Result<Geometry, SpecError> {
        Geometry::build(spec).map_err(|fault| fault.locate("", &spec.name))
    }

    pub(crate) fn build(spec: &DriveSpec) -> Result<Geometry, Fault> {
        match spec.geometry.layout {
            Layout::Cylinder | Layout::Serpentine | Layout::SerpentineAbsolute => Geometry::zoned(spec),
            Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa => Geometry::banded(spec),
            Layout::Extents => Geometry::extents(spec),
        }
    }

    fn zoned(drive: &DriveSpec) -> Result<Geometry, Fault> {
        let (spec, sectors) = (&drive.geometry, drive.capacity_sectors);
        let mut spared = Vec::new();
        for (index, zone) in spec.zones.iter().enumerate() {
            spared.push(SparedZone::new(spec, zone, index as u32, &format!("geometry.zones[{index}]"))?);
        }
        let mut pieces = sparing::join_zones(&spared, drive)?;
        sparing::remap(&mut pieces, spec, &spared)?;
        let tracks = Tracks::Zoned(spec.zones.iter().map(|zone| ZonedTracks::new(spec, zone)).collect());
        Ok(Geometry { sectors, pieces, tracks, moves_tracks: spec.sparing == Sparing::TracksPerZone })
    }

    fn banded(drive: &DriveSpec) -> Result<Geometry, Fault> {
        let (spec, sectors) = (&drive.geometry, drive.capacity_sectors);
        let zones: Vec<BandedTracks> =
            spec.band_zones.iter().map(|zone| BandedTracks::new(spec, zone)).collect();
        let mut spared = Vec::new();
        for (index, (zone, tracks)) in spec.band_zones.iter().zip(&zones).enumerate() {
            let key = format!("geometry.band_zones[{index}]");
            spared.push(SparedZone::banded(spec, zone, tracks.places(), index as u32, &key)?);
        }
        let pieces = sparing::join_zones(&spared, drive)?;
        Ok(Geometry { sectors, pieces, tracks: Tracks::Banded(zones), moves_tracks: false })
    }

    fn extents(drive: &DriveSpec) -> Result<Geometry, Fault> {
        let (spec, sectors) = (&drive.geometry, drive.capacity_sectors);
        let Some(extents) = &spec.extents else {
            return Err(Fault::new("geometry.extents", "this layout needs them"));
        };
        let mut grammar = Grammar::new(spec, extents)?;
        let zone = SparedZone::slipped(grammar.places(), &extents.slips, "geometry.extents")?;
        let mut pieces = sparing::join_zones(&[zone], drive)?;
        grammar.remap(&mut pieces, &extents.remaps, sectors)?;
        Ok(Geometry { sectors, pieces, tracks: Tracks::Grammar(grammar), moves_tracks: false })
    }

    /// Blocks the host can address.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The run that contains `lbn`. Panics if there is no such block.
    pub fn extent_at(&self, lbn: Lbn) -> Extent {
        let (run, track) = self.place_at(lbn);
        Extent::cut(lbn, &run, &track)
    }

    /// The run that follows `before`. Panics after the last block. Faster than [`Geometry::extent_at`] on a disk of bands, where
    /// the next track of the same surface follows by arithmetic.
    pub fn extent_after(&self, before: &Extent) -> Extent {
        let lbn = before.first + u64::from(before.sectors);
        let Tracks::Banded(zones) = &self.tracks else { return self.extent_at(lbn) };
        assert!(lbn.0 < self.sectors, "block {lbn} of a disk of {}", self.sectors);
        let run = self.pieces.run_at(lbn.0);
        match zones[run.zone as usize].tracks_after(before.cylinder, before.head, run.place, 1) {
            Some((_, track)) => Extent::cut(lbn, &run, &track),
            None => self.extent_at(lbn),
        }
    }

    /// On a disk of bands: the whole tracks that follow `before` on the same surface, at most `most`, without a slip or a remap; `None`
    /// where there is none. Panics after the last block.
    pub fn whole_tracks_after(&self, before: &Extent, most: u64) -> Option<WholeTracks> {
        let Tracks::Banded(zones) = &self.tracks else { return None };
        let lbn = before.first + u64::from(before.sectors);
        assert!(lbn.0 < self.sectors, "block {lbn} of a disk of {}", self.sectors);
        let run = self.pieces.run_at(lbn.0);
        let most = most.min((run.to - run.place) / u64::from(before.sectors_per_track));
        let zone = &zones[run.zone as usize];
        let (count, track) = zone.tracks_after(before.cylinder, before.head, run.place, most)?;
        let run = Run { place: track.start, ..run };
        let last = Extent::cut(lbn + (count - 1) * u64::from(track.places), &run, &track);
        Some(WholeTracks { count, skew: zone.track_skew(), last })
    }

    /// The place of `lbn`. Panics if there is no such block.
    #[inline]
    pub fn locate(&self, lbn: Lbn) -> Place {
        let (run, track) = self.place_at(lbn);
        let sector = track.sector(run.place);
        let angle = track.angle + track.width.start(sector);
        Place { cylinder: track.cylinder, head: track.head, sector, angle }
    }

    /// The track of `lbn`, ignoring remaps of single sectors. Panics if there is no such block.
    #[inline]
    pub fn track_at(&self, lbn: Lbn) -> Track {
        let (home, track) = self.home_track(lbn);
        let first = self.pieces.rank(home.zone, track.start);
        let next = self.pieces.rank(home.zone, track.end());
        let lies = if self.moves_tracks { self.place_at(lbn).1 } else { track };
        Track {
            first: Lbn(first),
            sectors: (next - first) as u32,
            cylinder: lies.cylinder,
            head: lies.head,
            sectors_per_track: lies.sectors_per_track,
        }
    }

    /// First block of the track after that of `lbn`; `None` on the last track.
    #[inline]
    pub fn next_track_boundary(&self, lbn: Lbn) -> Option<Lbn> {
        let (home, track) = self.home_track(lbn);
        let next = self.pieces.rank(home.zone, track.end());
        (next < self.sectors).then_some(Lbn(next))
    }

    /// First block of the track of `lbn`.
    #[inline]
    pub fn previous_track_boundary(&self, lbn: Lbn) -> Lbn {
        let (home, track) = self.home_track(lbn);
        Lbn(self.pieces.rank(home.zone, track.start))
    }

    /// The block at a physical place, if one is stored there.
    pub fn lbn_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<Lbn> {
        let (zone, place) = self.tracks.find(cylinder, head, sector)?;
        self.pieces.stored(zone, place).map(Lbn)
    }

    /// Cylinder, head and sector of a zone's physical sector, counted as the drive file counts slips and remaps.
    pub fn sector_at(&self, zone: usize, index: u64) -> (u32, u32, u32) {
        let track = self.tracks.span_at(zone as u32, index, 0);
        (track.cylinder, track.head, track.sector(index))
    }

    #[inline(always)]
    fn place_at(&self, lbn: Lbn) -> (Run, TrackSpan) {
        assert!(lbn.0 < self.sectors, "block {lbn} of a disk of {}", self.sectors);
        let run = self.pieces.run_at(lbn.0);
        (run, self.tracks.span_at(run.zone, run.place, run.push))
    }

    #[inline]
    fn home_track(&self, lbn: Lbn) -> (Run, TrackSpan) {
        assert!(lbn.0 < self.sectors, "block {lbn} of a disk of {}", self.sectors);
        let run = self.pieces.home_at(lbn.0);
        (run, self.tracks.span_at(run.zone, run.place, run.push))
    }
}
