//! `headstack rearrange format`, `status` and `dissolve`: the reserved region on a real disk or in a file.

use crate::failure::Failure;
use crate::units::{capacity, count, grouped, parse_bytes};
use headstack_host::region::{self, RegionError};
use headstack_streams::rearrange_table::{RegionLabel, RegionRequest, RegionState};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Make the reserved region for hot blocks on a block device or in a file. The disk then appears smaller by
/// the region.
///
/// `[disk.rearrange]` in the node file of `headstack serve` uses it. The command refuses a disk that is in use, or that has data where
/// the region would be. If the region is at the end of the disk, the data in front of it stay as they are.
#[derive(clap::Args)]
pub(crate) struct FormatRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
    /// Bytes for copies; usual values are a thousandth to a hundredth of the disk.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    region: u64,
    /// Bytes of a block: a multiple of 4 KiB.
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = parse_bytes)]
    block: u64,
    /// First byte of the region, a multiple of 4 KiB, for an empty disk. Blocks behind it move by its size. [default: the end of the disk]
    #[arg(long, value_name = "BYTE", value_parser = parse_bytes)]
    first: Option<u64>,
    /// Counts of references that survive a restart. [default: four for each block of the region]
    #[arg(long, value_name = "COUNT")]
    counters: Option<u32>,
    /// Overwrite the data in the place of the region.
    #[arg(long)]
    force: bool,
}

/// Describe the reserved region of a disk that no node serves. For a disk that a node serves, use `headstack top` or
/// the metrics.
#[derive(clap::Args)]
pub(crate) struct ShowRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
}

/// Write all copies back to the original places of their blocks, and remove the region. The disk has its full
/// size again.
///
/// If the command is killed, run it again: it continues.
#[derive(clap::Args)]
pub(crate) struct DissolveRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
    /// Remove a region whose table is damaged: data that were written to copies are lost, and the blocks have
    /// older data.
    #[arg(long)]
    discard_copies: bool,
}

fn wrong(disk: &Path, error: RegionError) -> Failure {
    // The text of some errors contains the path already.
    let (text, name) = (error.to_string(), disk.display().to_string());
    Failure::Input(if text.starts_with(&name) { text } else { format!("{name}: {text}") })
}

impl FormatRegion {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let request = RegionRequest {
            id: [0; 16],
            disk_bytes: 0,
            region_bytes: self.region,
            block_bytes: self.block,
            first: self.first,
            counters: self.counters,
        };
        let label =
            region::format(&self.disk, &request, self.force).map_err(|error| wrong(&self.disk, error))?;
        let visible = label.visible_bytes().map_err(|error| wrong(&self.disk, error.into()))?;
        write_place(&self.disk, &label, visible, out)?;
        writeln!(out, "serve it with [disk.rearrange] in the node file")?;
        Ok(())
    }
}

impl ShowRegion {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let status = region::status(&self.disk).map_err(|error| wrong(&self.disk, error))?;
        write_place(&self.disk, &status.label, status.visible_bytes, out)?;
        let state = match status.label.state {
            RegionState::InUse => "in use",
            RegionState::Emptied => "half dissolved: run `headstack rearrange dissolve` again",
        };
        writeln!(out, "state: {state}")?;
        let copies = count(status.copies as usize, "block");
        writeln!(out, "copies: {copies}, {} perhaps newer than their homes", grouped(status.dirty.into()))?;
        writeln!(out, "counts saved: {}", count(status.counted_blocks, "block"))?;
        Ok(())
    }
}

impl DissolveRegion {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let done =
            region::dissolve(&self.disk, self.discard_copies).map_err(|error| wrong(&self.disk, error))?;
        let home = count(done.written_home as usize, "copy").replace("copys", "copies");
        let clean = grouped(done.left_clean.into());
        writeln!(
            out,
            "{}: {home} written home, {clean} equalled their homes; the region is gone",
            self.disk.display()
        )?;
        if self.discard_copies {
            writeln!(out, "{} discarded", count(done.discarded as usize, "copy").replace("copys", "copies"))?;
        }
        Ok(())
    }
}

fn write_place(disk: &Path, label: &RegionLabel, visible: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let RegionLabel { slots, block_bytes, slots_first, .. } = *label;
    writeln!(
        out,
        "{}: {} bytes, of which clients see {} ({})",
        disk.display(),
        grouped(label.disk_bytes),
        grouped(visible),
        capacity(visible)
    )?;
    writeln!(
        out,
        "region: {} of {} bytes from byte {} on; {} for tables, counts and labels",
        count(slots as usize, "block"),
        grouped(block_bytes),
        grouped(slots_first),
        capacity(label.disk_bytes - visible - label.slots_bytes())
    )?;
    Ok(())
}
