//! How an ext4 excludes blocks: the list of bad blocks where that costs no inodes, else the hidden file.
//!
//! mke2fs lays each group's table of inodes in one piece, and no block of it may be bad. Where tracks are shorter than that table (2 MiB
//! for the usual 8,192 inodes of 256 bytes), a list of bad blocks leaves room for shorter tables only, and so for fewer inodes. The
//! hidden file is filled after mke2fs has laid its tables, and costs none.
//!
//! Groups so short that their tables fit would keep the inodes, too. They are not made: descriptors of a hundred thousand groups would lie
//! on blocks at boundaries themselves.

use super::Ext4Error;
use super::dry_run::{Trial, formatted, refused, tried};
use super::options::Options;
use super::plan::{ExclusionMethod, Plan};
use headstack_ext4::Shape;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// Bytes of the longest list of bad blocks: the inode that holds it is no large file.
const MOST_BAD_BYTES: u64 = (1 << 31) - 1;
/// Gaps of a length that is seldom are not waited for: tables lie elsewhere.
const SELDOM: u64 = 64;
/// Options of mke2fs that say how many inodes there are.
const INODE_OPTIONS: [&str; 4] = ["-N", "-i", "-g", "-T"];

/// Why this method was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user asked for it.
    Asked,
    /// The list of bad blocks holds all blocks and costs no inodes.
    ListSuffices,
    /// There are more blocks than the list holds.
    ListTooShort {
        /// How many it holds.
        most: u64,
    },
    /// The list is for less than 2³² blocks.
    DiskTooLarge,
    /// A group's table of inodes does not fit between two blocks that are left out.
    ListCostsInodes {
        /// Blocks of the table.
        table_blocks: u64,
    },
    /// Whether the list costs inodes is not known, as it cannot be tried beside the disk.
    ListUntried,
}

pub(super) enum Chosen {
    List {
        options: Options,
        /// Named by the options; there until mke2fs has read it.
        _list: NamedTempFile,
        reason: Reason,
    },
    HiddenFile {
        reason: Reason,
    },
}

impl Chosen {
    pub(super) fn method(&self) -> ExclusionMethod {
        match self {
            Chosen::List { .. } => ExclusionMethod::BadBlocks,
            Chosen::HiddenFile { .. } => ExclusionMethod::HiddenFile,
        }
    }

    pub(super) fn reason(&self) -> Reason {
        match self {
            Chosen::List { reason, .. } | Chosen::HiddenFile { reason } => *reason,
        }
    }
}

/// Chooses the method that was requested, or the one that costs nothing.
///
/// *Errors:* the list cannot hold the blocks and was asked for; mke2fs cannot make it so.
pub(super) fn choose(plan: &Plan<'_>, options: &Options, shape: &Shape) -> Result<Chosen, Ext4Error> {
    let limit = limit_of_list(plan);
    match (plan.method, limit) {
        (Some(ExclusionMethod::HiddenFile), _) => Ok(Chosen::HiddenFile { reason: Reason::Asked }),
        (Some(ExclusionMethod::BadBlocks), Some(limit)) => Err(match limit {
            Reason::ListTooShort { most } => Ext4Error::TooMany { excluded: plan.exclusion.count(), most },
            _ => Ext4Error::TooLarge { blocks: plan.exclusion.blocks() },
        }),
        (None, Some(reason)) => Ok(Chosen::HiddenFile { reason }),
        (Some(ExclusionMethod::BadBlocks), None) => {
            let (options, list) = with_list(plan, options, shape)?;
            let options = with_tables_that_fit(plan, options, shape)?;
            Ok(Chosen::List { options, _list: list, reason: Reason::Asked })
        }
        (None, None) => {
            let (options, list) = with_list(plan, options, shape)?;
            Ok(match tried(plan, &options)? {
                Trial::Done(()) => Chosen::List { options, _list: list, reason: Reason::ListSuffices },
                Trial::Refused(_) => {
                    let table_blocks = shape.inode_table_blocks();
                    Chosen::HiddenFile { reason: Reason::ListCostsInodes { table_blocks } }
                }
                Trial::Impossible(_) => Chosen::HiddenFile { reason: Reason::ListUntried },
            })
        }
    }
}

/// Why the list cannot hold the blocks, if so.
fn limit_of_list(plan: &Plan<'_>) -> Option<Reason> {
    let most = MOST_BAD_BYTES / plan.block_bytes;
    match () {
        () if plan.exclusion.count() > most => Some(Reason::ListTooShort { most }),
        () if plan.exclusion.blocks() > u64::from(u32::MAX) => Some(Reason::DiskTooLarge),
        () => None,
    }
}

/// The options with the list of bad blocks, and the list.
fn with_list(
    plan: &Plan<'_>,
    options: &Options,
    shape: &Shape,
) -> Result<(Options, NamedTempFile), Ext4Error> {
    let list = list_file(plan.exclusion.iter().filter(|block| is_taken(shape, *block)))?;
    // Reserved descriptors of copies would meet bad blocks.
    Ok((options.with_feature("^resize_inode").with("-l", text(list.path())), list))
}

/// A list for mke2fs and e2fsck.
pub(super) fn list_file(blocks: impl Iterator<Item = u64>) -> Result<NamedTempFile, Ext4Error> {
    let file = NamedTempFile::new().map_err(Ext4Error::File)?;
    let mut out = std::io::BufWriter::new(file);
    let mut blocks = blocks;
    let written = blocks.try_for_each(|block| writeln!(out, "{block}"));
    written.map_err(Ext4Error::File)?;
    out.into_inner().map_err(|error| Ext4Error::File(error.into_error()))
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Whether mke2fs takes a bad block there: not where it may put copies of the superblock, nor in a last group that it may leave away.
pub(super) fn is_taken(shape: &Shape, block: u64) -> bool {
    if block < shape.first_block {
        return false;
    }
    let head = shape.head_blocks();
    let tail = head + shape.inode_table_blocks() + 64;
    let group = shape.group_of(block);
    let is_last = group + 1 >= shape.groups();
    block - shape.group_start(group) >= head && (!is_last || shape.blocks_in(group) > tail)
}

/// The options, if a group's table of inodes fits between two blocks that are left out; else with as many inodes as fit. Where that
/// cannot be tried, a table is as long as the usual gap.
///
/// *Errors:* mke2fs cannot make it, however few there are, or not as many as the options ask for.
fn with_tables_that_fit(plan: &Plan<'_>, options: Options, shape: &Shape) -> Result<Options, Ext4Error> {
    // mke2fs has a multiple of eight inodes in a group, and whole blocks of them.
    let unit = (plan.block_bytes / shape.inode_bytes).max(8);
    let with_inodes = |units: u64| options.clone().with("-N", (units * unit * shape.groups()).to_string());
    let usual = shape.group_inodes / unit;
    let said = match tried(plan, &options)? {
        Trial::Done(()) => return Ok(options),
        Trial::Refused(said) => said,
        Trial::Impossible(untried) => {
            (plan.tell)(untried);
            let gap = usual_gap(plan.exclusion.iter()) * plan.block_bytes / shape.inode_bytes / unit;
            let is_given = options.has(&INODE_OPTIONS);
            return Ok(if is_given || gap >= usual { options } else { with_inodes(gap.max(1)) });
        }
    };
    if options.has(&INODE_OPTIONS) {
        return Err(refused(said));
    }
    let (mut fits, mut fails) = (0, usual);
    while fails - fits > 1 {
        let middle = (fits + fails) / 2;
        match formatted(plan, &with_inodes(middle))? {
            Trial::Done(_) => fits = middle,
            Trial::Refused(_) | Trial::Impossible(_) => fails = middle,
        }
    }
    match tried(plan, &with_inodes(fits.max(1)))? {
        Trial::Done(()) => Ok(with_inodes(fits.max(1))),
        Trial::Refused(_) | Trial::Impossible(_) => Err(refused(said)),
    }
}

/// The shortest run of blocks between two that are left out, of those that come often.
fn usual_gap(list: impl Iterator<Item = u64>) -> u64 {
    let mut gaps: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut next, mut all) = (0, 0);
    for block in list {
        *gaps.entry(block - next).or_default() += 1;
        (next, all) = (block + 1, all + 1);
    }
    let often = SELDOM.min(all / 4);
    gaps.into_iter().find(|(_, count)| *count > often).map_or(u64::MAX >> 20, |(gap, _)| gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_gap_ignores_a_few_short_tracks() {
        let mut at = 0;
        let lengths = (0..1000).map(|k| {
            if k % 100 == 7 {
                3
            } else if k < 500 {
                61
            } else {
                50
            }
        });
        let list: Vec<u64> = lengths
            .map(|length| {
                at += length;
                at - 1
            })
            .collect();
        assert_eq!(usual_gap(list.into_iter()), 49);
        assert_eq!(usual_gap([9, 19].into_iter()), 9);
        assert!(usual_gap(std::iter::empty()) > 1 << 40);
    }
}
