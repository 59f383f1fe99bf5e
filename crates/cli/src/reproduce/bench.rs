//! Runs studies on all cores, with a bar on a terminal.

use crate::interrupt::Interrupt;
use crate::signal::Signal;
use headstack_studies::study::{Bench, Length, Reproduction, Study, StudyError, Task};
use indicatif::ProgressBar;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

pub(super) struct Cores {
    bar: ProgressBar,
    traces: Option<PathBuf>,
}

impl Cores {
    pub(super) fn new(study: &str, traces: Option<PathBuf>) -> Cores {
        let bar = ProgressBar::new(0)
            .with_style(crate::progress::style("{msg}  {bar:30} {pos}/{len} runs, {elapsed}"));
        bar.set_message(study.to_string());
        Cores { bar, traces }
    }
}

/// Time between two polls of the interrupt.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs a study in a separate thread, and waits until it ends or a signal comes. After a signal the thread is abandoned, because a single run
/// of a study may take minutes and the process ends soon.
pub(super) fn reproduce(
    study: &'static Study,
    length: Length,
    bench: Cores,
    interrupt: &Interrupt,
) -> Result<Result<Reproduction, StudyError>, Signal> {
    let (sender, receiver) = channel();
    let bar = bench.bar.clone();
    #[allow(clippy::disallowed_methods, reason = "the command decides what runs in parallel")]
    thread::spawn(move || {
        // Sending fails only if a signal stopped the wait.
        let _ = sender.send(study.reproduce(length, &bench));
    });
    let done = loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(done) => break Ok(done),
            Err(RecvTimeoutError::Disconnected) => panic!("the study {} panicked", study.id),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(signal) = interrupt.received() {
                    break Err(signal);
                }
            }
        }
    };
    bar.finish_and_clear();
    done
}

impl Bench for Cores {
    fn run(&self, tasks: Vec<Task<'_>>) {
        self.bar.inc_length(tasks.len() as u64);
        tasks.into_par_iter().for_each(|task| {
            task();
            self.bar.inc(1);
        });
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, String> {
        let Some(folder) = &self.traces else { return Ok(None) };
        let path = folder.join(name);
        #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
        match File::open(&path) {
            Ok(file) => Ok(Some(Box::new(BufReader::new(file)))),
            Err(error) if error.kind() == ErrorKind::NotFound && folder.is_dir() => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}
