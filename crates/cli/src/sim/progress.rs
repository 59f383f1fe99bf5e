//! How far a run is, on a terminal; silence elsewhere.

use super::outcome::Onlooker;
use crate::units::grouped;
use cpu_time::ProcessTime;
use headstack_sim::Finished;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests between two looks at the bar.
const EVERY: u64 = 1 << 13;

/// Bytes of a file that were read, counted by its reader.
pub(crate) type BytesRead = Arc<AtomicU64>;

/// The bar of one run. Its length is the load's file where the run goes through it once, else unknown.
pub(crate) struct Progress {
    bar: ProgressBar,
    read: Option<BytesRead>,
    started: ProcessTime,
    seen: u64,
}

impl Progress {
    /// A bar for a run; `file` is its load's length in bytes and how much was read so far.
    pub(crate) fn new(file: Option<(u64, BytesRead)>, shown: bool) -> Progress {
        let (bar, read) = match file {
            Some((length, read)) => {
                let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
                let style = style.expect("the template is well formed");
                (ProgressBar::new(length).with_style(style), Some(read))
            }
            None => {
                let style =
                    ProgressStyle::with_template("{spinner} {msg}").expect("the template is well formed");
                (ProgressBar::new_spinner().with_style(style), None)
            }
        };
        if !shown {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress { bar, read, started: ProcessTime::now(), seen: 0 }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, finished: &Finished) {
        let cpu_s = self.started.elapsed().as_secs_f64();
        let simulated_s = finished.completion.completed.as_secs();
        let rate = |count: f64| grouped((count / cpu_s.max(1e-9)) as u64);
        self.bar.set_message(format!(
            "{} s simulated, {}× real time; {} requests, {}/s",
            grouped(simulated_s as u64),
            rate(simulated_s),
            grouped(self.seen),
            rate(self.seen as f64),
        ));
        match &self.read {
            Some(read) => self.bar.set_position(read.load(Ordering::Relaxed)),
            None => self.bar.tick(),
        }
    }
}

impl Onlooker for Progress {
    fn finished(&mut self, finished: &Finished) {
        self.seen += 1;
        if self.seen.is_multiple_of(EVERY) && !self.bar.is_hidden() {
            self.show(finished);
        }
    }
}
