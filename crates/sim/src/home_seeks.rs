//! The seeks that requests would need if every block were at its home.
//!
//! Requests are added in the order in which the disk served them. A request that the disk served from its homes adds the track to which
//! the arm moved. For any other the geometry is searched for its home, unless the last one that the same slot served has it on the same track.

use crate::device::Drive;
use headstack_model::{Lbn, Nanos, TrackPlace};
use headstack_policy::rearrange::ReservedRegion;
use std::sync::Arc;

/// Visible sectors that follow each other, whose homes lie on one track.
#[derive(Clone, Copy, Debug, Default)]
struct HomeRun {
    first: Lbn,
    sectors: u32,
    track: TrackPlace,
}

impl HomeRun {
    #[inline]
    fn contains(&self, lbn: Lbn) -> bool {
        lbn.0.wrapping_sub(self.first.0) < u64::from(self.sectors)
    }
}

/// Adds up the seeks between the homes of requests.
#[derive(Debug)]
pub(crate) struct HomeSeeks {
    /// Its geometry and seek curve; `None` before an array.
    drive: Option<Arc<Drive>>,
    total: Nanos,
    /// The home track of the last request.
    track: Option<TrackPlace>,
    /// By slot, sectors that it serves; grows as slots are used.
    slot_homes: Vec<HomeRun>,
}

impl HomeSeeks {
    pub(crate) fn new(drive: Option<Arc<Drive>>) -> HomeSeeks {
        HomeSeeks { drive, total: Nanos::ZERO, track: None, slot_homes: Vec::new() }
    }

    /// All seeks from the home of one request to that of the next; zero before an array.
    pub(crate) fn total(&self) -> Nanos {
        self.total
    }

    /// Adds a request whose home begins on a track.
    #[inline]
    pub(crate) fn add_track(&mut self, track: TrackPlace, is_write: bool) {
        let Some(drive) = &self.drive else { return };
        if let Some(from) = self.track {
            self.total += drive.mechanics.reposition(from, track, is_write);
        }
        self.track = Some(track);
    }

    /// Adds a request, which a slot served, by its first visible sector.
    #[inline]
    pub(crate) fn add_slot(&mut self, slot: u32, lbn: Lbn, is_write: bool, region: &ReservedRegion) {
        match self.slot_homes.get(slot as usize) {
            Some(run) if run.contains(lbn) => self.add_track(run.track, is_write),
            _ => self.add_new_slot(slot, lbn, is_write, region),
        }
    }

    #[inline(never)]
    fn add_new_slot(&mut self, slot: u32, lbn: Lbn, is_write: bool, region: &ReservedRegion) {
        let Some(drive) = &self.drive else { return };
        let (home, contiguous) = region.home(lbn);
        let extent = drive.geometry.extent_at(home);
        let sectors = (extent.first + u64::from(extent.sectors) - home).min(contiguous) as u32;
        let track = TrackPlace { cylinder: extent.cylinder, head: extent.head };
        if self.slot_homes.len() <= slot as usize {
            self.slot_homes.resize(slot as usize + 1, HomeRun::default());
        }
        self.slot_homes[slot as usize] = HomeRun { first: lbn, sectors, track };
        self.add_track(track, is_write);
    }

    /// Adds a request by its first visible sector.
    pub(crate) fn add_sector(&mut self, lbn: Lbn, is_write: bool, region: &ReservedRegion) {
        let Some(drive) = &self.drive else { return };
        let place = drive.geometry.locate(region.home(lbn).0);
        self.add_track(TrackPlace { cylinder: place.cylinder, head: place.head }, is_write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DriveSource, NewDrives};
    use headstack_model::drives;
    use headstack_policy::rearrange::ReservedRun;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn tracks_slots_and_sectors_of_the_same_requests_give_the_same_seeks() {
        let spec = drives::load("hp-c2247a").expect("it ships");
        let drive = NewDrives.drive(&spec).expect("it is right");
        let sectors = drive.geometry.sectors();
        let run = ReservedRun { first: Lbn(sectors / 2), sectors: 16_384 };
        let region = ReservedRegion::new(sectors, vec![run]).expect("the run fits");
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let [mut by_sector, mut mixed] = [(); 2].map(|()| HomeSeeks::new(Some(drive.clone())));
        for _ in 0..20_000 {
            // Few blocks of which some lie on two tracks or at the region, so that slots serve the same sectors again.
            let block = random.random_range(0..500) * (region.visible_sectors() / 500 - 40);
            let lbn = Lbn(block + random.random_range(0..16));
            let is_write = random.random();
            by_sector.add_sector(lbn, is_write, &region);
            match random.random_range(0..3) {
                0 => mixed.add_sector(lbn, is_write, &region),
                1 => mixed.add_slot(random.random_range(0..50), lbn, is_write, &region),
                _ => {
                    let place = drive.geometry.locate(region.home(lbn).0);
                    mixed.add_track(TrackPlace { cylinder: place.cylinder, head: place.head }, is_write);
                }
            }
            assert_eq!(mixed.total(), by_sector.total());
        }
        assert!(by_sector.total() > Nanos::ZERO);
    }
}
