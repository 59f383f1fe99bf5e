//! `headstack layout show`: the tracks of files.

use super::partition::{Mapped, Span};
use super::walk::found;
use crate::failure::Failure;
use crate::files;
use crate::report::Table;
use crate::units::{capacity, count, grouped, significant};
use crate::versioned;
use headstack_host::extents::{self, FileExtents};
use headstack_model::Lbn;
use headstack_tracks::crossings::Crossings;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Show how many tracks the extents of files lie on, and how often they cross from one track to the next.
///
/// An extent crosses a track boundary where it continues beyond it; reading it then waits for a change of heads or a seek. An extent is on
/// a track if it begins with the first block that lies on the track as a whole.
#[derive(clap::Args)]
#[command(
    override_usage = "headstack layout show [OPTIONS] <MAP> <FILE>...",
    after_help = "A folder stands for the files below it on the same file system. Exit code 1 with --check if any extent crosses a boundary."
)]
pub(crate) struct Show {
    /// The track map of the disk, as `headstack probe --map` writes it.
    #[arg(value_name = "MAP")]
    first: PathBuf,
    /// Files and folders, all on one file system.
    #[arg(value_name = "FILE", required_unless_present = "map")]
    others: Vec<PathBuf>,
    /// The track map, in the older form `show FILE… --map MAP`, in which the first name is a file, too.
    #[arg(long, value_name = "MAP", hide = true)]
    map: Option<PathBuf>,
    /// Where the partition of the file system begins and how long it is, in sectors of the disk. [default: from sysfs]
    #[arg(long, value_name = "START,LEN")]
    partition: Option<Span>,
    /// Print only the totals.
    #[arg(short, long)]
    summary: bool,
    /// End with exit code 1 if any extent crosses a boundary.
    #[arg(long)]
    check: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Also print all extents, in the order of each file: first sector in the partition, number of sectors,
    /// boundaries crossed.
    #[arg(long, requires = "json", conflicts_with = "summary")]
    extents: bool,
}

struct Shown {
    path: PathBuf,
    extents: Vec<Range<Lbn>>,
    inline: u64,
    counted: Crossings,
}

struct Findings {
    mapped: Mapped,
    source: String,
    files: Vec<Shown>,
    /// Hidden files with excluded blocks, below folders.
    left_out: Vec<PathBuf>,
    total: Crossings,
}

impl Show {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let findings = self.find()?;
        if self.json {
            versioned::print(&self.to_json(&findings), out)?
        } else {
            write!(out, "{}", self.to_text(&findings))?
        }
        match findings.total.crossings {
            crossings @ 1.. if self.check => {
                Err(Failure::Check(format!("extents cross {}", boundaries(crossings))))
            }
            _ => Ok(()),
        }
    }

    fn find(&self) -> Result<Findings, Failure> {
        let (paths, left_out) = found(&self.files())?;
        let (mapped, source) = self.mapped(&paths[0])?;
        let view = mapped.view();
        let mut seen = BTreeSet::new();
        let (mut files, mut all) = (Vec::new(), Vec::new());
        let (mut device, mut block) = (None, 1);
        for path in paths {
            let wrong = |reported: String| Failure::Input(format!("{}: {reported}", path.display()));
            let file = files::open(&path)?;
            let stat = rustix::fs::fstat(&file).map_err(|error| wrong(error.to_string()))?;
            if *device.get_or_insert(stat.st_dev) != stat.st_dev {
                return Err(wrong(
                    "is on another file system than the first; ask for one at a time".to_string(),
                ));
            }
            if !seen.insert(stat.st_ino) {
                continue;
            }
            let FileExtents { extents, inline } = extents::extents_of(&file).map_err(wrong)?;
            let sector = u64::from(mapped.identity.sector_bytes);
            let extents: Vec<_> = extents
                .into_iter()
                .map(|extent| Lbn(extent.device.start / sector)..Lbn(extent.device.end.div_ceil(sector)))
                .collect();
            block = block_bytes(&file).map_err(wrong)?.div_ceil(sector);
            let counted =
                Crossings::count(&view, block, &extents).map_err(|extent| wrong(mapped.outside(&extent)))?;
            all.extend(extents.iter().cloned());
            files.push(Shown { path, extents, inline, counted });
        }
        let total = Crossings::count(&view, block, &all).expect("each extent lies in the partition");
        Ok(Findings { mapped, source, files, left_out, total })
    }

    fn files(&self) -> Vec<PathBuf> {
        let first = self.map.as_ref().map(|_| self.first.clone());
        first.into_iter().chain(self.others.iter().cloned()).collect()
    }

    fn whole(&self) -> Result<Mapped, Failure> {
        Mapped::whole(self.map.as_ref().unwrap_or(&self.first)).map_err(|failure| match failure {
            Failure::Input(why) if self.map.is_none() => {
                Failure::Input(format!("{why}; the map comes first: headstack layout show MAP FILE"))
            }
            failure => failure,
        })
    }

    /// The map, with the partition of a file.
    fn mapped(&self, path: &Path) -> Result<(Mapped, String), Failure> {
        self.whole()?.around(path, self.partition)
    }

    fn to_text(&self, findings: &Findings) -> String {
        let sector = findings.mapped.identity.sector_bytes;
        let mut table =
            Table::new("files", &["file", "extents", "size", "tracks", "crossings", "on a track"]);
        if !self.summary {
            for file in &findings.files {
                table.row(row(file.path.display().to_string(), &file.counted, sector));
            }
        }
        table.row(row(count(findings.files.len(), "file"), &findings.total, sector));
        let inline = findings.files.iter().filter(|file| file.inline > 0).count();
        let mut note = match inline {
            0 => String::new(),
            _ => format!("{} kept with the metadata\n", count(inline, "file")),
        };
        for path in &findings.left_out {
            note += &format!("left out: {}, which holds the blocks at boundaries\n", path.display());
        }
        format!("partition  {} ({})\n\n{}{note}", findings.mapped.span, findings.source, table.to_text())
    }

    fn to_json(&self, findings: &Findings) -> Value {
        let Span { start, sectors } = findings.mapped.span;
        let mut reported = json!({
            "partition": { "start": start, "sectors": sectors, "source": findings.source },
            "sector_bytes": findings.mapped.identity.sector_bytes,
        });
        if !self.summary {
            let files = findings.files.iter().map(|file| self.file_to_json(findings, file));
            reported["files"] = Value::Array(files.collect());
        }
        reported["total"] = numbers(&findings.total, findings.mapped.identity.sector_bytes);
        reported["total"]["files"] = findings.files.len().into();
        let left_out = findings.left_out.iter().map(|path| path.display().to_string().into());
        reported["left_out"] = Value::Array(left_out.collect());
        reported
    }

    fn file_to_json(&self, findings: &Findings, file: &Shown) -> Value {
        let mut reported = json!({ "path": file.path.display().to_string() });
        let counted = numbers(&file.counted, findings.mapped.identity.sector_bytes);
        for (key, value) in counted.as_object().expect("it is one") {
            reported[key] = value.clone();
        }
        if self.extents {
            let view = findings.mapped.view();
            let extent = |extent: &Range<Lbn>| {
                let one = std::slice::from_ref(extent);
                let counted = Crossings::count(&view, 1, one).expect("each extent lies in the partition");
                json!([extent.start.0, counted.sectors, counted.crossings])
            };
            reported["extents_at"] = file.extents.iter().map(extent).collect();
        }
        reported
    }
}

fn block_bytes(file: &File) -> Result<u64, String> {
    let found = rustix::fs::fstatvfs(file).map_err(|error| error.to_string())?;
    Ok(found.f_frsize.max(1))
}

fn boundaries(count: u64) -> String {
    match count {
        1 => "1 track boundary".to_string(),
        _ => format!("{} track boundaries", grouped(count)),
    }
}

fn row(name: String, counted: &Crossings, sector_bytes: u32) -> Vec<String> {
    let Crossings { extents, sectors, tracks, crossings, .. } = *counted;
    let size = capacity(sectors * u64::from(sector_bytes));
    vec![name, grouped(extents), size, grouped(tracks), grouped(crossings), share_on_track(counted)]
}

pub(super) fn share_on_track(counted: &Crossings) -> String {
    match counted.extents {
        0 => "-".to_string(),
        extents => format!("{} %", significant(100.0 * counted.on_track as f64 / extents as f64, 3)),
    }
}

fn numbers(counted: &Crossings, sector_bytes: u32) -> Value {
    let Crossings { extents, sectors, tracks, crossings, on_track } = *counted;
    json!({
        "extents": extents,
        "bytes": sectors * u64::from(sector_bytes),
        "tracks": tracks,
        "crossings": crossings,
        "extents_on_track": on_track,
    })
}
