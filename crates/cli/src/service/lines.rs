//! Status lines on standard error: updated in place on a terminal, appended elsewhere.

use crate::plain::{Letters, Plain, plain};
use indicatif::{MultiProgress, ProgressBar};
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

pub(crate) struct Lines {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    is_terminal: bool,
    interval: Duration,
    due: Instant,
}

impl Lines {
    /// Lines that are shown once per `interval`.
    pub(crate) fn new(interval: Duration) -> Lines {
        #[allow(clippy::disallowed_methods, reason = "people read by the machine's clock")]
        let due = Instant::now() + interval;
        Lines {
            all: MultiProgress::new(),
            bars: Vec::new(),
            is_terminal: stderr().is_terminal(),
            interval,
            due,
        }
    }

    pub(crate) fn next(&self) -> Instant {
        self.due
    }

    pub(crate) fn show_all(&mut self, lines: impl Iterator<Item = String>) {
        lines.enumerate().for_each(|(place, line)| self.show(place, line));
        self.due += self.interval;
    }

    fn show(&mut self, place: usize, line: String) {
        if !self.is_terminal {
            // The reader of standard error may have gone. Then the disks continue without lines.
            return drop(writeln!(Plain(stderr(), Letters::Unicode), "{line}"));
        }
        while self.bars.len() <= place {
            self.bars.push(
                self.all.add(ProgressBar::new_spinner().with_style(crate::progress::style("{wide_msg}"))),
            );
        }
        self.bars[place].set_message(plain(&line).into_owned());
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
    }
}
