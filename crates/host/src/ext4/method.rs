//! How an ext4 excludes blocks: the list of bad blocks if that costs no inodes, else the hidden file.
//!
//! mke2fs lays each group's table of inodes in one run without bad blocks. Where tracks are shorter than that table (2 MiB for
//! the usual 8,192 inodes of 256 bytes), a list of bad blocks leaves room only for shorter tables with fewer inodes. The hidden
//! file is filled after mke2fs has laid the tables, and costs none.
//!
//! Groups with tables that fit would keep the inodes, too, but the descriptors of a hundred thousand groups would themselves span
//! track boundaries.

use super::Ext4Error;
use super::dry_run::{Trial, formatted, refused, tried};
use super::options::Options;
use super::plan::{ExclusionMethod, Plan};
use headstack_ext4::Shape;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// Maximum bytes of the list of bad blocks: its inode is not a large file.
const MOST_BAD_BYTES: u64 = (1 << 31) - 1;
/// Gap lengths that occur at most this often, or in at most a quarter of the gaps, are ignored: tables can lie elsewhere.
const SELDOM: u64 = 64;
/// Options of mke2fs that set the number of inodes.
const INODE_OPTIONS: [&str; 4] = ["-N", "-i", "-g", "-T"];

/// Why a method was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user requested it.
    Asked,
    /// The list of bad blocks holds all blocks and costs no inodes.
    ListSuffices,
    /// There are more blocks than the list can hold.
    ListTooShort {
        /// Blocks that the list can hold.
        most: u64,
    },
    /// The list supports less than 2³² blocks.
    DiskTooLarge,
    /// A group's table of inodes does not fit between two excluded blocks.
    ListCostsInodes {
        /// Blocks of the table.
        table_blocks: u64,
    },
    /// Whether the list costs inodes is unknown, because no dry run is possible.
    ListUntried,
}

pub(super) enum Chosen {
    List {
        options: Options,
        /// A file that the options name; kept until mke2fs has read it.
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

/// The requested method, or the one that costs no inodes.
///
/// *Errors:* the list was requested and cannot hold the blocks; mke2fs refuses.
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

/// Why the list cannot hold the blocks, if it cannot.
fn limit_of_list(plan: &Plan<'_>) -> Option<Reason> {
    let most = MOST_BAD_BYTES / plan.block_bytes;
    match () {
        () if plan.exclusion.count() > most => Some(Reason::ListTooShort { most }),
        () if plan.exclusion.blocks() > u64::from(u32::MAX) => Some(Reason::DiskTooLarge),
        () => None,
    }
}

fn with_list(
    plan: &Plan<'_>,
    options: &Options,
    shape: &Shape,
) -> Result<(Options, NamedTempFile), Ext4Error> {
    let list = list_file(plan.exclusion.iter().filter(|block| is_taken(shape, *block)))?;
    // Descriptors reserved for growth would meet bad blocks in the copies.
    Ok((options.with_feature("^resize_inode").with("-l", text(list.path())), list))
}

/// A list file for mke2fs and e2fsck.
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

/// Whether mke2fs accepts a bad block there: not where it may put copies of the superblock, nor in a last group that it may omit.
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

/// The options, if a group's table of inodes fits between two excluded blocks; else with as many inodes as fit. Without a dry
/// run, a table gets the length of the usual gap.
///
/// *Errors:* mke2fs refuses any number of inodes, or the number that the options request does not fit.
fn with_tables_that_fit(plan: &Plan<'_>, options: Options, shape: &Shape) -> Result<Options, Ext4Error> {
    // mke2fs makes a multiple of eight inodes per group, in whole blocks.
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

/// The shortest run of blocks between two excluded ones, among those that occur often.
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
