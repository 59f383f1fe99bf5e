//! Synthetic disks for tests: any layout, with surfaces of unequal density, skews and slips.
//!
//! Their mechanics and electronics are those of the shipped `toshiba-x300`.

use headstack_model::spec::{BandZone, ExtentRun, Extents, Layout, Repeated, Sparing, TrackKind, Zone};
use headstack_model::{DriveSpec, drives};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// `spec`, a disk of bands, with `tracks` tracks on each surface of a band and another `layout` (`ff`, `af`, `fa` or `aa`).
///
/// Zones and the contents of each track stay the same.
pub fn in_bands(mut spec: DriveSpec, layout: Layout, tracks: u32) -> DriveSpec {
    spec.name = format!("{}, {layout:?} of {tracks}", spec.name);
    spec.geometry.layout = layout;
    spec.geometry.band_zones.iter_mut().for_each(|zone| zone.band_tracks = tracks);
    spec
}

/// A disk to build.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The order of its tracks.
    pub layout: Layout,
    /// Number of surfaces.
    pub heads: u32,
    /// Blocks of a physical sector.
    pub physical_sectors: u32,
    /// Turns from a track to the next.
    pub track_skew: f64,
    /// Turns at a change of surface, or of cylinder if each holds tracks of all surfaces.
    pub head_skew: f64,
    /// From the outermost.
    pub zones: Vec<PlanZone>,
}

/// A zone of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanZone {
    /// Number of cylinders.
    pub cylinders: u32,
    /// Cylinders of a band, if the layout has bands.
    pub band: u32,
    /// Physical sectors of a track on each surface, or one number for all.
    pub sectors: Vec<u32>,
    /// Places without blocks: physical sectors in the order of the tracks from the zone's first.
    pub slips: Vec<u64>,
}

impl PlanZone {
    fn of_head(&self, head: u32) -> u64 {
        u64::from(*self.sectors.get(head as usize).unwrap_or(&self.sectors[0]))
    }

    fn places(&self, heads: u32) -> u64 {
        (0..heads).map(|head| self.of_head(head)).sum::<u64>() * u64::from(self.cylinders)
    }
}

impl Plan {
    /// The drive file.
    pub fn spec(&self) -> DriveSpec {
        let mut spec = drives::load("toshiba-x300").expect("it is shipped");
        let blocks = u64::from(self.physical_sectors);
        let geometry = &mut spec.geometry;
        (geometry.layout, geometry.heads, geometry.sparing) = (self.layout, self.heads, Sparing::None);
        geometry.slip_to_end = true;
        (geometry.zones, geometry.band_zones) = (Vec::new(), Vec::new());
        let banded = self.is_banded();
        let (mut first, mut sectors) = (0, 0);
        for zone in &self.zones {
            let last = first + zone.cylinders - 1;
            sectors += (zone.places(self.heads) - zone.slips.len() as u64) * blocks;
            let slips = zone.slips.iter().flat_map(|slip| slip * blocks..(slip + 1) * blocks).collect();
            let of_track = |turns: f64| libm::round(turns * zone.of_head(0) as f64) * blocks as f64;
            if banded {
                geometry.band_zones.push(BandZone {
                    first_cylinder: first,
                    last_cylinder: last,
                    band_tracks: zone.band,
                    sectors_per_track: zone.sectors.iter().map(|n| n * self.physical_sectors).collect(),
                    track_skew_turns: self.track_skew,
                    head_skew_turns: self.head_skew,
                    first_sector_offset_turns: 0.0,
                    spares: 0,
                    slips,
                });
            } else {
                geometry.zones.push(Zone {
                    first_cylinder: first,
                    last_cylinder: last,
                    sectors_per_track: zone.sectors[0] * self.physical_sectors,
                    first_sector_offset_sectors: 0.0,
                    track_skew_sectors: of_track(self.track_skew),
                    cylinder_skew_sectors: of_track(self.head_skew),
                    front_gap_sectors: 0,
                    spares: 0,
                    slips,
                    remaps: Vec::new(),
                });
            }
            first = last + 1;
        }
        geometry.cylinders = first;
        (spec.name, spec.capacity_sectors) = ("synthetic".to_string(), sectors);
        spec.physical_sector_bytes = spec.sector_bytes * self.physical_sectors;
        spec
    }

    /// A disk with tracks of 1 to 2 MB, in 4 KB sectors, with random skews.
    ///
    /// It has the outermost `zones` of thirty zones, which together hold a little over 20 TB and become shorter and sparser
    /// inwards. Surfaces of disks with bands differ by some sectors, and bands are longer in some zones than in others. With
    /// `whole_surfaces`, a band is as long as its zone.
    pub fn dense(layout: Layout, zones: u64, whole_surfaces: bool, seed: u64) -> Plan {
        const ZONES: u64 = 30;
        const BYTES: f64 = 20e12;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let heads = random.random_range(16..21);
        let banded = matches!(layout, Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa);
        let surfaces: Vec<f64> = (0..heads).map(|_| random.random_range(0.95..1.05)).collect();
        let zone = |number: u64| {
            let outer = 490.0 - 245.0 * number as f64 / ZONES as f64;
            let sectors = if banded {
                surfaces.iter().map(|of_head| libm::round(of_head * outer) as u32).collect()
            } else {
                vec![libm::round(outer) as u32]
            };
            let share = 1.4 - 0.8 * number as f64 / ZONES as f64;
            let cylinders = share * BYTES / (ZONES * u64::from(heads) * 4096) as f64 / outer;
            let cylinders = cylinders as u32 + random.random_range(0..1000);
            let band = if whole_surfaces { cylinders } else { random.random_range(150..400) };
            PlanZone { cylinders, band, sectors, slips: Vec::new() }
        };
        let zones = (0..zones).map(zone).collect();
        let (track_skew, head_skew) = (random.random_range(0.06..0.36), random.random_range(0.06..0.9));
        Plan { layout, heads, physical_sectors: 8, track_skew, head_skew, zones }
    }

    /// The drive file of a disk with these zones, each surface of which is read whole, alternately inwards and outwards, with the
    /// skew of each zone larger by `more_skew`; without slips.
    pub fn spec_of_surfaces(&self, more_skew: f64) -> DriveSpec {
        let mut spec = self.spec();
        let geometry = &mut spec.geometry;
        let (mut tracks, mut runs) = (Vec::new(), Vec::new());
        let (mut angle, mut sectors) = (0.0, 0);
        for head in 0..self.heads {
            let skew = self.track_skew + f64::from(head) * more_skew;
            let mut zones: Vec<(u32, &PlanZone)> = Vec::new();
            for zone in &self.zones {
                let first = zones.last().map_or(0, |(first, last)| first + last.cylinders);
                zones.push((first, zone));
            }
            let inward = head % 2 == 0;
            if !inward {
                zones.reverse();
            }
            for (first, zone) in zones {
                let of_track = zone.of_head(head) as u32 * self.physical_sectors;
                tracks.push(TrackKind { first_sector: 0, sectors: of_track, sectors_per_track: of_track });
                let last = first + zone.cylinders - 1;
                runs.push(ExtentRun {
                    of: Repeated::Track { head, kind: tracks.len() as u32 - 1 },
                    times: zone.cylinders,
                    cylinder: if inward { first } else { last } as i32,
                    cylinder_step: if inward { 1 } else { -1 },
                    angle_turns: angle,
                    angle_step_turns: skew,
                });
                angle = (angle + skew * f64::from(zone.cylinders)).rem_euclid(1.0);
                sectors += u64::from(of_track) * u64::from(zone.cylinders);
            }
            angle = (angle - skew + self.head_skew).rem_euclid(1.0);
        }
        (geometry.layout, geometry.slip_to_end) = (Layout::Extents, false);
        (geometry.zones, geometry.band_zones) = (Vec::new(), Vec::new());
        geometry.extents = Some(Extents { tracks, groups: vec![runs], ..Extents::default() });
        spec.capacity_sectors = sectors;
        spec
    }

    /// Slips some sectors of a few adjacent tracks at one angle, at each of `count` places; returns the number of affected tracks.
    pub fn add_holes(&mut self, count: u32, seed: u64) -> u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut hit = 0;
        for _ in 0..count {
            let index = random.random_range(0..self.zones.len());
            let order = random.random_range(0..self.heads);
            let (banded, skew) = (self.is_banded(), self.track_skew);
            let heads = u64::from(self.heads);
            let zone = &mut self.zones[index];
            let tracks = u64::from(if banded { zone.band } else { zone.cylinders });
            let band = random.random_range(0..u64::from(zone.cylinders) / tracks);
            // A reversed order only affects another surface.
            let before: u64 = (0..order).map(|head| zone.of_head(head)).sum();
            let slice: u64 = (0..self.heads).map(|head| zone.of_head(head)).sum();
            let sectors = zone.of_head(order);
            let (long, lost) = (random.random_range(1..7u64), random.random_range(1..9u64));
            let first = random.random_range(0..tracks - long);
            let angle: f64 = random.random();
            for track in first..first + long {
                let (begin, turns) = if banded {
                    ((band * slice + before) * tracks + track * sectors, track as f64 * skew)
                } else {
                    let track = track * heads + u64::from(order);
                    (track * sectors, track as f64 * skew)
                };
                let at = ((angle - turns).rem_euclid(1.0) * sectors as f64) as u64;
                zone.slips.extend((at..at + lost).map(|sector| begin + sector % sectors));
            }
            hit += long;
        }
        self.sort_slips();
        hit
    }

    fn is_banded(&self) -> bool {
        matches!(self.layout, Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa)
    }

    fn sort_slips(&mut self) {
        for zone in &mut self.zones {
            zone.slips.sort_unstable();
            zone.slips.dedup();
        }
    }

    /// Slips clusters of defects at random places of a disk with bands; returns the number of affected tracks.
    ///
    /// Most of them take some sectors of adjacent tracks at one angle, some nearly the whole of each, some lie on the last tracks
    /// of a surface in its band, and some take whole tracks.
    pub fn add_blobs(&mut self, count: u32, seed: u64) -> u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut hit = 0;
        for _ in 0..count {
            let index = random.random_range(0..self.zones.len());
            hit += self.add_blob(index, &mut random);
        }
        self.sort_slips();
        hit
    }

    fn add_blob(&mut self, index: usize, random: &mut Pcg64Mcg) -> u64 {
        let (heads, skew) = (self.heads, self.track_skew);
        let zone = &mut self.zones[index];
        let tracks = u64::from(zone.band.min(zone.cylinders));
        // Whole bands only, which simplifies the place.
        let band = random.random_range(0..u64::from(zone.cylinders) / tracks);
        // The surface by its index in its band; if orders reverse, odd bands begin with the last.
        let order = random.random_range(0..heads);
        let reverses = matches!(self.layout, Layout::Fa | Layout::Aa) && band % 2 == 1;
        let head = |order: u32| if reverses { heads - 1 - order } else { order };
        let before: u64 = (0..order).map(|order| zone.of_head(head(order))).sum();
        let slice: u64 = (0..heads).map(|head| zone.of_head(head)).sum();
        let sectors = zone.of_head(head(order));
        let begin = (band * slice + before) * tracks;
        let kind: f64 = random.random();
        let long = random.random_range(1..13).min(tracks / 2);
        let (lost, whole) = match kind {
            _ if kind < 0.80 => (random.random_range(1..=(sectors / 12).max(1)), false),
            _ if kind < 0.95 => (sectors * random.random_range(50..96) / 100, false),
            _ => (sectors, true),
        };
        let first = match kind {
            _ if kind < 0.12 || (0.80..0.83).contains(&kind) => tracks - long,
            _ => random.random_range(0..=tracks - long),
        };
        let angle: f64 = random.random();
        for track in first..first + long {
            let at = angle - track as f64 * skew;
            let at = if whole { 0 } else { ((at - libm::floor(at)) * sectors as f64) as u64 };
            let slips = (at..at + lost).map(|sector| begin + track * sectors + sector % sectors);
            zone.slips.extend(slips);
        }
        long
    }
}
