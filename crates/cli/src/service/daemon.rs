//! The life of a command that runs disks: start, introduction, events, end, summary.

use super::child::Child;
use super::events::{Event, Events};
use super::log::LogArgs;
use super::outcome;
use crate::failure::Failure;
use crate::plain::{Letters, Plain};
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterEvent {
    Continue,
    /// The command ends, after its child command.
    End,
    /// The command ends, unless it runs a child command.
    EndWithoutCommand,
}

pub(crate) trait Daemon {
    fn introduce(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Called after the introduction.
    fn ready(&self) {}

    /// Environment of a child command.
    fn environment(&self) -> Vec<(String, OsString)>;

    /// When an [`Event::Look`] is due, if ever.
    fn next_look(&self) -> Option<Instant>;

    /// Handles any event except the end of the command and a request to end.
    fn handle(&mut self, event: Event) -> AfterEvent;

    /// Ends the disks in an orderly way, and returns a function that prints the summary.
    fn end(self) -> (Result<(), Failure>, impl FnOnce(&mut dyn Write) -> io::Result<()>);
}

pub(crate) struct DaemonOptions<'a> {
    pub(crate) command: &'a [String],
    pub(crate) duration: Option<Duration>,
    pub(crate) log: &'a LogArgs,
    /// Whether SIGUSR1 cuts the power.
    pub(crate) has_power: bool,
    /// Whether SIGHUP reloads its files.
    pub(crate) has_files: bool,
}

impl DaemonOptions<'_> {
    /// Runs a daemon until its end. Its messages go to standard error if a child command prints to `out`.
    ///
    /// *Errors:* it cannot start; data were lost; the child's exit code, if it is not 0.
    pub(crate) fn run<D: Daemon>(
        &self,
        out: &mut dyn Write,
        start: impl FnOnce(&mut Events) -> Result<D, Failure>,
    ) -> Result<(), Failure> {
        let has_command = !self.command.is_empty();
        // The first signal terminates the child command, and the second kills it.
        let mut events = Events::watch(if has_command { 2 } else { 1 }, self.has_power, self.has_files)?;
        self.log.start()?;
        let mut daemon = start(&mut events)?;
        let mut messages: Box<dyn Write + '_> = if has_command {
            Box::new(Plain(io::stderr(), Letters::shown_by(&io::stderr())))
        } else {
            Box::new(out)
        };
        let introduced = daemon.introduce(&mut messages);
        if !has_command {
            introduced?;
        }
        daemon.ready();
        let child = Child::start(self.command, daemon.environment(), &mut events)?;
        events.end_after(self.duration);
        let code = wait(&mut daemon, &mut events, child);
        // A further signal ends the process at once.
        drop(events);
        let (ended, print_summary) = daemon.end();
        log::logger().flush();
        outcome(ended, code, print_summary(&mut messages))
    }
}

/// Waits for the end; returns the exit code of the child command, if there is one.
fn wait(daemon: &mut impl Daemon, events: &mut Events, mut child: Option<Child>) -> Option<u8> {
    loop {
        let next = match events.next(daemon.next_look()) {
            Event::Ended(code) => return Some(code),
            Event::End => AfterEvent::End,
            event => daemon.handle(event),
        };
        match (next, &mut child) {
            (AfterEvent::End, Some(child)) => child.end(),
            (AfterEvent::End | AfterEvent::EndWithoutCommand, None) => return None,
            _ => {}
        }
    }
}
