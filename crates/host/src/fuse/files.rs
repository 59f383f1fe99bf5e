//! The folder and its files, as FUSE operations.

use super::MountError;
use super::callers::{Seeker, Writer};
use crate::{DiskHandle, Operation};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use headstack_workload::VolumeInfo;
use rustix::fs::{FallocateFlags, OFlags};
use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime};

#[derive(Debug)]
struct Disk {
    handle: DiskHandle,
    volume: u32,
    info: VolumeInfo,
}

impl Disk {
    /// How many of `bytes` from `offset` on lie on the disk.
    fn within(&self, offset: u64, bytes: u64) -> u64 {
        self.info.bytes().saturating_sub(offset).min(bytes)
    }
}

#[derive(Debug)]
pub(super) struct Files {
    disks: Vec<Disk>,
    mounted: SystemTime,
    owner: (u32, u32),
    for_all: bool,
}

/// Requests that the kernel sends before it waits for answers; its default of 12 would limit the disk's queue.
const IN_FLIGHT: u16 = 4096;

const MAX_WRITE: u32 = 1 << 20;

/// Inode number of the first file.
const FIRST: u64 = INodeNo::ROOT.0 + 1;

/// How long the kernel may cache names, which never change.
const NAMES_STAY: Duration = Duration::from_secs(3600);
/// How long the kernel may cache the space that a disk takes on the host.
const SIZES_STAY: Duration = Duration::from_secs(1);

/// Linux's numbers of the two ways to seek that reach a file system.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

impl Files {
    pub(super) fn new(disks: &[DiskHandle], for_all: bool) -> Result<Files, MountError> {
        let mut files = Vec::new();
        for handle in disks {
            for (volume, info) in (0..).zip(handle.volumes()) {
                let name = &info.name;
                let is_taken = files.iter().any(|disk: &Disk| disk.info.name == *name);
                if is_taken || name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
                    return Err(MountError::Name(name.clone()));
                }
                files.push(Disk { handle: handle.clone(), volume, info: info.clone() });
            }
        }
        #[allow(clippy::disallowed_methods, reason = "files have a time")]
        let mounted = SystemTime::now();
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Ok(Files { disks: files, mounted, owner, for_all })
    }

    fn disk(&self, ino: INodeNo) -> Option<&Disk> {
        self.disks.get(ino.0.checked_sub(FIRST)? as usize)
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let disk = self.disk(ino);
        let (kind, perm, size, kept) = match disk {
            Some(disk) => {
                let kept =
                    disk.handle.inspect(|emulator| emulator.volumes()[disk.volume as usize].kept_bytes());
                (FileType::RegularFile, if self.for_all { 0o666 } else { 0o600 }, disk.info.bytes(), kept)
            }
            None if ino == INodeNo::ROOT => (FileType::Directory, 0o555, 0, 0),
            None => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: kept.div_ceil(512),
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: self.mounted,
            kind,
            perm,
            nlink: if disk.is_some() { 1 } else { 2 },
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            // Programs that buffer by this size then write whole blocks.
            blksize: disk.map_or(4096, |disk| disk.info.sector_bytes.max(4096)),
            flags: 0,
        })
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wish in [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS] {
            // Older kernels lack it, and are slower.
            let _ = config.add_capabilities(wish);
        }
        let limits = [
            config.set_max_background(IN_FLIGHT).is_ok(),
            config.set_congestion_threshold(IN_FLIGHT).is_ok(),
        ];
        assert!(limits.iter().all(|taken| *taken), "the limits are not zero");
        config
            .set_max_write(MAX_WRITE)
            .map(drop)
            .map_err(|most| io::Error::other(format!("at most {most} a write")))
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.disks.iter().position(|disk| name == disk.info.name.as_str());
        let ino = found.filter(|_| parent == INodeNo::ROOT).map(|number| INodeNo(FIRST + number as u64));
        match ino.and_then(|ino| self.attributes(ino)) {
            Some(attributes) => reply.entry_with_ttls(&SIZES_STAY, &NAMES_STAY, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&SIZES_STAY, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// A disk's size, owner and mode are fixed; times are accepted and ignored.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(ino) else { return reply.error(Errno::ENOENT) };
        let changes_owner = mode.is_some() || uid.is_some() || gid.is_some();
        if changes_owner || size.is_some_and(|size| size != attributes.size) {
            return reply.error(Errno::EPERM);
        }
        reply.attr(&SIZES_STAY, &attributes);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), direct | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(disk) = self.disk(ino) else { return reply.error(Errno::EISDIR) };
        match disk.within(offset, u64::from(size)) as u32 {
            0 => reply.data(&[]),
            bytes => {
                let operation = Operation::Read { offset, bytes, fua: false };
                disk.handle.submit(disk.volume, operation, Box::new(reply));
            }
        }
    }

    /// As on a block device, a write beyond the end is cut off, or fails at the end.
    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(disk) = self.disk(ino) else { return reply.error(Errno::EISDIR) };
        let bytes = disk.within(offset, data.len() as u64) as u32;
        if bytes == 0 {
            return reply.error(Errno::ENOSPC);
        }
        let fua = flags.0 as u32 & OFlags::DSYNC.bits() != 0;
        let operation = Operation::Write { offset, data: data[..bytes as usize].to_vec(), fua };
        disk.handle.submit(disk.volume, operation, Box::new(Writer { reply, bytes }));
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let Some(disk) = self.disk(ino) else { return reply.error(Errno::EINVAL) };
        disk.handle.submit(disk.volume, Operation::Flush, Box::new(reply));
    }

    /// Holes discard blocks, zeros are written; space is never reserved.
    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(disk) = self.disk(ino) else { return reply.error(Errno::EINVAL) };
        let mode = FallocateFlags::from_bits_retain(mode as u32) - FallocateFlags::KEEP_SIZE;
        let operation = match mode {
            FallocateFlags::PUNCH_HOLE => Operation::Trim { offset, bytes },
            FallocateFlags::ZERO_RANGE => {
                Operation::WriteZeroes { offset, bytes, may_trim: true, fua: false }
            }
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        disk.handle.submit(disk.volume, operation, Box::new(reply));
    }

    fn lseek(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let Some(disk) = self.disk(ino) else { return reply.error(Errno::EINVAL) };
        let hole = match whence {
            SEEK_DATA => false,
            SEEK_HOLE => true,
            _ => return reply.error(Errno::EINVAL),
        };
        let end = disk.info.bytes();
        match u64::try_from(offset) {
            Ok(at) if at < end => {
                let (disk, volume) = (disk.handle.clone(), disk.volume);
                Seeker { reply, disk, volume, at, end, hole }.seek();
            }
            _ => reply.error(Errno::ENXIO),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let here = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let files = (FIRST..).zip(&self.disks);
        let files = files.map(|(ino, disk)| (INodeNo(ino), FileType::RegularFile, disk.info.name.as_str()));
        for (next, (ino, kind, name)) in (1..).zip(here.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// A loop device uses this block size as its discard granularity.
    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let block = self.disk(ino).or(self.disks.first()).map_or(512, |disk| disk.info.sector_bytes);
        let bytes: u64 = self.disks.iter().map(|disk| disk.info.bytes()).sum();
        reply.statfs(bytes / u64::from(block), 0, 0, self.disks.len() as u64, 0, block, 255, block);
    }
}
