//! Storage of the disks' bytes.

use super::plan::Plan;
use crate::failure::{self, Failure};
use crate::files;
use crate::service::patience::when_free;
use headstack_host::disk::{Store, Volume, stored_write_pointers};
use headstack_model::zones::Zones;
use headstack_streams::rearrange_table::RecoveredTable;
use headstack_workload::VolumeInfo;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Memory,
    /// In a file, or in a folder with a file per volume.
    At(PathBuf),
}

impl FromStr for Data {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Data, Self::Err> {
        Ok(match text {
            "memory" => Data::Memory,
            path => Data::At(PathBuf::from(path)),
        })
    }
}

impl Data {
    /// The volumes of each disk with their stores, and descriptions of these. Waits briefly for a file in use, until `is_end_requested`
    /// returns true.
    ///
    /// *Errors:* a file or folder that cannot be created or used.
    pub(super) fn volumes(
        &self,
        plans: &[Plan],
        is_end_requested: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<(Volume, String)>>, Failure> {
        let count: usize = plans.iter().map(|plan| plan.volumes.len()).sum();
        let of_plan = |plan: &Plan| {
            let volumes = plan.volumes.iter().zip(plan.owners());
            volumes.map(|(info, owner)| self.volume(info, &owner, count, is_end_requested)).collect()
        };
        plans.iter().map(of_plan).collect()
    }

    fn volume(
        &self,
        info: &VolumeInfo,
        owner: &str,
        count: usize,
        is_end_requested: &dyn Fn() -> bool,
    ) -> Result<(Volume, String), Failure> {
        let (store, place) = match self {
            Data::Memory => (Store::memory(info.bytes()).map(|store| (store, false)), "memory".to_string()),
            Data::At(path) => {
                let path = file(path, info, count)?;
                let store = when_free(is_end_requested, || Store::file(&path, info.bytes(), owner));
                (store, path.display().to_string())
            }
        };
        let fault = |error: io::Error| Failure::Input(format!("--data {place}: {error}"));
        let (store, was_unmarked) = store.map_err(fault)?;
        if was_unmarked {
            // Data of version 0.1 and copies of real disks name no disk.
            failure::print_line(&format!("--data {place}: it named no disk, and is marked as {owner}'s now"));
        }
        Ok((Volume::new(info.clone(), store), place.clone()))
    }
}

/// Refuses data with a reserved region. Only a node uses the region's table, and without the table reads would return old data.
pub(super) fn refuse_regions(volumes: &[Vec<(Volume, String)>]) -> Result<(), Failure> {
    for (volume, place) in volumes.iter().flatten() {
        let mut read = |offset, into: &mut [u8]| volume.read_media(offset, into).map_err(io::Error::other);
        let why = match RecoveredTable::find(volume.info().bytes(), &mut read) {
            Ok(None) => continue,
            Ok(Some(label)) => format!(
                "it has a region of {} copies, which `headstack emulate` does not use: serve it by `headstack serve` with \
                 [disk.rearrange], or remove the region with `headstack rearrange dissolve`",
                label.slots
            ),
            Err(error) => error.to_string(),
        };
        return Err(Failure::Input(format!("--data {place}: {why}")));
    }
    Ok(())
}

/// The zones of a disk with the write pointers that its file stores. The file is `path`, or the one named after the disk in the folder
/// `path`. If it stores none, returns `zones`, with which the disk then begins.
///
/// *Errors:* a file that cannot be read, or has the write pointers of other zones.
pub(crate) fn stored_zones(path: &Path, disk: &str, zones: &Zones) -> Result<Zones, Failure> {
    let path = if path.is_dir() { path.join(format!("{disk}.img")) } else { path.to_path_buf() };
    let stored = stored_write_pointers(&files::open(&path)?, zones.layout());
    let stored = stored.map_err(|error| Failure::Input(format!("--data {}: {error}", path.display())))?;
    Ok(stored.map_or_else(|| zones.clone(), |written| Zones::new(*zones.layout()).with_written(&written)))
}

/// The file of a volume: `path` for a single volume. For several volumes, or if `path` is a folder, a file in that folder.
fn file(path: &Path, info: &VolumeInfo, count: usize) -> Result<PathBuf, Failure> {
    let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if count == 1 && !path.is_dir() && !ends_as_folder {
        return Ok(path.to_path_buf());
    }
    files::create_folder(path)?;
    Ok(path.join(format!("{}.img", info.name)))
}
