//! Where the file system of a file begins on its disk, as the system tells.

use super::partition::Span;
use crate::failure::Failure;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What sysfs counts in, whatever the disk.
const SYSFS_SECTOR: u64 = 512;

/// Where a file system lies.
pub(super) struct Whereabouts {
    /// Name of the device.
    pub(super) name: String,
    /// Bytes from the start of the disk.
    start: u64,
    /// Bytes of the device.
    bytes: u64,
    /// Bytes of the whole disk, where the system tells.
    disk_bytes: Option<u64>,
}

/// The number of the device on which a file's file system says it lies.
pub(super) fn device_of(file: &File) -> Result<u64, String> {
    rustix::fs::fstat(file).map(|found| found.st_dev).map_err(|error| error.to_string())
}

impl Whereabouts {
    /// Looks a device up in sysfs. A loop device is the disk, or its part from `losetup --offset` on.
    ///
    /// *Errors:* what keeps the place from being known; the caller says whose it is.
    pub(super) fn of(device: u64) -> Result<Whereabouts, String> {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let link = format!("/sys/dev/block/{major}:{minor}");
        #[allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]
        let folder = fs::canonicalize(&link)
            .map_err(|_| "its file system names no block device of its own".to_string())?;
        Whereabouts::at(&folder)
    }

    fn at(folder: &Path) -> Result<Whereabouts, String> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_part = folder.join("partition").exists();
        let disk: PathBuf = match folder.parent() {
            Some(parent) if is_part => parent.to_path_buf(),
            _ => folder.to_path_buf(),
        };
        if is_made_of_others(&disk) {
            return Err(format!("{name} is made of other devices"));
        }
        let number = |folder: &Path, name: &str| {
            read(&folder.join(name)).ok_or_else(|| format!("{} is no number", folder.join(name).display()))
        };
        let begins = if is_part { number(folder, "start")? * SYSFS_SECTOR } else { 0 };
        let bytes = number(folder, "size")? * SYSFS_SECTOR;
        let offset = read(&disk.join("loop/offset")).unwrap_or(0);
        let is_loop = disk.join("loop").exists();
        let disk_bytes =
            if is_loop { backing_bytes(&disk) } else { Some(number(&disk, "size")? * SYSFS_SECTOR) };
        Ok(Whereabouts { name, start: offset + begins, bytes, disk_bytes })
    }

    /// The same in sectors of a disk of so many.
    ///
    /// *Errors:* the disk is another one.
    pub(super) fn span(&self, sectors: u64, sector_bytes: u32) -> Result<Span, Failure> {
        let sector = u64::from(sector_bytes);
        if let Some(bytes) = self.disk_bytes
            && bytes != sectors * sector
        {
            return Err(Failure::Input(format!(
                "the map is of another disk, of {sectors} sectors of {sector} bytes; the disk of {} has {bytes} bytes",
                self.name
            )));
        }
        if !self.start.is_multiple_of(sector) {
            return Err(Failure::Input(format!(
                "{} begins within a sector of {sector} bytes: the map is of another disk",
                self.name
            )));
        }
        Ok(Span { start: self.start / sector, sectors: self.bytes / sector })
    }
}

/// Whether blocks of a device lie elsewhere, as those of device mapper, RAID and bcache do.
fn is_made_of_others(disk: &Path) -> bool {
    #[allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]
    fs::read_dir(disk.join("slaves")).is_ok_and(|mut entries| entries.next().is_some())
}

/// Bytes of the file that a loop device reads, of which the device may be a part.
fn backing_bytes(disk: &Path) -> Option<u64> {
    #[allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]
    let path = fs::read_to_string(disk.join("loop/backing_file")).ok()?;
    let found = fs::metadata(path.trim_end_matches('\n')).ok()?;
    found.is_file().then_some(found.len())
}

fn read(path: &Path) -> Option<u64> {
    #[allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use super::*;

    /// A folder as sysfs has one: files by their paths.
    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("it is writable");
            fs::write(path, format!("{text}\n")).expect("it is writable");
        }
        folder
    }

    fn at(folder: &tempfile::TempDir, device: &str) -> Result<Whereabouts, String> {
        Whereabouts::at(&folder.path().join(device))
    }

    fn span(found: &Whereabouts, sectors: u64, sector_bytes: u32) -> Option<(u64, u64)> {
        found.span(sectors, sector_bytes).ok().map(|span| (span.start, span.sectors))
    }

    #[test]
    fn does_a_partition_begin_where_the_system_says() {
        let disk = [("sda/size", "80000"), ("sda/sda2/partition", "2"), ("sda/sda2/size", "4000")];
        let folder = sysfs(&[&disk[..], &[("sda/sda2/start", "2048")]].concat());
        let found = at(&folder, "sda/sda2").expect("all is told");
        assert_eq!(found.name, "sda2");
        assert_eq!(span(&found, 80_000, 512), Some((2048, 4000)));
        assert_eq!(span(&found, 10_000, 4096), Some((256, 500)), "sysfs counts in 512 bytes always");
        assert_eq!(span(&found, 80_001, 512), None, "another disk");
        let whole = at(&folder, "sda").expect("all is told");
        assert_eq!(span(&whole, 80_000, 512), Some((0, 80_000)));
        assert!(at(&sysfs(&disk), "sda/sda2").is_err(), "no start");
    }

    #[test]
    fn does_a_loop_devices_offset_count() {
        let image = tempfile::NamedTempFile::new().expect("there is room for a file");
        image.as_file().set_len(8000 * 512).expect("it may have holes");
        let folder = sysfs(&[
            ("loop1/size", "4000"),
            ("loop1/loop/offset", "1048576"),
            ("loop1/loop/backing_file", image.path().to_str().expect("its name is UTF-8")),
            ("loop1/loop1p1/partition", "1"),
            ("loop1/loop1p1/start", "100"),
            ("loop1/loop1p1/size", "50"),
        ]);
        let part = at(&folder, "loop1/loop1p1").expect("all is told");
        assert_eq!(span(&part, 8000, 512), Some((2148, 50)));
        assert_eq!(span(&part, 4000, 512), None, "the disk is the file, not what the device shows of it");
        image.close().expect("it can be removed");
        let part = at(&folder, "loop1/loop1p1").expect("all is told");
        assert_eq!(span(&part, 1 << 30, 512), Some((2148, 50)), "of a disk whose size is not told");
    }

    #[test]
    fn is_a_device_of_others_refused() {
        let folder = sysfs(&[("dm-0/size", "4000"), ("dm-0/slaves/sda/size", "8000")]);
        assert!(at(&folder, "dm-0").is_err_and(|told| told.contains("other devices")));
    }
}
