//! `headstack layout`: places data on the tracks of a map.

mod align;
mod check;
mod exclude;
mod hints;
mod mkfs;
mod partition;
mod preallocate;
mod reorganize;
mod show;
mod walk;

use crate::failure::Failure;
use std::io::Write;

/// Put data on the tracks of a disk so that no request crosses from one track to the next.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Align(align::Align),
    Check(check::Check),
    Exclude(exclude::Exclude),
    #[command(subcommand)]
    Hints(hints::Command),
    #[command(subcommand)]
    Mkfs(mkfs::Mkfs),
    Preallocate(preallocate::Preallocate),
    Reorganize(reorganize::Reorganize),
    Show(show::Show),
}

impl Command {
    /// Whether a signal ends the command at once. The others must not be cut off, so that the file system stays whole.
    pub(crate) fn ends_at_first_signal(&self) -> bool {
        !matches!(self, Command::Mkfs(_) | Command::Preallocate(_) | Command::Reorganize(_))
    }

    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Align(command) => command.run(out),
            Command::Check(command) => command.run(out),
            Command::Exclude(command) => command.run(out),
            Command::Hints(command) => command.run(out),
            Command::Mkfs(command) => command.run(out),
            Command::Preallocate(command) => command.run(out),
            Command::Reorganize(command) => command.run(out),
            Command::Show(command) => command.run(out),
        }
    }
}
