//! `headstack trace`: statistics, conversion, cuts and plots of traces.

mod convert;
mod cut;
pub(crate) mod formats;
pub(crate) mod input;
mod output;
mod plot;
mod stat;

use crate::failure::Failure;
use std::io::Write;

/// Print the statistics of a trace, convert it, cut a part out, plot it, and list the formats.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Stat(stat::Stat),
    Convert(convert::Convert),
    Cut(cut::Cut),
    Plot(plot::Plot),
    Formats(formats::Formats),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Stat(command) => command.run(out),
            Command::Convert(command) => command.run(),
            Command::Cut(command) => command.run(),
            Command::Plot(command) => command.run(out),
            Command::Formats(command) => command.run(out),
        }
    }
}
