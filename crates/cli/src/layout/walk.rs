//! Finds the files that a command's arguments name.

use crate::failure::Failure;
use headstack_host::ext4::HIDDEN_FILE;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Inode of the root of any ext4.
const EXT4_ROOT: u64 = 2;

/// The named files and those below named folders, and the hidden files with excluded blocks below folders.
pub(super) fn found(named: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let (mut paths, mut left_out) = (Vec::new(), Vec::new());
    for named in named {
        for entry in WalkDir::new(named).same_file_system(true).sort_by_file_name() {
            let entry = entry.map_err(|error| {
                let place = error.path().unwrap_or(named).display().to_string();
                Failure::Input(match error.into_io_error() {
                    Some(error) => format!("{place}: {error}"),
                    None => format!("{place}: its folders lead in a circle"),
                })
            })?;
            let is_named = entry.depth() == 0;
            let is_file = if is_named {
                // A named link stands for its target.
                std::fs::metadata(entry.path()).is_ok_and(|found| found.is_file())
            } else {
                entry.file_type().is_file()
            };
            if is_file && !is_named && is_holder(entry.path()) {
                left_out.push(entry.into_path());
            } else if is_file {
                paths.push(entry.into_path());
            } else if is_named && !entry.path().is_dir() {
                return Err(Failure::Input(format!("{}: is neither a file nor a folder", named.display())));
            }
        }
    }
    if paths.is_empty() {
        Err(Failure::Input("there are no files in what was named".to_string()))
    } else {
        Ok((paths, left_out))
    }
}

/// Whether a file is the hidden file of `layout mkfs` in the root of a file system. That file lies on boundaries, but is never read.
fn is_holder(path: &Path) -> bool {
    let is_root = |folder: &Path| std::fs::metadata(folder).is_ok_and(|found| found.ino() == EXT4_ROOT);
    path.file_name().is_some_and(|name| name == HIDDEN_FILE) && path.parent().is_some_and(is_root)
}
