//! Progress of a run on a terminal; nothing elsewhere.

use crate::plain::Letters;
use crate::units::grouped;
use cpu_time::ThreadTime;
use headstack_model::Instant;
use humantime::format_duration;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io;
use std::time::Duration;

/// Length of a bar: positions are thousandths of the run.
const WHOLE: u64 = 1000;

/// Template of the bar for a run of known length. A long message is cut off.
const BAR: &str = "{prefix}{bar:20} {percent:>3} %  {wide_msg}";

/// Template of the spinner for a run of unknown length.
const SPINNER: &str = "{prefix}{spinner} {wide_msg}";

/// Maximum characters of the label before a bar.
const LABEL: usize = 40;

/// The style of a template, with letters that the terminal can show.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    match Letters::shown_by(&io::stderr()) {
        Letters::Unicode => style,
        Letters::Ascii => style.progress_chars("#>-").tick_chars("-\\|/ "),
    }
}

/// The bar of one run in this thread.
pub(crate) struct Progress {
    bar: ProgressBar,
    cpu: ThreadTime,
    /// Whether the bar has a length; none before it is first shown.
    has_length: Option<bool>,
}

impl Progress {
    pub(crate) fn alone() -> Progress {
        Progress::with(ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::stderr()))
    }

    /// The bar of one of several runs.
    pub(crate) fn among(bars: &MultiProgress, label: &str) -> Progress {
        let label: String = label.chars().take(LABEL).collect();
        // The style comes first, because a bar is drawn as soon as it is added.
        let bar = bars.add(ProgressBar::new(WHOLE).with_style(style("{prefix}")));
        bar.set_prefix(format!("{label}  "));
        Progress::with(bar)
    }

    fn with(bar: ProgressBar) -> Progress {
        // The bar shows only its label until it is known whether the run has a length.
        bar.set_style(style("{prefix}"));
        Progress { bar, cpu: ThreadTime::now(), has_length: None }
    }

    /// Shows the run's time, its completed requests, and the share that is done, if known.
    pub(crate) fn show(&mut self, now: Instant, requests: u64, share: Option<f64>) {
        if self.bar.is_hidden() {
            return;
        }
        if self.has_length != Some(share.is_some()) {
            self.has_length = Some(share.is_some());
            let style = style(if share.is_some() { BAR } else { SPINNER });
            self.bar.set_style(style);
        }
        let cpu_s = self.cpu.elapsed().as_secs_f64().max(1e-9);
        let left = share.and_then(|share| left_s(self.bar.elapsed().as_secs_f64(), share));
        self.bar.set_message(format!(
            "{}{} s simulated, {}× real time; {} requests, {}/s",
            left.map(|left| format!("about {} left; ", whole_seconds(left))).unwrap_or_default(),
            grouped(now.as_secs() as u64),
            grouped((now.as_secs() / cpu_s) as u64),
            grouped(requests),
            grouped((requests as f64 / cpu_s) as u64),
        ));
        match share {
            Some(share) => self.bar.set_position((share * WHOLE as f64) as u64),
            None => self.bar.tick(),
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Estimated seconds left, once enough is done.
pub(crate) fn left_s(took_s: f64, share: f64) -> Option<f64> {
    (share > 0.02 && share < 1.0).then(|| took_s * (1.0 - share) / share)
}

/// A time in words, to the second.
pub(crate) fn whole_seconds(seconds: f64) -> String {
    format_duration(Duration::from_secs(seconds.round() as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_estimated_once_a_fiftieth_is_done() {
        assert_eq!(left_s(10.0, 0.01), None);
        assert_eq!(left_s(10.0, 0.25), Some(30.0));
        assert_eq!(left_s(10.0, 1.0), None);
        assert_eq!(whole_seconds(90.2), "1m 30s");
    }
}
