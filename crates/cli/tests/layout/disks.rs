//! Maps of disks, and sparse images of them or of parts of them.

use crate::common::printed;
use crate::tools::text;
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) use crate::tools::folder;

/// A disk's map, and a range of the disk's sectors, the part.
pub(crate) struct Disk {
    folder: TempDir,
    map: PathBuf,
    partition: String,
    sectors: u64,
    bytes: u64,
    /// First sectors of the tracks that begin inside the part, counted from the part's start. Empty for a disk from [`Disk::made`].
    boundaries: Vec<u64>,
}

/// The tracks of a shipped drive.
pub(crate) fn tracks(drive: &str) -> TrackMap {
    let folder = folder();
    let map = folder.path().join("map");
    printed(&["drive", "map", drive, "-o", text(&map)]);
    read(&map).1
}

fn read(path: &Path) -> (Identity, TrackMap) {
    map::read(&mut File::open(path).expect("it was written")).expect("it is a map")
}

impl Disk {
    /// A part of a shipped drive.
    pub(crate) fn of(drive: &str, start: u64, sectors: u64) -> Disk {
        let folder = folder();
        let map = folder.path().join("map");
        printed(&["drive", "map", drive, "-o", text(&map)]);
        Disk::at(folder, map, Some((start, sectors)))
    }

    /// All of a shipped drive.
    pub(crate) fn whole(drive: &str) -> Disk {
        let folder = folder();
        let map = folder.path().join("map");
        printed(&["drive", "map", drive, "-o", text(&map)]);
        let end = read(&map).1.end().0;
        Disk::at(folder, map, Some((0, end)))
    }

    /// All of a disk with these tracks.
    pub(crate) fn made(identity: &Identity, tracks: &TrackMap) -> Disk {
        let folder = folder();
        let map = folder.path().join("map");
        let mut file = File::create(&map).expect("there is room");
        map::write(&mut file, identity, tracks).expect("there is room");
        Disk::at(folder, map, None)
    }

    fn at(folder: TempDir, map: PathBuf, part: Option<(u64, u64)>) -> Disk {
        let (identity, tracks) = read(&map);
        let (start, sectors) = part.unwrap_or((0, tracks.end().0));
        let inside = tracks.iter_from(headstack_model::Lbn(start)).map(|track| track.first.0);
        let inside = inside.take_while(|first| part.is_some() && *first < start + sectors);
        let boundaries = inside.filter(|first| *first > start).map(|first| first - start).collect();
        let partition = format!("{start},{sectors}");
        Disk { folder, map, partition, sectors, bytes: identity.sector_bytes.into(), boundaries }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn map(&self) -> &str {
        text(&self.map)
    }

    /// The part as `--partition` takes it.
    pub(crate) fn partition(&self) -> &str {
        &self.partition
    }

    /// The first track boundary inside the sectors `first..end` of the part.
    pub(crate) fn boundary_in(&self, first: u64, end: u64) -> Option<u64> {
        let next = self.boundaries.partition_point(|boundary| *boundary <= first);
        self.boundaries.get(next).copied().filter(|boundary| *boundary < end)
    }

    /// Bytes of the shortest track in the part.
    pub(crate) fn shortest_track_bytes(&self) -> u64 {
        self.track_bytes().min().expect("the part has tracks")
    }

    /// Bytes of the longest track in the part.
    pub(crate) fn longest_track_bytes(&self) -> u64 {
        self.track_bytes().max().expect("the part has tracks")
    }

    fn track_bytes(&self) -> impl Iterator<Item = u64> {
        self.boundaries.windows(2).map(|pair| (pair[1] - pair[0]) * self.bytes)
    }

    /// A new sparse image of the part's length.
    pub(crate) fn image(&self) -> String {
        sparse(&self.folder.path().join("image"), self.sectors * self.bytes)
    }
}

/// A new sparse file of this length.
pub(crate) fn sparse(path: &Path, bytes: u64) -> String {
    let file = File::create(path).expect("there is room");
    file.set_len(bytes).expect("files may be so long");
    text(path).to_string()
}
