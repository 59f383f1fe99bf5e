//! Small files in groups that are read whole, on the Atlas 10K as in the study's section 5.2.
//!
//! All files exist before the load starts, and none is in memory. The first load reads a source tree once, directory by directory. The
//! second is a web server, which for each page reads all files of a random directory. It reads two pages at a time, because the study
//! expects the gain of traxtents with two requests outstanding. The third is the benchmark of C-FFS: 10,000 files of 1 KB in 100
//! directories. The directories are spread over the disk as FFS spreads them.

use super::super::ffs::{drive, tracks_of};
use crate::judge::Measured;
use crate::runs::time_of;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn};
use headstack_personalities::ffs::{
    BLOCK_SECTORS, Call, Counts, FileGrouping, GroupExtent, Layout, NextGroup, Session, SmallFiles, Variant,
};

/// Programs of the web server, each of which reads one page at a time.
const READERS: u64 = 2;

/// Blocks of the largest file in a group: 64 KB, the length of a group of C-FFS.
const MOST_FILE_BLOCKS: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SmallLoad {
    Web,
    Sources,
    SmallFiles,
}

const LOADS: [SmallLoad; 3] = [SmallLoad::Web, SmallLoad::Sources, SmallLoad::SmallFiles];

impl SmallLoad {
    fn name(self) -> &'static str {
        match self {
            SmallLoad::Web => "web",
            SmallLoad::Sources => "sources",
            SmallLoad::SmallFiles => "small-files",
        }
    }

    /// The files of the load. Ten of 1 to 16 KB fill about a track, and in the full form all together exceed the memory. *Source:*
    /// assumptions, except the sizes of the last load, which are those of C-FFS's benchmark.
    fn files(self, setting: &Setting<'_>) -> SmallFiles {
        let some = SmallFiles {
            directories: 0,
            files_each: 10,
            least_bytes: 1 << 10,
            most_bytes: 16 << 10,
            seed: 1,
        };
        match self {
            SmallLoad::Web => SmallFiles { directories: setting.length.pick(2000, 400), ..some },
            SmallLoad::Sources => SmallFiles { directories: setting.length.pick(1000, 100), ..some },
            SmallLoad::SmallFiles => SmallFiles {
                directories: setting.length.pick(100, 10),
                files_each: 100,
                least_bytes: 1 << 10,
                most_bytes: 1 << 10,
                seed: 1,
            },
        }
    }

    fn programs(self, setting: &Setting<'_>, files: &SmallFiles) -> Vec<Box<dyn Iterator<Item = Call>>> {
        match self {
            SmallLoad::Web => {
                let pages = setting.length.pick(1000, 100);
                (0..READERS)
                    .map(|reader| -> Box<dyn Iterator<Item = Call>> { Box::new(files.pages(pages, reader)) })
                    .collect()
            }
            SmallLoad::Sources | SmallLoad::SmallFiles => vec![Box::new(files.read_all())],
        }
    }
}

/// A file system: its name, the placement of its blocks, and whether inodes lie in directories.
struct FileSystemKind {
    name: &'static str,
    layout: Layout,
    embedded: bool,
}

/// The index of each kind in the list.
const PLAIN: usize = 0;
const CFFS: usize = 2;
const TRACK: usize = 3;
const TRAXTENT: usize = 5;

fn kinds(geometry: &Geometry) -> Vec<FileSystemKind> {
    let tracks = tracks_of(geometry, geometry.sectors());
    let track = geometry.track_at(Lbn(0)).sectors / BLOCK_SECTORS;
    let layout = |variant| Layout::new(tracks.clone(), variant, NextGroup::Following);
    let grouped = |variant, extent| {
        layout(variant).with_grouping(FileGrouping { extent, most_file_blocks: MOST_FILE_BLOCKS })
    };
    let plain = Variant::Unmodified;
    let kind = |name, layout, embedded| FileSystemKind { name, layout, embedded };
    vec![
        kind("ungrouped", layout(plain), false),
        kind("groups of 64 KB", grouped(plain, GroupExtent::Blocks(8)), false),
        kind("groups of 64 KB, inodes in directories", grouped(plain, GroupExtent::Blocks(8)), true),
        kind("groups of a track's length", grouped(plain, GroupExtent::Blocks(track)), false),
        kind("traxtents, ungrouped", layout(Variant::Traxtent), false),
        kind("traxtents as groups", grouped(Variant::Traxtent, GroupExtent::Traxtent), false),
        kind(
            "groups of a track's length, inodes in directories",
            grouped(plain, GroupExtent::Blocks(track)),
            true,
        ),
        kind(
            "traxtents as groups, inodes in directories",
            grouped(Variant::Traxtent, GroupExtent::Traxtent),
            true,
        ),
    ]
}

#[derive(Clone, Copy, Debug)]
struct SmallRun {
    seconds: f64,
    counts: Counts,
}

fn play(
    setting: &Setting<'_>,
    spec: &DriveSpec,
    load: SmallLoad,
    kind: &FileSystemKind,
) -> Result<SmallRun, StudyError> {
    let files = load.files(setting);
    let mut programs = load.programs(setting, &files).into_iter();
    let first = programs.next().expect("a load has a program");
    let mut session = Session::new(kind.layout.clone(), Lbn(0), first);
    if kind.embedded {
        session = session.with_embedded_inodes();
    }
    for file in files.files() {
        session = session.with_file_in(file.handle, file.bytes, file.directory);
    }
    session = programs.fold(session, Session::with_program);
    let time = time_of(spec, &mut session)?;
    assert!(!session.is_full(), "all files fit on the disk");
    Ok(SmallRun { seconds: time.as_secs(), counts: session.counts() })
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drive()?;
    let kinds = kinds(&Geometry::new(&spec)?);
    let cases: Vec<(SmallLoad, &FileSystemKind)> =
        LOADS.into_iter().flat_map(|load| kinds.iter().map(move |kind| (load, kind))).collect();
    let played = setting.map(&cases, |(load, kind)| play(setting, &spec, *load, kind))?;
    let of = |load: usize, kind: usize| played[load * kinds.len() + kind].seconds;
    let ratio = |metric: &str, load: usize, slow: usize, quick: usize| {
        Measured::new(format!("ffs.grouping.{metric}"), of(load, slow) / of(load, quick))
    };
    let measured = vec![
        ratio("web.over-ungrouped", 0, PLAIN, TRACK),
        ratio("sources.over-ungrouped", 1, PLAIN, TRACK),
        ratio("web.traxtent.over-grouping", 0, TRACK, TRAXTENT),
        ratio("small-files.read.over-ungrouped", 2, PLAIN, CFFS),
    ];
    Ok(Findings::new(measured, [section(&kinds, &cases, &played)]))
}

fn section(kinds: &[FileSystemKind], cases: &[(SmallLoad, &FileSystemKind)], played: &[SmallRun]) -> Section {
    let columns = ["load", "file system", "s", "rate over ungrouped", "reads", "KB a read", "metadata reads"];
    let mut table = Table::new("Small files, read", columns).with_words(2);
    let mut lines: Vec<Series> = (0..)
        .zip(kinds)
        .map(|(family, kind)| Series::new(kind.name, family, []).with_draw(Draw::Marks))
        .collect();
    for (index, ((load, kind), run)) in cases.iter().zip(played).enumerate() {
        let (place, of_kind) = (index / kinds.len(), index % kinds.len());
        let over = played[place * kinds.len()].seconds / run.seconds;
        let reads = run.counts.reads as f64;
        let kb = run.counts.read_sectors as f64 / 2.0 / reads;
        let numbers = [run.seconds, over, reads, kb, run.counts.metadata_reads as f64];
        table.named_row([load.name(), kind.name], numbers);
        lines[of_kind].points.push((place as f64, over));
    }
    let names = LOADS.map(|load| load.name().to_string());
    Section::new("Small files in groups")
        .with_text(
            "Small files of a directory lie together in a group that is read whole: of 64 KB as in C-FFS, as long as a track but anywhere, or a \
             traxtent. The web server reads two pages at a time; the other loads read one file after the other.",
        )
        .with_chart(Chart::new(
            "Rate over that without groups",
            Axis::of_names("load", names),
            Axis::linear("rate over ungrouped"),
            lines,
        ))
        .with_table(table)
}
