//! Checks whether a file system may be made on a disk: it is the disk of the map, is not in use, and is empty.

use super::{Ext4Error, tools};
use crate::probe::user;
use crate::sysfs::DeviceLocation;
use headstack_tracks::map::Identity;
use rustix::fs::FileType;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// The location of the file system on a disk.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The disk of the map.
    pub disk: &'a Identity,
    /// First sector of the partition.
    pub start: u64,
    /// Sectors of the partition.
    pub sectors: u64,
}

impl Place<'_> {
    fn bytes(&self) -> u64 {
        self.sectors * u64::from(self.disk.sector_bytes)
    }
}

/// Checks an image or a device. An image, a whole loop device, and a device made of other devices hold the partition and nothing
/// else; any other device must be this partition of the disk of the map.
///
/// *Errors:* another disk or another part of it; it is in use; it is not empty, unless `may_hold`.
pub fn check(path: &Path, place: &Place<'_>, may_hold: bool) -> Result<(), Ext4Error> {
    let wrong = |error: io::Error| Ext4Error::Target { path: path.to_path_buf(), error };
    let found = rustix::fs::stat(path).map_err(|error| wrong(error.into()))?;
    let in_use = |by: String| Ext4Error::InUse { path: path.to_path_buf(), by };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => {
            of_device(path, found.st_rdev, place)?;
            if let Some(by) = user::user_of(found.st_rdev) {
                return Err(in_use(by));
            }
        }
        FileType::RegularFile => {
            same_size(path, found.st_size as u64, place)?;
            #[allow(clippy::disallowed_methods, reason = "the host has the real bytes")]
            if user::has_file(&File::open(path).map_err(wrong)?) {
                return Err(in_use("another program, a loop device or swap has it open".to_string()));
            }
        }
        _ => return Err(wrong(io::Error::other("it is neither a block device nor a file"))),
    }
    if let Some(device) = user::loop_over(&found) {
        return Err(in_use(format!("{device} is a loop device over it")));
    }
    if may_hold { Ok(()) } else { empty(path) }
}

fn same_size(path: &Path, bytes: u64, place: &Place<'_>) -> Result<(), Ext4Error> {
    let meant = place.bytes();
    let other = |why: String| Ext4Error::OtherDisk { path: path.to_path_buf(), why };
    if bytes == meant {
        Ok(())
    } else {
        Err(other(format!("it has {bytes} bytes, and the partition of the map {meant}")))
    }
}

fn of_device(path: &Path, number: u64, place: &Place<'_>) -> Result<(), Ext4Error> {
    let unplaced = |error| Ext4Error::LocationError { path: path.to_path_buf(), error };
    let found = DeviceLocation::find(number).map_err(unplaced)?;
    if found.may_be_any_part() {
        return same_size(path, found.bytes(), place);
    }
    let Range { start, end } = found.on(place.disk).map_err(unplaced)?;
    if (start.0, end - start) != (place.start, place.sectors) {
        let why = format!("it is another part of its disk: --partition {start},{}", end - start);
        return Err(Ext4Error::OtherDisk { path: path.to_path_buf(), why });
    }
    Ok(())
}

fn empty(path: &Path) -> Result<(), Ext4Error> {
    match content(path)? {
        None => Ok(()),
        Some(what) => Err(Ext4Error::NotEmpty { path: path.to_path_buf(), what }),
    }
}

/// What blkid finds on a device or in a file; `None` if nothing.
///
/// *Errors:* there is no blkid, or it cannot read the path.
pub(crate) fn content(path: &Path) -> Result<Option<String>, Ext4Error> {
    tools::look_for(&["blkid"])?;
    let words = ["-p", "-o", "export"].map(OsString::from).into_iter().chain([path.into()]);
    let said = tools::run("blkid", &words.collect::<Vec<_>>())?;
    match held(said.code, &said.out) {
        Some(Held::Nothing) => Ok(None),
        Some(Held::This(what)) => Ok(Some(what)),
        None => {
            let error = io::Error::other(format!("blkid cannot look at it: {}", said.complaint()));
            Err(Ext4Error::Target { path: path.to_path_buf(), error })
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    This(String),
}

/// The meaning of blkid's exit code and output; none if blkid could not read the device.
///
/// *Source:* blkid(8): `-p` probes the device itself; exit code 2 means that nothing was found, 8 that several things were. For a
/// partition it prints its entry in the table (`PART_ENTRY_…`) and exits with 0, whether the partition is empty or not.
fn held(code: i32, out: &str) -> Option<Held> {
    let reported = |key: &str| out.lines().find_map(|line| line.strip_prefix(key));
    match (code, reported("TYPE="), reported("PTTYPE=")) {
        (2, ..) | (0, None, None) => Some(Held::Nothing),
        (0 | 8, Some(kind), _) => Some(Held::This(format!("a file system or the like ({kind})"))),
        (0 | 8, None, Some(kind)) => Some(Held::This(format!("a partition table ({kind})"))),
        (8, None, None) => Some(Held::This("several things that blkid knows".to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::LocationError;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn partition_with_only_a_table_entry_counts_as_empty() {
        let entry = "DEVNAME=/dev/sdb1\nPART_ENTRY_SCHEME=dos\nPART_ENTRY_TYPE=0x83\nPART_ENTRY_NUMBER=1\n";
        assert_eq!(held(0, entry), Some(Held::Nothing));
        assert_eq!(held(2, ""), Some(Held::Nothing));
        let this = |what: &str| Some(Held::This(what.to_string()));
        assert_eq!(held(0, &format!("{entry}TYPE=xfs\n")), this("a file system or the like (xfs)"));
        assert_eq!(held(0, &format!("{entry}PTTYPE=gpt\n")), this("a partition table (gpt)"));
        assert_eq!(held(8, entry), this("several things that blkid knows"));
        assert_eq!(held(4, entry), None);
        assert_eq!(held(-1, ""), None);
    }

    #[test]
    fn device_other_than_the_mapped_disk_is_rejected() {
        // Reading changes nothing, so any disk of this machine serves.
        #[allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]
        let names = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_disk = |name: &String| ["sd", "vd", "nvme", "xvd"].iter().any(|kind| name.starts_with(kind));
        let mut paths = names.filter(is_disk).map(|name| PathBuf::from(format!("/dev/{name}")));
        let Some(path) = paths.find(|path| path.exists()) else {
            return headstack_prerequisites::skip("this machine shows no disk");
        };
        let disk = Identity::new(1_000, 512);
        let reported =
            check(&path, &Place { disk: &disk, start: 0, sectors: 1_000 }, true).expect_err("it is another");
        assert!(
            matches!(reported, Ext4Error::LocationError { error: LocationError::Foreign(_), .. }),
            "{reported}"
        );
    }
}
