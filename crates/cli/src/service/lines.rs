//! Lines on standard error that are shown again and again: on a terminal in their place, elsewhere one below the other.

use crate::plain::{Plain, plain};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};

/// The lines. They go with this value.
pub(crate) struct Lines {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    is_terminal: bool,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { all: MultiProgress::new(), bars: Vec::new(), is_terminal: stderr().is_terminal() }
    }
}

impl Lines {
    /// Shows a line in the place with this number.
    pub(crate) fn show(&mut self, place: usize, line: String) {
        if !self.is_terminal {
            // Whoever read it may have gone; the disks go on.
            return drop(writeln!(Plain(stderr()), "{line}"));
        }
        while self.bars.len() <= place {
            let style = ProgressStyle::with_template("{wide_msg}").expect("the template is well formed");
            self.bars.push(self.all.add(ProgressBar::new_spinner().with_style(style)));
        }
        self.bars[place].set_message(plain(&line).into_owned());
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
    }
}
