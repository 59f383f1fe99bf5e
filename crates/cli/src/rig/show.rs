//! `headstack rig show`.

use super::load;
use crate::failure::Failure;
use crate::report::Table;
use crate::sim::setup;
use crate::units::{capacity, grouped};
use headstack_sim::rig::{Rig, RigSpec};
use headstack_workload::VolumeInfo;
use std::io::Write;

/// Show a rig: its volumes, or all keys, including those of its presets.
#[derive(clap::Args)]
pub(crate) struct Show {
    /// A shipped rig, a shipped drive or a file of either.
    #[arg(value_name = "NAME|FILE")]
    rig: String,
    /// Override a key of the rig file: drive.order=sptf, drive.queue_depth=32. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the whole rig as TOML, as a rig file that needs no other file.
    #[arg(long)]
    toml: bool,
    /// Print the whole rig as JSON, as results contain it.
    #[arg(long, conflicts_with = "toml")]
    json: bool,
}

impl Show {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rig = load::load(&self.rig)?;
        setup::set_all(&mut rig, &self.set)?;
        if self.toml {
            write!(out, "{}", rig.to_toml())?;
        } else if self.json {
            let text =
                serde_json::to_string_pretty(rig.resolved()).expect("every rig is expressible in JSON");
            writeln!(out, "{text}")?;
        } else {
            print(&rig, out)?;
        }
        Ok(())
    }
}

fn print(rig: &Rig, out: &mut dyn Write) -> Result<(), Failure> {
    let resolved = rig.resolved();
    let title = if resolved.title.is_empty() { rig.origin() } else { &resolved.title };
    let mut table =
        Table::new(title, &["volume", "drive", "order", "depth", "sectors", "capacity"]).with_words(3);
    let drives: Vec<_> = resolved.drives().collect();
    for volume in rig.volumes() {
        let drive = drives.iter().find(|drive| drive.name == volume.name).map(|drive| drive.spec);
        table.row([
            volume.name.clone(),
            drive.map_or_else(|| organisation(resolved, &volume.name), |spec| spec.name.clone()),
            drive.map_or(String::new(), |spec| spec.queue.order.clone()),
            drive.map_or(String::new(), |spec| spec.queue.depth.to_string()),
            grouped(volume.sectors),
            capacity(volume.bytes()),
        ]);
    }
    write!(out, "{title}\n\n{}", table.to_text())?;
    rig.volumes().iter().try_for_each(|volume| print_ranges(rig, volume, out))?;
    let parts = [
        ("bus", resolved.bus.len()),
        ("controller", resolved.controller.len()),
        ("array", resolved.array.len()),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    if !parts.is_empty() {
        writeln!(out, "\n{}", parts.join(", "))?;
    }
    Ok(())
}

/// Prints the ranges that a disk with several arms reports for them; nothing for a disk with a single arm.
fn print_ranges(rig: &Rig, volume: &VolumeInfo, out: &mut dyn Write) -> Result<(), Failure> {
    let ranges = rig.access_ranges(volume);
    if ranges.len() < 2 {
        return Ok(());
    }
    let title =
        format!("Concurrent positioning ranges of {} (ATA log page 47h, SCSI VPD page B9h)", volume.name);
    let mut table = Table::new(&title, &["range", "storage elements", "lowest LBA", "LBAs"]);
    for (number, range) in ranges.iter().enumerate() {
        let (first, count) = (range.start.0, range.end - range.start);
        table.row([number.to_string(), "1".to_string(), grouped(first), grouped(count)]);
    }
    write!(out, "\n{title}\n\n{}", table.to_text())?;
    Ok(())
}

fn organisation(rig: &RigSpec, name: &str) -> String {
    let array = rig.array.iter().find(|array| array.name == name);
    array.map_or(String::new(), |array| array.organisation.to_string())
}
