//! `headstack rig`: list, show, check and import rigs, and the keys of a rig file.

mod check;
mod import;
mod keys;
mod list;
pub(crate) mod load;
mod show;

use crate::failure::Failure;
use std::io::Write;

/// List, show, check and import rigs, and list the keys of a rig file.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    Import(import::Import),
    Keys(keys::Keys),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::List(command) => command.run(out),
            Command::Show(command) => command.run(out),
            Command::Check(command) => command.run(out),
            Command::Import(command) => command.run(out),
            Command::Keys(command) => command.run(out),
        }
    }
}
