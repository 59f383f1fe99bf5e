//! Blocks to places and back: what spares, slips, remaps and reserved sectors do to the order of LBNs.
//!
//! A *place* is a physical sector, counted in LBN order from the start of its zone. A zone is cut into equal regions
//! (a track, a cylinder, a range, or all of it), each with room for data and spares; the room's places are its *slots*.
//! A *piece* is a run of blocks in consecutive slots. All that is irregular (a slip, a remap, the end of a region with
//! slips) ends a piece, so that within one the place follows by arithmetic.

use super::finder::Finder;
use super::fixed::Divisor;

#[derive(Clone, Copy, Debug)]
pub(super) struct Regions {
    pub(super) places: Divisor,
    pub(super) slots: Divisor,
    /// Place of a region's first slot.
    pub(super) front: u64,
    /// Number of the last region. It may be shorter than the others and without spares.
    pub(super) last: u64,
}

impl Regions {
    #[inline]
    pub(super) fn position_of(&self, slot: u64) -> (u64, u64) {
        if self.last == 0 {
            return (0, self.front + slot);
        }
        let region = self.slots.divide(slot).0.min(self.last);
        (region, region * self.places.value() + self.front + (slot - region * self.slots.value()))
    }

    /// The first slot at or after a place.
    #[inline]
    pub(super) fn slot_from(&self, place: u64) -> u64 {
        let region = if self.last == 0 { 0 } else { self.places.divide(place).0.min(self.last) };
        let within = (place - region * self.places.value()).saturating_sub(self.front);
        let within = if region == self.last { within } else { within.min(self.slots.value()) };
        region * self.slots.value() + within
    }

    pub(super) fn of_place(&self, place: u64) -> u64 {
        self.places.divide(place).0.min(self.last)
    }

    pub(super) fn first_place(&self, region: u64) -> u64 {
        region * self.places.value() + self.front
    }
}

/// A run of blocks in consecutive slots of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) sectors: u64,
    pub(super) slot: u64,
    /// Places beyond the slot's own, because of slips in its region or a remap. Negative where spares lie in front.
    pub(super) shift: i64,
    pub(super) zone: u32,
    /// Sector widths by which slips before the piece have pushed the angles of its tracks.
    pub(super) push: u32,
}

/// A block's place, and the consecutive places around it that hold consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) zone: u32,
    pub(super) place: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) push: u32,
}

/// A run of blocks that a remap moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) first: u64,
    /// Blocks in the run; all of one piece.
    pub(super) sectors: u64,
    pub(super) zone: u32,
    pub(super) place: u64,
    pub(super) push: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Pieces {
    regions: Vec<Regions>,
    /// Each zone's first place in a count over all zones, with the total at the end.
    bases: Vec<u64>,
    by_lbn: Finder,
    pieces: Vec<Piece>,
    /// The pieces without remaps: their places rise with their LBNs.
    homes: Vec<Piece>,
    by_place: Finder,
    /// Runs that were moved: place over all zones, blocks, first block; by place.
    moved: Vec<(u64, u64, u64)>,
}

impl Pieces {
    /// Pieces without remaps. `homes` cover the LBNs in order and without gaps.
    pub(super) fn new(homes: Vec<Piece>, regions: Vec<Regions>, bases: Vec<u64>) -> Pieces {
        let by_lbn = Finder::new(homes.iter().map(|piece| piece.first).collect());
        let starts = homes.iter().map(|piece| {
            let place = regions[piece.zone as usize].position_of(piece.slot).1;
            bases[piece.zone as usize] + place.wrapping_add_signed(piece.shift)
        });
        let by_place = Finder::new(starts.collect());
        Pieces { regions, bases, by_lbn, pieces: homes.clone(), homes, by_place, moved: Vec::new() }
    }

    /// The run of a block, which must lie on the disk.
    #[inline(always)]
    pub(super) fn run_at(&self, lbn: u64) -> Run {
        let index = self.by_lbn.find(lbn).expect("the first piece begins at block 0");
        self.run_in(&self.pieces[index], lbn)
    }

    /// The run of a block without remaps.
    #[inline]
    pub(super) fn home_at(&self, lbn: u64) -> Run {
        if self.moved.is_empty() {
            return self.run_at(lbn);
        }
        let index = self.homes.partition_point(|piece| piece.first <= lbn);
        self.run_in(&self.homes[index - 1], lbn)
    }

    /// The block after the end of a block's piece, without remaps.
    pub(super) fn home_end(&self, lbn: u64) -> u64 {
        let index = self.homes.partition_point(|piece| piece.first <= lbn);
        self.homes[index - 1].first + self.homes[index - 1].sectors
    }

    #[inline(always)]
    fn run_in(&self, piece: &Piece, lbn: u64) -> Run {
        let regions = &self.regions[piece.zone as usize];
        let into = lbn - piece.first;
        let (region, home) = regions.position_of(piece.slot + into);
        let place = home.wrapping_add_signed(piece.shift);
        let first = regions.first_place(region);
        let before = into.min(home - first);
        let mut after = piece.sectors - into;
        if region < regions.last {
            after = after.min(first + regions.slots.value() - home);
        }
        Run { zone: piece.zone, place, from: place - before, to: place + after, push: piece.push }
    }

    /// Number of blocks whose unremapped place precedes `place`.
    #[inline]
    pub(super) fn rank(&self, zone: u32, place: u64) -> u64 {
        let everywhere = self.bases[zone as usize] + place;
        let Some(index) = self.by_place.find(everywhere) else { return 0 };
        let piece = &self.homes[index];
        if piece.zone != zone {
            // The end of a zone is also the start of the next one.
            return if piece.zone < zone { piece.first + piece.sectors } else { piece.first };
        }
        let slot = self.regions[zone as usize].slot_from(place.wrapping_add_signed(-piece.shift));
        piece.first + slot.saturating_sub(piece.slot).min(piece.sectors)
    }

    /// The block whose unremapped place is `place`.
    pub(super) fn resident(&self, zone: u32, place: u64) -> Option<u64> {
        let lbn = self.rank(zone, place);
        let last = self.homes.last().expect("there are pieces");
        if lbn >= last.first + last.sectors {
            return None;
        }
        let run = self.home_at(lbn);
        (run.zone == zone && run.place == place).then_some(lbn)
    }

    pub(super) fn stored(&self, zone: u32, place: u64) -> Option<u64> {
        let everywhere = self.bases[zone as usize] + place;
        let next = self.moved.partition_point(|(start, _, _)| *start <= everywhere);
        if let Some((start, sectors, first)) = next.checked_sub(1).map(|index| self.moved[index])
            && everywhere - start < sectors
        {
            return Some(first + (everywhere - start));
        }
        let lbn = self.resident(zone, place)?;
        let run = self.run_at(lbn);
        (run.zone == zone && run.place == place).then_some(lbn)
    }

    /// Moves runs of blocks, sorted by their first block, to other places.
    pub(super) fn remap(&mut self, moves: &[Move]) {
        let mut pieces = Vec::with_capacity(self.homes.len() + 2 * moves.len());
        let mut moves_left = moves.iter().peekable();
        for home in &self.homes {
            let (mut at, end) = (home.first, home.first + home.sectors);
            let part = |from: u64, to: u64| Piece {
                first: from,
                sectors: to - from,
                slot: home.slot + (from - home.first),
                ..*home
            };
            while let Some(&Move { first, sectors, zone, place, push }) =
                moves_left.next_if(|next| next.first < end)
            {
                if first > at {
                    pieces.push(part(at, first));
                }
                // Any slot works: the shift determines the place of the run.
                let shift = place as i64 - self.regions[zone as usize].position_of(0).1 as i64;
                pieces.push(Piece { first, sectors, slot: 0, shift, zone, push });
                at = first + sectors;
                self.moved.push((self.bases[zone as usize] + place, sectors, first));
            }
            if at < end {
                pieces.push(part(at, end));
            }
        }
        self.moved.sort_unstable();
        self.by_lbn = Finder::new(pieces.iter().map(|piece| piece.first).collect());
        self.pieces = pieces;
    }
}
