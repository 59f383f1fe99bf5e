//! A block device or a file as a disk: how it is opened, and all operations except transfers.

use super::Opening;
use crate::disk::stored_disk_bytes;
use crate::node::bytes::pages;
use crate::node::messages::Shape;
use crate::{BlockError, StatusExtent};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, ioctl_blksszget};
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

#[derive(Debug)]
pub(super) struct Place {
    pub(super) file: File,
    pub(super) shape: Shape,
    pub(super) title: String,
    /// Whether transfers bypass the system's page cache. Their memory must then be whole aligned blocks.
    pub(super) direct: bool,
}

/// Block sizes tried for direct transfers, the smallest first.
const BLOCKS: [u32; 4] = [512, 1024, 2048, 4096];

impl Place {
    /// Opens a path; adds to `notes` what differs from the request.
    ///
    /// *Errors:* nothing there that can be a disk; it is in use; the system refuses it. Each names the path.
    pub(super) fn open(path: &Path, opening: Opening, notes: &mut Vec<String>) -> io::Result<Place> {
        let title = path.display().to_string();
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{title}: {error}"));
        let found = path.metadata().map_err(at)?;
        let kind = found.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "a directory" } else { "no disk" };
            return Err(at(wrong(&format!("it is {what}; a block device or a file can be served"))));
        }
        let is_device = kind.is_block_device();
        let protected = opening.read_only || is_device && is_protected(found.rdev());
        let (file, read_only) = open(path, is_device, protected).map_err(at)?;
        if read_only && !opening.read_only {
            notes.push(format!("{title}: writing is not allowed: it is read-only"));
        }
        let mut place =
            Place { shape: shape(&file, is_device, read_only).map_err(at)?, file, title, direct: false };
        if !opening.buffered {
            match place.go_direct() {
                Ok(()) => place.direct = true,
                Err(error) => {
                    notes.push(format!(
                        "{}: direct I/O is refused ({error}): it goes through the page cache",
                        place.title
                    ));
                }
            }
        }
        Ok(place)
    }

    /// Makes transfers bypass the page cache, with the smallest block that the system accepts.
    fn go_direct(&mut self) -> io::Result<()> {
        let flags = fcntl_getfl(&self.file)?;
        fcntl_setfl(&self.file, flags | OFlags::DIRECT)?;
        let mut room = pages(4096);
        let mut refused = io::Error::from(Errno::INVAL);
        for block in BLOCKS.into_iter().filter(|block| *block >= self.shape.block_bytes) {
            if !self.shape.bytes.is_multiple_of(u64::from(block)) {
                break;
            }
            match self.file.read_exact_at(&mut room[..block as usize], 0) {
                Ok(()) => {
                    self.shape.block_bytes = block;
                    return Ok(());
                }
                Err(error) => refused = error,
            }
        }
        fcntl_setfl(&self.file, flags)?;
        Err(refused)
    }

    /// Makes a run zeros, or discards it. Does nothing if the system does not support it.
    pub(super) fn allocate(&self, offset: u64, bytes: u64, may_trim: bool) -> Result<(), Errno> {
        rustix::fs::fallocate(&self.file, change(may_trim), offset, bytes)
    }

    /// Reads whole pages. The memory that direct transfers need is aligned.
    pub(super) fn read_pages(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut room = pages(into.len());
        self.file.read_exact_at(&mut room[..into.len()], offset)?;
        into.copy_from_slice(&room[..into.len()]);
        Ok(())
    }

    pub(super) fn block_status(&self, offset: u64, bytes: u64) -> Vec<StatusExtent> {
        allocation(&self.file, offset, bytes, Place::MAX_EXTENTS)
    }

    /// Maximum number of extents in an answer.
    const MAX_EXTENTS: usize = 128;
}

/// The system's flags for zeros.
pub(super) fn change(may_trim: bool) -> FallocateFlags {
    let how = if may_trim { FallocateFlags::PUNCH_HOLE } else { FallocateFlags::ZERO_RANGE };
    how | FallocateFlags::KEEP_SIZE
}

/// Whether the error means that the system does not support the operation, as opposed to a failure.
pub(super) fn is_unknown(error: Errno) -> bool {
    [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS, Errno::NODEV].contains(&error)
}

pub(super) fn failure(error: Errno) -> BlockError {
    match error {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => BlockError::NoSpace,
        Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN => BlockError::Dead,
        Errno::INVAL | Errno::OPNOTSUPP => BlockError::Invalid,
        Errno::ROFS | Errno::PERM => BlockError::ReadOnly,
        _ => BlockError::Medium,
    }
}

/// Extents of data and holes from `offset` on, at most `most`; the list may end early. Without support for holes, all is data.
pub(crate) fn allocation(file: &File, offset: u64, bytes: u64, most: usize) -> Vec<StatusExtent> {
    let (mut at, end, mut extents) = (offset, offset + bytes, Vec::new());
    while at < end && extents.len() < most {
        let (hole, next) = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) if data > at => (true, data),
            Ok(_) => (false, rustix::fs::seek(file, SeekFrom::Hole(at)).unwrap_or(end)),
            // There are no more data.
            Err(Errno::NXIO) => (true, end),
            Err(_) => (false, end),
        };
        let next = next.min(end);
        extents.push(StatusExtent { bytes: next - at, hole });
        at = next;
    }
    extents
}

fn wrong(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Opens a file exclusively, read-only if writing is not allowed; returns whether it is.
fn open(path: &Path, is_device: bool, read_only: bool) -> io::Result<(File, bool)> {
    // For a device, the kernel then refuses one that is mounted or claimed.
    let flags = if is_device { OFlags::EXCL } else { OFlags::empty() };
    let open =
        |write| OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(path);
    let no_writes = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    let found = match open(!read_only) {
        Ok(file) => Ok((file, read_only)),
        Err(error) if !read_only && no_writes.contains(&error.kind()) => open(false).map(|file| (file, true)),
        Err(error) => Err(error),
    };
    let (file, read_only) = found.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => {
            io::Error::new(error.kind(), "it is mounted, or another program has it")
        }
        _ => error,
    })?;
    let locked = if read_only { file.try_lock_shared() } else { file.try_lock() };
    match locked {
        Ok(()) => Ok((file, read_only)),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{} has it as a disk", holder(&file))))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The owner of a file's lock, if the system reports it.
fn holder(file: &File) -> String {
    #[allow(clippy::disallowed_methods, reason = "the system lists locks in a file")]
    let reported = std::fs::read_to_string("/proc/locks");
    let process =
        reported.ok().zip(file.metadata().ok()).and_then(|(locks, found)| process_of(&locks, &found));
    #[allow(clippy::disallowed_methods, reason = "the system describes processes in files")]
    let name = process.and_then(|process| std::fs::read_to_string(format!("/proc/{process}/comm")).ok());
    match (process, name) {
        (Some(process), Some(name)) => {
            format!("another program ({}, process {process})", name.trim().escape_debug())
        }
        (Some(process), None) => format!("another program (process {process})"),
        (None, _) => "another program".to_string(),
    }
}

/// The process with a lock of a file, from lines of `/proc/locks`: `1: FLOCK ADVISORY WRITE 7012 fe:01:1835 0 EOF`.
fn process_of(locks: &str, file: &Metadata) -> Option<u32> {
    let (device, inode) = (file.dev(), file.ino());
    let place = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(device), rustix::fs::minor(device));
    let of = |line: &str| {
        let mut fields = line.split_whitespace().skip_while(|field| *field != "FLOCK").skip(3);
        let process = fields.next()?.parse().ok()?;
        (fields.next()? == place).then_some(process)
    };
    locks.lines().find_map(of)
}

/// Whether the system reports a block device as read-only: some such devices can still be opened for writing.
fn is_protected(number: u64) -> bool {
    let path = format!("/sys/dev/block/{}:{}/ro", rustix::fs::major(number), rustix::fs::minor(number));
    #[allow(clippy::disallowed_methods, reason = "the system describes its devices in files")]
    let reported = std::fs::read_to_string(path);
    reported.is_ok_and(|reported| reported.trim() == "1")
}

fn shape(file: &File, is_device: bool, read_only: bool) -> io::Result<Shape> {
    let bytes = rustix::fs::seek(file, SeekFrom::End(0))?;
    // What follows an emulated disk's data in its file is not part of the disk.
    let bytes = if is_device { bytes } else { stored_disk_bytes(file, bytes)? };
    let block_bytes = if is_device { ioctl_blksszget(file)? } else { BLOCKS[0] };
    if bytes == 0 || !bytes.is_multiple_of(u64::from(block_bytes)) {
        return Err(wrong(&format!("it has {bytes} bytes, where blocks of {block_bytes} are served")));
    }
    Ok(Shape { bytes, block_bytes, read_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        let opened = Place::open(path, Opening::default(), &mut Vec::new());
        let reported = opened.expect_err("it is no disk").to_string();
        reported.strip_prefix(&format!("{}: ", path.display())).expect("the error names the path").to_string()
    }

    #[test]
    fn path_that_is_no_disk_or_in_use_is_rejected() {
        let folder = tempfile::tempdir().expect("there is room for it");
        let path = folder.path().join("disk");
        assert!(refused(&path).starts_with("No such file"), "{}", refused(&path));
        assert_eq!(refused(folder.path()), "it is a directory; a block device or a file can be served");
        assert_eq!(refused(Path::new("/dev/null")), "it is no disk; a block device or a file can be served");
        let file = OpenOptions::new().write(true).create_new(true).open(&path).expect("it is new");
        assert_eq!(refused(&path), "it has 0 bytes, where blocks of 512 are served");
        file.set_len(1000).expect("there is room");
        assert_eq!(refused(&path), "it has 1000 bytes, where blocks of 512 are served");
        file.set_len(4096).expect("there is room");
        file.try_lock().expect("the file is not locked");
        let own = std::process::id();
        let reported = refused(&path);
        assert!(
            reported.starts_with("another program (")
                && reported.ends_with(&format!(", process {own}) has it as a disk")),
            "{reported}"
        );
    }

    #[test]
    fn lock_holder_is_found_in_the_kernel_list() {
        let file = tempfile::tempfile().expect("there is room for it").metadata().expect("it is open");
        let (device, inode) = (file.dev(), file.ino());
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let list = format!(
            "1: POSIX  ADVISORY  WRITE 17 {major:02x}:{minor:02x}:{inode} 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 18 {major:02x}:{minor:02x}:{} 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 20 {major:02x}:{minor:02x}:{inode} 0 EOF\n",
            inode + 1
        );
        assert_eq!(process_of(&list, &file), Some(20));
        assert_eq!(process_of("", &file), None);
    }

    #[test]
    fn holes_are_reported_and_created() {
        let folder = tempfile::tempdir().expect("there is room for it");
        let path = folder.path().join("disk");
        let file = OpenOptions::new().write(true).create_new(true).open(&path).expect("it is new");
        file.set_len(1 << 20).expect("there is room");
        file.write_all_at(&[7; 128 << 10], 256 << 10).expect("there is room");
        drop(file);
        let buffered = Opening { buffered: true, ..Opening::default() };
        let place = Place::open(&path, buffered, &mut Vec::new()).expect("it is a file");
        let [hole, data] = [true, false].map(|hole| move |kib: u64| StatusExtent { bytes: kib << 10, hole });
        assert_eq!(place.block_status(0, 1 << 20), [hole(256), data(128), hole(640)]);
        place.allocate(256 << 10, 64 << 10, true).expect("file systems of tests know holes");
        assert_eq!(place.block_status(256 << 10, 128 << 10), [hole(64), data(64)]);
    }
}
