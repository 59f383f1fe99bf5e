//! Pieces as `band_zones`: a surface of a band, the next surface, then the next band.

use crate::learn::fit::{Angles, Seen};
use crate::learn::{LearnedMechanics, Piece, middle_angle};
use headstack_model::spec::{BandZone, GeometrySpec, Layout, Sparing};

/// A band: the tracks of some cylinders under all heads.
struct Band<'a> {
    pieces: &'a [Piece],
    first_cylinder: u32,
    cylinders: u32,
    /// Sectors per track, by head; 0 without a track of it.
    sectors: Vec<u32>,
    is_reversed: bool,
}

/// The geometry in zones of bands; the caller compares it with the pieces.
pub(super) fn geometry(learned: &LearnedMechanics, cylinders: u32) -> GeometrySpec {
    let heads = learned.heads;
    let bands: Vec<Band> =
        learned.pieces.chunk_by(|a, b| a.band == b.band).map(|pieces| band(pieces, heads)).collect();
    let reverses = matches!(learned.layout, Layout::Fa | Layout::Aa);
    let mut zones = Vec::new();
    let mut from = 0;
    while from < bands.len() {
        let length = zone_length(&bands[from..], reverses);
        zones.push(one_zone(&bands[from..from + length], heads, reverses));
        from += length;
    }
    if let Some(origin) = zones.first().map(|zone| zone.first_sector_offset_turns) {
        for zone in &mut zones {
            let offset = (zone.first_sector_offset_turns - origin).rem_euclid(1.0);
            zone.first_sector_offset_turns = (offset * 1e9).round() / 1e9;
        }
    }
    GeometrySpec {
        heads,
        cylinders,
        layout: learned.layout,
        sparing: Sparing::None,
        slip_to_end: false,
        range_cylinders: None,
        zones: Vec::new(),
        band_zones: zones,
        extents: None,
    }
}

fn band(pieces: &[Piece], heads: u32) -> Band<'_> {
    let low = pieces.iter().map(|piece| piece.cylinders().0).min().unwrap_or(0);
    let high = pieces.iter().map(|piece| piece.cylinders().1).max().unwrap_or(0);
    let mut sectors = vec![0; heads as usize];
    pieces.iter().for_each(|piece| sectors[piece.head as usize] = piece.tracks.sectors_per_track);
    let is_reversed = heads > 1 && pieces.first().is_some_and(|piece| piece.head == heads - 1);
    Band { pieces, first_cylinder: low, cylinders: high - low + 1, sectors, is_reversed }
}

/// How many bands from the first on belong to one zone: with its sizes, and its length except for the last.
fn zone_length(bands: &[Band], reverses: bool) -> usize {
    let first = &bands[0];
    let mut length = 1_usize;
    for (before, next) in bands.iter().zip(&bands[1..]) {
        let is_like = before.cylinders == first.cylinders
            && next.cylinders <= first.cylinders
            && next.is_reversed == (reverses && !length.is_multiple_of(2))
            && next.sectors.iter().zip(&first.sectors).all(|(next, first)| *next == 0 || next == first);
        if !is_like {
            break;
        }
        length += 1;
    }
    length
}

fn one_zone(bands: &[Band], heads: u32, reverses: bool) -> BandZone {
    let first = &bands[0];
    let last = &bands[bands.len() - 1];
    let cylinders = last.first_cylinder + last.cylinders - first.first_cylinder;
    let angles = angles(bands, heads, reverses);
    // A head without blocks in the zone gets the size of the others.
    let largest = first.sectors.iter().copied().max().unwrap_or(1);
    let sectors: Vec<u32> =
        first.sectors.iter().map(|sectors| if *sectors == 0 { largest } else { *sectors }).collect();
    let all: u64 = sectors.iter().map(|sectors| u64::from(*sectors) * u64::from(cylinders)).sum();
    let pieces = bands.iter().flat_map(|band| band.pieces);
    let held: u64 =
        pieces.map(|piece| u64::from(piece.tracks.run.sectors) * u64::from(piece.tracks.run.tracks)).sum();
    let slips = slips(bands, heads, &sectors);
    let is_uniform = sectors.iter().all(|count| *count == sectors[0]);
    BandZone {
        first_cylinder: first.first_cylinder,
        last_cylinder: first.first_cylinder + cylinders - 1,
        band_tracks: first.cylinders,
        sectors_per_track: if is_uniform { vec![sectors[0]] } else { sectors },
        track_skew_turns: rounded(angles.steps[0]),
        head_skew_turns: rounded(angles.steps[1]),
        first_sector_offset_turns: angles.first.rem_euclid(1.0),
        spares: u32::try_from(all.saturating_sub(held)).unwrap_or(u32::MAX),
        slips,
    }
}

fn rounded(turns: f64) -> f64 {
    (turns.rem_euclid(1.0) * 1e9).round() / 1e9
}

/// Index of a piece's surface in its band.
fn order(band: &Band, piece: &Piece, heads: u32) -> u32 {
    if band.is_reversed { heads - 1 - piece.head } else { piece.head }
}

/// Number of a piece's first track on its surface of the band, in the order of blocks.
fn along(band: &Band, piece: &Piece) -> u32 {
    match piece.cylinder_step {
        step if step < 0 => band.first_cylinder + band.cylinders - 1 - piece.cylinder,
        _ => piece.cylinder - band.first_cylinder,
    }
}

/// Slipped sectors before the zone's last track, as places from the zone's start.
fn slips(bands: &[Band], heads: u32, sectors: &[u32]) -> Vec<u64> {
    let mut slips = Vec::new();
    let mut start = 0;
    for (index, band) in bands.iter().enumerate() {
        let of = |order: u32| {
            let head = if band.is_reversed { heads - 1 - order } else { order };
            u64::from(sectors[head as usize])
        };
        for (place, piece) in band.pieces.iter().enumerate() {
            let order = order(band, piece, heads);
            let before: u64 = (0..order).map(|order| of(order) * u64::from(band.cylinders)).sum();
            let is_end = index + 1 == bands.len() && place + 1 == band.pieces.len();
            let tracks = if is_end { piece.tracks.run.tracks - 1 } else { piece.tracks.run.tracks };
            let lacking = of(order).saturating_sub(u64::from(piece.tracks.run.sectors));
            for track in 0..u64::from(if lacking > 0 { tracks } else { 0 }) {
                let end = start + before + (u64::from(along(band, piece)) + track + 1) * of(order);
                slips.extend(end - lacking..end);
            }
        }
        start += (0..heads).map(of).sum::<u64>() * u64::from(band.cylinders);
    }
    slips
}

/// Angle of the zone's first track, from track to track, and from surface to surface.
fn angles(bands: &[Band], heads: u32, reverses: bool) -> Angles {
    let changes_a_band = if reverses || heads == 1 { heads - 1 } else { heads };
    let usual = bands[0].cylinders;
    let mut seen = Vec::new();
    for (number, band) in bands.iter().enumerate() {
        for piece in band.pieces {
            let order = order(band, piece, heads);
            let changes = f64::from(number as u32 * changes_a_band + order);
            let before = f64::from(number as u32) * f64::from(heads) * f64::from(usual);
            let track = before + f64::from(order * band.cylinders + along(band, piece));
            let more = f64::from(piece.tracks.run.tracks - 1);
            seen.push(Seen { steps: [track - changes, changes], angle: piece.tracks.angle });
            if more > 0.0 {
                let angle = piece.tracks.angle + more * piece.tracks.skew;
                seen.push(Seen { steps: [track + more - changes, changes], angle });
            }
        }
    }
    let pieces = || bands.iter().flat_map(|band| band.pieces);
    let longer = pieces().filter(|piece| piece.tracks.run.tracks > 1);
    let track = middle_angle(longer.map(|piece| piece.tracks.skew).collect()).unwrap_or(0.0);
    let all: Vec<&Piece> = pieces().collect();
    let changes = all.windows(2).filter(|pair| pair[0].head != pair[1].head).map(|pair| {
        let last = pair[0].tracks.angle + f64::from(pair[0].tracks.run.tracks - 1) * pair[0].tracks.skew;
        pair[1].tracks.angle - last
    });
    Angles::fit(&seen, [track, middle_angle(changes.collect()).unwrap_or(track)])
}
