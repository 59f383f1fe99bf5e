//! The seeks that requests would need if every block were at its home.
//!
//! Requests are added in the order in which the disk served them. If the disk accessed homes, the request's track is the one to which the
//! arm moved: of a write to the drive's log, the log's. For a request that copies served, the geometry is searched for its home. Each
//! slot keeps the home that was found last, because it mostly serves the same sectors again.

use crate::device::Drive;
use headstack_model::{Lbn, Nanos, TrackPlace};
use headstack_streams::rearrange::ReservedRegion;
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
    /// By slot, the home that was found last; grows as slots are used.
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
        let Some(run) = self.home_run(lbn, region) else { return };
        if self.slot_homes.len() <= slot as usize {
            self.slot_homes.resize(slot as usize + 1, HomeRun::default());
        }
        self.slot_homes[slot as usize] = run;
        self.add_track(run.track, is_write);
    }

    /// Adds a request by its first visible sector.
    pub(crate) fn add_sector(&mut self, lbn: Lbn, is_write: bool, region: &ReservedRegion) {
        if let Some(run) = self.home_run(lbn, region) {
            self.add_track(run.track, is_write);
        }
    }

    /// The sectors from `lbn` on whose homes lie on one track; `None` before an array.
    fn home_run(&self, lbn: Lbn, region: &ReservedRegion) -> Option<HomeRun> {
        let (home, contiguous) = region.home(lbn);
        let extent = self.drive.as_ref()?.geometry.extent_at(home);
        let sectors = (extent.first + u64::from(extent.sectors) - home).min(contiguous) as u32;
        let track = TrackPlace { cylinder: extent.cylinder, head: extent.head };
        Some(HomeRun { first: lbn, sectors, track })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DriveSource, NewDrives};
    use headstack_model::drives;
    use headstack_streams::rearrange::ReservedRun;
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
            // Slots serve few blocks, so that they serve some again. Some blocks lie on two tracks.
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
