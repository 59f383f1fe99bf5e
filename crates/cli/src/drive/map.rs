//! `headstack drive map`.

use crate::catalog;
use crate::failure::Failure;
use crate::files;
use crate::units::count;
use headstack_model::Geometry;
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write the track map that a drive's file describes.
///
/// The map is that of the drive file. A real disk of the same model has other track boundaries: `headstack probe` measures them.
#[derive(clap::Args)]
pub(crate) struct Map {
    /// A shipped drive or a drive file.
    #[arg(value_name = "NAME|FILE")]
    drive: String,
    /// Where to write the map.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write the map as text, with a line `lbn sectors` for each track.
    #[arg(long)]
    text: bool,
}

impl Map {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let spec = catalog::load(&self.drive)?;
        let geometry = Geometry::new(&spec).map_err(Failure::input)?;
        let tracks = TrackMap::of_geometry(&geometry);
        let identity = Identity {
            name: Some(spec.title.clone()),
            physical_sectors: spec.physical_sector_bytes / spec.sector_bytes,
            ..Identity::new(geometry.sectors(), spec.sector_bytes)
        };
        let mut bytes = Vec::new();
        if self.text {
            map::write_text(&mut bytes, &identity, &tracks)
        } else {
            map::write(&mut bytes, &identity, &tracks)
        }
        .map_err(Failure::input)?;
        files::check_apart(&[Path::new(&self.drive)], &[("--output", Some(&self.output))])?;
        files::write_whole(&self.output, &bytes)?;
        let (tracks, runs) = (count(tracks.tracks() as usize, "track"), tracks.runs().len());
        writeln!(out, "{}: {tracks} in {}", spec.title, count(runs, "run"))?;
        Ok(())
    }
}
