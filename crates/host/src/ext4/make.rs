//! Making the file system, by either road.

use super::format::{self, Filesystem, Shape, State};
use super::options::Options;
use super::tools::{self, Said};
use super::{Ext4Error, HIDDEN_FILE, hidden};
use headstack_tracks::exclude::Exclusion;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes of the longest list of bad blocks: the inode that holds it is no large file.
const MOST_BAD_BYTES: u64 = (1 << 31) - 1;
/// The file that shows what mke2fs makes of its options is no larger.
const REHEARSAL_BYTES: u64 = 64 << 30;
/// Gaps of a length that is seldom are not waited for: tables lie elsewhere.
const SELDOM: u64 = 64;

/// How blocks are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// By the list of bad blocks.
    BadBlocks,
    /// By a file that holds them.
    HiddenFile,
}

/// What is to be made.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The image or the device, which [`check`](super::check) found good.
    pub target: &'a Path,
    /// What it leaves out.
    pub exclusion: Exclusion<'a>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The road; what fits where it is not given.
    pub road: Option<Road>,
    /// Options of mke2fs.
    pub options: &'a [String],
    /// Told of what is not tried before the disk is touched, when that is known.
    pub tell: &'a dyn Fn(Untried),
    /// Whether somebody wants it to end.
    pub is_asked_to_end: &'a dyn Fn() -> bool,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The road that was taken.
    pub road: Road,
    /// Blocks of the file system.
    pub blocks: u64,
    /// Blocks to leave out.
    pub listed: u64,
    /// Those of them that hold metadata, and are not left out.
    pub metadata: u64,
    /// Blocks that the list of those left out takes itself.
    pub list_blocks: u64,
    /// Inodes of the file system.
    pub inodes: u64,
    /// What e2fsck found wrong; nothing where it is clean.
    pub fault: Option<String>,
}

impl Made {
    /// Blocks that are left out.
    pub fn excluded(&self) -> u64 {
        self.listed - self.metadata
    }

    /// The share of the space that is given up.
    pub fn share(&self) -> f64 {
        (self.excluded() + self.list_blocks) as f64 / self.blocks as f64
    }
}

/// What is not tried beside the disk before that is touched.
#[derive(Debug, thiserror::Error)]
pub enum Untried {
    /// Nothing is.
    #[error("this file system is not tried beside the disk first: {} takes no file that long ({error})", folder.display())]
    All {
        /// Where files for a time are.
        folder: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Only what mke2fs does is.
    #[error("that blocks can be held is not tried beside the disk first, which is larger than 64 GiB")]
    Holding,
}

/// Makes it, and has it checked. Where it is asked to end after the disk was touched, nothing is left there that looks like a file system.
///
/// *Errors:* all that keeps it from being made; only [`Ext4Error::Spoiled`] comes after the disk was touched.
pub fn make(plan: &Plan<'_>) -> Result<Made, Ext4Error> {
    tools::look_for(&["mke2fs", "e2fsck", "debugfs"])?;
    let options = Options::parse(plan.options)?;
    if ![1024, 2048, 4096].contains(&plan.block_bytes) {
        return Err(Ext4Error::BlockSize(plan.block_bytes));
    }
    let road = road(plan)?;
    let shape = rehearsed(plan, &options)?;
    if road == Road::HiddenFile && !shape.has_extents {
        return Err(Ext4Error::Feature("no extents".to_string()));
    }
    let laid = match road {
        Road::BadBlocks => {
            let list = list_file(plan.exclusion.iter().filter(|block| is_taken(&shape, *block)))?;
            // Reserved descriptors of copies would meet bad blocks.
            let options = options.with_feature("^resize_inode").with("-l", text(list.path()));
            let options = fitting(plan, options, &shape)?;
            by_bad_blocks(plan, &options, &shape).and_then(|taken| looked_over(plan, road, taken))
        }
        Road::HiddenFile => {
            hidden_file_tried(plan, &options)?;
            by_hidden_file(plan, &options).and_then(|taken| looked_over(plan, road, taken))
        }
    };
    laid.map_err(|error| match error {
        Ext4Error::Interrupted => emptied(plan.target),
        error => Ext4Error::Spoiled(Box::new(error)),
    })
}

/// Takes away what was being made.
fn emptied(path: &Path) -> Ext4Error {
    let done = open(path).and_then(|file| format::empty_head(&file));
    Ext4Error::Spoiled(Box::new(done.err().unwrap_or(Ext4Error::Interrupted)))
}

/// What is on the disk now, of which so many blocks of the list hold metadata, and so many hold the list.
fn looked_over(plan: &Plan<'_>, road: Road, (metadata, list_blocks): (u64, u64)) -> Result<Made, Ext4Error> {
    let file = open(plan.target)?;
    let made = Filesystem::open(&file)?.shape;
    let (blocks, inodes) = (made.blocks, made.inodes);
    // It may leave a last piece of the disk away that is too short for a group.
    let listed =
        plan.exclusion.iter().filter(|block| (made.first_block..blocks).contains(block)).count() as u64;
    drop(file);
    let fault = fault(plan, plan.target)?;
    if fault.is_some() {
        format::put_state(&open(plan.target)?, State::Errors)?;
    }
    Ok(Made { road, blocks, listed, metadata, list_blocks, inodes, fault })
}

/// What e2fsck finds wrong.
fn fault(plan: &Plan<'_>, path: &Path) -> Result<Option<String>, Ext4Error> {
    let said = tools::run_unless("e2fsck", &[OsString::from("-fn"), path.into()], plan.is_asked_to_end)?;
    Ok((said.code != 0).then(|| said.complaint()))
}

/// The road that is asked for, or the one that fits.
fn road(plan: &Plan<'_>) -> Result<Road, Ext4Error> {
    let (blocks, excluded) = (plan.exclusion.blocks(), plan.exclusion.count());
    let most = MOST_BAD_BYTES / plan.block_bytes;
    let fault = match () {
        () if excluded > most => Some(Ext4Error::TooMany { excluded, most }),
        () if blocks > u64::from(u32::MAX) => Some(Ext4Error::TooLarge { blocks }),
        () => None,
    };
    match (plan.road, fault) {
        (Some(Road::BadBlocks), Some(fault)) => Err(fault),
        (Some(road), _) => Ok(road),
        (None, Some(_)) => Ok(Road::HiddenFile),
        (None, None) => Ok(Road::BadBlocks),
    }
}

/// What mke2fs makes of the options, learned from a sparse file of its own. Numbers that belong to the size of the disk are those of
/// the disk.
fn rehearsed(plan: &Plan<'_>, options: &Options) -> Result<Shape, Ext4Error> {
    let blocks = plan.exclusion.blocks();
    let some = blocks.min(REHEARSAL_BYTES / plan.block_bytes);
    let beside = beside(some * plan.block_bytes).map_err(no_room_beside)?;
    // So many inodes may be too many for a smaller disk.
    let options_here = if some == blocks { options.clone() } else { options.without("-N") };
    let said = mke2fs(plan, &options_here, beside.path(), some)?;
    if said.code != 0 {
        return Err(Ext4Error::Rehearsal { program: "mke2fs", said: said.complaint() });
    }
    // On the disk itself it only says whether it would.
    let said = mke2fs(plan, &options.clone().with_flag("-n"), plan.target, blocks)?;
    match said.code {
        0 => Ok(Filesystem::open(beside.as_file())?.shape.with_blocks(blocks)),
        _ => Err(Ext4Error::Rehearsal { program: "mke2fs", said: said.complaint() }),
    }
}

fn mke2fs(plan: &Plan<'_>, options: &Options, target: &Path, blocks: u64) -> Result<Said, Ext4Error> {
    let mut words: Vec<OsString> = ["-q", "-F", "-t", "ext4", "-b"].map(OsString::from).to_vec();
    words.push(plan.block_bytes.to_string().into());
    words.extend(options.words().into_iter().map(OsString::from));
    words.extend([OsString::from("--"), target.into(), blocks.to_string().into()]);
    tools::run_unless("mke2fs", &words, plan.is_asked_to_end)
}

/// Has mke2fs make it on the disk, marked as one not to be trusted: blocks are still to be left out.
fn laid(plan: &Plan<'_>, options: &Options) -> Result<File, Ext4Error> {
    format::empty_head(&open(plan.target)?)?;
    let said = mke2fs(plan, options, plan.target, plan.exclusion.blocks())?;
    if said.code != 0 {
        return Err(Ext4Error::Failed { program: "mke2fs", said: said.complaint() });
    }
    let file = open(plan.target)?;
    format::put_state(&file, State::Errors)?;
    Ok(file)
}

/// Whether mke2fs takes a bad block there: not where it may put copies of the superblock, nor in a last group that it may leave away.
fn is_taken(shape: &Shape, block: u64) -> bool {
    if block < shape.first_block {
        return false;
    }
    let head = shape.head_blocks();
    let tail = head + shape.inode_table_blocks() + 64;
    let group = shape.group_of(block);
    let is_last = group + 1 >= shape.groups();
    block - shape.group_start(group) >= head && (!is_last || shape.blocks_in(group) > tail)
}

/// By the list of bad blocks; gives how many of them hold metadata, and how many blocks the list takes.
fn by_bad_blocks(plan: &Plan<'_>, options: &Options, shape: &Shape) -> Result<(u64, u64), Ext4Error> {
    let file = laid(plan, options)?;
    let there = shape.first_block..Filesystem::open(&file)?.shape.blocks;
    let rest = || plan.exclusion.iter().filter(|block| there.contains(block) && !is_taken(shape, *block));
    let free = hidden::free_of(&file, rest())?;
    if free.is_empty() {
        format::put_state(&file, State::Clean)?;
    } else {
        drop(file);
        let list = list_file(free.iter().copied())?;
        let words =
            ["-fy", "-l"].map(OsString::from).into_iter().chain([list.path().into(), plan.target.into()]);
        let said = tools::run_unless("e2fsck", &words.collect::<Vec<_>>(), plan.is_asked_to_end)?;
        if said.code & !1 != 0 {
            return Err(Ext4Error::Failed { program: "e2fsck", said: said.complaint() });
        }
    }
    let pointers = plan.block_bytes / 4;
    let held = plan.exclusion.count();
    Ok((rest().count() as u64 - free.len() as u64, held.div_ceil(pointers)))
}

/// A list for mke2fs and e2fsck.
fn list_file(blocks: impl Iterator<Item = u64>) -> Result<NamedTempFile, Ext4Error> {
    let file = NamedTempFile::new().map_err(Ext4Error::File)?;
    let mut out = std::io::BufWriter::new(file);
    let mut blocks = blocks;
    let written = blocks.try_for_each(|block| writeln!(out, "{block}"));
    written.map_err(Ext4Error::File)?;
    out.into_inner().map_err(|error| Ext4Error::File(error.into_error()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The options with so few inodes that a group's table of them lies between two blocks that are left out, as it must.
///
/// *Errors:* mke2fs cannot make it, however few.
fn fitting(plan: &Plan<'_>, options: Options, shape: &Shape) -> Result<Options, Ext4Error> {
    let is_given = options.has(&["-N", "-i", "-g", "-T"]);
    let fits =
        (usual_gap(plan.exclusion.iter()) * plan.block_bytes / shape.inode_bytes).min(shape.group_inodes);
    let in_a_block = (plan.block_bytes / shape.inode_bytes).max(8);
    let mut inodes = fits / in_a_block * in_a_block;
    let mut options_now = options.clone();
    loop {
        if !is_given && inodes < shape.group_inodes {
            options_now = options.clone().with("-N", (inodes.max(in_a_block) * shape.groups()).to_string());
        }
        match tried(plan, &options_now)? {
            None => return Ok(options_now),
            Some(said) if is_given || inodes <= in_a_block => {
                return Err(Ext4Error::Rehearsal { program: "mke2fs", said });
            }
            Some(_) => inodes = inodes / 2 / in_a_block * in_a_block,
        }
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

/// A sparse file of so many bytes, to try something in.
fn beside(bytes: u64) -> Result<NamedTempFile, std::io::Error> {
    let file = NamedTempFile::new()?;
    file.as_file().set_len(bytes)?;
    Ok(file)
}

/// The fault where there must be such a file.
fn no_room_beside(error: std::io::Error) -> Ext4Error {
    Ext4Error::Beside { folder: std::env::temp_dir(), error }
}

/// Makes all of it in a sparse file; gives what mke2fs complains of. Where no file can be as long as the disk, that is told, and nothing
/// is known before.
///
/// *Errors:* e2fsck finds it wrong.
fn tried(plan: &Plan<'_>, options: &Options) -> Result<Option<String>, Ext4Error> {
    let blocks = plan.exclusion.blocks();
    let beside = match beside(blocks * plan.block_bytes) {
        Ok(beside) => beside,
        Err(error) => {
            (plan.tell)(Untried::All { folder: std::env::temp_dir(), error });
            return Ok(None);
        }
    };
    let said = mke2fs(plan, options, beside.path(), blocks)?;
    if said.code != 0 {
        return Ok(Some(said.complaint()));
    }
    fault(plan, beside.path())?.map_or(Ok(None), |fault| Err(Ext4Error::Unclean(fault)))
}

/// Takes the road of the hidden file in a sparse file. Of a disk that is larger than such a file may be only the number of inodes that
/// is asked for is tried: the rest of the options was, on a smaller one.
///
/// *Errors:* what would fail on the disk, and what e2fsck finds wrong.
fn hidden_file_tried(plan: &Plan<'_>, options: &Options) -> Result<(), Ext4Error> {
    let bytes = plan.exclusion.blocks() * plan.block_bytes;
    if bytes > REHEARSAL_BYTES {
        (plan.tell)(Untried::Holding);
        let complaint = if options.has(&["-N"]) { tried(plan, options)? } else { None };
        return complaint.map_or(Ok(()), |said| Err(Ext4Error::Rehearsal { program: "mke2fs", said }));
    }
    let beside = beside(bytes).map_err(no_room_beside)?;
    by_hidden_file(&Plan { target: beside.path(), ..*plan }, options)?;
    fault(plan, beside.path())?.map_or(Ok(()), |fault| Err(Ext4Error::Unclean(fault)))
}

/// By a file that holds them; gives how many hold metadata, and how many blocks the file's tree takes.
fn by_hidden_file(plan: &Plan<'_>, options: &Options) -> Result<(u64, u64), Ext4Error> {
    drop(laid(plan, options)?);
    // Of a file: debugfs gives a block to what it reads from a device.
    let nothing = NamedTempFile::new().map_err(Ext4Error::File)?;
    debugfs(plan.target, &["-w", "-R", &format!("write \"{}\" {HIDDEN_FILE}", text(nothing.path()))])?;
    let (inode, said) = holder(plan.target)?;
    let inode = inode.ok_or_else(|| Ext4Error::Failed { program: "debugfs", said: said.complaint() })?;
    let held = hidden::hold(&open(plan.target)?, inode, || plan.exclusion.iter())?;
    Ok((held.used, held.tree))
}

/// The inode of the file that holds blocks, if there is one; and what debugfs said.
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
    use headstack_tracks::exclude::Boundaries;
    use std::cell::RefCell;

    #[test]
    fn is_the_usual_gap_not_that_of_a_few_short_tracks() {
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

    #[test]
    fn is_it_marked_until_all_blocks_are_left_out() {
        if let Err(missing) = tools::look_for(&["mke2fs", "e2fsck", "debugfs"]) {
            eprintln!("skipped: {missing}");
            return;
        }
        let mut tracks = TrackMap::new();
        tracks.push(333, 1_000);
        let view = tracks.view(Lbn(0), 1_000 * 333);
        let exclusion = Exclusion::new(view, 4096, 512, Boundaries::Every).expect("whole sectors");
        let image = beside(exclusion.blocks() * 4096).expect("there is room for a file");
        let (block_bytes, target) = (4096, image.path());
        for road in [Road::BadBlocks, Road::HiddenFile] {
            let tell = &|untried: Untried| panic!("{untried}");
            let road = Some(road);
            let plan =
                Plan { target, exclusion, block_bytes, road, options: &[], tell, is_asked_to_end: &|| false };
            drop(laid(&plan, &Options::default()).expect("there is room"));
            assert_ne!(state(target), "clean", "{road:?}");
            let made = make(&plan).expect("there is room");
            assert_eq!((made.fault, state(target).as_str()), (None, "clean"), "{road:?}");
        }
    }

    #[test]
    fn is_it_said_what_is_not_tried() {
        let mut tracks = TrackMap::new();
        // 2⁶³ bytes: no file is as long.
        tracks.push(1 << 31, 1 << 23);
        let view = tracks.view(Lbn(0), 1 << 54);
        let exclusion = Exclusion::new(view, 4096, 512, Boundaries::Every).expect("whole sectors");
        let told = RefCell::new(Vec::new());
        let plan = Plan {
            target: Path::new("/no/such/image"),
            exclusion,
            block_bytes: 4096,
            road: None,
            options: &[],
            tell: &|untried| told.borrow_mut().push(untried.to_string()),
            is_asked_to_end: &|| false,
        };
        assert!(tried(&plan, &Options::default()).is_ok_and(|complaint| complaint.is_none()));
        assert!(hidden_file_tried(&plan, &Options::default()).is_ok());
        let told = told.into_inner();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("is not tried beside the disk first") && told[0].contains("takes no file"));
        assert!(told[1].contains("that blocks can be held is not tried"), "{told:?}");
    }

    /// What the superblock says of its file system.
    fn state(path: &Path) -> String {
        let said = debugfs(path, &["-R", "show_super_stats -h"]).expect("it is here");
        let told = said.out.lines().find_map(|line| line.strip_prefix("Filesystem state:"));
        told.unwrap_or_else(|| panic!("{}", said.complaint())).trim().to_string()
    }
}
