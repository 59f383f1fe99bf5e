//! Command-line arguments for a track map, and for the partition of its disk that holds the data.

use crate::failure::Failure;
use crate::files;
use headstack_host::sysfs::{DeviceLocation, LocationError};
use headstack_model::Lbn;
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity, View};
use headstack_tracks::relocate::BlockTracks;
use rustix::fs::FileType;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A map, and a partition of its disk.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct MapArgs {
    /// The track map of the disk, as `headstack probe --map` writes it.
    #[arg(value_name = "MAP")]
    pub(super) map: PathBuf,
    /// Where the partition begins and how long it is, in sectors of the disk. [default: the place of the named device on
    /// its disk, or the whole disk]
    #[arg(long, value_name = "START,LEN")]
    partition: Option<Span>,
}

/// Sectors of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub(super) struct Span {
    pub(super) start: u64,
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

impl From<Range<Lbn>> for Span {
    fn from(sectors: Range<Lbn>) -> Span {
        Span { start: sectors.start.0, sectors: sectors.end - sectors.start }
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.start, self.sectors)
    }
}

pub(super) struct Mapped {
    pub(super) identity: Identity,
    pub(super) map: TrackMap,
    pub(super) span: Span,
}

impl Mapped {
    /// Reads a map, with its whole disk as the span.
    ///
    /// *Errors:* it is no map, or one without tracks.
    pub(super) fn whole(path: &Path) -> Result<Mapped, Failure> {
        let read = map::read(&mut files::open(path)?);
        let (identity, map) =
            read.map_err(|error| Failure::input(error).within(&path.display().to_string()))?;
        let span = Span { start: 0, sectors: map.end().0 };
        if span.sectors == 0 {
            return Err(Failure::Input(format!("{}: a map of no tracks", path.display())));
        }
        Ok(Mapped { identity, map, span })
    }

    /// Restricts the map to a part of its disk.
    ///
    /// *Errors:* the part reaches beyond the tracks of the map.
    pub(super) fn within(self, span: Span) -> Result<Mapped, Failure> {
        let end = self.map.end();
        if span.start.checked_add(span.sectors).is_none_or(|last| last > end.0) {
            return Err(Failure::Input(format!("reaches beyond the map, whose tracks end at sector {end}")));
        }
        Ok(Mapped { span, ..self })
    }

    /// The map, restricted to the partition with a file's file system; and the source of the partition's position.
    ///
    /// *Errors:* the file cannot be opened, or its device's location on the disk of the map is unknown and not given.
    pub(super) fn around(self, path: &Path, partition: Option<Span>) -> Result<(Mapped, String), Failure> {
        if let Some(span) = partition {
            let mapped =
                self.within(span).map_err(|failure| failure.within(&format!("--partition {span}")))?;
            return Ok((mapped, "as given".to_string()));
        }
        let unknown = |reported: &dyn Display| {
            Failure::Input(format!("{}: {reported}; give --partition START,LEN", path.display()))
        };
        let device = rustix::fs::fstat(files::open(path)?).map_err(|error| unknown(&error))?.st_dev;
        let found = match DeviceLocation::find(device) {
            Err(LocationError::NoDevice) => {
                return Err(unknown(&"its file system names no block device of its own"));
            }
            found => found.map_err(|reported| unknown(&reported))?,
        };
        let span = match found.on(&self.identity) {
            Err(
                reported @ (LocationError::OtherSize { .. }
                | LocationError::WithinSector { .. }
                | LocationError::Foreign(_)),
            ) => {
                return Err(Failure::input(reported));
            }
            span => span.map_err(|reported| unknown(&reported))?.into(),
        };
        let mapped = self.within(span).map_err(|failure| failure.within(found.name()))?;
        Ok((mapped, format!("{}, as the system tells", found.name())))
    }

    pub(super) fn outside(&self, extent: &Range<Lbn>) -> String {
        let Range { start, end } = extent;
        let sectors = self.span.sectors;
        format!("lies on sectors {start} to {end} of a partition of {sectors}: not this one, or not this map")
    }

    /// The tracks of the partition, in blocks of a file system.
    ///
    /// *Errors:* a block is not a whole number of sectors.
    pub(super) fn block_tracks(&self, block_bytes: u64) -> Result<BlockTracks<'_>, Failure> {
        BlockTracks::new(self.view(), block_bytes, self.identity.sector_bytes).map_err(Failure::input)
    }

    pub(super) fn view(&self) -> View<'_> {
        self.map.view(Lbn(self.span.start), self.span.sectors)
    }
}

impl MapArgs {
    /// Reads the map.
    ///
    /// *Errors:* it is no map, or the partition reaches beyond it.
    pub(super) fn read(&self) -> Result<Mapped, Failure> {
        let mapped = Mapped::whole(&self.map)?;
        match self.partition {
            None => Ok(mapped),
            Some(span) => {
                mapped.within(span).map_err(|failure| failure.within(&format!("--partition {span}")))
            }
        }
    }

    /// Reads the map for a device. Without `--partition`, sysfs gives the position of the device on the disk. A file, or a device of unknown
    /// position, counts as the whole map.
    ///
    /// *Errors:* as of [`MapArgs::read`], and a device on another disk.
    pub(super) fn read_for(&self, target: &Path) -> Result<Mapped, Failure> {
        let mapped = self.read()?;
        let device = rustix::fs::stat(target)
            .ok()
            .filter(|found| FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice);
        let found = device.and_then(|found| DeviceLocation::find(found.st_rdev).ok());
        let Some(found) = found.filter(|_| !self.is_part()) else { return Ok(mapped) };
        let wrong = |failure: Failure| failure.within(&target.display().to_string());
        match found.on(&mapped.identity) {
            Ok(sectors) => mapped.within(sectors.into()).map_err(wrong),
            Err(LocationError::MadeOfOthers(_)) => Ok(mapped),
            Err(reported) => Err(wrong(Failure::input(reported))),
        }
    }

    /// Reads the map for the file system of a file, as [`Mapped::around`].
    ///
    /// *Errors:* it is no map, and those of [`Mapped::around`].
    pub(super) fn read_around(&self, path: &Path) -> Result<(Mapped, String), Failure> {
        Mapped::whole(&self.map)?.around(path, self.partition)
    }

    pub(super) fn is_part(&self) -> bool {
        self.partition.is_some()
    }
}
