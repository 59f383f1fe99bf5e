//! Locations and paths of the files of an image or a device.

use super::{Ext4Error, make, tools};
use crate::probe::user;
use headstack_ext4::{Filesystem, Inode, each_inode};
use rustix::fs::FileType;
use std::fs::File;
use std::io;
use std::path::Path;

/// Calls `visit` for every file, folder and journal of an image or a device; returns the block size in bytes.
///
/// *Errors:* it is in use, is no ext4, or has invalid extents.
pub fn each(path: &Path, visit: impl FnMut(Inode)) -> Result<u64, Ext4Error> {
    let file = open_unused(path)?;
    tools::look_for(&["debugfs"])?;
    let filesystem = Filesystem::open(&file)?;
    let holder = make::holder(path)?.0;
    each_inode(&filesystem, holder, visit)?;
    Ok(filesystem.shape().block_bytes)
}

fn open_unused(path: &Path) -> Result<File, Ext4Error> {
    let wrong = |error: io::Error| Ext4Error::Target { path: path.to_path_buf(), error };
    let in_use = |by: String| Ext4Error::InUse { path: path.to_path_buf(), by };
    #[allow(clippy::disallowed_methods, reason = "the host has the real bytes")]
    let file = File::open(path).map_err(wrong)?;
    let found = rustix::fs::fstat(&file).map_err(|error| wrong(error.into()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => match user::user_of(found.st_rdev) {
            Some(by) => Err(in_use(by)),
            None => Ok(file),
        },
        FileType::RegularFile => match user::loop_over(&found) {
            Some(device) => Err(in_use(format!("{device} is a loop device over it"))),
            None => Ok(file),
        },
        _ => Err(wrong(io::Error::other("it is neither a block device nor a file"))),
    }
}

/// Paths of the inodes that have one.
///
/// *Errors:* debugfs cannot be run.
pub fn paths(path: &Path, inodes: &[u32]) -> Result<Vec<(u32, String)>, Ext4Error> {
    if inodes.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = inodes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let said =
        tools::run("debugfs", &["-R".as_ref(), format!("ncheck {numbers}").as_ref(), path.as_os_str()])?;
    let lines = said.out.lines().filter_map(|line| line.split_once('\t'));
    // debugfs prints a second `/` before names in the root.
    let path = |path: &str| format!("/{}", path.trim_start_matches('/'));
    Ok(lines.filter_map(|(inode, named)| Some((inode.trim().parse().ok()?, path(named)))).collect())
}
