//! Limits of control groups: the requests of a group wait until its limits allow them, all others pass.

use crate::layer::{Layer, Out, Submission};
use crate::os::CgroupSpec;
use crate::os::Throttle;
use headstack_model::{Instant, Op};

/// The limits of the control groups for a volume, by the source of each request.
#[derive(Debug)]
pub(crate) struct ThrottleLayer {
    /// Reads and writes of each group.
    groups: Vec<[Throttle<Submission>; 2]>,
    /// The group of each source; a source behind the last has none.
    group_of: Vec<Option<usize>>,
    sector_bytes: u32,
}

impl ThrottleLayer {
    /// Limits for a volume with sectors of this size. `group_of[n]` is the index in `groups` of the group of source n, if it is in one.
    pub(crate) fn new(groups: &[CgroupSpec], group_of: &[Option<usize>], sector_bytes: u32) -> ThrottleLayer {
        let throttles =
            |group: &CgroupSpec| [Throttle::new(group.of_reads()), Throttle::new(group.of_writes())];
        ThrottleLayer {
            groups: groups.iter().map(throttles).collect(),
            group_of: group_of.to_vec(),
            sector_bytes,
        }
    }

    fn release(&mut self, now: Instant, out: &mut Out<'_>) {
        for throttle in self.groups.iter_mut().flatten() {
            while let Some(submission) = throttle.pop(now) {
                out.forward_held(0, submission);
            }
        }
        let next = self.groups.iter().flatten().map(Throttle::next_event).min();
        out.wake_at(next.unwrap_or(Instant::MAX));
    }
}

impl Layer for ThrottleLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let group = self.group_of.get(submission.source as usize).copied().flatten();
        let direction = match submission.request.op {
            Op::Read => Some(0),
            Op::Write => Some(1),
            Op::Flush => None,
        };
        let Some((group, direction)) = group.zip(direction) else {
            return out.forward(0, submission.request.lbn);
        };
        let bytes = u64::from(submission.request.sectors) * u64::from(self.sector_bytes);
        self.groups[group][direction].push(now, submission, bytes);
        self.release(now, out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        self.release(now, out);
    }
}
