//! Blocks of variable size, a whole number of which fits each track, against excluded blocks and against blocks that span two tracks.
//!
//! The programs of the study's section 5.2 that read or copy existing files, on the Atlas 10K.

use super::super::ffs::{drive, tracks_of};
use crate::judge::Measured;
use crate::runs::time_of;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn};
use headstack_personalities::ffs::{
    BLOCK_BYTES, Call, Layout, NextGroup, Session, Variant, copy, diff, head, scan,
};

const MB: u64 = 1 << 20;

const PROGRAMS: [&str; 4] = ["scan", "diff", "copy", "head"];

const UNMODIFIED: usize = 0;
const FITTED: usize = 3;

fn layouts(geometry: &Geometry) -> [(&'static str, Layout); 4] {
    let tracks = tracks_of(geometry, geometry.sectors());
    let layout = |variant| Layout::new(tracks.clone(), variant, NextGroup::Following);
    [
        ("unmodified", layout(Variant::Unmodified)),
        ("excluded blocks", layout(Variant::Traxtent)),
        ("blocks on two tracks", layout(Variant::PartialBlocks)),
        ("blocks that vary in size", Layout::with_fitted_blocks(&tracks, NextGroup::Following)),
    ]
}

#[derive(Clone, Copy, Debug)]
struct FittedRun {
    seconds: f64,
    reads: f64,
    mean_kb: f64,
}

/// Bytes of a program's files.
fn files(setting: &Setting<'_>, program: &str) -> Vec<u64> {
    let pick = |full: u64, quick: u64| setting.length.pick(full, quick) * MB;
    match program {
        "scan" => vec![pick(4096, 64)],
        "diff" => vec![pick(512, 24); 2],
        "copy" => vec![pick(1024, 32)],
        _ => vec![200 << 10; 1000],
    }
}

fn with_files<P: Iterator<Item = Call>>(session: Session<P>, files: &[u64]) -> Session<P> {
    (0..).zip(files).fold(session, |session, (handle, bytes)| session.with_file(handle, *bytes))
}

fn play(
    setting: &Setting<'_>,
    spec: &DriveSpec,
    program: &str,
    layout: &Layout,
) -> Result<FittedRun, StudyError> {
    let files = files(setting, program);
    // Programs count blocks of 8 KB; a file system with smaller blocks has more of them per file.
    let empty = Session::new(layout.clone(), Lbn(0), std::iter::empty());
    let bytes = with_files(empty, &files[..1]).blocks_of(0).len() as u64 * BLOCK_BYTES;
    let calls: Box<dyn Iterator<Item = Call>> = match program {
        "scan" => Box::new(scan(bytes)),
        "diff" => Box::new(diff(bytes)),
        "copy" => Box::new(copy(bytes)),
        _ => Box::new(head(files.len() as u32)),
    };
    let mut session = with_files(Session::new(layout.clone(), Lbn(0), calls), &files);
    let time = time_of(spec, &mut session)?;
    assert!(!session.is_full(), "all files fit on the disk");
    let reads = session.counts().reads as f64;
    Ok(FittedRun {
        seconds: time.as_secs(),
        reads,
        mean_kb: session.counts().read_sectors as f64 / 2.0 / reads,
    })
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drive()?;
    let layouts = layouts(&Geometry::new(&spec)?);
    let cases: Vec<(&str, &Layout)> = PROGRAMS
        .into_iter()
        .flat_map(|program| layouts.iter().map(move |(_, layout)| (program, layout)))
        .collect();
    let played = setting.map(&cases, |(program, layout)| play(setting, &spec, program, layout))?;
    let over = |program: usize| {
        let of = |kind: usize| played[program * layouts.len() + kind].seconds;
        of(FITTED) / of(UNMODIFIED)
    };
    let lost = |layout: &Layout| {
        let excluded = f64::from(layout.excluded_blocks());
        excluded / (excluded + f64::from(layout.blocks()))
    };
    let measured = vec![
        Measured::new("ffs.fitted.lost", lost(&layouts[FITTED].1)),
        Measured::new("ffs.fitted.scan.penalty", 100.0 * (over(0) - 1.0)),
        Measured::new("ffs.fitted.diff.over-unmodified", over(1)),
    ];
    let columns = ["program", "file system", "s", "over unmodified", "reads", "KB a read", "space lost %"];
    let mut table = Table::new("Programs over blocks of one size and of several", columns).with_words(2);
    let mut lines: Vec<Series> = (0..)
        .zip(&layouts)
        .map(|(family, (name, _))| Series::new(*name, family, []).with_draw(Draw::Marks))
        .collect();
    for (index, run) in played.iter().enumerate() {
        let (program, kind) = (index / layouts.len(), index % layouts.len());
        let ratio = run.seconds / played[program * layouts.len()].seconds;
        let (name, layout) = &layouts[kind];
        let numbers = [run.seconds, ratio, run.reads, run.mean_kb, 100.0 * lost(layout)];
        table.named_row([PROGRAMS[program], name], numbers);
        lines[kind].points.push((program as f64, ratio));
    }
    let section = Section::new("Blocks that vary in size")
        .with_text(
            "Each track holds a whole number of blocks of up to 8 KB, whose sizes differ by a sector: no block lies on two tracks, and none is \
             excluded. KB a read count 8 KB for each block.",
        )
        .with_chart(Chart::new(
            "Time over that of unmodified FFS",
            Axis::of_names("program", PROGRAMS.map(str::to_string)),
            Axis::linear("time over unmodified"),
            lines,
        ))
        .with_table(table);
    Ok(Findings::new(measured, [section]))
}
