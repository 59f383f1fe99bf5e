//! Writes that continue the one that is being written to the media.
//!
//! *Source:* DiskSim 4.0's rule was inferred from its times of fast runs of writes (studies/validation/disksim.md).

use super::{Destage, Run};
use crate::device::disk::DiskArm;
use crate::device::drive::Drive;
use crate::device::media::{Arm, Arriving, Span};
use headstack_model::spec::JoinedWrites;
use headstack_model::{Extent, Lbn, Nanos};
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

impl Destage {
    /// Whether a write that continues the one being written to the media may send its data now; `others_wait` for the arm.
    pub(in crate::device) fn may_join(&self, others_wait: bool) -> bool {
        match self.joined {
            JoinedWrites::Stream => true,
            JoinedWrites::Again => self.queue.is_empty() && self.reserved == 0 && !others_wait,
        }
    }

    /// Continues from the run that has been written over the blocks of the write that joined it, as far as their data have
    /// arrived; false if none have, or if the drive writes each block once.
    pub(in crate::device) fn go_over_joined(&mut self, disk: &mut DiskArm) -> bool {
        if self.joined != JoinedWrites::Again {
            return false;
        }
        let Some(next) = self.joined_run() else { return false };
        let (near, blocks) = (&disk.last_extent, next.start..next.end);
        let Some(span) = disk.drive.write_what_is_here(near, disk.arm, blocks, next.arriving) else {
            return false;
        };
        let travel = disk.travel_to(span.last.place());
        disk.account_destage(&span, travel, next.start..next.end, Nanos::ZERO);
        disk.move_to_end(&span, disk.last_lbn);
        disk.event = span.end;
        self.goes_over = true;
        true
    }

    /// The oldest waiting run, if it continues the one that is being written to the media.
    fn joined_run(&self) -> Option<Run> {
        let next = self.runs[self.queue.slots().first()?.id.0 as usize];
        (next.start == self.current?.end).then_some(next)
    }
}
