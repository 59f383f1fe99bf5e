//! `headstack sweep`: many runs from one definition, as rows of Parquet files.

mod state;

use self::state::{MergeSweep, SweepState};
use crate::failure::Failure;
use crate::files::{self, SystemFiles};
use crate::interrupt::Interrupt;
use crate::sim::JsonOutput;
use crate::units::grouped;
use crate::versioned;
use headstack_sweep::{MODEL_VERSION, SweepFile, SweepPart, SweepPlan, SweepRun, SweepSummary};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Failed cells that are printed; the column `error` has all.
const FAILED_SHOWN: usize = 5;

/// Run every rig with every load, setting and seed of a sweep file, and write a row of figures for each into Parquet files. Finished
/// runs are not repeated: the same command continues a sweep that was stopped.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepCommand {
    #[command(subcommand)]
    of_folder: Option<FolderCommand>,
    /// The sweep file.
    #[arg(value_name = "FILE.toml", required = true)]
    file: Option<String>,
    /// Write the rows into this folder; it is created if absent.
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Run only part I of N, counted from 1, for example as one job of an array of batch jobs. All parts
    /// write to the same folder.
    #[arg(long, value_name = "I/N", value_parser = part)]
    part: Option<SweepPart>,
    /// Write the summary as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What is done with the folder of a sweep.
#[derive(clap::Subcommand)]
enum FolderCommand {
    Status(SweepState),
    Merge(MergeSweep),
}

fn part(text: &str) -> Result<SweepPart, String> {
    text.parse().map_err(|_| "must be I/N with I from 1 to N, such as 3/16".to_string())
}

impl SweepCommand {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match &self.of_folder {
            Some(FolderCommand::Status(command)) => return command.run(out),
            Some(FolderCommand::Merge(command)) => return command.run(out),
            None => {}
        }
        let (file, folder) = (self.file.as_deref(), self.out.as_deref());
        self.run_cells(file.unwrap_or_default(), folder.unwrap_or(Path::new("")), out)
    }

    fn run_cells(&self, name: &str, folder: &Path, out: &mut dyn Write) -> Result<(), Failure> {
        files::check_apart(&[Path::new(name)], &[("--json", self.json.as_deref())])?;
        let text = files::read_text(Path::new(name))?;
        let file = SweepFile::parse(&text, name).map_err(Failure::input)?;
        let json = JsonOutput::new(self.json.as_deref())?;
        let interrupt = Interrupt::watch()?;
        let plan = SweepPlan::new(&file, name, MODEL_VERSION, &SystemFiles).map_err(Failure::input)?;
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        bar.set_style(crate::progress::style("{bar:30} {pos}/{len} cells, {elapsed}"));
        let progress = |done: usize, of: usize| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        };
        let stops = || interrupt.received().is_some();
        let run = SweepRun::new(&plan, folder, &SystemFiles).stop_if(&stops).report(&progress);
        let run = self.part.into_iter().fold(run, SweepRun::part);
        let ended = run.run();
        bar.finish_and_clear();
        let summary = ended.map_err(Failure::input)?;
        if !json.write(|| self.to_json(&plan, folder, &summary), out)? {
            self.print(folder, &summary, out)?;
        }
        match interrupt.received().filter(|_| summary.is_stopped) {
            Some(signal) => Err(Failure::Stopped(signal)),
            None => verdict(&summary),
        }
    }

    fn print(&self, folder: &Path, summary: &SweepSummary, out: &mut dyn Write) -> Result<(), Failure> {
        let part = self.part.map_or(String::new(), |part| format!("part {} of {}: ", part.number, part.of));
        writeln!(
            out,
            "{part}{} cells: {} run now, {} had rows, {} failed",
            grouped(summary.cells as u64),
            grouped(summary.ran as u64),
            grouped(summary.reused as u64),
            grouped(summary.failed.len() as u64),
        )?;
        if summary.unneeded > 0 {
            writeln!(
                out,
                "{} cells are not needed: the difference of their settings is clear with fewer seeds",
                grouped(summary.unneeded as u64)
            )?;
        }
        if summary.is_stopped {
            let left = summary.cells - summary.ran - summary.reused;
            writeln!(out, "{} cells are left; the same command runs them", grouped(left as u64))?;
        }
        for (label, error) in summary.failed.iter().take(FAILED_SHOWN) {
            writeln!(out, "failed: {label}: {error}")?;
        }
        for path in &summary.damaged {
            let path = path.display();
            writeln!(out, "damaged: {path}: its cells were run again; it is now {path}.damaged")?;
        }
        writeln!(out, "rows: {}", folder.join("parts").display())?;
        Ok(())
    }

    fn to_json(&self, plan: &SweepPlan, folder: &Path, summary: &SweepSummary) -> String {
        let failed = summary.failed.iter().map(|(cell, error)| json!({"cell": cell, "error": error}));
        versioned::text(&json!({
            "model_version": plan.model_version(),
            "folder": folder,
            "part": self.part.map(|part| json!({"number": part.number, "of": part.of})),
            "cells": summary.cells,
            "ran": summary.ran,
            "reused": summary.reused,
            "unneeded": summary.unneeded,
            "left": summary.cells - summary.ran - summary.reused - summary.unneeded,
            "failed": failed.collect::<Vec<_>>(),
            "damaged": summary.damaged,
        }))
    }
}

/// Fails if a cell failed.
fn verdict(summary: &SweepSummary) -> Result<(), Failure> {
    match summary.failed.first() {
        None => Ok(()),
        Some((label, error)) => Err(Failure::Check(format!(
            "{} of {} cells failed, and their rows have the reason in the column `error`; the first is {label}: {error}",
            summary.failed.len(),
            summary.cells
        ))),
    }
}
