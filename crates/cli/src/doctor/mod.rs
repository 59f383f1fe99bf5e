//! `headstack doctor`: which features of the system work, what they are for, and how to get the others.

mod checks;
mod system;

use crate::failure::Failure;
use crate::report::Table;
use crate::versioned;
use checks::SystemCheck;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use system::SystemState;

/// Check which features of this system Headstack can use, print what it uses each for, and how to get the
/// missing ones.
///
/// Tries FUSE, io_uring and real-time priority, and looks for access to block devices, modules of the kernel, the clock and other
/// programs. Simulations need none of them. The command changes nothing, and its exit code is 0 even if something is missing.
#[derive(clap::Args)]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(JsonSchema, Serialize)]
struct SystemChecks {
    checks: Vec<SystemCheck>,
}

impl Doctor {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let checks = checks::all(&SystemState::read());
        if self.json {
            return versioned::print(&SystemChecks { checks }, out);
        }
        print(&checks, out)
    }
}

fn print(checks: &[SystemCheck], out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new("", &["", "", "found", "used by"]);
    table.words = 4;
    for check in checks {
        let row = [check.state.word(), check.name, &check.found, check.used_by];
        table.row(row.map(str::to_string));
    }
    write!(out, "{}", table.to_text())?;
    for check in checks {
        if let Some(remedy) = &check.remedy {
            writeln!(out, "\n{}: {}\n  {remedy}", check.name, check.consequence)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<SystemChecks>("doctor");
    }
}
