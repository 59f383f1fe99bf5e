//! `headstack drive`: list, show, check, make, fit, plot, map and import drive files, their keys, and the classes of firmware.

mod check;
mod firmware;
mod fit;
mod fit_page;
mod import;
mod keys;
mod list;
mod map;
mod new;
pub(crate) mod plot;
mod show;

use crate::failure::Failure;
use std::io::Write;

/// List, show, check, make, fit, map, plot and import drives, and list the classes of firmware and the keys of a drive file.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    New(new::New),
    Fit(fit::DriveFit),
    Map(map::Map),
    Plot(plot::Plot),
    Import(import::Import),
    Firmware(firmware::Firmware),
    Keys(keys::Keys),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::List(command) => command.run(out),
            Command::Show(command) => command.run(out),
            Command::Check(command) => command.run(out),
            Command::New(command) => command.run(out),
            Command::Fit(command) => command.run(out),
            Command::Map(command) => command.run(out),
            Command::Plot(command) => command.run(out),
            Command::Import(command) => command.run(out),
            Command::Firmware(command) => command.run(out),
            Command::Keys(command) => command.run(out),
        }
    }
}
