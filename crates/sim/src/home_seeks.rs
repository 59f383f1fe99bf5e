//! The seeks that requests would need if every block were at its home.
//!
//! Requests are noted in the order in which the disk served them, and their seeks are added up later, many at a time: a simulated request
//! pays for the note only, and the geometry and the seek curve are read in one go.

use crate::device::Drive;
use headstack_model::{Lbn, Nanos, TrackPlace};
use headstack_policy::rearrange::ReservedRegion;
use std::sync::Arc;

/// A request that needed the arm.
#[derive(Clone, Copy, Debug)]
struct HomeAccess {
    /// Its first visible sector.
    lbn: Lbn,
    is_write: bool,
}

/// A sum of seeks, and the track from which the next one begins.
#[derive(Clone, Copy, Debug, Default)]
struct SeekSum {
    total: Nanos,
    track: Option<TrackPlace>,
}

/// Adds up the seeks between the homes of requests.
#[derive(Debug)]
pub(crate) struct HomeSeeks {
    /// The drive says how far its homes are from each other; `None` before an array.
    drive: Option<Arc<Drive>>,
    sum: SeekSum,
    /// Requests whose seeks are not in the sum.
    noted: Vec<HomeAccess>,
}

impl HomeSeeks {
    /// Requests that are added up together: 16 KiB, which the L1 cache holds.
    const AT_ONCE: usize = 1024;

    pub(crate) fn new(drive: Option<Arc<Drive>>) -> HomeSeeks {
        HomeSeeks { drive, sum: SeekSum::default(), noted: Vec::with_capacity(HomeSeeks::AT_ONCE) }
    }

    /// Notes a request that needed the arm.
    #[inline]
    pub(crate) fn note(&mut self, lbn: Lbn, is_write: bool, region: &ReservedRegion) {
        if self.drive.is_none() {
            return;
        }
        if self.noted.len() >= HomeSeeks::AT_ONCE {
            self.sum = self.added_up(region);
            self.noted.clear();
        }
        self.noted.push(HomeAccess { lbn, is_write });
    }

    /// All seeks from the home of one request to that of the next; zero before an array.
    pub(crate) fn total(&self, region: &ReservedRegion) -> Nanos {
        self.added_up(region).total
    }

    #[inline(never)]
    fn added_up(&self, region: &ReservedRegion) -> SeekSum {
        let Some(drive) = &self.drive else { return SeekSum::default() };
        let mut sum = self.sum;
        for access in &self.noted {
            let (home, _) = region.home(access.lbn);
            let place = drive.geometry.locate(home);
            let track = TrackPlace { cylinder: place.cylinder, head: place.head };
            if let Some(from) = sum.track {
                sum.total += drive.mechanics.reposition(from, track, access.is_write);
            }
            sum.track = Some(track);
        }
        sum
    }
}
