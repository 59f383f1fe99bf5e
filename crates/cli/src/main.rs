//! The `headstack` command: parse the arguments, call the library, print or report.
//!
//! Each subcommand is a module with its arguments and a `run` that writes to a given writer. Exit codes: 0 done, 1 a
//! check failed, 2 bad usage or input. Every error is one line.

mod arguments;
mod catalog;
mod compare;
mod completions;
mod demo;
mod doctor;
mod drive;
mod emulate;
mod explore;
mod failure;
mod fault;
mod file_keys;
mod files;
mod interrupt;
mod keys;
mod layout;
mod list;
mod live_page;
mod man;
mod parameters;
mod plain;
mod probe;
mod progress;
mod rearrange;
mod report;
mod reproduce;
mod rig;
mod run;
mod serve;
mod service;
mod signal;
mod sim;
mod stripe;
mod survey;
mod sweep;
mod temporary;
mod top;
mod trace;
mod tune;
mod units;
mod validate;
mod value_parser;
mod versioned;
mod zones;

use clap::{CommandFactory, FromArgMatches, Parser};
use failure::Failure;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Simulate rotating disks: ask what a drive does with a load, and which policy serves it best.
#[derive(Parser)]
#[command(name = "headstack", version, propagate_version = true, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Compare(compare::Compare),
    Completions(completions::CompletionScript),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Drive(drive::Command),
    Emulate(emulate::Emulate),
    Explore(explore::Explore),
    Fault(fault::SetFault),
    Keys(file_keys::FileKeys),
    #[command(subcommand)]
    Layout(layout::Command),
    Man(man::Man),
    Probe(probe::Probe),
    #[command(subcommand)]
    Rearrange(rearrange::RearrangeCommand),
    Reproduce(reproduce::Reproduce),
    #[command(subcommand)]
    Rig(rig::Command),
    Run(run::Run),
    Serve(serve::Serve),
    Sim(sim::Sim),
    #[command(subcommand)]
    Stripe(stripe::Command),
    Sweep(sweep::SweepCommand),
    Top(top::Top),
    #[command(subcommand)]
    Trace(trace::Command),
    Tune(tune::Tune),
    Validate(validate::Validate),
    Zones(zones::ShowZones),
}

impl Command {
    /// Whether a signal ends the command at once. The others report what they have by then, or end what they serve.
    fn ends_at_first_signal(&self) -> bool {
        match self {
            Command::Drive(_)
            | Command::Fault(_)
            | Command::Rig(_)
            | Command::Stripe(_)
            | Command::Trace(_) => true,
            Command::Layout(command) => command.ends_at_first_signal(),
            Command::Rearrange(command) => command.ends_at_first_signal(),
            _ => false,
        }
    }

    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Compare(command) => command.run(out),
            Command::Completions(command) => command.run(Cli::command(), out),
            Command::Demo(command) => command.run(out),
            Command::Doctor(command) => command.run(out),
            Command::Drive(command) => command.run(out),
            Command::Emulate(command) => command.run(out),
            Command::Explore(command) => command.run(out),
            Command::Fault(command) => command.run(out),
            Command::Keys(command) => command.run(out),
            Command::Layout(command) => command.run(out),
            Command::Man(command) => command.run(Cli::command(), out),
            Command::Probe(command) => command.run(out),
            Command::Rearrange(command) => command.run(out),
            Command::Reproduce(command) => command.run(out),
            Command::Rig(command) => command.run(out),
            Command::Run(command) => command.run(out),
            Command::Serve(command) => command.run(out),
            Command::Sim(command) => command.run(out),
            Command::Stripe(command) => command.run(out),
            Command::Sweep(command) => command.run(out),
            Command::Top(command) => command.run(out),
            Command::Trace(command) => command.run(out),
            Command::Tune(command) => command.run(out),
            Command::Validate(command) => command.run(out),
            Command::Zones(command) => command.run(out),
        }
    }
}

fn main() -> ExitCode {
    let command = arguments::with_negative_numbers(Cli::command());
    let (words, json_file) = arguments::take_json_file(&command, std::env::args_os().collect());
    let parsed = command.try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return failure::of_usage(&error),
    };
    signal::survive_file_limit();
    let letters = plain::Letters::shown_by(&io::stdout());
    let mut out = plain::Plain(BufWriter::new(io::stdout().lock()), letters);
    let watched = if cli.command.ends_at_first_signal() { interrupt::end_at_first_signal() } else { Ok(()) };
    let done = watched.and_then(|()| match json_file {
        None => cli.command.run(&mut out),
        Some(path) => files::fill_with(&path, |file| cli.command.run(file)),
    });
    let flushed = out.flush().map_err(Failure::Output);
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
