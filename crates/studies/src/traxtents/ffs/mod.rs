//! Programs over FFS: unmodified, with fast start, with traxtents, and with buffers that are valid in part.
//!
//! The disk is the Atlas 10K behind the study's adapter, as in the study's section 5.2. Where the study contradicts what the drive file has
//! from DiskSim, the study is followed: see [`drive`]. The partition is the whole disk and is empty at first; the processor takes no time.

mod modern;

use super::access::boundaries;
use crate::judge::Measured;
use crate::runs::time_of;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::spec::{DriveSpec, WriteCache};
use headstack_model::{Geometry, Lbn, drives};
use headstack_personalities::ffs::{
    BLOCK_SECTORS, Call, Counts, Layout, NextGroup, Postmark, Session, TrackList, Variant, build, copy, diff,
    head, scan,
};

const MB: u64 = 1 << 20;

/// Bytes of a file of head*.
const HEAD_BYTES: u64 = 200 << 10;

/// Seed of the load that resembles SSH-build.
const SEED: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Scan,
    Diff,
    Copy,
    /// PostMark, with this size of its smallest files, in bytes.
    Postmark(u64),
    Build,
    Head,
}

/// PostMark's files from 500 bytes on (its source) and from 5,000 (the study).
const PROGRAMS: [Program; 7] = [
    Program::Scan,
    Program::Diff,
    Program::Copy,
    Program::Postmark(500),
    Program::Postmark(5000),
    Program::Build,
    Program::Head,
];

impl Program {
    fn name(self) -> String {
        match self {
            Program::Scan => "scan".to_string(),
            Program::Diff => "diff".to_string(),
            Program::Copy => "copy".to_string(),
            Program::Postmark(least) => format!("postmark-{least}"),
            Program::Build => "build".to_string(),
            Program::Head => "head".to_string(),
        }
    }

    /// Bytes of the files that exist before the program starts; those of head* have `head_bytes`.
    fn files(self, length: Length, head_bytes: u64) -> Vec<u64> {
        let pick = |full: u64, quick: u64| length.pick(full, quick) * MB;
        match self {
            Program::Scan => vec![pick(4096, 64)],
            Program::Diff => vec![pick(512, 24); 2],
            Program::Copy => vec![pick(1024, 32)],
            Program::Head => vec![head_bytes; 1000],
            Program::Postmark(_) | Program::Build => Vec::new(),
        }
    }

    fn calls(self, files: &[u64]) -> Box<dyn Iterator<Item = Call>> {
        let bytes = files.first().copied().unwrap_or_default();
        match self {
            Program::Scan => Box::new(scan(bytes)),
            Program::Diff => Box::new(diff(bytes)),
            Program::Copy => Box::new(copy(bytes)),
            Program::Postmark(least_bytes) => {
                Box::new(Postmark { least_bytes, ..Postmark::default() }.calls())
            }
            Program::Build => Box::new(build(SEED)),
            Program::Head => Box::new(head(files.len() as u32)),
        }
    }
}

#[derive(Clone, Debug)]
struct ProgramRun {
    /// Time until the program ends; for PostMark, the time of its transactions alone.
    seconds: f64,
    counts: Counts,
    /// Time in which the sectors of its first files pass under a head.
    media_s: f64,
}

impl ProgramRun {
    fn mean_read_kb(&self) -> f64 {
        self.counts.read_sectors as f64 / 2.0 / self.counts.reads as f64
    }

    /// Time per read without the media transfer, in ms.
    fn overhead_ms(&self) -> f64 {
        (self.seconds - self.media_s) / self.counts.reads as f64 * 1e3
    }
}

/// The Atlas 10K on the study's host.
///
/// *Source:* the study. It names the adapter (80 MB/s) and tags. Its head times of writes hardly differ between one outstanding and two, so
/// that writes wait for the media. It gives 0.6 to 1.1 ms for a head switch, and this disk's skew leaves 1.13 ms; in DiskSim's 0.176 ms no
/// drive could read the next track.
pub(super) fn drive() -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load("atlas-10k")?;
    let us_per_sector = 512.0 / 80.0;
    (spec.bus.read_us_per_sector, spec.bus.write_us_per_sector) = (us_per_sector, us_per_sector);
    spec.cache.write_cache = WriteCache::None;
    spec.mechanics.head_switch_ms = 1.1;
    spec.queue.depth = 64;
    Ok(spec)
}

/// The tracks of a partition at the start of a disk.
pub(super) fn tracks_of(geometry: &Geometry, sectors: u64) -> TrackList {
    let starts = boundaries(geometry, Lbn(0), Lbn(sectors)).into_iter().map(|lbn| lbn.0);
    TrackList::new(starts.filter(|first| *first < sectors), sectors)
        .expect("a disk's tracks ascend and are longer than 8 KB")
}

/// Runs a program on an empty file system.
fn play(
    spec: &DriveSpec,
    layout: &Layout,
    program: Program,
    files: &[u64],
) -> Result<ProgramRun, StudyError> {
    let mut session = Session::new(layout.clone(), Lbn(0), program.calls(files));
    for (handle, bytes) in files.iter().enumerate() {
        session = session.with_file(handle as u32, *bytes);
    }
    time_of(spec, &mut session)?;
    assert!(!session.is_full(), "all programs fit on the disk");
    let marks: Vec<f64> = session.marks().iter().map(|mark| mark.as_secs()).collect();
    let seconds = match program {
        Program::Postmark(_) => marks[1] - marks[0],
        _ => marks[marks.len() - 1],
    };
    let geometry = Geometry::new(spec)?;
    let media_of = |block: &u32| {
        let per_track =
            geometry.track_at(Lbn(u64::from(*block) * u64::from(BLOCK_SECTORS))).sectors_per_track;
        f64::from(BLOCK_SECTORS) / f64::from(per_track) * 60.0 / spec.mechanics.rpm
    };
    let blocks = (0..files.len() as u32).flat_map(|handle| session.blocks_of(handle));
    Ok(ProgramRun { seconds, counts: session.counts(), media_s: blocks.map(media_of).sum() })
}

/// The outcomes of all programs, in their order; for each program, those of the variants in their order.
type ProgramRuns = Vec<(Program, [ProgramRun; 4])>;

fn play_all(setting: &Setting<'_>, spec: &DriveSpec, rule: NextGroup) -> Result<ProgramRuns, StudyError> {
    let geometry = Geometry::new(spec)?;
    let tracks = tracks_of(&geometry, geometry.sectors());
    let layouts = Variant::ALL.map(|variant| Layout::new(tracks.clone(), variant, rule));
    let pairs: Vec<(Program, usize)> =
        PROGRAMS.iter().flat_map(|program| (0..layouts.len()).map(|variant| (*program, variant))).collect();
    let played = setting.map(&pairs, |(program, variant)| {
        play(spec, &layouts[*variant], *program, &program.files(setting.length, HEAD_BYTES))
    })?;
    let mut played = played.into_iter();
    let mut four = || std::array::from_fn(|_| played.next().expect("each program was played four times"));
    Ok(PROGRAMS.iter().map(|program| (*program, four())).collect())
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drive()?;
    let outcomes = play_all(setting, &spec, NextGroup::Following)?;
    let mut sections = vec![section(&outcomes)];
    if setting.length == Length::Full {
        sections.push(other_groups(&play_all(setting, &spec, NextGroup::NoFullerThanAverage)?));
    }
    let measured: Vec<Measured> =
        outcomes.iter().flat_map(|(program, four)| rows(*program, four, setting.length)).collect();
    Ok(Findings::join([Findings::new(measured, sections), modern::run(setting)?]))
}

/// The rows of a program. The short form leaves out those that depend on the amount of data read.
fn rows(program: Program, four: &[ProgramRun; 4], length: Length) -> Vec<Measured> {
    let name = program.name();
    let [plain, _, _, ours] = four;
    let is_postmark = matches!(program, Program::Postmark(_));
    let mut rows = Vec::new();
    for (variant, outcome) in Variant::ALL.iter().zip(four).take(3) {
        let metric = |what: &str| format!("ffs.{name}.{}{what}", variant.name());
        let ratio = outcome.seconds / plain.seconds;
        if *variant != Variant::Unmodified {
            rows.push(Measured::new(
                metric(".over-unmodified"),
                if is_postmark { 1.0 / ratio } else { ratio },
            ));
        }
        if is_postmark {
            rows.push(Measured::new(
                metric(""),
                f64::from(Postmark::default().transactions) / outcome.seconds,
            ));
        } else if length == Length::Full && program != Program::Build {
            rows.push(Measured::new(metric(""), outcome.seconds));
        }
        if program == Program::Diff && length == Length::Full {
            rows.push(Measured::new(metric(".requests"), outcome.counts.reads as f64));
            rows.push(Measured::new(metric(".mean_kb"), outcome.mean_read_kb()));
            if *variant != Variant::FastStart {
                rows.push(Measured::new(metric(".overhead_ms"), outcome.overhead_ms()));
            }
        }
    }
    let ours_over = ours.seconds / plain.seconds;
    match program {
        Program::Scan | Program::Head => {
            rows.push(Measured::new(format!("ffs.{name}.ours.penalty"), (ours_over - 1.0) * 100.0));
        }
        _ => {}
    }
    rows
}

fn table(title: &str, outcomes: &ProgramRuns) -> Table {
    let columns =
        ["program", "variant", "s", "over unmodified", "reads", "KB a read", "writes", "metadata writes"];
    let mut table = Table::new(title, columns).with_words(2);
    for (program, four) in outcomes {
        for (variant, outcome) in Variant::ALL.iter().zip(four) {
            let reads = outcome.counts.reads;
            table.named_row(
                [&program.name(), variant.name()],
                [
                    Some(outcome.seconds),
                    Some(outcome.seconds / four[0].seconds),
                    Some(reads as f64),
                    Some(outcome.mean_read_kb()).filter(|_| reads > 0),
                    Some(outcome.counts.writes as f64),
                    Some(outcome.counts.metadata_writes as f64),
                ],
            );
        }
    }
    table
}

fn section(outcomes: &ProgramRuns) -> Section {
    Section::new("FFS on the Atlas 10K")
        .with_text("Seconds of each program; of PostMark, those of its 500 transactions. The processor takes no time.")
        .with_table(table("Programs over four file systems", outcomes))
}

fn other_groups(outcomes: &ProgramRuns) -> Section {
    Section::new("FFS, with groups chosen as in FreeBSD's sources")
        .with_text("A file continues in the next group that is no fuller than the average one. Then the second of two large files lies as far behind the first as this is long.")
        .with_table(table("The same programs", outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Alone;

    #[test]
    fn traxtent_ffs_gains_on_diff_and_ours_loses_little() {
        let setting = Setting { length: Length::Quick, rows: &[], bench: &Alone };
        let Findings { measured, .. } = run(&setting).expect("the drive is good");
        let value = |metric: &str| {
            let found = measured.iter().find(|found| found.metric == metric);
            found
                .and_then(|found| found.value.clone().ok())
                .unwrap_or_else(|| panic!("{metric} was not measured"))
        };
        let scan = value("ffs.scan.traxtent.over-unmodified");
        assert!((1.02..1.10).contains(&scan), "a scan loses the excluded blocks: {scan}");
        let diff = value("ffs.diff.traxtent.over-unmodified");
        assert!((0.7..0.9).contains(&diff), "two files at a time gain: {diff}");
        assert!(value("ffs.scan.ours.penalty") <= 0.5, "{}", value("ffs.scan.ours.penalty"));
        assert!(value("ffs.head.ours.penalty") < 10.0, "{}", value("ffs.head.ours.penalty"));
    }
}
