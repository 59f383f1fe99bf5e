//! `headstack layout hints`: options for file systems that align to one constant length.

use super::partition::{MapArgs, Mapped};
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{grouped, memory, parse_bytes, significant};
use crate::versioned;
use headstack_tracks::unit::{self, Fit};
use serde_json::{Value, json};
use std::io::Write;

/// Suggest options of file systems that align to one length, and print how many tracks that length fits.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Xfs(Xfs),
}

impl Command {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Command::Xfs(command) => command.run(out),
        }
    }
}

/// Suggest a stripe unit, an extent size and a preallocation for XFS.
///
/// XFS begins files, allocation groups and hinted extents at multiples of one length from the start of the partition; it cannot follow
/// tracks of many lengths. Of the multiples of a block up to the longest track, the command chooses the one at which requests of that
/// size, which begin at multiples of it, cross the fewest boundaries.
#[derive(clap::Args)]
#[command(
    after_help = "A partition that begins with a track (`headstack layout align`) has the most to gain."
)]
pub(crate) struct Xfs {
    #[command(flatten)]
    map: MapArgs,
    /// Size of a block of the file system.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4096")]
    block: u64,
    /// Evaluate this unit instead of choosing one.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    unit: Option<u64>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Minimum share of avoided boundaries at which hints are worth their cost in space and mount options.
const WORTH: f64 = 0.1;
/// Maximum of the mount option `allocsize`. *Source:* xfs(5): powers of two from the page size to 1 GiB.
const ALLOCSIZE_MOST: u64 = 1 << 30;
/// Block sizes of XFS. *Source:* mkfs.xfs(8).
const BLOCKS: std::ops::RangeInclusive<u64> = 512..=65536;
/// The stripe unit of the log that mkfs.xfs uses in place of one above 256 KiB. *Source:* mkfs.xfs(8).
const LOG_UNIT: u64 = 32 << 10;
/// Default block size of mkfs.xfs.
const USUAL_BLOCK: u64 = 4096;

impl Xfs {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mapped = self.map.read()?;
        let step = self.step(&mapped)?;
        let shown = self.shown(&mapped, step)?;
        if self.json {
            versioned::print(&to_json(&mapped, &shown), out)?
        } else {
            write!(out, "{}", to_text(&mapped, &shown, self.block))?
        }
        Ok(())
    }

    fn step(&self, mapped: &Mapped) -> Result<u64, Failure> {
        let sector = u64::from(mapped.identity.sector_bytes);
        if !self.block.is_power_of_two()
            || !BLOCKS.contains(&self.block)
            || !self.block.is_multiple_of(sector)
        {
            return Err(Failure::Input(format!(
                "--block {}: XFS has blocks of a power of two from {} to {} bytes, at least a sector of {sector}",
                self.block,
                BLOCKS.start(),
                BLOCKS.end()
            )));
        }
        Ok(self.block / sector)
    }

    /// The unit of `--unit` alone; or else the suggested unit and up to three shorter ones, each the best of at most half the length of the last.
    fn shown(&self, mapped: &Mapped, step: u64) -> Result<Vec<Fit>, Failure> {
        let view = mapped.view();
        if let Some(unit) = self.unit {
            let sector = u64::from(mapped.identity.sector_bytes);
            let unit = if unit.is_multiple_of(self.block) && unit / sector <= view.sectors() {
                unit / sector
            } else {
                return Err(Failure::Input(format!(
                    "--unit {unit}: must be whole blocks of {} bytes, and no longer than the partition",
                    self.block
                )));
            };
            return Ok(vec![Fit::measure(&view, unit)]);
        }
        let mut shown: Vec<Fit> = Vec::new();
        let mut most = unit::longest_track(&view);
        while shown.len() < 4 {
            let Some(fit) = unit::best(&view, step, most) else { break };
            most = fit.unit / 2;
            shown.push(fit);
        }
        if shown.is_empty() {
            Err(Failure::Input(format!("no track of the partition holds a block of {} bytes", self.block)))
        } else {
            Ok(shown)
        }
    }
}

/// The smallest power of two, from 64 KiB on, that holds a unit: the value of `allocsize`.
fn allocsize(unit_bytes: u64) -> u64 {
    unit_bytes.next_power_of_two().clamp(64 << 10, ALLOCSIZE_MOST)
}

fn commands(bytes: u64, block: u64) -> [(&'static str, String); 3] {
    let log = if bytes > 256 << 10 { format!(" -l su={}", LOG_UNIT.max(block)) } else { String::new() };
    let size = if block == USUAL_BLOCK { String::new() } else { format!(" -b size={block}") };
    [
        ("make it", format!("mkfs.xfs{size} -d su={bytes},sw=1{log} DEVICE")),
        ("mount it", format!("mount -o allocsize={},swalloc DEVICE FOLDER", allocsize(bytes))),
        ("in folders of large files", format!("xfs_io -c 'extsize {bytes}' FOLDER")),
    ]
}

fn to_text(mapped: &Mapped, shown: &[Fit], block: u64) -> String {
    let best = shown[0];
    let sector = u64::from(mapped.identity.sector_bytes);
    let mut table = Table::new(
        "units",
        &["unit", "tracks it fits", "boundaries avoided", "crossings a request", "at any place"],
    );
    let percent = |share: f64| format!("{} %", significant(100.0 * share, 3));
    for fit in shown {
        table.row([
            memory(fit.unit * sector),
            percent(fit.share_fit()),
            percent(fit.share_avoided()),
            significant(fit.crossed(), 3),
            significant(fit.crossed_anywhere(), 3),
        ]);
    }
    let mut text = format!("partition  {}\n\n{}\n", mapped.span, table.to_text());
    text += &format!(
        "One length fits {} of {} tracks; requests that begin at multiples of it still cross {} of {} boundaries.\n",
        grouped(best.tracks_fit),
        grouped(best.tracks),
        grouped(best.boundaries - best.avoided),
        grouped(best.boundaries),
    );
    if best.share_avoided() < WORTH {
        text += "That is too little to be worth it: take another file system for data that are to keep to tracks.\n";
    }
    if !unit::begins_a_track(&mapped.view()) {
        text += "The partition does not begin with a track; `headstack layout align` finds one that does.\n";
    }
    text.push('\n');
    for (what, command) in commands(best.unit * sector, block) {
        text += &format!("{what}:\n  {command}\n");
    }
    text
}

fn to_json(mapped: &Mapped, shown: &[Fit]) -> Value {
    let sector = u64::from(mapped.identity.sector_bytes);
    let unit = shown[0].unit * sector;
    let fits = shown.iter().map(|fit| {
        json!({
            "unit_bytes": fit.unit * sector,
            "tracks": fit.tracks,
            "tracks_fit": fit.tracks_fit,
            "boundaries": fit.boundaries,
            "boundaries_avoided": fit.avoided,
            "crossings_a_request": fit.crossed(),
            "crossings_a_request_anywhere": fit.crossed_anywhere(),
        })
    });
    json!({
        "partition": mapped.span,
        "begins_a_track": unit::begins_a_track(&mapped.view()),
        "su": unit,
        "sw": 1,
        "extsize": unit,
        "allocsize": allocsize(unit),
        "is_worth_it": shown[0].share_avoided() >= WORTH,
        "units": fits.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preallocation_is_a_size_that_xfs_accepts() {
        for (unit, expected) in
            [(4096, 65536), (270_336, 524_288), (1 << 20, 1 << 20), ((1 << 30) + 1, 1 << 30)]
        {
            assert_eq!(allocsize(unit), expected);
        }
    }
}
