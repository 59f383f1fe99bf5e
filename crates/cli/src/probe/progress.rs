//! How far a disk is learned, on a terminal.

use crate::units::grouped;
use headstack_model::Nanos;
use headstack_tracks::Progress;
use humantime::format_duration;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Answers between two looks at the bar.
const EVERY: u64 = 64;

/// A bar for each phase, one after the other.
pub(super) struct Bar {
    bar: ProgressBar,
    phase: &'static str,
    /// When the phase began.
    begun: Nanos,
}

impl Bar {
    pub(super) fn new() -> Bar {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
        let style = style.expect("the template is well formed");
        Bar { bar: ProgressBar::new(1000).with_style(style), phase: "", begun: Nanos::ZERO }
    }

    /// Shows how far it is after so many answers, at a time of the disk.
    pub(super) fn show(&mut self, progress: &Progress, probes: u64, at: Nanos) {
        if progress.phase != self.phase {
            (self.phase, self.begun) = (progress.phase, at);
        } else if !probes.is_multiple_of(EVERY) || self.bar.is_hidden() {
            return;
        }
        let left = left(at.since(self.begun), progress.share);
        let left = left.map(|left| format!(", about {} left", round(left))).unwrap_or_default();
        self.bar.set_position((progress.share * 1000.0) as u64);
        self.bar.set_message(format!(
            "{}: {} answers in {}{left}",
            self.phase,
            grouped(probes),
            round(at.as_secs())
        ));
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Seconds that what is left of a phase will take, where enough of it is over to tell.
fn left(took: Nanos, share: f64) -> Option<f64> {
    (share > 0.02 && share < 1.0).then(|| took.as_secs() * (1.0 - share) / share)
}

/// A time in words, to the second.
pub(super) fn round(seconds: f64) -> String {
    format_duration(Duration::from_secs(seconds.round() as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_what_is_left_told_once_it_can_be() {
        assert_eq!(left(Nanos::from_secs(10), 0.01), None);
        assert_eq!(left(Nanos::from_secs(10), 0.25), Some(30.0));
        assert_eq!(left(Nanos::from_secs(10), 1.0), None);
        assert_eq!(round(90.2), "1m 30s");
    }
}
