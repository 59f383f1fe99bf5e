//! Where the runs of a study are done: on all cores, with a bar on a terminal.

use headstack_studies::study::{Bench, Task};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

/// All cores.
pub(super) struct Cores<'a> {
    bar: ProgressBar,
    traces: Option<&'a Path>,
}

impl<'a> Cores<'a> {
    pub(super) fn new(study: &str, traces: Option<&'a Path>) -> Cores<'a> {
        let style = ProgressStyle::with_template("{msg}  {bar:30} {pos}/{len} runs, {elapsed}");
        let bar = ProgressBar::new(0).with_style(style.expect("the template is well formed"));
        bar.set_message(study.to_string());
        Cores { bar, traces }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Bench for Cores<'_> {
    fn run(&self, tasks: Vec<Task<'_>>) {
        self.bar.inc_length(tasks.len() as u64);
        tasks.into_par_iter().for_each(|task| {
            task();
            self.bar.inc(1);
        });
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, String> {
        let Some(folder) = self.traces else { return Ok(None) };
        let path = folder.join(name);
        #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
        match File::open(&path) {
            Ok(file) => Ok(Some(Box::new(BufReader::new(file)))),
            Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}
