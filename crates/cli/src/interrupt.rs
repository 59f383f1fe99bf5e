//! Ctrl-C and SIGTERM while a command computes. The first requests a stop, so that the command prints what it has measured; the second ends
//! the process at once. Neither leaves a temporary file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "signals and the list of temporary files are the process's"
)]

use crate::failure::Failure;
use crate::service::events::unless_ignored;
use crate::signal::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Whether a stop was requested. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// The number of the first signal; 0 before it.
    first: Arc<AtomicI32>,
}

impl Interrupt {
    /// Begins to watch for SIGINT and SIGTERM, unless the process ignores them.
    pub(crate) fn watch() -> Result<Interrupt, Failure> {
        let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
        let interrupt = Interrupt::default();
        let first = Arc::clone(&interrupt.first);
        let mut signals = Signals::new(unless_ignored(&[SIGINT, SIGTERM])).map_err(fault)?;
        let watch = move || {
            for signal in signals.forever() {
                if first.swap(signal, Ordering::Relaxed) != 0 {
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

/// Temporary files of this process. Its end runs no destructors, so [`end_at_once`] removes them.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list is valid after a panic: a path is pushed or removed in one step.
fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a temporary file on the list that [`end_at_once`] removes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listed(PathBuf);

impl Listed {
    /// Creates a temporary file and lists it; the process does not end in between.
    pub(crate) fn make<F, E>(
        make: impl FnOnce() -> Result<F, E>,
        path: impl FnOnce(&F) -> &Path,
    ) -> Result<(F, Listed), E> {
        let mut list = temporary();
        let file = make()?;
        let path = path(&file).to_path_buf();
        list.push(path.clone());
        Ok((file, Listed(path)))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        temporary().retain(|path| *path != self.0);
    }
}

/// Removes the temporary files and ends the process. The list stays locked, so that no new file is created.
fn end_at_once(signal: Signal) -> ! {
    let list = temporary();
    for path in list.iter() {
        // A missing file has just been moved to its place; other failures cannot be reported.
        let _ = fs::remove_file(path);
    }
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
    fn temporary_file_is_listed_until_it_is_dropped() {
        let path = Path::new("/nowhere/interrupt-test");
        let made = Listed::make(|| Ok::<_, ()>(path), |path| path);
        let is_listed = || temporary().iter().any(|listed| listed == path);
        assert!(is_listed());
        drop(made);
        assert!(!is_listed());
    }
}
