//! Writes that continue the one that is being written to the media.
//!
//! *Source:* DiskSim 4.0's rule was inferred from its times of fast runs of writes (docs/VALIDATION.md).

use crate::device::drive::Drive;
use crate::device::media::{Arm, Arriving, Span};
use crate::device::{Device, Travel};
use headstack_model::spec::JoinedWrites;
use headstack_model::{Extent, Lbn};
use std::ops::Range;

impl Drive {
    /// Writes the first blocks of a run, up to one whose data are not in the buffer when it arrives under the head; nothing if
    /// that is the first.
    fn write_what_is_here(
        &self,
        near: &Extent,
        arm: Arm,
        run: Range<Lbn>,
        arriving: Arriving,
    ) -> Option<Span> {
        let mut span = Span::default();
        let (mut arm, mut next, mut near) = (arm, run.start, *near);
        while next < run.end {
            let pass = self.plan_on(&near, arm, next, run.end - next);
            let before = next - run.start;
            let is_here =
                |count: &u32| arriving.time_of(before + u64::from(*count) + 1) <= pass.end_of(self, *count);
            let sectors = (0..pass.sectors).take_while(is_here).count() as u32;
            if sectors > 0 {
                let mut written = pass;
                written.sectors = sectors;
                span.add(arm.at, &written, written.end(self));
                (arm, next, near) = (span.arm(), written.end_lbn(), pass.extent);
            }
            if sectors < pass.sectors {
                break;
            }
        }
        (next > run.start).then_some(span)
    }
}

impl Device {
    /// Whether a write that continues the one being written to the media may send its data now.
    pub(in crate::device) fn may_join(&self) -> bool {
        match self.destage.joined {
            JoinedWrites::Stream => true,
            JoinedWrites::Again => self.destage.none_waits() && self.commands.waiting.is_empty(),
        }
    }

    /// Continues from the run that has been written over the blocks of the write that joined it, as far as their data have
    /// arrived; false if none have, or if the drive writes each block once.
    pub(in crate::device) fn go_over_joined(&mut self) -> bool {
        if self.destage.joined != JoinedWrites::Again {
            return false;
        }
        let Some((_, next)) = self.destage.current_and_joined() else { return false };
        let (from, blocks) = (self.arm, next.start..next.end);
        let Some(span) = self.drive.write_what_is_here(&self.last.extent, from, blocks, next.arriving) else {
            return false;
        };
        self.last.extent = span.last.extent;
        self.arm = span.arm();
        self.activity.destage(&span, Travel { from: from.place.cylinder, to: self.arm.place.cylinder });
        self.arm_event = span.end;
        self.destage.goes_over = true;
        true
    }
}
