//! `headstack stripe`: which stripe unit suits an array and its load.

mod advise;
mod commands;

use crate::failure::Failure;
use std::io::Write;

/// Ask which stripe unit suits an array and its load.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Advise(advise::Advise),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Advise(command) => command.run(out),
        }
    }
}
