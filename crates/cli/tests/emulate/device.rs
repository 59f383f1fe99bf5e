//! Loop devices and mounts that are removed when the test ends, even if it fails.

use crate::tools::{attempt, folder, run, text, wait_for};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A loop device over a file.
pub(crate) struct Loop {
    device: String,
}

impl Loop {
    /// A loop device over a file, which the kernel reads and writes with direct I/O.
    pub(crate) fn over(file: &Path) -> Loop {
        let device = run("losetup", &["--find", "--show", "--direct-io=on", text(file)]).trim().to_string();
        Loop { device }
    }

    /// A loop device over `bytes` bytes of a file, from `offset` on. It reads and writes the file through the page cache.
    #[allow(dead_code, reason = "the tests of layouts use it")]
    pub(crate) fn part(file: &Path, offset: u64, bytes: u64) -> Loop {
        let (offset, bytes) = (offset.to_string(), bytes.to_string());
        let args = ["--find", "--show", "--offset", &offset, "--sizelimit", &bytes, text(file)];
        Loop { device: run("losetup", &args).trim().to_string() }
    }

    /// A loop device over a file, with direct I/O and with devices for the partitions in the file.
    #[allow(dead_code, reason = "the tests of layouts use it")]
    pub(crate) fn with_partitions(file: &Path) -> Loop {
        let args = ["--find", "--show", "--partscan", "--direct-io=on", text(file)];
        Loop { device: run("losetup", &args).trim().to_string() }
    }

    /// The device of a partition, if the system shows it. If the kernel reads no partition tables, partx adds the partitions.
    #[allow(dead_code, reason = "the tests of layouts use it")]
    pub(crate) fn partition(&self, number: u32) -> Option<String> {
        let part = format!("{}p{number}", self.device);
        let is_shown = || Path::new(&part).exists();
        if !is_shown() {
            let _ = attempt("partx", &["--add", &self.device]);
        }
        if !is_shown() {
            headstack_prerequisites::skip("this machine shows no partitions of loop devices");
        }
        is_shown().then_some(part)
    }

    /// Turns the kernel's scheduler off, so that only the disk orders the requests.
    pub(crate) fn leave_order_to_the_disk(&self) {
        let name = self.device.trim_start_matches("/dev/");
        fs::write(format!("/sys/block/{name}/queue/scheduler"), "none").expect("root sets it");
    }

    /// Its path in /dev.
    pub(crate) fn device(&self) -> &str {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Partitions that partx added would outlive the device.
        let _ = attempt("partx", &["--delete", &self.device]);
        let _ = attempt("losetup", &["--detach", &self.device]);
    }
}

/// A file system mounted in a temporary folder.
pub(crate) struct Mount {
    folder: TempDir,
    mounted: bool,
}

impl Mount {
    /// Mounts the file system of a device, or returns the error.
    pub(crate) fn attempt(kind: &str, device: &str) -> Result<Mount, String> {
        let folder = folder();
        attempt("mount", &["-t", kind, device, text(folder.path())])?;
        Ok(Mount { folder, mounted: true })
    }

    /// Mounts the file system of a device.
    pub(crate) fn new(kind: &str, device: &str) -> Mount {
        Mount::attempt(kind, device).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Unmounts it, which must succeed. It may be busy for a moment: a process forked by another test has its files open until it executes
    /// its program.
    pub(crate) fn unmount(mut self) {
        let path = text(self.folder.path());
        wait_for(&format!("{path} can be unmounted"), || attempt("umount", &[path]).ok());
        self.mounted = false;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            let path = text(self.folder.path());
            // A lazy unmount removes a busy mount when nothing uses it any longer.
            if attempt("umount", &[path]).is_err() {
                let _ = attempt("umount", &["-l", path]);
            }
        }
    }
}
