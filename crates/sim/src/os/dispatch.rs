//! The dispatch limit: the number of commands that a drive (or a controller's port) gets at a time, and the starvation guard.
//!
//! The guard does not choose a command. It holds commands back while the drive overtakes an earlier one, so it works with any elevator.

use super::HostQueueSpec;
use super::spec::GuardKind;
use super::target::Target;
use crate::device::Tag;
use headstack_model::Instant;
use headstack_policy::Guard;

#[derive(Debug)]
pub(super) struct DispatchLimit {
    depth: usize,
    guard: Option<Box<Guard>>,
}

impl DispatchLimit {
    /// A limit of as many commands as the target accepts.
    pub(super) fn of_target<T: Target>(target: &T) -> DispatchLimit {
        DispatchLimit { depth: target.depth(), guard: None }
    }

    pub(super) fn new<T: Target>(target: &T, spec: &HostQueueSpec) -> DispatchLimit {
        let depth = spec.depth.map_or(target.depth(), |depth| target.depth().min(depth as usize));
        let guard = spec.guard.map(|kind| match kind {
            GuardKind::Counting => Guard::counting(spec.guard_threshold()),
            GuardKind::Adaptive => Guard::adaptive(spec.guard_cost()),
        });
        DispatchLimit { depth, guard: guard.map(Box::new) }
    }

    pub(super) fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref()
    }

    #[inline]
    pub(super) fn lets_through<T: Target>(&mut self, now: Instant, target: &T) -> bool {
        target.outstanding() < self.depth && self.guard.as_mut().is_none_or(|guard| guard.may_issue(now))
    }

    /// Whether no command may be sent before one is done.
    #[inline]
    pub(super) fn is_shut<T: Target>(&self, target: &T) -> bool {
        target.outstanding() >= self.depth || self.guard.as_ref().is_some_and(|guard| guard.is_holding())
    }

    #[inline]
    pub(super) fn issued(&mut self, now: Instant, tag: Tag) {
        if let Some(guard) = &mut self.guard {
            guard.issued(now, tag.0);
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, now: Instant, tag: Tag) {
        if let Some(guard) = &mut self.guard {
            guard.completed(now, tag.0);
        }
    }
}
