//! The pieces of one zone: where its spares lie and what its slips shift.
//!
//! Modelled: slips within a region use up the region's spares, and with `slip_to_end` (always so for `end-of-disk`)
//! they shift all later blocks of the zone instead; reserved sectors at the zone's front take slots that would hold
//! blocks; slips push the angles of later tracks where spares belong to tracks or cylinders. Not modelled: slips
//! that cross from one zone to the next.
//!
//! *Source:* the meaning of the parameters is that of DiskSim 4.0's `g1` layouts, which describe measured drives.

use super::fixed::Divisor;
use super::pieces::{Move, Piece, Pieces, Regions};
use crate::DriveSpec;
use crate::spec::{BandZone, Fault, GeometrySpec, Sparing, Zone};
use std::collections::BTreeSet;

/// The zones one after the other, up to the drive's capacity.
///
/// *Errors:* zones with less room than the drive's capacity.
pub(super) fn join_zones(zones: &[SparedZone], spec: &DriveSpec) -> Result<Pieces, Fault> {
    let capacity = spec.capacity_sectors;
    let (mut homes, mut bases, mut first) = (Vec::new(), vec![0], 0);
    for zone in zones {
        homes.extend(zone.pieces.iter().map(|piece| Piece { first: first + piece.first, ..*piece }));
        first += zone.sectors();
        bases.push(bases[bases.len() - 1] + zone.places);
    }
    if first < capacity {
        return Err(Fault::new("capacity_sectors", too_small(first, spec)));
    }
    homes.retain(|piece| piece.first < capacity);
    if let Some(last) = homes.last_mut() {
        last.sectors = capacity - last.first;
    }
    Ok(Pieces::new(homes, zones.iter().map(|zone| zone.regions).collect(), bases))
}

/// The error for zones with room for only `room` sectors.
fn too_small(room: u64, spec: &DriveSpec) -> String {
    let message = format!("{} sectors, but the zones have room for {room}", spec.capacity_sectors);
    let ratio = u64::from(spec.physical_sector_bytes / spec.sector_bytes);
    if ratio == 1 || room * ratio < spec.capacity_sectors {
        return message;
    }
    format!(
        "{message}; sectors_per_track counts sectors of {} bytes (sector_bytes), of which a physical one holds {ratio}",
        spec.sector_bytes
    )
}

/// One zone's places, before they are numbered.
pub(super) struct SparedZone {
    pub(super) regions: Regions,
    pub(super) places: u64,
    /// Pieces with `first` counted from 0; the reserved front is left out.
    pub(super) pieces: Vec<Piece>,
    /// Places per unit of `slips` and `remaps`: a sector, or a track.
    pub(super) unit: u64,
    /// Sorted places of slipped units.
    slips: Vec<u64>,
    /// Whether slips push the angle of later regions.
    pushes: bool,
}

impl SparedZone {
    /// Lays out the zone `number`, whose keys have the prefix `key`.
    pub(super) fn new(spec: &GeometrySpec, zone: &Zone, number: u32, key: &str) -> Result<SparedZone, Fault> {
        let track = u64::from(zone.sectors_per_track);
        let cylinders = u64::from(zone.last_cylinder - zone.first_cylinder + 1);
        let places = cylinders * u64::from(spec.heads) * track;
        let unit = if spec.sparing == Sparing::TracksPerZone { track } else { 1 };
        let pushes = matches!(
            spec.sparing,
            Sparing::SectorsPerTrack | Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront
        );
        let slips = zone.slips.iter().map(|slip| slip * unit).collect();
        let regions = regions(spec, zone, places, key)?;
        let spared = SparedZone { regions, places, pieces: Vec::new(), unit, slips, pushes };
        let to_end = spec.slip_to_end || spec.sparing == Sparing::EndOfDisk;
        spared.lay_out(to_end, u64::from(zone.front_gap_sectors), number, key)
    }

    /// Lays out a zone of a seek-first layout, which has `places`.
    pub(super) fn banded(
        spec: &GeometrySpec,
        zone: &BandZone,
        places: u64,
        number: u32,
        key: &str,
    ) -> Result<SparedZone, Fault> {
        let spares = u64::from(zone.spares);
        if let Some(slip) = zone.slips.last().filter(|slip| **slip >= places) {
            return Err(Fault::new(format!("{key}.slips"), format!("{slip}: slips must lie below {places}")));
        }
        let regions =
            cut(places, places, spares, false).ok_or_else(|| full_of_spares(spares, places, key))?;
        let slips = zone.slips.clone();
        SparedZone { regions, places, pieces: Vec::new(), unit: 1, slips, pushes: false }.lay_out(
            spec.slip_to_end,
            0,
            number,
            key,
        )
    }

    /// Lays out a disk of one zone without spares, with runs of slipped places.
    pub(super) fn slipped(places: u64, slips: &[(u64, u64)], key: &str) -> Result<SparedZone, Fault> {
        let key = format!("{key}.slips");
        let (mut ranges, mut at) = (Vec::new(), 0);
        for (place, count) in slips {
            let end = place.checked_add(*count).filter(|end| *end <= places && *place >= at && *count > 0);
            let Some(end) = end else {
                let message = format!("[{place}, {count}]: slips must rise and lie below {places}");
                return Err(Fault::new(key, message));
            };
            ranges.push((at, place - at, 0));
            at = end;
        }
        ranges.push((at, places - at, 0));
        let regions = cut(places, places, 0, false).ok_or_else(|| full_of_spares(0, places, &key))?;
        let mut zone =
            SparedZone { regions, places, pieces: Vec::new(), unit: 1, slips: Vec::new(), pushes: false };
        zone.pieces = zone.number(ranges, 0, 0);
        if zone.pieces.is_empty() {
            Err(Fault::new(key, "they leave no block on the disk"))
        } else {
            Ok(zone)
        }
    }

    fn lay_out(mut self, to_end: bool, gap: u64, number: u32, key: &str) -> Result<SparedZone, Fault> {
        let slots = self.slot_count();
        let ranges = if to_end { self.slip_to_end(slots) } else { self.slip_in_regions(slots, key)? };
        self.pieces = self.number(ranges, number, gap);
        if self.pieces.is_empty() {
            let message = format!("{gap} sectors and the slips leave no room in the zone");
            return Err(Fault::new(format!("{key}.front_gap_sectors"), message));
        }
        Ok(self)
    }

    pub(super) fn sectors(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.first + piece.sectors)
    }

    pub(super) fn is_slipped(&self, place: u64) -> bool {
        self.slips.binary_search(&place).is_ok()
    }

    /// Sector widths by which slips push the angles of the track of `place`.
    pub(super) fn push_at(&self, place: u64) -> u32 {
        if !self.pushes {
            return 0;
        }
        let start = self.regions.of_place(place) * self.regions.places.value();
        self.slips.partition_point(|slip| *slip < start) as u32
    }

    /// Slots of the zone before slips. The last range of a zone, if incomplete, has no spares.
    fn slot_count(&self) -> u64 {
        let (full, rest) = self.regions.places.divide(self.places);
        full * self.regions.slots.value() + rest
    }

    /// Runs of slots that hold data, as (first slot, slots, shift), when slips use spares at the end of the zone.
    fn slip_to_end(&self, slots: u64) -> Vec<(u64, u64, i64)> {
        let mut ranges = Vec::new();
        let mut at = 0;
        for slip in &self.slips {
            let slot = self.regions.slot_from(*slip);
            let is_spare = self.regions.slot_from(slip + self.unit) == slot;
            if is_spare || slot >= slots {
                continue;
            }
            ranges.push((at, slot - at, 0));
            at = slot + self.unit;
        }
        ranges.push((at, slots.saturating_sub(at), 0));
        ranges
    }

    /// Runs of slots that hold data, as for `slip_to_end`, when each region's slips use up its spares.
    fn slip_in_regions(&self, slots: u64, key: &str) -> Result<Vec<(u64, u64, i64)>, Fault> {
        let mut ranges = Vec::new();
        let mut at = 0;
        for group in self.slips.chunk_by(|a, b| self.regions.of_place(*a) == self.regions.of_place(*b)) {
            let region = self.regions.of_place(group[0]);
            let first_slot = region * self.regions.slots.value();
            let is_last = region == self.regions.last;
            let room = if is_last { slots - first_slot } else { self.regions.slots.value() };
            ranges.push((at, first_slot - at, 0));
            at = first_slot + room;
            ranges.extend(self.region_with_slips(region, room, group, key)?);
        }
        ranges.push((at, slots - at, 0));
        Ok(ranges)
    }

    /// The runs of one region with slips: its first good places, or its last where the spares lie in front.
    fn region_with_slips(
        &self,
        region: u64,
        room: u64,
        slips: &[u64],
        key: &str,
    ) -> Result<Vec<(u64, u64, i64)>, Fault> {
        let start = region * self.regions.places.value();
        let end = if region == self.regions.last { self.places } else { start + self.regions.places.value() };
        let good = end - start - slips.len() as u64 * self.unit;
        // The last range of a zone, if incomplete, has no spares: its slips make it smaller.
        let has_spares = end - start == self.regions.places.value();
        if good < room && has_spares {
            let message = format!(
                "{} slips at {} to {}, but their region has {} spares",
                slips.len(),
                slips[0] / self.unit,
                slips[slips.len() - 1] / self.unit,
                (end - start - room) / self.unit
            );
            return Err(Fault::new(format!("{key}.slips"), message));
        }
        let room = room.min(good);
        // Spares in front are skipped first; those at the end are never reached.
        let mut skip = if self.regions.front > 0 { good - room } else { 0 };
        let mut slot = region * self.regions.slots.value();
        let end_slot = slot + room;
        let mut ranges = Vec::new();
        let mut place = start;
        for slip in slips.iter().copied().chain([end]) {
            let skipped = skip.min(slip - place);
            skip -= skipped;
            let sectors = (slip - place - skipped).min(end_slot - slot);
            let usual = start + self.regions.front + (slot - region * self.regions.slots.value());
            ranges.push((slot, sectors, (place + skipped) as i64 - usual as i64));
            slot += sectors;
            place = slip + self.unit;
        }
        Ok(ranges)
    }

    /// Numbers the blocks of the runs, leaving out `gap` slots in front, and cuts where slips push the angle.
    fn number(&self, ranges: Vec<(u64, u64, i64)>, zone: u32, mut gap: u64) -> Vec<Piece> {
        let cuts = self.push_cuts();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut first = 0;
        for (slot, slots, shift) in ranges {
            let skipped = gap.min(slots);
            gap -= skipped;
            let (mut slot, end) = (slot + skipped, slot + slots);
            while slot < end {
                let cut = cuts.get(cuts.partition_point(|cut| *cut <= slot)).copied().unwrap_or(end).min(end);
                let push = self.push_at(self.place_of(slot));
                pieces.push(Piece { first, sectors: cut - slot, slot, shift, zone, push });
                first += cut - slot;
                slot = cut;
            }
        }
        pieces
    }

    fn place_of(&self, slot: u64) -> u64 {
        self.regions.position_of(slot).1
    }

    /// Slots at which the push changes: the starts of the regions after those with slips.
    fn push_cuts(&self) -> Vec<u64> {
        if !self.pushes {
            return Vec::new();
        }
        let mut cuts: Vec<u64> = self
            .slips
            .iter()
            .map(|slip| (self.regions.of_place(*slip) + 1) * self.regions.slots.value())
            .collect();
        cuts.dedup();
        cuts
    }
}

fn regions(spec: &GeometrySpec, zone: &Zone, places: u64, key: &str) -> Result<Regions, Fault> {
    let track = u64::from(zone.sectors_per_track);
    let cylinder = track * u64::from(spec.heads);
    let spares = u64::from(zone.spares);
    let (size, spare_sectors) = match spec.sparing {
        Sparing::None => (places, 0),
        Sparing::TracksPerZone => (places, spares * track),
        Sparing::SectorsPerTrack => (track, spares),
        Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront => (cylinder, spares),
        Sparing::SectorsPerRange => (cylinder * u64::from(spec.range_cylinders.unwrap_or(1)), spares),
        Sparing::SectorsPerZone | Sparing::EndOfDisk => (places, spares),
    };
    if spec.sparing == Sparing::None && spares > 0 {
        return Err(Fault::new(format!("{key}.spares"), format!("{spares}, but geometry.sparing is `none`")));
    }
    let at_front = spec.sparing == Sparing::SectorsPerCylinderFront;
    cut(places, size, spare_sectors, at_front).ok_or_else(|| full_of_spares(spares, size, key))
}

/// Regions of `size` places, of which `spares` are spare. `None` if there is no room for data.
fn cut(places: u64, size: u64, spares: u64, at_front: bool) -> Option<Regions> {
    let slots = size.checked_sub(spares).filter(|slots| *slots > 0)?;
    let front = if at_front { spares } else { 0 };
    let last = places.div_ceil(size) - 1;
    Some(Regions { places: Divisor::new(size), slots: Divisor::new(slots), front, last })
}

fn full_of_spares(spares: u64, size: u64, key: &str) -> Fault {
    Fault::new(format!("{key}.spares"), format!("{spares} spares fill their region of {size} sectors"))
}

/// Applies the remaps of all zones.
///
/// *Errors:* a spare that holds a block, is slipped or used; a defect remapped twice.
pub(super) fn remap(pieces: &mut Pieces, spec: &GeometrySpec, zones: &[SparedZone]) -> Result<(), Fault> {
    let mut moves = Vec::new();
    for (index, (zone, spared)) in spec.zones.iter().zip(zones).enumerate() {
        let fault = |what: String| Fault::new(format!("geometry.zones[{index}].remaps"), what);
        let mut taken = BTreeSet::new();
        let mut defects = BTreeSet::new();
        for (defect, spare) in zone.remaps.iter().filter(|(defect, spare)| defect != spare) {
            let number = index as u32;
            let (from, to) = (defect * spared.unit, spare * spared.unit);
            if !defects.insert(from) {
                return Err(fault(format!("{defect} is remapped twice")));
            }
            let holds = pieces.rank(number, to + spared.unit) > pieces.rank(number, to);
            if holds || spared.is_slipped(to) || !taken.insert(to) {
                return Err(fault(format!("{spare}, the spare for {defect}, is not free")));
            }
            let first = pieces.rank(number, from);
            let sectors = pieces.rank(number, from + spared.unit) - first;
            if sectors > 0 {
                // Reserved sectors may occupy the front of a remapped track.
                let place = to + (pieces.home_at(first).place - from);
                moves.push(Move { first, sectors, zone: number, place, push: spared.push_at(to) });
            }
        }
    }
    moves.sort_unstable_by_key(|step: &Move| step.first);
    if !moves.is_empty() {
        pieces.remap(&moves);
    }
    Ok(())
}
