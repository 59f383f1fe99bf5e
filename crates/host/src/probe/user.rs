//! Finds the users of a block device: mounts, swap, and devices made of it.

#![allow(clippy::disallowed_methods, reason = "the system describes its devices in files")]

use rustix::fs::{FileType, Stat};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The user of a device or of one of its partitions, if known.
pub(crate) fn user_of(number: u64) -> Option<String> {
    let folder = Path::new("/sys/dev/block").join(text(number));
    let mut parts = BTreeSet::from([text(number)]);
    let mut holders = Vec::new();
    scan_folder(&folder, &mut parts, &mut holders);
    if let Some(holder) = holders.first() {
        return Some(format!("{holder} is made of it"));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    mounted(&mounts, &parts).map(|place| format!("mounted on {place}")).or_else(|| {
        let is_part =
            |path: &&str| device_number(Path::new(path)).is_some_and(|number| parts.contains(&number));
        let swap = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).find(is_part);
        swap.map(|path| format!("swap on {path}"))
    })
}

/// Whether a file is open elsewhere, as the image of a running virtual machine or a loop device. If the file system cannot tell,
/// it is not.
///
/// *Source:* fcntl(2), F_SETLEASE: a write lease is granted only on a file that no other process has open.
pub(crate) fn has_file(file: &File) -> bool {
    // For a moment, a program that is being started has all open files of its parent.
    let looks = [0, 20, 60, 200, 500].map(Duration::from_millis);
    looks.into_iter().all(|pause| {
        #[allow(
            clippy::disallowed_methods,
            reason = "waits for programs that have it open only for a moment"
        )]
        thread::sleep(pause);
        is_elsewhere(file)
    })
}

fn is_elsewhere(file: &File) -> bool {
    let lease = |kind: i32| {
        // SAFETY: the descriptor is open, and the call takes a number and no pointer.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    let is_refused = lease(libc::F_WRLCK) < 0;
    let is_elsewhere = is_refused && io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
    // A lease would delay a later open of the file.
    lease(libc::F_UNLCK);
    is_elsewhere
}

/// The loop device over a file or a device, if there is one.
pub(crate) fn loop_over(found: &Stat) -> Option<String> {
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let is_it = |file: &Stat| {
        if is_device {
            FileType::from_raw_mode(file.st_mode) == FileType::BlockDevice && file.st_rdev == found.st_rdev
        } else {
            (file.st_dev, file.st_ino) == (found.st_dev, found.st_ino)
        }
    };
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut over = devices.filter(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file"));
        file.is_ok_and(|file| rustix::fs::stat(file.trim_end_matches('\n')).is_ok_and(|file| is_it(&file)))
    });
    over.next().map(|device| format!("/dev/{}", device.file_name().to_string_lossy()))
}

fn text(number: u64) -> String {
    format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number))
}

fn device_number(path: &Path) -> Option<String> {
    rustix::fs::stat(path).ok().map(|found| text(found.st_rdev))
}

/// Adds the numbers of a device's partitions, and the names of devices made of it or them.
fn scan_folder(folder: &Path, parts: &mut BTreeSet<String>, holders: &mut Vec<String>) {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    holders.extend(names(&folder.join("holders")));
    for name in names(folder) {
        let part = folder.join(&name);
        if part.join("partition").exists()
            && let Ok(number) = fs::read_to_string(part.join("dev"))
        {
            parts.insert(number.trim().to_string());
            holders.extend(names(&part.join("holders")));
        }
    }
}

/// Where one of these devices is mounted.
///
/// *Source:* proc(5), /proc/pid/mountinfo: the third field is the device's number, the fifth the mount point.
fn mounted(mounts: &str, numbers: &BTreeSet<String>) -> Option<String> {
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_one = numbers.contains(*fields.get(2)?);
        is_one.then(|| fields.get(4).map(|place| place.to_string()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_is_found_by_its_device_number() {
        let mounts = "22 1 0:21 / /proc rw - proc proc rw\n36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n";
        let numbers = |number: &str| BTreeSet::from([number.to_string()]);
        assert_eq!(mounted(mounts, &numbers("98:0")), Some("/mnt2".to_string()));
        assert_eq!(mounted(mounts, &numbers("98:1")), None);
        assert_eq!(mounted("98:0\n", &numbers("98:0")), None, "a line that is cut off");
    }
}
