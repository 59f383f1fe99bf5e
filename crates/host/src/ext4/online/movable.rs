//! Which files of a mounted ext4 can move, and where they lie.

use crate::extents::{self, FileExtent};
use headstack_tracks::relocate::Mapping;
use rustix::fs::IFlags;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// `EXT4_EXTENTS_FL`, `EXT4_ENCRYPT_FL`, `EXT4_VERITY_FL` and `EXT4_INLINE_DATA_FL` of a file's flags.
///
/// *Source:* Linux `fs/ext4/ext4.h`.
const EXTENTS: u32 = 0x8_0000;
const ENCRYPTED: u32 = 0x800;
const VERITY: u32 = 0x10_0000;
const INLINE_DATA: u32 = 0x1000_0000;

/// Why a file stays where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unmovable {
    /// The attribute `i`.
    #[error("immutable (chattr -i makes it movable)")]
    Immutable,
    /// The attribute `a`.
    #[error("append-only (chattr -a makes it movable)")]
    AppendOnly,
    /// The attribute `j`: the kernel exchanges no blocks of files with journaled data.
    #[error("with journaled data (chattr -j makes it movable)")]
    JournaledData,
    /// Block lists, as of ext3.
    #[error("without extents (chattr +e converts it)")]
    WithoutExtents,
    /// Its data are in the inode.
    #[error("stored in its inode")]
    Inline,
    /// Encrypted: the key of each block depends on its place in the file, and the kernel exchanges none.
    #[error("encrypted")]
    Encrypted,
    /// Sealed by fs-verity.
    #[error("sealed by fs-verity")]
    Sealed,
    /// A swap file.
    #[error("in use as swap")]
    Swap,
    /// Its program runs.
    #[error("in use by a running program")]
    Running,
    /// Pages of it are held.
    #[error("busy; run the command again")]
    Busy,
    /// No permission to write it.
    #[error("no permission to write")]
    Denied,
    /// It was cut off, deleted or written since its extents were read.
    #[error("changed meanwhile; run the command again")]
    Changed,
    /// Any other failure.
    #[error("{0}")]
    Other(String),
}

impl From<io::Error> for Unmovable {
    fn from(error: io::Error) -> Unmovable {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Unmovable::Denied,
            Some(libc::EBUSY) => Unmovable::Busy,
            Some(libc::EINVAL | libc::ENODATA | libc::ENOENT) => Unmovable::Changed,
            _ => Unmovable::Other(error.to_string()),
        }
    }
}

/// Device and inode of each swap file of the system.
#[derive(Clone, Debug, Default)]
pub struct SwapFiles(BTreeSet<(u64, u64)>);

impl SwapFiles {
    /// Reads the list of swap files from the system.
    #[allow(clippy::disallowed_methods, reason = "the system lists them in a file")]
    pub fn read() -> SwapFiles {
        let listed = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let found = listed
            .lines()
            .skip(1)
            .filter_map(path_of_swap)
            .filter_map(|path| rustix::fs::stat(path).ok().map(|found| (found.st_dev, found.st_ino)));
        SwapFiles(found.collect())
    }
}

/// The path in a line of /proc/swaps, in which blanks are escaped.
fn path_of_swap(line: &str) -> Option<String> {
    let path = line.split_whitespace().next()?;
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    Some(escapes.iter().fold(path.to_string(), |path, (escape, blank)| path.replace(escape, blank)))
}

/// A file that can move.
#[derive(Debug)]
pub struct MovableFile {
    /// Open for reading and writing.
    pub(super) file: File,
    block_bytes: u64,
    mappings: Vec<Mapping>,
}

impl MovableFile {
    /// Opens a file, writes its data to the disk, and finds its extents.
    ///
    /// *Errors:* why it cannot move.
    pub fn open(path: &Path, block_bytes: u64, swaps: &SwapFiles) -> Result<MovableFile, Unmovable> {
        #[allow(clippy::disallowed_methods, reason = "its flags are read first")]
        let file = File::open(path)?;
        let found = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        if swaps.0.contains(&(found.st_dev, found.st_ino)) {
            return Err(Unmovable::Swap);
        }
        let flags = rustix::fs::ioctl_getflags(&file).map_err(io::Error::from)?;
        if let Some(reason) = reason_in(flags) {
            return Err(reason);
        }
        #[allow(clippy::disallowed_methods, reason = "the exchange requires an open file")]
        let file = File::options().read(true).write(true).open(path).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::ETXTBSY) => Unmovable::Running,
                _ => error.into(),
            }
        })?;
        let mut opened = MovableFile { file, block_bytes, mappings: Vec::new() };
        opened.refresh()?;
        Ok(opened)
    }

    /// Its extents in blocks of the file system, in the file's order.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Reads the file's extents again.
    ///
    /// *Errors:* the system reports none.
    pub(super) fn refresh(&mut self) -> Result<(), Unmovable> {
        let found = extents::written_extents_of(&self.file).map_err(Unmovable::Other)?;
        self.mappings = found.extents.iter().map(|extent| mapping(extent, self.block_bytes)).collect();
        Ok(())
    }
}

/// An extent in blocks.
pub(super) fn mapping(extent: &FileExtent, block_bytes: u64) -> Mapping {
    let FileExtent { logical, device } = extent;
    Mapping {
        logical: logical / block_bytes,
        blocks: device.start / block_bytes..device.end.div_ceil(block_bytes),
    }
}

/// Why a file with these flags cannot move.
fn reason_in(flags: IFlags) -> Option<Unmovable> {
    let has = |bits: u32| flags.bits() & bits != 0;
    Some(match () {
        () if flags.contains(IFlags::IMMUTABLE) => Unmovable::Immutable,
        () if flags.contains(IFlags::APPEND) => Unmovable::AppendOnly,
        () if flags.contains(IFlags::JOURNALING) => Unmovable::JournaledData,
        () if has(ENCRYPTED) => Unmovable::Encrypted,
        () if has(VERITY) => Unmovable::Sealed,
        () if has(INLINE_DATA) => Unmovable::Inline,
        () if !has(EXTENTS) => Unmovable::WithoutExtents,
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_file_give_the_reason() {
        let flags = |bits: u32| IFlags::from_bits_retain(bits);
        assert_eq!(reason_in(flags(EXTENTS)), None);
        assert_eq!(reason_in(flags(0)), Some(Unmovable::WithoutExtents));
        assert_eq!(reason_in(flags(EXTENTS) | IFlags::IMMUTABLE), Some(Unmovable::Immutable));
        assert_eq!(reason_in(flags(EXTENTS | ENCRYPTED)), Some(Unmovable::Encrypted));
        assert_eq!(reason_in(flags(INLINE_DATA)), Some(Unmovable::Inline));
    }

    #[test]
    fn swap_path_is_read_with_its_blanks() {
        let line = "/mnt/a\\040b                             file\t\t1024\t0\t-2";
        assert_eq!(path_of_swap(line).as_deref(), Some("/mnt/a b"));
        assert_eq!(path_of_swap(""), None);
    }
}
