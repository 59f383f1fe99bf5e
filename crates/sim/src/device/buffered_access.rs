//! Accesses to long runs of blocks whose data are in the drive's buffer, or go there: whole tracks are computed together where possible.

use super::drive::Drive;
use super::media::{Arm, Arriving, Delivered, Room, Span};
use super::pass::Pass;
use headstack_model::spec::ZeroLatency;
use headstack_model::{Extent, Lbn, Nanos, TrackPlace};
use std::ops::Range;

/// An access to a run of blocks that waits for no data.
#[derive(Debug)]
pub(super) struct BufferedAccess<'a> {
    pub(super) drive: &'a Drive,
    pub(super) blocks: Range<Lbn>,
    pub(super) is_write: bool,
}

impl BufferedAccess<'_> {
    /// Its times with the arm coming from `arm`; `near` is as for [`Drive::plan`].
    pub(super) fn span(&self, near: &Extent, arm: Arm) -> Span {
        let mechanics = &self.drive.mechanics;
        if mechanics.zero_latency(self.is_write) != ZeroLatency::None || mechanics.waits_skip_spares() {
            return self.span_of_each_track(near, arm);
        }
        let mut span = Span { end: arm.at, ..Span::default() };
        let mut pass = self.plan(near, arm, self.blocks.start);
        loop {
            let from = span.end;
            span.add(from, &pass, pass.end(self.drive));
            if pass.end_lbn() >= self.blocks.end {
                return span;
            }
            self.skip_tracks(&mut span);
            pass = self.plan(&span.last.extent, span.arm(), span.last.end_lbn());
        }
    }

    fn plan(&self, near: &Extent, arm: Arm, from: Lbn) -> Pass {
        self.drive.plan(near, arm, from, self.blocks.end - from, self.is_write)
    }

    /// The same times computed track by track, for a drive of any kind.
    fn span_of_each_track(&self, near: &Extent, arm: Arm) -> Span {
        let (drive, blocks) = (self.drive, self.blocks.clone());
        if self.is_write {
            return drive.write_in_parts(near, arm, blocks, Arriving::default(), Room::ENDLESS, &mut |_| {});
        }
        let pass = self.plan(near, arm, blocks.start);
        drive.read(arm, pass, blocks.end, &mut Delivered::nowhere())
    }

    /// Adds the whole tracks of one surface between the last pass and the last block. The next pass waits for its own angle, so that
    /// their rounding to nanoseconds does not add up.
    fn skip_tracks(&self, span: &mut Span) {
        let (last, mechanics) = (span.last, &self.drive.mechanics);
        let Extent { sector, sectors, sectors_per_track, cylinder, .. } = last.extent;
        let most = (self.blocks.end - last.end_lbn() - 1) / u64::from(sectors_per_track);
        if most < 2 || sector + sectors != sectors_per_track {
            return;
        }
        let Some(tracks) = self.drive.geometry.whole_tracks_after(&last.extent, most) else { return };
        let next = if tracks.last.cylinder > cylinder { cylinder + 1 } else { cylinder - 1 };
        let next = TrackPlace { cylinder: next, ..last.place() };
        let (seek, spindle) = (mechanics.reposition(last.place(), next, self.is_write), mechanics.spindle());
        let skew = spindle.time_of(tracks.skew);
        // Where both are equal but for the rounding to nanoseconds, only the angle says whether the sector is missed.
        if skew.0.abs_diff(seek.0) < ROUNDING_NS || seek.0 + ROUNDING_NS > spindle.period().0 {
            return;
        }
        let units = u64::from(tracks.skew.0) + if skew < seek { TURN } else { 0 };
        let times = |time: Nanos| Nanos(time.0 * tracks.count);
        let time = spindle.time_of_units((units + TURN) * tracks.count);
        let (seeks, media) = (times(seek), times(spindle.period()));
        span.seek += seeks;
        span.media += media;
        span.rotation += time - seeks - media;
        span.end += time;
        let begins = span.end.saturating_sub(spindle.period());
        let (extent, on_track) = (tracks.last, begins);
        span.last =
            Pass { first: extent.first, sectors: sectors_per_track, extent, on_track, begins, ..last };
    }
}

/// A revolution in units of [`headstack_model::Angle`].
const TURN: u64 = 1 << 32;
/// Upper bound of the rounding error of the times of all passes of an access together.
const ROUNDING_NS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::super::drive::{DriveSource, NewDrives, track_of};
    use super::*;
    use headstack_model::{Instant, drives};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn whole_tracks_together_end_when_each_alone_ends() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        for (name, _) in drives::all() {
            let spec = drives::load(name).expect("it is shipped");
            let drive = NewDrives.drive(&spec).expect("its blocks fit");
            let sectors = drive.geometry.sectors();
            for _ in 0..50 {
                let most = random.random_range(1..100_000).min(sectors / 2);
                let start = random.random_range(0..sectors - most);
                let run = Lbn(start)..Lbn(start + most);
                let before = drive.geometry.extent_at(Lbn(random.random_range(0..sectors)));
                let arm = Arm { place: track_of(&before), at: Instant(random.random_range(0..1 << 50)) };
                let near = drive.geometry.extent_at(run.start);
                for is_write in [false, true] {
                    let access = BufferedAccess { drive: &drive, blocks: run.clone(), is_write };
                    let (together, alone) = (access.span(&near, arm), access.span_of_each_track(&near, arm));
                    let what = format!("{name}: {run:?} from {arm:?}, write {is_write}");
                    // Each pass begins at a whole nanosecond.
                    assert!(together.end.0.abs_diff(alone.end.0) <= 2, "{what}: {together:?}, {alone:?}");
                    let last = |span: &Span| (span.last.place(), span.last.end_lbn());
                    assert_eq!(last(&together), last(&alone), "{what}");
                    let parts = together.seek + together.rotation + together.media;
                    assert_eq!(arm.at + parts, together.end, "{what}");
                }
            }
        }
    }
}
