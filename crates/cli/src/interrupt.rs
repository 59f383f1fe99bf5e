//! Handles signals while a command computes. The first SIGINT, SIGTERM or SIGHUP requests a stop, so that the command prints what it has
//! measured. The second, and each SIGQUIT, ends the process at once. None leaves a temporary file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "signals and the list of changed files are the process's"
)]

use crate::failure::{self, Failure};
use crate::service::events::unless_ignored;
use crate::signal::Signal;
use crate::temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The signals that end a process and that it can handle.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Whether a signal has requested the end of a command that computes.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether a signal has requested the end of a command that computes.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Whether a stop was requested. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// The number of the first signal; 0 before it.
    first: Arc<AtomicI32>,
}

impl Interrupt {
    /// Begins to watch for the signals that end a process, except for those that it ignores.
    pub(crate) fn watch() -> Result<Interrupt, Failure> {
        let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
        let interrupt = Interrupt::default();
        let first = Arc::clone(&interrupt.first);
        let mut signals = Signals::new(unless_ignored(&ENDING)).map_err(fault)?;
        let watch = move || {
            for signal in signals.forever() {
                let before = first.swap(signal, Ordering::Relaxed);
                REQUESTED.store(true, Ordering::Relaxed);
                // A closing terminal sends SIGHUP more than once.
                let is_repeated = before != 0 && (before, signal) != (SIGHUP, SIGHUP);
                if is_repeated || signal == SIGQUIT {
                    end_at_once(Signal(signal));
                }
            }
        };
        thread::Builder::new().name("signals".to_string()).spawn(watch).map_err(fault)?;
        Ok(interrupt)
    }

    /// The signal that requested the stop, if any.
    pub(crate) fn received(&self) -> Option<Signal> {
        Some(self.first.load(Ordering::Relaxed)).filter(|signal| *signal != 0).map(Signal)
    }
}

/// For commands without partial results: at the first signal to end that the process does not ignore, removes its temporary
/// files and ends it.
pub(crate) fn end_at_first_signal() -> Result<(), Failure> {
    let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
    let mut signals = Signals::new(unless_ignored(&ENDING)).map_err(fault)?;
    let watch = move || {
        if let Some(signal) = signals.forever().next().map(Signal) {
            failure::print_line(&Failure::StoppedWithoutResult(signal).to_string());
            end_at_once(signal);
        }
    };
    thread::Builder::new().name("signals".to_string()).spawn(watch).map_err(fault)?;
    Ok(())
}

/// System files that a command has changed temporarily, with the values to restore.
static CHANGED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

fn changed() -> MutexGuard<'static, Vec<(PathBuf, String)>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the values of system files when it is dropped, or when a second signal ends the process.
#[derive(Debug)]
pub(crate) struct RestoredFiles {
    report: fn(&Path, &io::Error),
}

impl RestoredFiles {
    /// Restores `values` in this order later; `report` gets each file that cannot be written. Only one may exist at a time.
    pub(crate) fn new(values: Vec<(PathBuf, String)>, report: fn(&Path, &io::Error)) -> RestoredFiles {
        *changed() = values;
        RestoredFiles { report }
    }
}

impl Drop for RestoredFiles {
    fn drop(&mut self) {
        // The lock is held until all values are restored. A second signal waits for it, so that it does not end the process before.
        let mut values = changed();
        for (path, value) in values.drain(..) {
            if let Err(error) = fs::write(&path, value) {
                (self.report)(&path, &error);
            }
        }
    }
}

/// Restores the changed files, removes the temporary files and ends the process. The lists stay locked, so that no new file is created.
fn end_at_once(signal: Signal) -> ! {
    let values = changed();
    for (path, value) in values.iter() {
        // Failures cannot be reported.
        let _ = fs::write(path, value);
    }
    let _locked = temporary::remove_all();
    process::exit(i32::from(signal.exit_code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_maps_to_its_name_and_shell_exit_code() {
        assert_eq!((Signal(SIGINT).name(), Signal(SIGINT).exit_code()), ("SIGINT", 130));
        assert_eq!((Signal(SIGTERM).name(), Signal(SIGTERM).exit_code()), ("SIGTERM", 143));
    }

    #[test]
    fn changed_files_are_restored_in_order_when_dropped() {
        let folder = tempfile::tempdir().expect("there is room");
        let [one, missing] = ["one", "no/such"].map(|name| folder.path().join(name));
        fs::write(&one, "new").expect("the folder is writable");
        let values = vec![(missing, "x".to_string()), (one.clone(), "old".to_string())];
        drop(RestoredFiles::new(values, |path, _| assert!(path.ends_with("no/such"))));
        assert_eq!(fs::read_to_string(&one).expect("it is there"), "old");
        assert!(changed().is_empty());
    }
}
