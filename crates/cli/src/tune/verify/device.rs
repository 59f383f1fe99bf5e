//! Reads the settings of a disk in sysfs, changes them temporarily, and restores the values from before.
//!
//! *Source:* Linux, Documentation/ABI/stable/sysfs-block: a value written to an attribute below `/sys/block/DISK` takes effect at once.

#![allow(clippy::disallowed_methods, reason = "the system has the settings of its disks in files")]

use crate::failure::{Failure, print_line};
use crate::interrupt::RestoredFiles;
use rustix::fs::OFlags;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(super) const SCHEDULER: &str = "queue/scheduler";
/// The folder with the parameters of the scheduler in use. Another scheduler has other parameters there.
const SCHEDULER_FOLDER: &str = "queue/iosched";
/// The attribute that the kernel resets when another scheduler is chosen.
const SET_BY_SCHEDULER: &str = "queue/nr_requests";

/// A disk, named by its device or by one of its partitions.
pub(super) struct VerifiedDisk {
    /// The device, a disk or a partition.
    device: PathBuf,
    /// The disk's folder in sysfs.
    folder: PathBuf,
}

impl VerifiedDisk {
    /// The disk of a device.
    ///
    /// *Errors:* it is not a block device, or sysfs does not have it.
    pub(super) fn find(device: &Path) -> Result<VerifiedDisk, Failure> {
        let fault = |what: &str| Failure::Input(format!("--verify {}: {what}", device.display()));
        let found = fs::metadata(device).map_err(|error| fault(&error.to_string()))?;
        if !found.file_type().is_block_device() {
            return Err(fault("no block device"));
        }
        let path = fs::canonicalize(device).map_err(|error| fault(&error.to_string()))?;
        let name = path.file_name().unwrap_or_default();
        let folder = fs::canonicalize(Path::new("/sys/class/block").join(name));
        let folder = folder.map_err(|_| fault("sysfs does not have it"))?;
        let is_partition = folder.join("partition").exists();
        let disk = folder.parent().filter(|_| is_partition).map_or(folder.clone(), Path::to_path_buf);
        Ok(VerifiedDisk { device: path, folder: disk })
    }

    /// The device as fio opens it.
    pub(super) fn device(&self) -> &Path {
        &self.device
    }

    /// Refuses a device that a file system, a swap area or another device uses.
    pub(super) fn require_unused(&self) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        let exclusive = options.read(true).custom_flags(OFlags::EXCL.bits().cast_signed());
        exclusive.open(&self.device).map(|_| ()).map_err(|error| {
            let device = self.device.display();
            Failure::Input(format!("--write: {device} is in use, and fio would write over it: {error}"))
        })
    }

    /// The value of an attribute; of a list of choices, such as the schedulers, the chosen one. None if the disk has no such attribute.
    pub(super) fn value(&self, attribute: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(attribute)).ok()?;
        let text = text.trim();
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
        Some(chosen.unwrap_or(text).to_string())
    }

    /// Sets an attribute.
    ///
    /// *Errors:* the system refuses the value, or sets another one.
    pub(super) fn set(&self, attribute: &str, value: &str) -> Result<(), String> {
        let path = self.folder.join(attribute);
        fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))?;
        match self.value(attribute) {
            Some(found) if found == value => Ok(()),
            found => Err(format!("{}: {value} became {}", path.display(), found.unwrap_or_default())),
        }
    }

    /// All attributes that change when these are set, in the order in which they must be restored.
    fn affected(&self, attributes: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = attributes.iter().map(|attribute| attribute.to_string()).collect();
        if attributes.contains(&SCHEDULER) {
            all.push(SET_BY_SCHEDULER.to_string());
            let entries = fs::read_dir(self.folder.join(SCHEDULER_FOLDER)).into_iter().flatten().flatten();
            all.extend(
                entries
                    .map(|entry| format!("{SCHEDULER_FOLDER}/{}", entry.file_name().to_string_lossy()))
                    .filter(|attribute| self.value(attribute).is_some()),
            );
        }
        all.sort_by_key(|attribute| (attribute != SCHEDULER, attribute.starts_with(SCHEDULER_FOLDER)));
        all.dedup();
        all
    }

    /// Records the values of all attributes that change when these are set. The returned value restores them when it is dropped, or when a second
    /// signal ends the process.
    pub(super) fn keep(&self, attributes: &[&str]) -> RestoredFiles {
        let affected = self.affected(attributes);
        let value = |attribute: &String| Some((self.folder.join(attribute), self.value(attribute)?));
        RestoredFiles::new(affected.iter().filter_map(value).collect(), |path, error| {
            print_line(&format!("{}: not restored: {error}", path.display()));
        })
    }
}
