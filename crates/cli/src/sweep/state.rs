//! `headstack sweep status` and `merge`: how far a sweep is, and its rows as one file.

use crate::failure::Failure;
use crate::sim::JsonOutput;
use crate::units::grouped;
use crate::versioned;
use headstack_sweep::{PartStatus, SweepStatus, merged_table, write_table};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Print how many cells of a sweep have rows, failed or are left, and which parts have begun, from the sweep's folder alone.
#[derive(clap::Args)]
pub(crate) struct SweepState {
    /// The folder of the sweep.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write the state as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl SweepState {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let json = JsonOutput::new(self.json.as_deref())?;
        let status = SweepStatus::read(&self.folder).map_err(Failure::input)?;
        if !json.write(|| self.to_json(&status), out)? {
            print(&status, out)?;
        }
        match status.damaged.len() {
            0 => Ok(()),
            count => Err(Failure::Check(format!(
                "{count} files are damaged, the first is {}; run the sweep again, which repeats their cells",
                status.damaged[0].display()
            ))),
        }
    }

    fn to_json(&self, status: &SweepStatus) -> String {
        let part = |part: &PartStatus| json!({"number": part.number, "of": part.of, "files": part.files, "rows": part.rows});
        versioned::text(&json!({
            "folder": self.folder,
            "title": status.title,
            "cells": status.cells,
            "finished": status.finished,
            "failed": status.failed,
            "left": status.cells - status.finished,
            "until_clear": status.is_until_clear,
            "rows_of_other_definitions": status.of_other_plans,
            "parts": status.parts.iter().map(part).collect::<Vec<_>>(),
            "damaged": status.damaged,
        }))
    }
}

fn print(status: &SweepStatus, out: &mut dyn Write) -> Result<(), Failure> {
    let left = status.cells - status.finished;
    writeln!(
        out,
        "{} cells: {} have rows, {} of them failed, {} left{}",
        grouped(status.cells as u64),
        grouped(status.finished as u64),
        grouped(status.failed as u64),
        grouped(left as u64),
        if left > 0 && status.is_until_clear { " (some may need no run)" } else { "" },
    )?;
    if status.of_other_plans > 0 {
        let rows = grouped(status.of_other_plans as u64);
        writeln!(out, "{rows} rows are of an earlier definition; the sweep reuses those of the same cells")?;
    }
    for part in &status.parts {
        let (files, rows) = (grouped(part.files as u64), grouped(part.rows as u64));
        writeln!(out, "part {} of {}: {rows} rows in {files} files", part.number, part.of)?;
    }
    Ok(())
}

/// Write all rows of a sweep's folder into one Parquet file, in the order of the plan and each once. The folder does not change.
#[derive(clap::Args)]
pub(crate) struct MergeSweep {
    /// The folder of the sweep.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write the rows into this file.
    #[arg(long, value_name = "FILE.parquet")]
    out: PathBuf,
}

impl MergeSweep {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let table = merged_table(&self.folder).map_err(Failure::input)?;
        write_table(&table, &self.out).map_err(Failure::input)?;
        writeln!(out, "{} rows: {}", grouped(table.rows() as u64), self.out.display())?;
        Ok(())
    }
}
