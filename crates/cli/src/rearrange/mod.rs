//! `headstack rearrange`: what block rearrangement gains on a load.

mod analyze;
mod simulate;

use crate::failure::Failure;
use std::io::Write;

/// Show what copying the hot blocks of a disk together gains.
#[derive(clap::Subcommand)]
pub(crate) enum RearrangeCommand {
    Analyze(analyze::Analyze),
    Simulate(simulate::Simulate),
}

impl RearrangeCommand {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            RearrangeCommand::Analyze(command) => command.run(out),
            RearrangeCommand::Simulate(command) => command.run(out),
        }
    }
}
