//! Makes the file system, by either method.

use super::dry_run::{self, Trial};
use super::method::{self, Chosen, Reason, list_file, text};
use super::options::Options;
use super::plan::{DryRunSkipped, ExclusionMethod, Plan};
use super::tools::{self, Said};
use super::{Ext4Error, HIDDEN_FILE};
use headstack_ext4::{self as ext4, Filesystem, FormatError, Shape, State};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::Path;
use tempfile::NamedTempFile;

/// The file system that was made.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Made {
    pub method: ExclusionMethod,
    pub reason: Reason,
    pub blocks: u64,
    /// Blocks to exclude.
    pub listed: u64,
    /// Blocks to exclude that hold metadata, and so are not excluded.
    pub metadata: u64,
    /// Blocks of the list itself.
    pub list_blocks: u64,
    pub inodes: u64,
    /// Inodes that mke2fs makes with the same options if no block is excluded.
    pub plain_inodes: u64,
    /// What e2fsck found wrong; none if it is clean.
    pub fault: Option<String>,
}

impl Made {
    /// Excluded blocks.
    pub fn excluded(&self) -> u64 {
        self.listed - self.metadata
    }

    /// Excluded blocks as a share of the space.
    pub fn share(&self) -> f64 {
        (self.excluded() + self.list_blocks) as f64 / self.blocks as f64
    }
}

/// Makes the file system and checks it. If cancelled after the disk was touched, it leaves nothing there that looks like a file
/// system.
///
/// *Errors:* whatever prevents it; only [`Ext4Error::Spoiled`] comes after the disk was touched.
pub fn make(plan: &Plan<'_>) -> Result<Made, Ext4Error> {
    tools::look_for(&["mke2fs", "e2fsck", "debugfs"])?;
    let options = Options::parse(plan.options)?;
    if ![1024, 2048, 4096].contains(&plan.block_bytes) {
        return Err(Ext4Error::BlockSize(plan.block_bytes));
    }
    let plain = dry_run::plain(plan, &options)?;
    let chosen = method::choose(plan, &options, &plain.shape)?;
    if matches!(chosen, Chosen::HiddenFile { .. }) {
        if !plain.shape.has_extents {
            return Err(FormatError::Feature("no extents".to_string()).into());
        }
        dry_run_hidden_file(plan, &options)?;
    }
    let taken = match &chosen {
        Chosen::List { options, .. } => by_bad_blocks(plan, options, &plain.shape),
        Chosen::HiddenFile { .. } => by_hidden_file(plan, &options),
    };
    let made = taken.and_then(|taken| inspected(plan, &chosen, plain.inodes, taken));
    made.map_err(|error| match error {
        Ext4Error::Interrupted => erase_partial(plan.target),
        error => Ext4Error::Spoiled(Box::new(error)),
    })
}

fn erase_partial(path: &Path) -> Ext4Error {
    let done = open(path).and_then(|file| Ok(ext4::erase_head(&file)?));
    Ext4Error::Spoiled(Box::new(done.err().unwrap_or(Ext4Error::Interrupted)))
}

/// The file system on the disk now, with these numbers of listed blocks that hold metadata and of blocks of the list.
fn inspected(
    plan: &Plan<'_>,
    chosen: &Chosen,
    plain_inodes: u64,
    (metadata, list_blocks): (u64, u64),
) -> Result<Made, Ext4Error> {
    let file = open(plan.target)?;
    let made = Filesystem::open(&file)?.shape().clone();
    let (blocks, inodes) = (made.blocks, made.inodes);
    // mke2fs may omit a last piece of the disk that is too short for a group.
    let listed =
        plan.exclusion.iter().filter(|block| (made.first_block..blocks).contains(block)).count() as u64;
    drop(file);
    let fault = dry_run::fault(plan, plan.target)?;
    if fault.is_some() {
        ext4::put_state(&open(plan.target)?, State::Errors)?;
    }
    let (method, reason) = (chosen.method(), chosen.reason());
    Ok(Made { method, reason, blocks, listed, metadata, list_blocks, inodes, plain_inodes, fault })
}

/// Runs mke2fs on the disk, and marks the result as invalid until blocks are excluded.
fn format_target(plan: &Plan<'_>, options: &Options) -> Result<File, Ext4Error> {
    ext4::erase_head(&open(plan.target)?)?;
    let said = dry_run::mke2fs(plan, options, plan.target, plan.exclusion.blocks())?;
    if said.code != 0 {
        return Err(Ext4Error::Failed { program: "mke2fs", said: said.complaint() });
    }
    let file = open(plan.target)?;
    ext4::put_state(&file, State::Errors)?;
    Ok(file)
}

/// Excludes by the list of bad blocks; returns how many listed blocks hold metadata, and the blocks of the list.
fn by_bad_blocks(plan: &Plan<'_>, options: &Options, shape: &Shape) -> Result<(u64, u64), Ext4Error> {
    let file = format_target(plan, options)?;
    let there = shape.first_block..Filesystem::open(&file)?.shape().blocks;
    let rest =
        || plan.exclusion.iter().filter(|block| there.contains(block) && !method::is_taken(shape, *block));
    let free = ext4::free_blocks(&file, rest())?;
    if free.is_empty() {
        ext4::put_state(&file, State::Clean)?;
    } else {
        drop(file);
        let list = list_file(free.iter().copied())?;
        let words =
            ["-fy", "-l"].map(OsString::from).into_iter().chain([list.path().into(), plan.target.into()]);
        let said = tools::run_unless("e2fsck", &words.collect::<Vec<_>>(), plan.is_cancelled)?;
        if said.code & !1 != 0 {
            return Err(Ext4Error::Failed { program: "e2fsck", said: said.complaint() });
        }
    }
    let pointers = plan.block_bytes / 4;
    let held = plan.exclusion.count();
    Ok((rest().count() as u64 - free.len() as u64, held.div_ceil(pointers)))
}

/// Makes the hidden file in a sparse file first. For a disk larger than `DRY_RUN_BYTES`, it only tries the requested number of
/// inodes; the other options were already tried on a smaller file.
///
/// *Errors:* what would fail on the disk, and what e2fsck finds wrong.
fn dry_run_hidden_file(plan: &Plan<'_>, options: &Options) -> Result<(), Ext4Error> {
    let bytes = plan.exclusion.blocks() * plan.block_bytes;
    if bytes > dry_run::DRY_RUN_BYTES {
        (plan.tell)(DryRunSkipped::Holding);
        if !options.has(&["-N"]) {
            return Ok(());
        }
        return match dry_run::tried(plan, options)? {
            Trial::Done(()) => Ok(()),
            Trial::Refused(said) => Err(dry_run::refused(said)),
            Trial::Impossible(untried) => {
                (plan.tell)(untried);
                Ok(())
            }
        };
    }
    let scratch_file = dry_run::scratch_file(bytes).map_err(dry_run::no_scratch_file)?;
    by_hidden_file(&Plan { target: scratch_file.path(), ..*plan }, options)?;
    if let Some(fault) = dry_run::fault(plan, scratch_file.path())? {
        return Err(Ext4Error::Unclean(fault));
    }
    Ok(())
}

/// Excludes by the hidden file; returns how many listed blocks hold metadata, and the blocks of the file's extent tree.
fn by_hidden_file(plan: &Plan<'_>, options: &Options) -> Result<(u64, u64), Ext4Error> {
    drop(format_target(plan, options)?);
    // From a regular file: debugfs would allocate a block for what it reads from a device.
    let nothing = NamedTempFile::new().map_err(Ext4Error::File)?;
    debugfs(plan.target, &["-w", "-R", &format!("write \"{}\" {HIDDEN_FILE}", text(nothing.path()))])?;
    let (inode, said) = holder(plan.target)?;
    let inode = inode.ok_or_else(|| Ext4Error::Failed { program: "debugfs", said: said.complaint() })?;
    let held = ext4::hold(&open(plan.target)?, inode, || plan.exclusion.iter())?;
    Ok((held.used, held.tree_blocks))
}

/// The inode of the hidden file, if there is one, and the output of debugfs.
pub(super) fn holder(path: &Path) -> Result<(Option<u32>, Said), Ext4Error> {
    let said = debugfs(path, &["-R", &format!("stat /{HIDDEN_FILE}")])?;
    let inode = said.out.split_whitespace().skip_while(|word| *word != "Inode:").nth(1);
    let inode = inode.and_then(|word| word.parse::<u32>().ok()).filter(|inode| *inode > 0);
    Ok((inode, said))
}

fn debugfs(path: &Path, words: &[&str]) -> Result<Said, Ext4Error> {
    let words = words.iter().map(OsString::from).chain([path.into()]);
    tools::run("debugfs", &words.collect::<Vec<_>>())
}

fn open(path: &Path) -> Result<File, Ext4Error> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| Ext4Error::Target { path: path.to_path_buf(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Lbn;
    use headstack_tracks::TrackMap;
    use headstack_tracks::exclude::{Boundaries, Exclusion};
    use std::cell::RefCell;

    #[test]
    fn image_is_not_clean_until_all_blocks_are_excluded() {
        if !headstack_prerequisites::have_programs(&["mke2fs", "e2fsck", "debugfs"]) {
            return;
        }
        let mut tracks = TrackMap::new();
        tracks.push(333, 1_000);
        let view = tracks.view(Lbn(0), 1_000 * 333);
        let exclusion = Exclusion::new(view, 4096, 512, Boundaries::Every).expect("whole sectors");
        let image = dry_run::scratch_file(exclusion.blocks() * 4096).expect("there is room for a file");
        let (block_bytes, target) = (4096, image.path());
        for method in [ExclusionMethod::BadBlocks, ExclusionMethod::HiddenFile] {
            let tell = &|untried: DryRunSkipped| panic!("{untried}");
            let method = Some(method);
            let plan =
                Plan { target, exclusion, block_bytes, method, options: &[], tell, is_cancelled: &|| false };
            drop(format_target(&plan, &Options::default()).expect("there is room"));
            assert_ne!(state(target), "clean", "{method:?}");
            let made = make(&plan).expect("there is room");
            assert_eq!((made.fault, state(target).as_str()), (None, "clean"), "{method:?}");
        }
    }

    #[test]
    fn skipped_trials_are_reported() {
        let mut tracks = TrackMap::new();
        // 2⁶³ bytes, longer than a file can be.
        tracks.push(1 << 31, 1 << 23);
        let view = tracks.view(Lbn(0), 1 << 54);
        let exclusion = Exclusion::new(view, 4096, 512, Boundaries::Every).expect("whole sectors");
        let reported = RefCell::new(Vec::new());
        let plan = Plan {
            target: Path::new("/no/such/image"),
            exclusion,
            block_bytes: 4096,
            method: None,
            options: &[],
            tell: &|untried| reported.borrow_mut().push(untried.to_string()),
            is_cancelled: &|| false,
        };
        assert!(dry_run_hidden_file(&plan, &Options::default()).is_ok());
        assert_eq!(reported.borrow().len(), 1, "{reported:?}");
        // A number of inodes is not tried either.
        let options =
            Options::parse(&["-N".to_string(), "100".to_string()]).expect("it is an option of mke2fs");
        assert!(dry_run_hidden_file(&plan, &options).is_ok());
        let reported = reported.into_inner();
        assert_eq!(reported.len(), 3, "{reported:?}");
        assert!(
            reported[..2].iter().all(|reported| reported.contains("no dry run of the hidden file")),
            "{reported:?}"
        );
        assert!(
            reported[2].contains("no dry run of this file system") && reported[2].contains("takes no file")
        );
    }

    fn state(path: &Path) -> String {
        let said = debugfs(path, &["-R", "show_super_stats -h"]).expect("it is here");
        let reported = said.out.lines().find_map(|line| line.strip_prefix("Filesystem state:"));
        reported.unwrap_or_else(|| panic!("{}", said.complaint())).trim().to_string()
    }
}
