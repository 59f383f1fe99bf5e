//! `headstack layout align`: a partition that begins and ends with a track.

use super::partition::{MapArgs, Mapped, Span};
use crate::failure::Failure;
use std::io::Write;

/// Print the largest partition within a span that begins and ends with a track.
#[derive(clap::Args)]
pub(crate) struct Align {
    #[command(flatten)]
    map: MapArgs,
    /// Sectors that the start must be a multiple of, for tools that round: 8 for blocks of 4 KiB, 2048 for whole MiB.
    /// [default: a physical sector of the disk]
    #[arg(long, value_name = "SECTORS", value_parser = clap::value_parser!(u64).range(1..))]
    multiple: Option<u64>,
}

impl Align {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mapped = self.map.read()?;
        let multiple = self.multiple.unwrap_or(mapped.identity.physical_sectors.into());
        let Span { start, sectors } = aligned(&mapped, multiple).ok_or_else(|| {
            Failure::Input(format!("no track of the span begins at a multiple of {multiple} sectors"))
        })?;
        writeln!(out, "{start},{sectors}")?;
        Ok(())
    }
}

/// Whole tracks of the span, from the first that begins at a multiple of so many sectors.
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
    fn does_the_partition_begin_and_end_with_a_track() {
        let mut map = TrackMap::new();
        map.push(30, 10);
        let mapped =
            Mapped { identity: Identity::new(300, 512), map, span: Span { start: 10, sectors: 250 } };
        assert_eq!(aligned(&mapped, 1), Some(Span { start: 30, sectors: 210 }));
        assert_eq!(aligned(&mapped, 8), Some(Span { start: 120, sectors: 120 }));
        assert_eq!(aligned(&mapped, 2048), None);
    }
}
