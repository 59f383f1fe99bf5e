//! A child command that uses the disks, whose addresses are in its environment.

use super::events::{Event, Events};
use crate::failure::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;

pub(crate) struct Child {
    process: Pid,
    is_stop_requested: bool,
}

impl Child {
    /// Starts the child command, if there is one. Its end becomes an event.
    pub(crate) fn start(
        command: &[String],
        environment: Vec<(String, OsString)>,
        events: &mut Events,
    ) -> Result<Option<Child>, Failure> {
        let Some((program, args)) = command.split_first() else { return Ok(None) };
        let fault = |error| Failure::Input(format!("{program}: {error}"));
        let mut child = Command::new(program).args(args).envs(environment).spawn().map_err(fault)?;
        let process = Pid::from_child(&child);
        let tell = events.sender();
        let wait = move || {
            let code = child.wait().map_or(1, code);
            // The receiver may have ended.
            let _ = tell.send(Event::Ended(code));
        };
        thread::Builder::new().name("command".to_string()).spawn(wait).map_err(fault)?;
        Ok(Some(Child { process, is_stop_requested: false }))
    }

    /// Sends it SIGTERM, and SIGKILL at a second call.
    pub(crate) fn end(&mut self) {
        let signal = if self.is_stop_requested { Signal::KILL } else { Signal::TERM };
        self.is_stop_requested = true;
        // It may have ended already.
        let _ = kill_process(self.process, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
