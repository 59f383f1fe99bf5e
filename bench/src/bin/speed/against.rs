//! Compares two builds of this program row by row. Their runs alternate, so that other load of the machine affects both equally.

use crate::Run;
use crate::rows::Row;
use std::path::Path;
use std::process::Command;

/// Runs each row `rounds` times by this build and by `other`, and prints medians, spreads and the ratio of the medians.
///
/// *Errors:* `other` does not run, or has no such row.
pub(crate) fn compare(rows: &[Row], other: &Path, rounds: u32) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    println!("load\trequests_per_cpu_s\tlowest\thighest\tother_requests_per_cpu_s\tlowest\thighest\tratio");
    for row in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(run_by(&own, row)?.rate());
            theirs.push(run_by(other, row)?.rate());
        }
        let (ours, theirs) = (Spread::of(ours), Spread::of(theirs));
        println!("{}\t{ours}\t{theirs}\t{:.3}", row.name, ours.median / theirs.median);
    }
    Ok(())
}

fn run_by(program: &Path, row: &Row) -> Result<Run, String> {
    let name = program.display();
    let output = Command::new(program)
        .args(["--only", &row.name])
        .output()
        .map_err(|error| format!("{name} does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let parse = || {
        let (requests, cpu_s) = text.trim().split_once('\t')?;
        Some(Run { requests: requests.parse().ok()?, cpu_s: cpu_s.parse().ok()? })
    };
    parse().ok_or_else(|| {
        format!(
            "{name} has no row `{}`; build the other commit with this commit's bench/ (scripts/build-speed)",
            row.name
        )
    })
}

/// The median, the lowest and the highest of several rates.
struct Spread {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Spread {
    /// The spread of at least one rate. The median of an even number of rates is the lower of the two in the middle.
    fn of(mut rates: Vec<f64>) -> Spread {
        rates.sort_by(f64::total_cmp);
        Spread { median: rates[(rates.len() - 1) / 2], lowest: rates[0], highest: rates[rates.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}\t{:.0}\t{:.0}", self.median, self.lowest, self.highest)
    }
}
