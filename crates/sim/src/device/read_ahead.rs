//! The drive file's rules of read-ahead: how far, from where, and what may cut it off.

use super::media::Drive;
use headstack_model::spec::{CacheSpec, ReadAhead};
use headstack_model::{Extent, Lbn};

/// The drive file's rules of read-ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadAheadRule {
    kind: ReadAhead,
    pub(super) least: u64,
    most: u64,
    segment: u64,
    over_requested: bool,
    pub(super) on_hit: bool,
    pub(super) stops_in_sector: bool,
    pub(super) from_arrival: bool,
}

impl ReadAheadRule {
    pub(super) fn new(spec: &CacheSpec) -> ReadAheadRule {
        ReadAheadRule {
            kind: if spec.enabled { spec.read_ahead } else { ReadAhead::None },
            least: u64::from(spec.read_ahead_min_sectors),
            most: u64::from(spec.read_ahead_max_sectors),
            segment: u64::from(spec.segment_sectors),
            over_requested: spec.read_ahead_over_requested,
            on_hit: spec.read_ahead_on_hit,
            stops_in_sector: spec.read_ahead_stops_in_sector,
            from_arrival: spec.read_on_arrival || spec.read_ahead == ReadAhead::OnArrival,
        }
    }

    /// First block of the track of a request that ends at `end`, where the whole track is read.
    pub(super) fn front(&self, drive: &Drive, near: &Extent, end: Lbn) -> Option<Lbn> {
        (self.kind == ReadAhead::OnArrival).then(|| drive.track_of(near, Lbn(end.0 - 1)).0)
    }

    /// Block up to which to read, after a request for `start..end` whose segment holds data from `held` on.
    pub(super) fn limit(&self, drive: &Drive, near: &Extent, held: Lbn, start: Lbn, end: Lbn) -> Lbn {
        let last = drive.geometry.sectors();
        let of_track = |lbn: Lbn| drive.track_of(near, lbn);
        let limit = match self.kind {
            ReadAhead::None => return end,
            ReadAhead::Track | ReadAhead::OnArrival => of_track(Lbn(end.0 - 1)).1,
            ReadAhead::Cylinder => {
                let cylinder = drive.geometry.track_at(Lbn(end.0 - 1)).cylinder;
                let mut stop = of_track(Lbn(end.0 - 1)).1;
                while stop.0 < last && stop - end < self.most {
                    let track = drive.geometry.track_at(stop);
                    if track.cylinder != cylinder {
                        break;
                    }
                    stop = track.first + u64::from(track.sectors);
                }
                stop
            }
            ReadAhead::Segment => end + self.most,
            ReadAhead::Stream if end.0 >= last => end,
            ReadAhead::Stream => {
                let (first, stop) = of_track(end);
                if held < first && stop.0 < last { of_track(stop).1 } else { stop }
            }
        };
        let most = if self.kind == ReadAhead::Stream { self.segment } else { self.most };
        let room =
            if self.over_requested { most } else { most.min(self.segment.saturating_sub(end - start)) };
        limit.min(end + room.max(self.least)).min(Lbn(last)).max(end)
    }
}
