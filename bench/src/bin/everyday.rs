//! The study `everyday` with keys set over those of the drives, to see which value explains which figures: the errors by class of load, and
//! each figure sorted by class and error.
//!
//! ```text
//! cargo run --profile demo -p headstack-bench --bin everyday -- [--full] [--only METRICS] [--set DRIVES:KEY=VALUE]… [--file FILE] [--tsv]
//!
//! everyday                                             all figures, in the short form
//! everyday --only 'hd103uj.*'                          one drive; `*` stands for any text
//! everyday --set 'hd*:queue.order=fcfs'                a key of the drive file, on all drives whose names begin with hd
//! everyday --set '*:cache.dirty_max_sectors=512' --set '*:cache.dirty_start_sectors=256'
//! everyday --file trial.txt                            a file with one `DRIVES:KEY=VALUE` a line; lines that begin with # are skipped
//! everyday --tsv                                       figure, class, measured, ours and error in %, separated by tabs
//! ```
//!
//! Later values win over earlier ones; their order does not matter where one is valid only beside another.

#![allow(clippy::disallowed_methods, reason = "a program with files and threads")]

use clap::Parser;
use headstack::report::Table;
use headstack_studies::everyday::{self, Overrides};
use headstack_studies::study::{Bench, Length, Task};
use std::fs;
use std::io::Read;
use std::process::ExitCode;

/// Run the study `everyday` with other values of keys
#[derive(Parser)]
struct Arguments {
    /// Run as many requests as `headstack reproduce` does, not a quarter of them
    #[arg(long)]
    full: bool,
    /// Measure only figures with such a name; `*` stands for any text
    #[arg(long, default_value = "*", value_name = "METRICS")]
    only: String,
    /// Set a key on drives with such a name; may be repeated
    #[arg(long, value_name = "DRIVES:KEY=VALUE")]
    set: Vec<String>,
    /// Read more of these from a file, one a line
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Print the figures separated by tabs
    #[arg(long)]
    tsv: bool,
}

/// Runs tasks on all processors.
struct Threads;

impl Bench for Threads {
    fn run(&self, tasks: Vec<Task<'_>>) {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let mut shares: Vec<Vec<Task<'_>>> = (0..count).map(|_| Vec::new()).collect();
        for (index, task) in tasks.into_iter().enumerate() {
            shares[index % count].push(task);
        }
        std::thread::scope(|scope| {
            for share in shares {
                scope.spawn(move || share.into_iter().for_each(|task| task()));
            }
        });
    }

    fn open(&self, _: &str) -> Result<Option<Box<dyn Read>>, String> {
        Ok(None)
    }
}

fn overrides(arguments: &Arguments) -> Result<Overrides, String> {
    let mut overrides = Overrides::default();
    if let Some(file) = &arguments.file {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            overrides.add(line)?;
        }
    }
    arguments.set.iter().try_for_each(|set| overrides.add(set))?;
    Ok(overrides)
}

fn print(table: &Table, is_tsv: bool) {
    if is_tsv {
        table.rows.iter().for_each(|row| println!("{}", row.join("\t")));
    } else {
        println!("{}\n\n{}", table.title, table.to_text());
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let length = if arguments.full { Length::Full } else { Length::Quick };
    let done = everyday::reproduce(&overrides(arguments)?, &arguments.only, length, &Threads)
        .map_err(|error| error.to_string())?;
    let tables: Vec<&Table> = done.sections.iter().flat_map(|section| &section.tables).collect();
    let (classes, figures) = (tables[0], tables[1]);
    print(figures, arguments.tsv);
    if !arguments.tsv {
        print(classes, false);
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
