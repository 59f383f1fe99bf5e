//! Disks as files (FUSE): a folder with one file per volume, which a loop device turns into a block device with the disk's
//! timing.
//!
//! Every access is direct, so that the disk gets each request and no page cache answers it. Writes are whole blocks; a program
//! that writes single bytes uses a loop device, whose page cache reads, modifies and writes as on a real disk. Reads may begin
//! and end anywhere; the drive reads the blocks around.
//!
//! *Source:* Linux, `Documentation/filesystems/fuse` and `fuse(4)`; the crate `fuser` implements the protocol.

mod callers;
mod files;

use crate::shell::quoted;
use crate::{DiskHandle, realtime};
use files::Files;
use fuser::{Config, MountOption, Session, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::UnmountFlags;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{Builder, JoinHandle};

/// Options of a mount.
#[derive(Clone, Copy, Debug)]
pub struct MountOptions {
    /// Whether other users may use the files: for root's mounts, and for all where `/etc/fuse.conf` says `user_allow_other`.
    pub allow_other: bool,
    /// Threads that receive requests from the kernel.
    pub threads: usize,
    /// Whether these threads request real-time priority: a disk's thread must not wait for one that holds the disk's lock and is
    /// not scheduled. For disks that take no time they never do, because each request would then wake a thread instead of coming
    /// with others.
    pub real_time: bool,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        MountOptions { allow_other: false, threads: 2, real_time: true }
    }
}

/// Why disks cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum MountError {
    /// The kernel has no FUSE, or refuses access to it.
    #[error("/dev/fuse: {0} ({hint})", hint = remedy(.0))]
    Device(io::Error),
    /// The folder does not exist.
    #[error("{}: {error} (a mount needs a folder that is there)", folder.display())]
    Folder { folder: PathBuf, error: io::Error },
    /// A program mounted something there and died.
    #[error("{}: a mount whose program is gone (remove it with `fusermount3 -u {}`)", folder.display(), quoted(folder))]
    Stale { folder: PathBuf },
    /// Two volumes have the same name, or one has a name that no file can have.
    #[error("volume `{0}` cannot be a file: names must differ and have no `/`")]
    Name(String),
    /// No helper program (`fusermount3`) is installed.
    #[error("mounting needs root, or the program fusermount3 (Debian: package fuse3)")]
    NeedsHelper,
    /// The user may not allow others to use the mount.
    #[error("others may use mounts of root's only, or where /etc/fuse.conf has the line `user_allow_other`")]
    Others,
    /// The system refused.
    #[error("{}: {error} (mounting needs a folder of one's own, and root or the program fusermount3)", folder.display())]
    Refused { folder: PathBuf, error: io::Error },
}

/// The remedy if the kernel's FUSE is not available.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "who is not root needs it open to all: `chmod 666 /dev/fuse`",
        _ => "load the kernel's module with `modprobe fuse`; a container needs `--device /dev/fuse`",
    }
}

/// Result of an unmount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// The mount is gone.
    Gone,
    /// The folder is free, but a file of it is still open (by a loop device?), and is served until it is closed or this process
    /// ends.
    StillUsed,
}

/// Mounted disks; dropping it unmounts them, in use or not.
#[derive(Debug)]
pub struct Mount {
    folder: PathBuf,
    /// The connection to the kernel, to check whether it is still up.
    device: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Mount {
    /// Mounts the volumes of disks on a folder.
    ///
    /// *Errors:* names that cannot be files; a system without FUSE; a user who may not mount.
    pub fn new(folder: &Path, disks: &[DiskHandle], options: MountOptions) -> Result<Mount, MountError> {
        let files = Files::new(disks, options.allow_other)?;
        OpenOptions::new().read(true).write(true).open("/dev/fuse").map_err(MountError::Device)?;
        let folder = checked(folder)?;
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => MountError::NeedsHelper,
            io::ErrorKind::PermissionDenied if options.allow_other => MountError::Others,
            _ => {
                let error = io::Error::new(error.kind(), error.to_string().trim().to_string());
                MountError::Refused { folder: folder.clone(), error }
            }
        };
        let session = Session::new(files, &folder, &config(options)).map_err(refused)?;
        let device = session.as_fd().try_clone_to_owned().map_err(refused)?;
        let has_deadlines = disks.iter().any(|disk| disk.inspect(|emulator| emulator.has_deadlines()));
        let run = move || {
            // The threads started below inherit the priority.
            if options.real_time && has_deadlines {
                realtime::set_realtime();
            }
            session.run()
        };
        let thread = Builder::new().name("mount".to_string()).spawn(run).map_err(refused)?;
        Ok(Mount { folder, device, thread: Some(thread) })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it is still mounted: users may unmount what they mounted.
    pub fn is_mounted(&self) -> bool {
        let mut fds = [PollFd::new(&self.device, PollFlags::empty())];
        // The kernel reports an error event once no client can use it; a failed call says nothing.
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        !fds[0].revents().contains(PollFlags::ERR)
    }

    /// Unmounts the disks; the folder becomes free at once even if they are in use.
    pub fn unmount(mut self) -> Unmounted {
        self.end()
    }

    fn end(&mut self) -> Unmounted {
        let Some(thread) = self.thread.take() else { return Unmounted::Gone };
        if self.is_mounted() {
            detach(&self.folder);
        }
        if self.is_mounted() {
            return Unmounted::StillUsed;
        }
        // The thread's result no longer matters.
        let _ = thread.join();
        Unmounted::Gone
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.end();
    }
}

/// The absolute path of the folder, if it can be a mount point.
fn checked(folder: &Path) -> Result<PathBuf, MountError> {
    let wrong = |error: io::Error| match error.kind() {
        io::ErrorKind::NotConnected => MountError::Stale { folder: folder.to_path_buf() },
        _ => MountError::Folder { folder: folder.to_path_buf(), error },
    };
    let full = folder.canonicalize().map_err(wrong)?;
    if full.metadata().map_err(wrong)?.is_dir() {
        Ok(full)
    } else {
        Err(wrong(io::Error::from(io::ErrorKind::NotADirectory)))
    }
}

fn config(options: MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("headstack".to_string()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = true;
    config
}

/// Detaches a mount from the file tree, in use or not.
fn detach(folder: &Path) {
    if rustix::mount::unmount(folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {
        return;
    }
    // Without root, the helper that mounted it unmounts it. If that fails too, the mount is reported as in use.
    let mut command = Command::new("fusermount3");
    command.args(["-u", "-q", "-z", "--"]).arg(folder).stdin(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}
