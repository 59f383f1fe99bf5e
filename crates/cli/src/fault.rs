//! `headstack fault`: sets and clears faults of the disks of a running `headstack emulate --control`.

use crate::failure::Failure;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Time for the emulator to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Set and clear faults of emulated disks while they run.
///
/// SOCKET is that of `headstack emulate --control SOCKET`. The commands: `fail`, `delay TIME` and `corrupt`, each with `reads`, `writes`,
/// `flushes` or `any`, and with disk=NAME, blocks=LBN[+COUNT], head=N, nth=N and count=N; `gone` and `back`, with disk=NAME; `list`; `clear
/// [NUMBER]`.
#[derive(clap::Args)]
pub(crate) struct SetFault {
    /// The emulator's control socket.
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// A command and its words: `fail writes blocks=100+8`, `delay 30ms reads`, `list`.
    #[arg(value_name = "COMMAND", required = true, num_args = 1..)]
    command: Vec<String>,
}

impl SetFault {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let fault = |error| Failure::Input(format!("{}: {error}", self.socket.display()));
        #[allow(clippy::disallowed_methods, reason = "the socket is the user's")]
        let stream = UnixStream::connect(&self.socket).map_err(fault)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
        let line = format!("{}\n", self.command.join(" ").replace('\n', " "));
        (&stream).write_all(line.as_bytes()).map_err(fault)?;
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).map_err(fault)?;
        match answer.trim_end().strip_prefix("error: ") {
            Some(error) => Err(Failure::Input(error.to_string())),
            None if answer.is_empty() => Err(Failure::Input(format!("{}: no answer", self.socket.display()))),
            None => Ok(writeln!(out, "{}", answer.trim_end())?),
        }
    }
}
