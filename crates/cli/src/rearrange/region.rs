//! `headstack rearrange format`, `status` and `dissolve`: the reserved region on a real disk or in a file.

use crate::failure::Failure;
use crate::units::{capacity, count, grouped, parse_bytes};
use headstack_host::region::{self, RegionError};
use headstack_policy::rearrange_table::{RegionLabel, RegionRequest, RegionState};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reserve a reserved region of hot blocks on a block device or in a file, which then appears smaller.
///
/// `[disk.rearrange]` in the node file of `headstack serve` uses it. A disk that is in use, or holds data where the region would be, is
/// refused. The data before a region at the end of the disk stay as they are.
#[derive(clap::Args)]
pub(crate) struct FormatRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
    /// Bytes of copies: a thousandth to a hundredth of the disk is usual.
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
    /// Overwrite what is where the region will be.
    #[arg(long)]
    force: bool,
}

/// Describe the reserved region of a disk that no node serves. Of a served disk, see `headstack top` and the metrics.
#[derive(clap::Args)]
pub(crate) struct ShowRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
}

/// Write all copies home and remove the region: the disk has its full size again, and all its data at home.
///
/// Killed in between, it continues when it is run again.
#[derive(clap::Args)]
pub(crate) struct DissolveRegion {
    /// A block device, an image, or the data file of an emulated disk.
    #[arg(value_name = "DISK")]
    disk: PathBuf,
    /// Remove the region of a damaged table: what was written to copies is lost, and old data are in its place.
    #[arg(long)]
    discard_copies: bool,
}

fn wrong(disk: &Path, error: RegionError) -> Failure {
    // An error of the system names the path already.
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
