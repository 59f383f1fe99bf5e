//! Pieces as `zones`: all heads of a cylinder come before the next cylinder.

use crate::learn::fit::{self, Angles, order};
use crate::learn::{LearnedMechanics, Piece, most_off};
use headstack_model::spec::{GeometrySpec, Sparing, Zone};

/// Maximum deviation of a whole skew, in sectors.
const ALMOST: f64 = 0.05;

/// The tracks of a zone by number.
struct Tracks<'a> {
    pieces: &'a [Piece],
    heads: u32,
    first_cylinder: u32,
    last_cylinder: u32,
    sectors_per_track: u32,
    /// Blocks of each track; 0 where it holds none.
    blocks: Vec<u32>,
}

impl<'a> Tracks<'a> {
    fn new(pieces: &'a [Piece], heads: u32) -> Tracks<'a> {
        let first_cylinder = pieces.iter().map(|piece| piece.cylinder).min().unwrap_or(0);
        let last_cylinder = pieces.iter().map(|piece| piece.cylinder).max().unwrap_or(0);
        let mut blocks = vec![0; ((last_cylinder - first_cylinder + 1) * heads) as usize];
        for piece in pieces {
            let from = (piece.cylinder - first_cylinder) * heads + order(piece, heads);
            let to = blocks.iter_mut().skip(from as usize).take(piece.tracks.run.tracks as usize);
            to.for_each(|blocks| *blocks = piece.tracks.run.sectors);
        }
        let sectors_per_track = pieces.first().map_or(1, |piece| piece.tracks.sectors_per_track);
        Tracks { pieces, heads, first_cylinder, last_cylinder, sectors_per_track, blocks }
    }

    /// Sectors of a track without a block.
    fn lacks(&self, track: usize) -> u32 {
        self.sectors_per_track.saturating_sub(self.blocks[track])
    }

    /// The tracks that hold blocks: the first, and the one after the last.
    fn used(&self) -> (usize, usize) {
        let first = self.blocks.iter().position(|blocks| *blocks > 0).unwrap_or(0);
        let last = self.blocks.iter().rposition(|blocks| *blocks > 0).unwrap_or(0);
        (first, last + 1)
    }
}

/// The geometry in zones; the caller compares it with the pieces.
pub(super) fn geometry(learned: &LearnedMechanics, cylinders: u32) -> GeometrySpec {
    let zones: Vec<Tracks> = learned
        .pieces
        .chunk_by(|a, b| a.band == b.band)
        .map(|pieces| Tracks::new(pieces, learned.heads))
        .collect();
    let sparing = sparing(&zones);
    let most_off = most_off(learned.noise);
    let mut origin = None;
    GeometrySpec {
        heads: learned.heads,
        cylinders,
        layout: learned.layout,
        sparing,
        slip_to_end: false,
        range_cylinders: None,
        zones: zones.iter().map(|zone| one_zone(zone, sparing, most_off, &mut origin)).collect(),
        band_zones: Vec::new(),
        extents: None,
    }
}

/// The sparing scheme, from the tracks with fewer blocks than sectors.
fn sparing(zones: &[Tracks]) -> Sparing {
    let (mut tracks, mut short, mut ends, mut short_ends, mut missing) = (0, 0, 0, 0, 0);
    for zone in zones {
        let (first, behind) = zone.used();
        for track in first..behind {
            let is_short = zone.lacks(track) > 0 && zone.blocks[track] > 0;
            let is_end = (track as u32 + 1).is_multiple_of(zone.heads);
            tracks += 1;
            missing += u32::from(zone.blocks[track] == 0);
            short += u32::from(is_short);
            ends += u32::from(is_end);
            short_ends += u32::from(is_short && is_end);
        }
        missing += (zone.blocks.len() - behind) as u32;
    }
    match () {
        () if 2 * short > tracks => Sparing::SectorsPerTrack,
        () if ends > 0 && 2 * short_ends > ends && short_ends * 2 > short => Sparing::SectorsPerCylinder,
        () if short > 0 => Sparing::SectorsPerZone,
        () if missing > 0 => Sparing::TracksPerZone,
        () => Sparing::None,
    }
}

fn one_zone(zone: &Tracks, sparing: Sparing, most_off: f64, origin: &mut Option<f64>) -> Zone {
    let seen = fit::seen_on_cylinders(zone.pieces, zone.heads);
    let angles = Angles::fit_most(&seen, fit::usual_steps(zone.pieces, zone.heads), most_off);
    let sectors = zone.sectors_per_track;
    let origin = *origin.get_or_insert(angles.first);
    // The fractions of sectors add up from track to track of a cylinder, and from cylinder to cylinder.
    let track_skew = fit::in_sectors(angles.steps[1], sectors, ALMOST);
    let of_tracks = f64::from(zone.heads - 1) * track_skew / f64::from(sectors);
    let almost = ALMOST.min(0.5 / f64::from(zone.last_cylinder - zone.first_cylinder + 1));
    let cylinder_skew = fit::in_sectors(angles.steps[0] - of_tracks, sectors, almost);
    let (first, behind) = zone.used();
    let mut found = Zone {
        first_cylinder: zone.first_cylinder,
        last_cylinder: zone.last_cylinder,
        sectors_per_track: sectors,
        first_sector_offset_sectors: fit::in_sectors(angles.first - origin, sectors, ALMOST),
        track_skew_sectors: track_skew,
        cylinder_skew_sectors: cylinder_skew,
        front_gap_sectors: first as u32 * sectors,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    let all: u64 = zone.blocks.len() as u64 * u64::from(sectors);
    let held: u64 = zone.blocks.iter().map(|blocks| u64::from(*blocks)).sum();
    let free = all - held - u64::from(found.front_gap_sectors);
    match sparing {
        Sparing::TracksPerZone => {
            found.spares = (free / u64::from(sectors)) as u32;
            found.slips =
                (first..behind).filter(|track| zone.blocks[*track] == 0).map(|track| track as u64).collect();
        }
        Sparing::SectorsPerTrack => found.spares = usual(zone, |_| true),
        Sparing::SectorsPerCylinder => {
            found.spares = usual(zone, |track| (track as u32 + 1).is_multiple_of(zone.heads));
        }
        Sparing::SectorsPerZone => {
            found.spares = u32::try_from(free).unwrap_or(u32::MAX);
            found.slips = (first..behind - 1).flat_map(|track| lacking(zone, track)).collect();
        }
        _ => {}
    }
    found
}

/// The usual number of sectors without a block.
fn usual(zone: &Tracks, counts: impl Fn(usize) -> bool) -> u32 {
    let (first, behind) = zone.used();
    let mut lacks: Vec<u32> =
        (first..behind).filter(|track| counts(*track)).map(|track| zone.lacks(track)).collect();
    lacks.sort_unstable();
    lacks.get(lacks.len() / 2).copied().unwrap_or(0)
}

/// The sectors that a track lacks, taken as its last.
fn lacking(zone: &Tracks, track: usize) -> std::ops::Range<u64> {
    let end = (track as u64 + 1) * u64::from(zone.sectors_per_track);
    end - u64::from(zone.lacks(track))..end
}
