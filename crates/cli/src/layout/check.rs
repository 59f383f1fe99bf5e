//! `headstack layout check`: whether the files of an unmounted file system stay within tracks.

use super::partition::{MapArgs, Mapped};
use super::show;
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{capacity, count, grouped};
use crate::versioned;
use headstack_ext4::{Inode, InodeKind};
use headstack_host::ext4::{Ext4Error, HIDDEN_FILE, inodes};
use headstack_model::Lbn;
use headstack_tracks::crossings::Crossings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

/// Maximum number of named files with crossings.
const NAMED: usize = 10;
/// The source of the count of crossings, for the output.
const COUNTED: &str = "from the inodes of the unmounted file system";

/// Count over all files of an ext4 how often their extents cross track boundaries, and name those that do.
///
/// The file system must not be mounted: its inodes are read from the image or the device. Of one that is mounted `layout show` asks
/// the kernel.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if an extent of any file crosses a boundary. Crossings of folders and the journal are printed, but do not change it."
)]
pub(crate) struct Check {
    #[command(flatten)]
    map: MapArgs,
    /// An image of the partition, or its device.
    #[arg(value_name = "IMAGE|DEVICE")]
    target: PathBuf,
    /// Print the result as JSON, with all files that cross a boundary.
    #[arg(long)]
    json: bool,
}

/// Crossings of inodes of one kind.
#[derive(Default)]
struct Sum {
    inodes: u64,
    counted: Crossings,
    /// Inodes without extents, which are not counted.
    without_extents: u64,
}

struct Crossing {
    inode: u32,
    counted: Crossings,
    path: Option<String>,
}

struct Findings {
    mapped: Mapped,
    kinds: BTreeMap<InodeKind, Sum>,
    crossing: Vec<Crossing>,
}

impl Check {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let findings = self.find()?;
        if self.json {
            versioned::print(&findings.to_json(), out)?
        } else {
            write!(out, "{}", findings.to_text())?
        }
        match findings.crossing.len() {
            0 => Ok(()),
            files => Err(Failure::Check(format!(
                "{}: extents of {} cross track boundaries",
                self.target.display(),
                count(files, "file")
            ))),
        }
    }

    fn find(&self) -> Result<Findings, Failure> {
        let place = self.target.display();
        let wrong = |reported: &dyn std::fmt::Display| Failure::Input(format!("{place}: {reported}"));
        let mapped = self.map.read_for(&self.target)?;
        let sector = u64::from(mapped.identity.sector_bytes);
        let mut all: Vec<Inode> = Vec::new();
        let block = inodes::each(&self.target, |inode| all.push(inode)).map_err(|error| match &error {
            Ext4Error::InUse { .. } => {
                Failure::Input(format!("{error}: of what is mounted `headstack layout show` asks the kernel"))
            }
            Ext4Error::Target { .. } => Failure::input(error),
            _ => wrong(&error),
        })?;
        if block % sector != 0 {
            return Err(wrong(&format!("blocks of {block} bytes are no whole sectors of {sector}")));
        }
        let in_block = block / sector;
        let (mut kinds, mut crossing) = (BTreeMap::<InodeKind, Sum>::new(), Vec::new());
        for Inode { number, kind, extents } in all {
            let sum = kinds.entry(kind).or_default();
            sum.inodes += 1;
            let Some(extents) = extents else {
                sum.without_extents += 1;
                continue;
            };
            let at = |block: u64| Lbn(block * in_block);
            let extents: Vec<_> =
                extents.into_iter().map(|Range { start, end }| at(start)..at(end)).collect();
            let counted = Crossings::count(&mapped.view(), in_block, &extents)
                .map_err(|extent| wrong(&format!("inode {number} {}", mapped.outside(&extent))))?;
            add(&mut sum.counted, &counted);
            if kind == InodeKind::File && counted.crossings > 0 {
                crossing.push(Crossing { inode: number, counted, path: None });
            }
        }
        crossing.sort_by_key(|file| (std::cmp::Reverse(file.counted.crossings), file.inode));
        let asked: Vec<u32> =
            crossing.iter().take(if self.json { 1000 } else { NAMED }).map(|file| file.inode).collect();
        let mut names: BTreeMap<u32, String> =
            inodes::paths(&self.target, &asked).map_err(|error| wrong(&error))?.into_iter().collect();
        crossing.iter_mut().for_each(|file| file.path = names.remove(&file.inode));
        Ok(Findings { mapped, kinds, crossing })
    }
}

/// Adds the crossings of another inode. Does not add the number of tracks, because a track that both touch would count twice.
pub(super) fn add(sum: &mut Crossings, more: &Crossings) {
    sum.extents += more.extents;
    sum.sectors += more.sectors;
    sum.crossings += more.crossings;
    sum.on_track += more.on_track;
}

impl Findings {
    fn to_text(&self) -> String {
        let sector = u64::from(self.mapped.identity.sector_bytes);
        let mut table = Table::new("kinds", &["", "inodes", "extents", "size", "crossings", "on a track"]);
        let mut note = String::new();
        for (kind, sum) in &self.kinds {
            let Crossings { extents, sectors, crossings, .. } = sum.counted;
            let name = match kind {
                InodeKind::Holder => {
                    note += &format!("left out: /{HIDDEN_FILE}, which holds the blocks at boundaries\n");
                    continue;
                }
                kind => name(*kind),
            };
            table.row(vec![
                name.to_string(),
                grouped(sum.inodes),
                grouped(extents),
                capacity(sectors * sector),
                grouped(crossings),
                show::share_on_track(&sum.counted),
            ]);
            if sum.without_extents > 0 {
                note += &format!("not counted: {} {name} without extents\n", grouped(sum.without_extents));
            }
        }
        for file in self.crossing.iter().take(NAMED) {
            let path = file.path.clone().unwrap_or_else(|| format!("inode {}", file.inode));
            note += &match file.counted.crossings {
                1 => format!("{path}: 1 boundary\n"),
                crossings => format!("{path}: {} boundaries\n", grouped(crossings)),
            };
        }
        if let Some(more @ 1..) = self.crossing.len().checked_sub(NAMED) {
            note += &format!("and {} more\n", grouped(more as u64));
        }
        format!("partition  {}\ncounted    {COUNTED}\n\n{}{note}", self.mapped.span, table.to_text())
    }

    fn to_json(&self) -> Value {
        let sector = u64::from(self.mapped.identity.sector_bytes);
        let mut reported = json!({
            "partition": self.mapped.span,
            "counted": COUNTED,
        });
        for kind in [InodeKind::File, InodeKind::Folder, InodeKind::Journal] {
            let none = Sum::default();
            let Sum { inodes, counted, without_extents } = self.kinds.get(&kind).unwrap_or(&none);
            reported[name(kind)] = json!({
                "inodes": inodes,
                "extents": counted.extents,
                "bytes": counted.sectors * sector,
                "crossings": counted.crossings,
                "extents_on_track": counted.on_track,
                "without_extents": without_extents,
            });
        }
        let crossing = self.crossing.iter().map(|file| {
            json!({
                "inode": file.inode,
                "path": file.path,
                "extents": file.counted.extents,
                "crossings": file.counted.crossings,
            })
        });
        reported["crossing"] = crossing.collect();
        reported
    }
}

fn name(kind: InodeKind) -> &'static str {
    match kind {
        InodeKind::File => "files",
        InodeKind::Folder => "folders",
        InodeKind::Journal => "journal",
        InodeKind::Holder => "holder",
    }
}
