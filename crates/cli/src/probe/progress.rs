//! Progress of a probe on a terminal.

use crate::progress::{left_s, whole_seconds};
use crate::units::grouped;
use headstack_model::Instant;
use headstack_probe::Progress;
use indicatif::ProgressBar;

/// Answers between two updates of the bar.
const EVERY: u64 = 64;

pub(super) struct Bar {
    bar: ProgressBar,
    phase: &'static str,
    begun: Instant,
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar {
            bar: ProgressBar::new(1000).with_style(crate::progress::style("{bar:30} {percent:>3} %  {msg}")),
            phase: "",
            begun: Instant::ZERO,
        }
    }

    pub(super) fn show(&mut self, progress: &Progress, probes: u64, at: Instant) {
        if progress.phase != self.phase {
            (self.phase, self.begun) = (progress.phase, at);
        } else if !probes.is_multiple_of(EVERY) || self.bar.is_hidden() {
            return;
        }
        let left = left_s(at.since(self.begun).as_secs(), progress.share);
        let left = left.map(|left| format!(", about {} left", whole_seconds(left))).unwrap_or_default();
        self.bar.set_position((progress.share * 1000.0) as u64);
        self.bar.set_message(format!(
            "{}: {} answers in {}{left}",
            self.phase,
            grouped(probes),
            whole_seconds(at.as_secs())
        ));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
