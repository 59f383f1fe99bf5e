//! Where the bytes of the disks are kept.

use super::plan::Plan;
use crate::failure::Failure;
use crate::files;
use headstack_host::disk::{Store, Volume};
use headstack_workload::VolumeInfo;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `--data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// In memory, and gone with the process.
    Memory,
    /// In a file, or in a folder with a file a volume.
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
    /// The volumes of each disk with what keeps their bytes, and where that is, in words.
    ///
    /// *Errors:* a file or folder that cannot be made or used.
    pub(super) fn volumes(&self, plans: &[Plan]) -> Result<Vec<Vec<(Volume, String)>>, Failure> {
        let count: usize = plans.iter().map(|plan| plan.volumes.len()).sum();
        let each = |info: &VolumeInfo| self.volume(info, count);
        plans.iter().map(|plan| plan.volumes.iter().map(each).collect()).collect()
    }

    fn volume(&self, info: &VolumeInfo, count: usize) -> Result<(Volume, String), Failure> {
        let (store, place) = match self {
            Data::Memory => (Store::memory(info.bytes()), "memory".to_string()),
            Data::At(path) => {
                let path = file(path, info, count)?;
                (Store::file(&path, info.bytes()), path.display().to_string())
            }
        };
        let fault = |error: io::Error| Failure::Input(format!("--data {place}: {error}"));
        Ok((Volume::new(info.clone(), store.map_err(fault)?), place.clone()))
    }
}

/// The file of a volume: `path` where there is one volume, and a file in the folder `path` where there are several or where
/// it is a folder.
fn file(path: &Path, info: &VolumeInfo, count: usize) -> Result<PathBuf, Failure> {
    let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if count == 1 && !path.is_dir() && !ends_as_folder {
        return Ok(path.to_path_buf());
    }
    files::create_folder(path)?;
    Ok(path.join(format!("{}.img", info.name)))
}
