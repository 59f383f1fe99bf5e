//! A track map and the part of its disk that data are laid on, as arguments.

use crate::failure::Failure;
use crate::files;
use headstack_model::Lbn;
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity, View};
use std::path::PathBuf;
use std::str::FromStr;

/// A map, and a partition of its disk.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct MapArgs {
    /// The track map of the disk, as `headstack probe --map` writes it.
    #[arg(value_name = "MAP")]
    map: PathBuf,
    /// Where the partition begins and how long it is, in sectors of the disk. [default: the whole disk]
    #[arg(long, value_name = "START,LEN")]
    partition: Option<Span>,
}

/// Sectors of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first.
    pub(super) start: u64,
    /// How many.
    pub(super) sectors: u64,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let (start, sectors) = text.split_once(',').ok_or("must be START,LEN in sectors")?;
        let number = |text: &str| text.trim().parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
        match (number(start)?, number(sectors)?) {
            (_, 0) => Err("the length must be 1 sector at least".to_string()),
            (start, sectors) => Ok(Span { start, sectors }),
        }
    }
}

/// A map that was read, and the partition that was asked for.
pub(super) struct Mapped {
    /// The disk of the map.
    pub(super) identity: Identity,
    pub(super) map: TrackMap,
    pub(super) span: Span,
}

impl Mapped {
    /// The tracks as the partition sees them.
    pub(super) fn view(&self) -> View<'_> {
        self.map.view(Lbn(self.span.start), self.span.sectors)
    }
}

impl MapArgs {
    /// Reads the map.
    ///
    /// *Errors:* it is none, or the partition reaches beyond it.
    pub(super) fn read(&self) -> Result<Mapped, Failure> {
        let place = self.map.display().to_string();
        let (identity, map) =
            map::read(&mut files::open(&self.map)?).map_err(|error| Failure::input(error).within(&place))?;
        let whole = Span { start: 0, sectors: map.end().0 };
        let span = self.partition.unwrap_or(whole);
        if span.start.checked_add(span.sectors).is_none_or(|end| end > map.end().0) {
            let Span { start, sectors } = span;
            let end = map.end();
            return Err(Failure::Input(format!(
                "--partition {start},{sectors} reaches beyond {place}, whose tracks end at sector {end}"
            )));
        }
        Ok(Mapped { identity, map, span })
    }
}
