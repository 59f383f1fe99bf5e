//! The arms of a disk: each has its dispatch set and its measurements.
//!
//! A disk with two arms has a range of bytes for each, and both arms work at the same time. A stream is an arm's by where its next
//! command lies; it may continue into the range of another.
//!
//! *Source:* the ranges are those of the concurrent positioning ranges log of SCSI and ATA.

use super::config::Config;
use super::dispatch::Dispatch;
use super::tuning::Tuning;
use headstack_model::Instant;
use std::ops::{Index, IndexMut};

#[derive(Debug)]
pub(super) struct StreamArm {
    /// The first byte of its range.
    first: u64,
    pub(super) dispatch: Dispatch,
    pub(super) tuning: Tuning,
}

#[derive(Debug)]
pub(super) struct Arms {
    /// By their ranges, upward.
    arms: Vec<StreamArm>,
    /// The arm whose streams are tried first.
    pub(super) next: usize,
    /// When a pausing writer loses its turn, or a frame in use may be evicted.
    grace_at: Instant,
}

impl Arms {
    /// Arms whose ranges begin at these bytes of the disk; the first begins at 0.
    pub(super) fn new(config: &Config, firsts: &[u64]) -> Arms {
        assert!(
            firsts.first() == Some(&0) && firsts.is_sorted_by(|one, next| one < next),
            "ranges: {firsts:?}"
        );
        let arm = |first: &u64| StreamArm {
            first: *first,
            dispatch: Dispatch::default(),
            tuning: Tuning::new(config),
        };
        Arms { arms: firsts.iter().map(arm).collect(), next: 0, grace_at: Instant::MAX }
    }

    pub(super) fn len(&self) -> usize {
        self.arms.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StreamArm> {
        self.arms.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut StreamArm> {
        self.arms.iter_mut()
    }

    /// The arm whose range has this byte.
    pub(super) fn index_at(&self, place: u64) -> usize {
        self.arms.partition_point(|arm| arm.first <= place) - 1
    }

    pub(super) fn arm_at(&mut self, place: u64) -> &mut StreamArm {
        let index = self.index_at(place);
        &mut self.arms[index]
    }

    /// Streams that have a turn.
    pub(super) fn dispatched(&self) -> usize {
        self.arms.iter().map(|arm| arm.dispatch.len()).sum()
    }

    /// Streams that wait for a turn, and whose clients wait.
    pub(super) fn blocked(&self) -> usize {
        self.arms.iter().map(|arm| arm.dispatch.blocked()).sum()
    }

    /// The number of the arm that has transferred most.
    pub(super) fn most_measured(&self) -> usize {
        let most = self.arms.iter().map(|arm| arm.tuning.samples()).fold(0.0, f64::max);
        self.arms.iter().position(|arm| arm.tuning.samples() >= most).expect("a disk has an arm")
    }

    /// When to try streams that wait again, without another event.
    pub(super) fn grace_at(&self) -> Instant {
        self.grace_at
    }

    pub(super) fn set_grace(&mut self, at: Instant) {
        self.grace_at = self.grace_at.min(at);
    }

    /// Ends a grace period that is over. A stream that still waits sets it again.
    pub(super) fn expire_grace(&mut self, now: Instant) {
        if self.grace_at <= now {
            self.grace_at = Instant::MAX;
        }
    }
}

impl Index<usize> for Arms {
    type Output = StreamArm;

    fn index(&self, index: usize) -> &StreamArm {
        &self.arms[index]
    }
}

impl IndexMut<usize> for Arms {
    fn index_mut(&mut self, index: usize) -> &mut StreamArm {
        &mut self.arms[index]
    }
}
