//! `headstack stripe`: which stripe unit suits an array and its load.

mod advise;
mod commands;
mod follow;

use crate::failure::Failure;
use std::io::Write;

/// Choose the stripe unit that suits an array and its load.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Advise(advise::Advise),
    Follow(follow::Follow),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Advise(command) => command.run(out),
            Command::Follow(command) => command.run(out),
        }
    }
}
