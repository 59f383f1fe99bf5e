//! What the command waits for while the disks run.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Somebody wants it to end, or its time is over.
    End,
    /// Somebody cuts the power.
    Cut,
    /// The time of a power cut has come.
    PowerCut,
    /// The command that was run ended with this code.
    Ended(u8),
    /// It is time to show what the disks do.
    Look,
}

/// All that may happen.
pub(super) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    /// What happens at a time, the times in no order.
    planned: Vec<(Instant, Event)>,
}

fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "the command waits by the machine's clock")]
    Instant::now()
}

impl Events {
    /// Begins to watch for signals.
    pub(super) fn watch() -> Result<Events, Failure> {
        let (sender, receiver) = channel();
        let fault = |error| Failure::Input(format!("signals cannot be watched: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(fault)?;
        let tell = sender.clone();
        let watch = move || {
            for signal in signals.forever() {
                let event = if signal == SIGUSR1 { Event::Cut } else { Event::End };
                if tell.send(event).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("signals".to_string()).spawn(watch).map_err(fault)?;
        Ok(Events { sender, receiver, planned: Vec::new() })
    }

    /// Where to tell what happened.
    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// The end comes after this time.
    pub(super) fn end_after(&mut self, time: Option<Duration>) {
        self.planned.extend(time.map(|time| (now() + time, Event::End)));
    }

    /// A power cut comes after this time.
    pub(super) fn power_cut_at(&mut self, time: Option<Duration>) {
        self.planned.extend(time.map(|time| (now() + time, Event::PowerCut)));
    }

    /// Waits for the next; a look is due at `look`.
    pub(super) fn next(&mut self, look: Option<Instant>) -> Event {
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
