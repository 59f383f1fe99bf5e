//! The times of a node's commands, and whether its disk fails slowly.

use super::{Command, RequestKind};
use headstack_model::Instant;
use headstack_policy::slowness::{CompletedCommand, SlownessDetector, SlownessView, WorstAccess};

/// The commands at the disk, and what the times of completed ones say about it.
#[derive(Debug)]
pub(super) struct SlownessWatch {
    detector: SlownessDetector,
    /// When the disk got each command, by the command's number.
    begun: Vec<Instant>,
}

impl SlownessWatch {
    pub(super) fn new(worst: WorstAccess, disk_bytes: u64) -> SlownessWatch {
        SlownessWatch { detector: SlownessDetector::new(worst, disk_bytes), begun: Vec::new() }
    }

    pub(super) fn begin(&mut self, now: Instant, command: &Command) {
        let index = command.id as usize;
        if self.begun.len() <= index {
            self.begun.resize(index + 1, now);
        }
        self.begun[index] = now;
    }

    /// Records the end of a command while `outstanding` were at the disk, itself included. Returns whether an alarm began or ended.
    pub(super) fn end(&mut self, now: Instant, command: &Command, outstanding: usize) -> bool {
        let ((offset, bytes), begun) = (command.kind.run(), self.begun[command.id as usize]);
        let is_read = match command.kind {
            RequestKind::Read { .. } => true,
            RequestKind::Write { .. } => false,
            _ => {
                self.detector.completed_other(now);
                return false;
            }
        };
        self.detector.completed(now, CompletedCommand { begun, is_read, offset, bytes, outstanding })
    }

    pub(super) fn view(&self) -> SlownessView {
        self.detector.view()
    }
}
