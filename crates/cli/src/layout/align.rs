//! `headstack layout align`: a partition that begins and ends with a track.

use super::partition::{MapArgs, Mapped, Span};
use crate::failure::Failure;
use crate::versioned;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// Bytes left free at either end of a disk for partition tables, their copies and boot loaders.
///
/// *Source:* fdisk and parted begin the first partition at 1 MiB; a GPT takes 33 sectors, as does its copy.
const TABLE_BYTES: u64 = 1 << 20;

/// Print the largest partition that begins and ends with a track.
///
/// It is printed as START,LEN in sectors, as `--partition` of the other commands takes it. Nothing is written to any disk.
#[derive(clap::Args)]
#[command(
    after_help = "Without --partition, 1 MiB is left free at either end of the disk for partition tables."
)]
pub(crate) struct Align {
    #[command(flatten)]
    map: MapArgs,
    /// Number of sectors of which the start must be a multiple, for tools that round it: 8 for blocks of 4 KiB, 2048
    /// for whole MiB. [default: a physical sector of the disk]
    #[arg(long, value_name = "SECTORS", value_parser = clap::value_parser!(u64).range(1..))]
    multiple: Option<u64>,
    /// Print the partition as a line that sfdisk reads.
    #[arg(long)]
    sfdisk: bool,
    /// Print the partition as a command of parted.
    #[arg(long, conflicts_with = "sfdisk")]
    parted: bool,
    /// Print the result as JSON.
    #[arg(long, conflicts_with_all = ["sfdisk", "parted"])]
    json: bool,
}

#[derive(JsonSchema, Serialize)]
struct AlignedPartition {
    start: u64,
    sectors: u64,
    sector_bytes: u64,
    tracks: usize,
    /// Sectors between the start of the allowed span and the partition.
    left_before: u64,
    /// Sectors between the end of the partition and that of the allowed span.
    left_behind: u64,
}

impl Align {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mapped = self.mapped()?;
        let multiple = self.multiple.unwrap_or(mapped.identity.physical_sectors.into());
        let found = aligned(&mapped, multiple).ok_or_else(|| {
            let Span { start, sectors } = mapped.span;
            Failure::Input(format!(
                "no track begins at a multiple of {} and ends within the {sectors} sectors from {start}",
                crate::units::count(multiple as usize, "sector"),
            ))
        })?;
        let Span { start, sectors } = found;
        if self.sfdisk {
            writeln!(out, "start={start}, size={sectors}")?;
        } else if self.parted {
            writeln!(out, "unit s mkpart data {start} {}", start + sectors - 1)?;
        } else if self.json {
            let bytes = u64::from(mapped.identity.sector_bytes);
            let reported = AlignedPartition {
                start,
                sectors,
                sector_bytes: bytes,
                tracks: mapped.map.view(headstack_model::Lbn(start), sectors).iter().count(),
                left_before: start - mapped.span.start,
                left_behind: mapped.span.start + mapped.span.sectors - start - sectors,
            };
            versioned::print(&reported, out)?;
        } else {
            writeln!(out, "{found}")?;
        }
        Ok(())
    }

    /// The map, and the allowed place of the partition.
    fn mapped(&self) -> Result<Mapped, Failure> {
        let mapped = self.map.read()?;
        if self.map.is_part() {
            return Ok(mapped);
        }
        let Span { start, sectors } = mapped.span;
        let table = TABLE_BYTES / u64::from(mapped.identity.sector_bytes);
        match sectors.checked_sub(2 * table) {
            None | Some(0) => {
                Err(Failure::Input("the disk holds no more than its partition tables".to_string()))
            }
            Some(sectors) => mapped.within(Span { start: start + table, sectors }),
        }
    }
}

/// The whole tracks of the span, from the first one that begins at a multiple of `multiple` sectors.
fn aligned(mapped: &Mapped, multiple: u64) -> Option<Span> {
    let view = mapped.view();
    let whole = || view.iter().filter(|track| view.is_whole(track));
    let first = whole().find(|track| (mapped.span.start + track.first.0).is_multiple_of(multiple))?;
    let last = whole().last()?;
    Some(Span { start: mapped.span.start + first.first.0, sectors: last.end() - first.first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_tracks::TrackMap;
    use headstack_tracks::map::Identity;

    #[test]
    fn aligned_partition_begins_and_ends_on_track_boundaries() {
        let mut map = TrackMap::new();
        map.push(30, 10);
        let mapped =
            Mapped { identity: Identity::new(300, 512), map, span: Span { start: 10, sectors: 250 } };
        assert_eq!(aligned(&mapped, 1), Some(Span { start: 30, sectors: 210 }));
        assert_eq!(aligned(&mapped, 8), Some(Span { start: 120, sectors: 120 }));
        assert_eq!(aligned(&mapped, 2048), None);
    }

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<AlignedPartition>("layout align");
    }
}
