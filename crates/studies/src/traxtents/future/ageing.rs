//! Aged file systems: how much of the gain of traxtents is lost with age, and how much preallocation and reorganisation restore.
//!
//! A partition at the start of the Atlas 10K, as in the study's section 5.2, is aged at a constant utilisation. Then pairs of files of 2 MB
//! are written, each file whole or both in turn, and compared block by block like the study's diff. The gain is the time of equally aged
//! unmodified FFS divided by the time of the other.

use super::super::ffs::{drive, tracks_of};
use crate::judge::Measured;
use crate::runs::{Script, time_of};
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn, Nanos, Request};
use headstack_personalities::ffs::{
    AgeingPlan, BLOCK_BYTES, Call, Handle, Layout, MoveBatch, NextGroup, Session, Variant,
    add_files_grown_in_turn, age, reorganize, transfers_of,
};

/// Bytes of each file that is compared. *Source:* assumption.
const BYTES: u64 = 2 << 20;

/// First handle of the files that age; the compared files have lower ones.
const FIRST_AGED: Handle = 1 << 16;

/// How often the blocks in use are rewritten until the file system counts as aged, and the ages of the curve.
const AGED: f64 = 2.0;
const TURNOVERS: [f64; 4] = [0.0, 0.5, 1.0, 2.0];

const UTILISATIONS: [u32; 4] = [50, 70, 80, 90];

/// Share of the disk time given to on-line reorganisation. *Source:* assumption.
const SHARE: f64 = 0.1;

/// The program's pause in which on-line reorganisation completes.
const PAUSE: Nanos = Nanos::from_secs(24 * 3600);

type Programs = std::vec::IntoIter<Call>;

/// The sizes of the experiment.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Block groups of the partition, 32 MB each.
    groups: u64,
    pairs: u32,
}

impl Scale {
    fn for_length(length: Length) -> Scale {
        length.pick(Scale { groups: 32, pairs: 20 }, Scale { groups: 8, pairs: 5 })
    }
}

/// How the files that are compared were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Whole,
    /// The two files of a pair in turn, 64 KB each.
    InTurn,
}

/// The remedy against age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    None,
    Preallocated,
    OffLine,
    OnLine,
}

#[derive(Clone, Copy, Debug)]
struct AgedCase {
    variant: Variant,
    /// In per cent.
    utilisation: u32,
    turnovers: f64,
    writing: Writing,
    remedy: Remedy,
    /// Whether traxtents were introduced after the ageing.
    retrofit: bool,
}

impl AgedCase {
    const FRESH: AgedCase = AgedCase {
        variant: Variant::Traxtent,
        utilisation: 0,
        turnovers: 0.0,
        writing: Writing::Whole,
        remedy: Remedy::None,
        retrofit: false,
    };

    fn aged(utilisation: u32) -> AgedCase {
        AgedCase { utilisation, turnovers: AGED, ..AgedCase::FRESH }
    }

    /// Unmodified FFS after the same ageing.
    fn unmodified(self) -> AgedCase {
        AgedCase { variant: Variant::Unmodified, remedy: Remedy::None, retrofit: false, ..self }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct CaseRun {
    /// Of the comparison alone.
    seconds: f64,
    reads: f64,
    /// Share of the partition's blocks that is reserved.
    reserved: f64,
    /// Time of the off-line reorganisation, the time of its transfers, and the number of blocks moved.
    moving_s: f64,
    moved_mb: f64,
}

struct Partition {
    spec: DriveSpec,
    geometry: Geometry,
    scale: Scale,
}

impl Partition {
    fn new(setting: &Setting<'_>) -> Result<Partition, StudyError> {
        let spec = drive()?;
        Ok(Partition { geometry: Geometry::new(&spec)?, spec, scale: Scale::for_length(setting.length) })
    }

    fn layout(&self, variant: Variant, preallocates: bool) -> Layout {
        let sectors = self.scale.groups * (32 << 20) / 512;
        let layout = Layout::new(tracks_of(&self.geometry, sectors), variant, NextGroup::Following);
        if preallocates { layout.with_preallocation() } else { layout }
    }

    /// Compares the files of all pairs, between two marks, after a pause.
    fn program(&self, pause: Nanos) -> Programs {
        let blocks = (BYTES / BLOCK_BYTES) as u32;
        let compare = |pair: u32| {
            let files = [2 * pair, 2 * pair + 1];
            let reads = (0..blocks).flat_map(move |block| files.map(|file| Call::Read(file, block)));
            files.map(Call::Open).into_iter().chain(reads)
        };
        let calls = [Call::Pause(pause), Call::Mark].into_iter();
        let calls: Vec<Call> =
            calls.chain((0..self.scale.pairs).flat_map(compare)).chain([Call::Mark]).collect();
        calls.into_iter()
    }

    /// The file system of a case after everything but on-line reorganisation.
    fn session(&self, case: &AgedCase, pause: Nanos) -> (Session<Programs>, Option<Vec<MoveBatch>>) {
        let before = if case.retrofit { Variant::Unmodified } else { case.variant };
        let layout = self.layout(before, case.remedy == Remedy::Preallocated);
        let mut session = Session::new(layout, Lbn(0), self.program(pause));
        if case.utilisation > 0 {
            let own =
                f64::from(2 * self.scale.pairs) * BYTES as f64 / (self.scale.groups as f64 * 32e6 * 1.048576);
            let plan = AgeingPlan {
                utilisation: f64::from(case.utilisation) / 100.0 - own,
                turnovers: case.turnovers,
                growing_share: 0.5,
                first_handle: FIRST_AGED,
                seed: 1,
            };
            age(&mut session, plan);
        }
        for pair in 0..self.scale.pairs {
            let files = [2 * pair, 2 * pair + 1].map(|handle| (handle, BYTES));
            match case.writing {
                Writing::Whole => {
                    let add = |session: Session<Programs>, (handle, bytes)| {
                        session.with_file_in(handle, bytes, pair)
                    };
                    session = files.into_iter().fold(session, add);
                }
                Writing::InTurn => add_files_grown_in_turn(&mut session, &files, pair),
            }
        }
        assert!(!session.is_full(), "what a case needs fits on the partition");
        let batches = (case.remedy == Remedy::OffLine).then(|| {
            reorganize(&mut session, self.layout(case.variant, false))
                .expect("all files fit on an empty partition")
        });
        if case.retrofit && case.remedy == Remedy::OnLine {
            session = session.retrofitted(case.variant);
        }
        (session, batches)
    }

    fn play(&self, case: &AgedCase) -> Result<CaseRun, StudyError> {
        let is_on_line = case.remedy == Remedy::OnLine;
        let (mut session, batches) = self.session(case, if is_on_line { PAUSE } else { Nanos(1) });
        let reserved = f64::from(session.layout().reserved_blocks()) / f64::from(session.layout().blocks());
        let mut run = CaseRun { reserved, ..CaseRun::default() };
        if let Some(batches) = &batches {
            let transfers = batches.iter().flat_map(|batch| transfers_of(batch, session.layout())).collect();
            run.moving_s = time_of(&self.spec, &mut Script::new(transfers))?.as_secs();
            run.moved_mb = mb(batches);
        }
        if is_on_line {
            session = session.with_on_line_reorganisation(SHARE);
        }
        time_of(&self.spec, &mut session)?;
        let marks = session.marks();
        run.seconds = marks[1].since(marks[0]).as_secs();
        run.reads = session.counts().reads as f64;
        if is_on_line {
            run.moved_mb = mb(session.moves());
        }
        Ok(run)
    }

    /// Time of the comparison with on-line reorganisation, divided by that without.
    fn on_line_cost(&self, case: &AgedCase) -> Result<f64, StudyError> {
        let (mut alone, _) = self.session(case, Nanos(1));
        let (session, _) = self.session(case, Nanos(1));
        let mut moving = session.with_on_line_reorganisation(SHARE);
        let seconds = |session: &mut Session<Programs>| -> Result<f64, StudyError> {
            time_of(&self.spec, session)?;
            Ok(session.marks()[1].since(session.marks()[0]).as_secs())
        };
        Ok(seconds(&mut moving)? / seconds(&mut alone)?)
    }

    /// Time to read and write this amount once, in order.
    fn in_order_s(&self, mb: f64) -> Result<f64, StudyError> {
        let step = 2048;
        let count = (mb * 1e6 / 512.0 / f64::from(step)) as u64;
        let places = || (0..count).map(|index| Lbn(index * u64::from(step)));
        let reads = places().map(|first| Request::read(first, step));
        let writes = places().map(|first| Request::write(first, step));
        Ok(time_of(&self.spec, &mut Script::new(reads.chain(writes).collect()))?.as_secs())
    }
}

fn mb(batches: &[MoveBatch]) -> f64 {
    batches.iter().map(Vec::len).sum::<usize>() as f64 * BLOCK_BYTES as f64 / 1e6
}

/// A case, with its gain over equally aged unmodified FFS.
struct Gained {
    name: &'static str,
    case: AgedCase,
    run: CaseRun,
    gain: f64,
}

/// The remedies at one utilisation, and the file systems with which they are compared.
fn remedies() -> Vec<(&'static str, AgedCase)> {
    let aged = AgedCase::aged(80);
    let retrofit = AgedCase { retrofit: true, ..aged };
    vec![
        ("empty, files written whole", AgedCase::FRESH),
        ("empty, files grown in turn", AgedCase { writing: Writing::InTurn, ..AgedCase::FRESH }),
        (
            "empty, grown in turn, preallocated",
            AgedCase { writing: Writing::InTurn, remedy: Remedy::Preallocated, ..AgedCase::FRESH },
        ),
        ("80 % aged", aged),
        ("80 % aged, preallocated", AgedCase { remedy: Remedy::Preallocated, ..aged }),
        ("80 % aged, off line", AgedCase { remedy: Remedy::OffLine, ..aged }),
        ("80 % aged, on line", AgedCase { remedy: Remedy::OnLine, ..aged }),
        ("80 % aged unmodified, off line", AgedCase { remedy: Remedy::OffLine, ..retrofit }),
        ("80 % aged unmodified, on line", AgedCase { remedy: Remedy::OnLine, ..retrofit }),
    ]
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let partition = Partition::new(setting)?;
    let mut cases = remedies();
    let curve: Vec<AgedCase> = UTILISATIONS
        .into_iter()
        .flat_map(|utilisation| {
            TURNOVERS.map(|turnovers| AgedCase { turnovers, ..AgedCase::aged(utilisation) })
        })
        .collect();
    let remedies = cases.len();
    cases.extend(curve.iter().map(|case| ("", *case)));
    let all: Vec<AgedCase> = cases.iter().flat_map(|(_, case)| [case.unmodified(), *case]).collect();
    let runs = setting.map(&all, |case| partition.play(case))?;
    let gained: Vec<Gained> = cases
        .iter()
        .zip(runs.chunks(2))
        .map(|((name, case), runs)| Gained {
            name,
            case: *case,
            run: runs[1],
            gain: runs[0].seconds / runs[1].seconds,
        })
        .collect();
    let (remedied, aged) = gained.split_at(remedies);
    let on_line_cost = partition.on_line_cost(&AgedCase::aged(80))?;
    let measured = measured(&partition, remedied, aged, on_line_cost)?;
    Ok(Findings::new(measured, [ages(aged), remedies_section(remedied, on_line_cost)]))
}

fn measured(
    partition: &Partition,
    remedied: &[Gained],
    aged: &[Gained],
    on_line_cost: f64,
) -> Result<Vec<Measured>, StudyError> {
    let found = |name: &str| remedied.iter().find(|gained| gained.name == name).expect("the case is listed");
    let metric = |name: &str, value: f64| Measured::new(format!("ffs.aged.{name}"), value);
    let off_line = found("80 % aged, off line");
    let live_mb = partition.scale.groups as f64 * 32e6 * 1.048576 / 1e6 * 0.8;
    let mut rows = vec![
        metric("fresh.gain", found("empty, files written whole").gain),
        metric("grown.gain", found("empty, files grown in turn").gain),
        metric("grown.preallocated.gain", found("empty, grown in turn, preallocated").gain),
        metric("80.preallocated.reserved", found("80 % aged, preallocated").run.reserved),
        metric("80.off-line.gain", off_line.gain),
        metric("80.off-line.cost", off_line.run.moving_s / partition.in_order_s(live_mb)?),
        metric("80.retrofit.gain", found("80 % aged unmodified, off line").gain),
        metric("80.on-line.gain", found("80 % aged, on line").gain),
        metric("80.on-line.cost", on_line_cost),
    ];
    for utilisation in [50, 80, 90] {
        let of = |gained: &&Gained| gained.case.utilisation == utilisation && gained.case.turnovers == AGED;
        let gain = aged.iter().find(of).map(|gained| gained.gain);
        rows.extend(gain.map(|gain| metric(&format!("{utilisation}.gain"), gain)));
    }
    Ok(rows)
}

/// The gain over age, for each utilisation.
fn ages(aged: &[Gained]) -> Section {
    let mut table = Table::new(
        "Gain of traxtents on an aged file system",
        ["utilisation %", "turnovers", "s with traxtents", "reads", "gain"],
    )
    .with_words(1);
    for gained in aged {
        let numbers = [gained.case.turnovers, gained.run.seconds, gained.run.reads, gained.gain];
        table.named_row([gained.case.utilisation.to_string()], numbers);
    }
    let lines = UTILISATIONS.iter().enumerate().map(|(family, utilisation)| {
        let own = aged.iter().filter(|gained| gained.case.utilisation == *utilisation);
        let points = own.map(|gained| (gained.case.turnovers, gained.gain));
        Series::new(format!("{utilisation} %"), family, points)
    });
    Section::new("Aged file systems")
        .with_text(
            "Files are made and removed at random at a utilisation, some large ones growing in turn; the age is how often the blocks in use \
             were written again. Then pairs of files of 2 MB are written and compared block by block. The gain is the time of unmodified FFS, \
             aged alike, over that with traxtents.",
        )
        .with_chart(Chart::new(
            "Gain of traxtents over age",
            Axis::linear("turnovers of the data"),
            Axis::linear("time unmodified over traxtents"),
            lines,
        ))
        .with_table(table)
}

fn remedies_section(remedied: &[Gained], on_line_cost: f64) -> Section {
    let columns = ["file system", "s", "reads", "gain", "reserved %", "moved MB", "s of moving off line"];
    let mut table = Table::new("What remedies bring back and cost", columns);
    for gained in remedied {
        let CaseRun { seconds, reads, reserved, moving_s, moved_mb } = gained.run;
        let some = |value: f64| Some(value).filter(|value| *value > 0.0);
        let numbers = [
            Some(seconds),
            Some(reads),
            Some(gained.gain),
            some(100.0 * reserved),
            some(moved_mb),
            some(moving_s),
        ];
        table.named_row([gained.name], numbers);
    }
    Section::new("Remedies for age")
        .with_text(format!(
            "Preallocation reserves whole traxtents for large files being written. Off line, all files are moved to where an empty file system \
             would have them; on line, one file after the other is moved by requests that have {:.0} % of the time, and a program that runs \
             meanwhile takes {on_line_cost:.3} times as long. Retrofit begins with an aged unmodified file system.",
            100.0 * SHARE
        ))
        .with_table(table)
}
