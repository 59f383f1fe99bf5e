//! Recomputes the generated tables of `docs/evidence.md`: `make evidence`.
//!
//! A table stands between two comments, `<!-- evidence: NAME -->` and `<!-- end of evidence -->`, and ends with the commit, the date and the
//! machine of the run. The figures that this program computes contain no times of the machine, and are the same on every machine. It copies
//! the table of speed from the newest record in `bench/runs`.

mod page;
#[path = "../../stamp.rs"]
mod stamp;
mod tables;

use clap::Parser;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use tables::{EvidenceTable, TABLES};

/// Regenerate the tables of a page
#[derive(Parser)]
struct Args {
    /// The page
    #[arg(long, value_name = "FILE", default_value = "docs/evidence.md")]
    page: PathBuf,
    #[command(flatten)]
    inputs: Inputs,
    /// Write only the tables whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Files that are not part of the repository. Without them the tables that need them stay as they are
#[derive(clap::Args, Default)]
struct Inputs {
    /// The traces of real drives
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// The synthetic loads with DiskSim's response times
    #[arg(long, value_name = "FOLDER")]
    oracle: Option<PathBuf>,
    /// The folder with DiskSim's parameter files, in `rigs` and `specs`
    #[arg(long, value_name = "FOLDER")]
    disksim: Option<PathBuf>,
}

#[allow(clippy::disallowed_methods, reason = "the program edits a page")]
fn write_tables(args: &Args) -> Result<(), String> {
    let place = args.page.display();
    let mut text = fs::read_to_string(&args.page).map_err(|error| format!("{place}: {error}"))?;
    let run = stamp::stamp().map_err(|error| format!("git or date: {error}"))?;
    for (name, generate) in TABLES.iter().filter(|(name, _)| name.contains(&args.only)) {
        match generate(&args.inputs)? {
            Some(EvidenceTable { table, record }) => {
                let stamp = record.unwrap_or_else(|| format!("*{run}.*"));
                text = page::with_table(&text, name, &format!("{table}\n{stamp}\n"))?;
                println!("{name}: written");
            }
            None => println!("{name}: left as it is, since the folder of its input was not given"),
        }
    }
    fs::write(&args.page, text).map_err(|error| format!("{place}: {error}"))
}

fn main() -> ExitCode {
    match write_tables(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evidence: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test reads the page and the reference data")]
    fn evidence_page_has_the_tables_that_the_models_give_now() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evidence.md");
        let text = fs::read_to_string(page).expect("the page exists");
        let folder = |name| headstack_prerequisites::reference_data(name);
        let inputs = Inputs {
            traces: folder("disksim/traces"),
            oracle: folder("disksim/oracle"),
            disksim: folder("disksim"),
        };
        for (name, generate) in TABLES {
            let Some(evidence) = generate(&inputs).expect("the drives are shipped") else { continue };
            let table = evidence.table;
            let written = page::table(&text, name).unwrap_or_else(|error| panic!("{error}"));
            assert!(written.starts_with(&table), "{name}: run `make evidence`\n{written}\n{table}");
        }
    }
}
