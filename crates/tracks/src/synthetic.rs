//! Disks made up for tests: of any layout, with surfaces of unequal density, skews and slipped places.
//!
//! Their mechanics and electronics are those of the shipped `toshiba-x300`.

use headstack_model::spec::{BandZone, Layout, Sparing, Zone};
use headstack_model::{DriveSpec, drives};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A disk to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The order of its tracks.
    pub layout: Layout,
    /// Surfaces.
    pub heads: u32,
    /// Blocks of a physical sector.
    pub physical_sectors: u32,
    /// Turns from a track to the next.
    pub track_skew: f64,
    /// The same at a change of surface, or of cylinder where each holds tracks of all surfaces.
    pub head_skew: f64,
    /// From the outermost.
    pub zones: Vec<PlanZone>,
}

/// A zone of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanZone {
    /// Its cylinders.
    pub cylinders: u32,
    /// Cylinders of a band, where the layout has such.
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
        let banded = matches!(self.layout, Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa);
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

    /// Slips places in blobs of defects, somewhere on a disk of bands; returns how many tracks are hit.
    ///
    /// Most of them take some sectors of adjacent tracks at one angle, some nearly the whole of each, some lie on the last
    /// tracks of a surface in its band, and some take whole tracks.
    pub fn add_blobs(&mut self, count: u32, seed: u64) -> u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut hit = 0;
        for _ in 0..count {
            let index = random.random_range(0..self.zones.len());
            hit += self.add_blob(index, &mut random);
        }
        for zone in &mut self.zones {
            zone.slips.sort_unstable();
            zone.slips.dedup();
        }
        hit
    }

    fn add_blob(&mut self, index: usize, random: &mut Pcg64Mcg) -> u64 {
        let (heads, skew) = (self.heads, self.track_skew);
        let zone = &mut self.zones[index];
        let tracks = u64::from(zone.band.min(zone.cylinders));
        // Whole bands only, so that the place is easily said.
        let band = random.random_range(0..u64::from(zone.cylinders) / tracks);
        // The surface that is the so-manieth of its band; where orders reverse, odd bands begin with the last.
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
