//! Ctrl-C and SIGTERM while a command computes. The first requests a stop, so that the command prints what it has measured; the second ends
//! the process at once. Neither leaves a temporary file.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "signals are the process's")]

use crate::failure::{self, Failure};
use crate::service::events::unless_ignored;
use crate::signal::Signal;
use crate::temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
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

/// Ends the process at the first SIGINT, SIGTERM or SIGHUP that it does not ignore, without its temporary files: for commands that have no
/// partial results.
pub(crate) fn end_at_first_signal() -> Result<(), Failure> {
    let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
    let mut signals = Signals::new(unless_ignored(&[SIGINT, SIGTERM, SIGHUP])).map_err(fault)?;
    let watch = move || {
        if let Some(signal) = signals.forever().next().map(Signal) {
            failure::print_line(&Failure::StoppedWithoutResult(signal).to_string());
            end_at_once(signal);
        }
    };
    thread::Builder::new().name("signals".to_string()).spawn(watch).map_err(fault)?;
    Ok(())
}

/// Removes the temporary files and ends the process. The list stays locked, so that no new file is created.
fn end_at_once(signal: Signal) -> ! {
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
}
