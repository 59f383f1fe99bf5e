//! What stands right before a drive's queue: how many commands it gets at a time, and the starvation guard.
//!
//! The guard never chooses. It only keeps the gate shut while a command that went through earlier is passed over by the
//! drive, so it works before any queue and behind any elevator.

use super::HostQueueSpec;
use super::spec::GuardKind;
use super::target::Target;
use crate::device::Tag;
use headstack_model::Nanos;
use headstack_policy::Guard;

/// Lets commands through to one target.
#[derive(Debug)]
pub(super) struct Gate {
    depth: usize,
    guard: Option<Box<Guard>>,
}

impl Gate {
    /// A gate that lets as many through as the target takes.
    pub(super) fn open<T: Target>(target: &T) -> Gate {
        Gate { depth: target.depth(), guard: None }
    }

    pub(super) fn new<T: Target>(target: &T, spec: &HostQueueSpec) -> Gate {
        let depth = spec.depth.map_or(target.depth(), |depth| target.depth().min(depth as usize));
        let guard = spec.guard.map(|kind| match kind {
            GuardKind::Counting => Guard::counting(spec.guard_threshold()),
            GuardKind::Adaptive => Guard::adaptive(spec.guard_cost()),
        });
        Gate { depth, guard: guard.map(Box::new) }
    }

    pub(super) fn guard(&self) -> Option<&Guard> {
        self.guard.as_deref()
    }

    /// Whether a command that waits may go now.
    #[inline]
    pub(super) fn lets_through<T: Target>(&mut self, now: Nanos, target: &T) -> bool {
        target.outstanding() < self.depth && self.guard.as_mut().is_none_or(|guard| guard.may_issue(now))
    }

    /// Whether it stays shut until a command comes back.
    #[inline]
    pub(super) fn is_shut<T: Target>(&self, target: &T) -> bool {
        target.outstanding() >= self.depth || self.guard.as_ref().is_some_and(|guard| guard.is_holding())
    }

    #[inline]
    pub(super) fn issued(&mut self, now: Nanos, tag: Tag) {
        if let Some(guard) = &mut self.guard {
            guard.issued(now, tag.0);
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, now: Nanos, tag: Tag) {
        if let Some(guard) = &mut self.guard {
            guard.completed(now, tag.0);
        }
    }
}
