//! Dry runs: mke2fs and e2fsck make and check a file system in a sparse file before the disk is touched.

use super::Ext4Error;
use super::options::Options;
use super::plan::{DryRunSkipped, Plan};
use super::tools::{self, Said};
use headstack_ext4::{Filesystem, Shape};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// Maximum size in bytes of the file in which mke2fs shows the effect of its options.
pub(super) const DRY_RUN_BYTES: u64 = 64 << 30;

/// The file system that mke2fs makes with these options if no block is excluded.
pub(super) struct Plain {
    pub(super) shape: Shape,
    pub(super) inodes: u64,
}

/// Makes that file system in a sparse file to learn its shape. Numbers that depend on the size are those of the disk.
pub(super) fn plain(plan: &Plan<'_>, options: &Options) -> Result<Plain, Ext4Error> {
    let blocks = plan.exclusion.blocks();
    let some = blocks.min(DRY_RUN_BYTES / plan.block_bytes);
    let scratch_file = scratch_file(some * plan.block_bytes).map_err(no_scratch_file)?;
    // The requested number of inodes may be too high for a smaller disk.
    let options_here = if some == blocks { options.clone() } else { options.without("-N") };
    let said = mke2fs(plan, &options_here, scratch_file.path(), some)?;
    if said.code != 0 {
        return Err(refused(said.complaint()));
    }
    // With `-n`, mke2fs on the disk itself only reports the number of inodes.
    let said = mke2fs(plan, &options.clone().with_flag("-n"), plan.target, blocks)?;
    if said.code != 0 {
        return Err(refused(said.complaint()));
    }
    let inodes = inodes_announced(&said.out).ok_or_else(|| refused(said.complaint()))?;
    Ok(Plain { shape: Filesystem::open(scratch_file.as_file())?.shape().with_blocks(blocks), inodes })
}

/// The number of inodes that mke2fs announces: `Creating filesystem with 1110992 4k blocks and 277984 inodes`.
fn inodes_announced(out: &str) -> Option<u64> {
    let line = out.lines().find(|line| line.starts_with("Creating filesystem with"))?;
    line.strip_suffix(" inodes")?.rsplit(' ').next()?.parse().ok()
}

pub(super) fn refused(said: String) -> Ext4Error {
    Ext4Error::DryRun { program: "mke2fs", said }
}

/// Runs mke2fs on a file or device of `blocks` blocks.
pub(super) fn mke2fs(
    plan: &Plan<'_>,
    options: &Options,
    target: &Path,
    blocks: u64,
) -> Result<Said, Ext4Error> {
    let mut words: Vec<OsString> = ["-F", "-t", "ext4", "-b"].map(OsString::from).to_vec();
    words.push(plan.block_bytes.to_string().into());
    words.extend(options.words().into_iter().map(OsString::from));
    words.extend([OsString::from("--"), target.into(), blocks.to_string().into()]);
    tools::run_unless("mke2fs", &words, plan.is_cancelled)
}

/// What e2fsck finds wrong.
pub(super) fn fault(plan: &Plan<'_>, path: &Path) -> Result<Option<String>, Ext4Error> {
    let said = tools::run_unless("e2fsck", &[OsString::from("-fn"), path.into()], plan.is_cancelled)?;
    Ok((said.code != 0).then(|| said.complaint()))
}

/// A temporary sparse file of `bytes` bytes.
pub(super) fn scratch_file(bytes: u64) -> Result<NamedTempFile, io::Error> {
    let file = NamedTempFile::new()?;
    file.as_file().set_len(bytes)?;
    Ok(file)
}

pub(super) fn no_scratch_file(error: io::Error) -> Ext4Error {
    Ext4Error::ScratchFile { folder: std::env::temp_dir(), error }
}

/// Result of a dry run in a sparse file as long as the disk.
pub(super) enum Trial<T> {
    /// mke2fs succeeded.
    Done(T),
    /// mke2fs refused, with its message.
    Refused(String),
    /// No file can be as long as the disk.
    Impossible(DryRunSkipped),
}

/// Runs mke2fs on a sparse file.
pub(super) fn formatted(plan: &Plan<'_>, options: &Options) -> Result<Trial<NamedTempFile>, Ext4Error> {
    let blocks = plan.exclusion.blocks();
    let scratch_file = match scratch_file(blocks * plan.block_bytes) {
        Ok(scratch_file) => scratch_file,
        Err(error) => {
            return Ok(Trial::Impossible(DryRunSkipped::All { folder: std::env::temp_dir(), error }));
        }
    };
    let said = mke2fs(plan, options, scratch_file.path(), blocks)?;
    Ok(match said.code {
        0 => Trial::Done(scratch_file),
        _ => Trial::Refused(said.complaint()),
    })
}

/// Runs mke2fs on a sparse file, and e2fsck on the result.
///
/// *Errors:* e2fsck finds a fault.
pub(super) fn tried(plan: &Plan<'_>, options: &Options) -> Result<Trial<()>, Ext4Error> {
    let scratch_file = match formatted(plan, options)? {
        Trial::Done(scratch_file) => scratch_file,
        Trial::Refused(said) => return Ok(Trial::Refused(said)),
        Trial::Impossible(untried) => return Ok(Trial::Impossible(untried)),
    };
    match fault(plan, scratch_file.path())? {
        None => Ok(Trial::Done(())),
        Some(fault) => Err(Ext4Error::Unclean(fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inode_count_is_read_from_mke2fs_output() {
        let out = "mke2fs 1.47.0 (5-Feb-2023)\nCreating filesystem with 1110992 4k blocks and 277984 inodes\nFilesystem UUID: 7\n";
        assert_eq!(inodes_announced(out), Some(277_984));
        assert_eq!(inodes_announced("mke2fs 1.47.0\n"), None);
    }
}
