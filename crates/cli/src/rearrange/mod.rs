//! `headstack rearrange`: what block rearrangement gains on a load, and the reserved region on a real disk.

mod analyze;
mod region;
mod simulate;

use crate::failure::Failure;
use std::io::Write;

/// Copy the hot blocks of a disk next to each other: show the gain, or make and remove the reserved region
/// for the copies.
#[derive(clap::Subcommand)]
pub(crate) enum RearrangeCommand {
    Analyze(analyze::Analyze),
    Simulate(simulate::Simulate),
    Format(region::FormatRegion),
    Status(region::ShowRegion),
    Dissolve(region::DissolveRegion),
}

impl RearrangeCommand {
    /// Whether a signal ends the command at once. A region that is being made or dissolved is then in the state that a crash would leave.
    pub(crate) fn ends_at_first_signal(&self) -> bool {
        !matches!(self, RearrangeCommand::Simulate(_))
    }

    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            RearrangeCommand::Analyze(command) => command.run(out),
            RearrangeCommand::Simulate(command) => command.run(out),
            RearrangeCommand::Format(command) => command.run(out),
            RearrangeCommand::Status(command) => command.run(out),
            RearrangeCommand::Dissolve(command) => command.run(out),
        }
    }
}
