//! Disks as files (FUSE): a folder with one file a volume, which a loop device turns into a block device with the disk's timing.
//!
//! Every access is direct, so that the disk sees what a client asks for and no page cache answers in its place. Accesses are
//! whole blocks, as a disk knows nothing else: what wants to write single bytes takes a loop device, whose page cache reads,
//! changes and writes as it does on a real disk. Reads may begin and end anywhere; the drive reads the blocks around.
//!
//! Source: Linux, `Documentation/filesystems/fuse` and `fuse(4)`; the crate `fuser` speaks the protocol.

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

/// How disks are mounted.
#[derive(Clone, Copy, Debug)]
pub struct MountOptions {
    /// Whether other users may use the files: root's mounts, and those of anybody where `/etc/fuse.conf` says `user_allow_other`.
    pub allow_other: bool,
    /// Threads that take requests from the kernel.
    pub threads: usize,
    /// Whether they go before all that is not real-time, where the system allows it: a disk's thread must never wait for
    /// one that holds the disk and does not run. For disks that take no time they never do, since each request would then wake
    /// a thread of its own instead of coming with others.
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
    /// The kernel has no FUSE, or does not give it.
    #[error("/dev/fuse: {0} ({hint})", hint = remedy(.0))]
    Device(io::Error),
    /// There is no folder to mount on.
    #[error("{}: {error} (a mount needs a folder that is there)", folder.display())]
    Folder { folder: PathBuf, error: io::Error },
    /// A program mounted something there and died.
    #[error("{}: a mount whose program is gone (remove it with `fusermount3 -u {}`)", folder.display(), quoted(folder))]
    Stale { folder: PathBuf },
    /// Two volumes have one name, or one has a name that no file can have.
    #[error("volume `{0}` cannot be a file: names must differ and have no `/`")]
    Name(String),
    /// Nobody who may mount is there to do it.
    #[error("mounting needs root, or the program fusermount3 (Debian: package fuse3)")]
    NeedsHelper,
    /// Who mounts may not let others in.
    #[error("others may use mounts of root's only, or where /etc/fuse.conf has the line `user_allow_other`")]
    Others,
    /// The system refused.
    #[error("{}: {error} (mounting needs a folder of one's own, and root or the program fusermount3)", folder.display())]
    Refused { folder: PathBuf, error: io::Error },
}

/// What helps where the kernel's FUSE cannot be had.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "who is not root needs it open to all: `chmod 666 /dev/fuse`",
        _ => "load the kernel's module with `modprobe fuse`; a container needs `--device /dev/fuse`",
    }
}

/// What became of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// It is gone.
    Gone,
    /// Its folder is free, but somebody (a loop device?) still has a file of it open, and is served until the file is closed or
    /// this process ends.
    StillUsed,
}

/// Disks that are mounted; dropping it unmounts them, whether they are in use or not.
#[derive(Debug)]
pub struct Mount {
    folder: PathBuf,
    /// The connection to the kernel, to see whether it still stands.
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
            // The threads that it starts inherit it.
            if options.real_time && has_deadlines {
                realtime::set_realtime();
            }
            session.run()
        };
        let thread = Builder::new().name("mount".to_string()).spawn(run).map_err(refused)?;
        Ok(Mount { folder, device, thread: Some(thread) })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it still stands: anybody may unmount what they mounted.
    pub fn is_mounted(&self) -> bool {
        let mut fds = [PollFd::new(&self.device, PollFlags::empty())];
        // The kernel says so once nobody can use it any more; a failing call says nothing.
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        !fds[0].revents().contains(PollFlags::ERR)
    }

    /// Unmounts the disks; where they are in use their folder becomes free at once all the same.
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
        // How it ended does not matter any more.
        let _ = thread.join();
        Unmounted::Gone
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.end();
    }
}

/// The folder in full, if something can be mounted on it.
fn checked(folder: &Path) -> Result<PathBuf, MountError> {
    let wrong = |error: io::Error| match error.kind() {
        io::ErrorKind::NotConnected => MountError::Stale { folder: folder.to_path_buf() },
        _ => MountError::Folder { folder: folder.to_path_buf(), error },
    };
    let full = folder.canonicalize().map_err(wrong)?;
    match full.metadata().map_err(wrong)?.is_dir() {
        true => Ok(full),
        false => Err(wrong(io::Error::from(io::ErrorKind::NotADirectory))),
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

/// Takes a mount out of the tree of files, in use or not.
fn detach(folder: &Path) {
    if rustix::mount::unmount(folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {
        return;
    }
    // Who is not root has it done by the program that mounted it. If that fails too, the mount is seen to be in use.
    let mut command = Command::new("fusermount3");
    command.args(["-u", "-q", "-z", "--"]).arg(folder).stdin(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}
