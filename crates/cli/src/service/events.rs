//! The events that a command waits for while disks run.

use crate::failure::Failure;
use crate::files;
use crate::temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A signal requested the end, or `--duration` is over.
    End,
    /// A signal requested a power cut, or the time of one has come.
    PowerCut,
    /// The child command ended with this code.
    Ended(u8),
    /// It is time to show statistics.
    Look,
    Reload,
}

pub(crate) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    /// The last signal that requested the end.
    asked: Arc<AtomicU8>,
    /// Events by time, in no order.
    planned: Vec<(Instant, Event)>,
}

fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "the command waits by the machine's clock")]
    Instant::now()
}

impl Events {
    /// Begins to watch for signals: SIGUSR1 only with `has_power`; with `has_files`, SIGHUP requests a reload. The first `patience` signals
    /// that request the end become events. Any further one removes the temporary files and ends the process at once.
    pub(crate) fn watch(patience: usize, has_power: bool, has_files: bool) -> Result<Events, Failure> {
        let (sender, receiver) = channel();
        let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
        let mut signals = Signals::new(watched(has_power, has_files)).map_err(fault)?;
        let (tell, last) = (sender.clone(), Arc::new(AtomicU8::new(0)));
        let stop_signal = Arc::clone(&last);
        let watch = move || {
            let mut asked = 0;
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    // Sending fails only after the end.
                    let _ = tell.send(Event::PowerCut);
                    continue;
                }
                if signal == SIGHUP && has_files {
                    let _ = tell.send(Event::Reload);
                    continue;
                }
                stop_signal.store(signal as u8, Ordering::Relaxed);
                let is_heard = tell.send(Event::End).is_ok();
                if signal == SIGHUP && asked > 0 {
                    // A closing terminal sends SIGHUP more than once.
                    continue;
                }
                if asked >= patience || (asked > 0 && !is_heard) {
                    let _locked = temporary::remove_all();
                    // This returns only if the system does not end the process.
                    let _ = emulate_default_handler(signal);
                }
                asked += 1;
            }
        };
        thread::Builder::new().name("signals".to_string()).spawn(watch).map_err(fault)?;
        Ok(Events { sender, receiver, asked: last, planned: Vec::new() })
    }

    /// The signal that requested the end, if one did, without waiting.
    pub(crate) fn asked(&self) -> Option<u8> {
        Some(self.asked.load(Ordering::Relaxed)).filter(|signal| *signal > 0)
    }

    pub(crate) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    pub(crate) fn end_after(&mut self, time: Option<Duration>) {
        self.plan(time, Event::End);
    }

    pub(crate) fn power_cut_at(&mut self, time: Option<Duration>) {
        self.plan(time, Event::PowerCut);
    }

    /// Plans an event after this time. A time beyond the range of the machine's clock never comes.
    fn plan(&mut self, time: Option<Duration>, event: Event) {
        self.planned.extend(time.and_then(|time| now().checked_add(time)).map(|at| (at, event)));
    }

    /// Waits for the next event; [`Event::Look`] is due at `look`.
    pub(crate) fn next(&mut self, look: Option<Instant>) -> Event {
        let planned = self.planned.iter().copied().chain(look.map(|at| (at, Event::Look)));
        let Some((at, event)) = planned.min_by_key(|(at, _)| *at) else {
            return self.receiver.recv().expect("a sender is here");
        };
        match self.receiver.recv_timeout(at.saturating_duration_since(now())) {
            Ok(event) => event,
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is here"),
            Err(RecvTimeoutError::Timeout) => {
                self.planned.retain(|planned| *planned != (at, event));
                event
            }
        }
    }
}

/// The signals to watch for, without those that the process ignores, as under `nohup`.
fn watched(has_power: bool, has_files: bool) -> Vec<i32> {
    let mut watched = unless_ignored(&[SIGINT, SIGTERM, SIGHUP]);
    if has_files && !watched.contains(&SIGHUP) {
        // With files it requests a reload, even if the process ignores it. Without files it would request the end.
        watched.push(SIGHUP);
    }
    watched.extend(has_power.then_some(SIGUSR1));
    watched
}

/// The signals that this process does not ignore.
pub(crate) fn unless_ignored(signals: &[i32]) -> Vec<i32> {
    let status = files::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    signals.iter().copied().filter(|signal| !is_ignored(&status, *signal)).collect()
}

/// Whether a process with this status (`man 5 proc_pid_status`) ignores a signal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> Events {
        let (sender, receiver) = channel();
        Events { sender, receiver, asked: Arc::default(), planned: Vec::new() }
    }

    #[test]
    fn end_beyond_the_clock_range_is_not_scheduled() {
        let mut events = none();
        events.end_after(Some(Duration::MAX));
        assert_eq!(events.planned, []);
        events.end_after(Some(Duration::ZERO));
        assert_eq!(events.next(None), Event::End);
    }

    #[test]
    fn ignored_signal_is_detected_from_the_process_status() {
        let status = "Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(is_ignored(status, SIGHUP) && !is_ignored(status, SIGINT) && is_ignored(status, 13));
        assert!(!is_ignored("", SIGHUP) && !is_ignored("SigIgn:\tmany\n", SIGHUP));
    }
}
