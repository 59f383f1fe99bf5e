//! Limits of control groups: the requests of a group wait until its limits allow them, all others pass.

use crate::layer::{Below, Completed, Effect, Layer, PassThrough, Submission};
use crate::os::CgroupSpec;
use headstack_model::{Instant, Op};
use headstack_policy::Throttle;
use std::collections::VecDeque;

/// The limits of the control groups for a volume, by the source of each request.
#[derive(Debug)]
pub(crate) struct ThrottleLayer {
    /// Reads and writes of each group.
    groups: Vec<[Throttle<Submission>; 2]>,
    /// The group of each source; a source behind the last has none.
    group_of: Vec<Option<usize>>,
    sector_bytes: u32,
    bypass: PassThrough,
    effects: VecDeque<Effect>,
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
            bypass: PassThrough::default(),
            effects: VecDeque::new(),
        }
    }

    fn release(&mut self, now: Instant) {
        for throttle in self.groups.iter_mut().flatten() {
            while let Some(submission) = throttle.pop(now) {
                self.effects.push_back(self.bypass.submit(submission));
            }
        }
    }
}

impl Layer for ThrottleLayer {
    fn submit(&mut self, now: Instant, _port: u32, submission: Submission, _below: &dyn Below) {
        let group = self.group_of.get(submission.source as usize).copied().flatten();
        let direction = match submission.request.op {
            Op::Read => Some(0),
            Op::Write => Some(1),
            Op::Flush => None,
        };
        let Some((group, direction)) = group.zip(direction) else {
            return self.effects.push_back(self.bypass.submit(submission));
        };
        let bytes = u64::from(submission.request.sectors) * u64::from(self.sector_bytes);
        self.groups[group][direction].push(now, submission, bytes);
        self.release(now);
    }

    fn complete(&mut self, _now: Instant, _child: u32, answer: &Completed) {
        self.effects.extend(self.bypass.complete(answer));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.release(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn next_event(&self) -> Instant {
        self.groups.iter().flatten().map(Throttle::next_event).min().unwrap_or(Instant::MAX)
    }
}
