//! The requests that the simulator serves per CPU second, compared with DiskSim 4.0 on the same loads, and with another build of this program.
//!
//! `make speed` runs it; `bench/runs/` keeps its output. The first line names commit, date and machine. DiskSim was measured on a machine of
//! the same kind. It served 140 thousand open random 4 KiB requests per CPU second, 34 thousand of 100 sequential 64 KiB streams with the
//! queue in the driver, and 34, 19 and 10 thousand with SPTF at depths 64, 128 and 256.

mod against;
mod rows;
#[path = "../../stamp.rs"]
mod stamp;

use clap::Parser;
use cpu_time::ProcessTime;
use headstack_sim::{Device, Engine};
use rows::Row;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure how many requests the simulator serves in a CPU second
#[derive(Parser)]
struct Args {
    /// Run only rows whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    row: String,
    /// Run each row here and by another build of this program in turns, and print the ratio of the two
    #[arg(long, value_name = "BINARY")]
    against: Option<PathBuf>,
    /// Runs of each build a row
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print the requests and CPU seconds of one row, of exactly this name, and nothing else
    #[arg(long, value_name = "NAME", hide = true)]
    only: Option<String>,
}

/// Requests served, and the CPU seconds that they took.
struct Run {
    requests: u64,
    cpu_s: f64,
}

impl Run {
    fn rate(&self) -> f64 {
        self.requests as f64 / self.cpu_s
    }
}

fn run(row: &Row) -> Run {
    let (spec, mut load) = row.build();
    let device = Device::new(&spec, &row.options).expect("a shipped drive works");
    let mut engine = Engine::new(vec![device]);
    let mut requests = 0u64;
    let start = ProcessTime::now();
    engine.run(load.as_mut(), &mut |_| requests += 1);
    Run { requests, cpu_s: start.elapsed().as_secs_f64() }
}

fn print_beside_disksim(rows: &[Row]) {
    println!("# {}", stamp::stamp().unwrap_or_else(|error| format!("of an unknown commit: {error}")));
    println!("load\trequests\tcpu_s\trequests_per_cpu_s\tdisksim_requests_per_cpu_s\tratio");
    for row in rows {
        let result = run(row);
        let rate = result.rate();
        let (theirs, ratio) = row.disksim.map_or(("-".to_string(), "-".to_string()), |theirs| {
            (format!("{theirs:.0}"), format!("{:.1}", rate / theirs))
        });
        let Run { requests, cpu_s } = result;
        println!("{}\t{requests}\t{cpu_s:.3}\t{rate:.0}\t{theirs}\t{ratio}", row.name);
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut rows = rows::all();
    rows.retain(|row| match &args.only {
        Some(name) => row.name == *name,
        None => row.name.contains(&args.row),
    });
    match (&args.only, &args.against) {
        (Some(_), _) => {
            rows.iter().map(run).for_each(|run| println!("{}\t{}", run.requests, run.cpu_s));
        }
        (None, Some(other)) => {
            if let Err(failure) = against::compare(&rows, other, args.rounds) {
                eprintln!("speed: {failure}");
                return ExitCode::from(2);
            }
        }
        (None, None) => print_beside_disksim(&rows),
    }
    ExitCode::SUCCESS
}
