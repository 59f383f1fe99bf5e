//! Cylinders placed by simulated annealing over a Markov chain, against the organ pipe.
//!
//! Modelled: references to cylinders, either independent or each drawn from the transitions of the one before, and a drive that serves one
//! at a time. A placement is computed from the transitions of one period and measured on the references of another. Not modelled: the time
//! of the moves.

use super::loads::{LoadCase, RearrangedLoad};
use super::seeks::DISK;
use super::shuffling::{CYLINDER_SECTORS, CYLINDERS, cylinder_start, rig, share_saved};
use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{DriveSpec, Instant, Nanos, Op, Request, SeekCurve};
use headstack_sim::Rig;
use headstack_streams::rearrange::TransitionCounts;
use headstack_workload::{Closed, Pick, Poll, Popularity};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Share of the chain's references that go to the preceding cylinder's successor. *Source:* assumption, chosen before the first run.
const FOLLOWING: f64 = 0.7;

/// Zipf's exponent of the independent references, the one that fits the week's trace.
const EXPONENT: f64 = 0.98;

const SECTORS: u32 = 16;

/// References per period.
const REFERENCES: usize = 100_000;

/// Where the references come from.
#[derive(Clone, Copy)]
enum ReferenceSource<'a> {
    /// Each independent of the others.
    Independent,
    /// Most of them go to the successor of the preceding cylinder.
    Chain,
    /// The Markov chain whose transitions are those of a trace.
    Trace(&'a [u8]),
}

impl ReferenceSource<'_> {
    fn name(self) -> &'static str {
        match self {
            ReferenceSource::Independent => "independent",
            ReferenceSource::Chain => "chain",
            ReferenceSource::Trace(_) => "week's chain",
        }
    }
}

/// The references from which placements are computed, and those that are served.
struct ReferencePeriods {
    counted: TransitionCounts,
    served: Vec<u32>,
}

/// All cylinders in a random order, drawn from a seed.
fn shuffled_cylinders(seed: u64) -> Vec<u32> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut cylinders: Vec<u32> = (0..CYLINDERS).collect();
    for rank in (1..cylinders.len()).rev() {
        cylinders.swap(rank, random.random_range(0..=rank));
    }
    cylinders
}

/// References, a share of which goes to the successor of the preceding cylinder. The others are drawn by Zipf's law.
fn drawn(following: f64, count: usize, seed: u64) -> Result<Vec<u32>, StudyError> {
    let popularity = Popularity::Zipf { exponent: EXPONENT };
    let ranks =
        popularity.ranks(u64::from(CYLINDERS)).map_err(|error| StudyError::Input(error.to_string()))?;
    let (by_rank, successors) = (shuffled_cylinders(1), shuffled_cylinders(2));
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut last, mut references) = (0, Vec::with_capacity(count));
    for _ in 0..count {
        last = if random.random::<f64>() < following {
            successors[last as usize]
        } else {
            by_rank[ranks.draw(&mut random) as usize]
        };
        references.push(last);
    }
    Ok(references)
}

fn counted(references: &[u32]) -> TransitionCounts {
    let mut counts = TransitionCounts::new(CYLINDERS);
    references.iter().for_each(|cylinder| counts.observe(*cylinder));
    counts
}

/// The cylinders that a trace's requests to device 0 refer to.
fn cylinders_of(trace: &[u8], length: Length) -> Result<Vec<u32>, StudyError> {
    let volumes = rig(RearrangedLoad::Week)?.volumes();
    let mut load = LoadCase::study(RearrangedLoad::Week).requests(Some(trace), &volumes, length)?;
    let (mut now, mut cylinders) = (Instant::ZERO, Vec::new());
    loop {
        match load.poll(now) {
            Poll::Issue(issue) if issue.device == 0 => {
                cylinders.push((issue.request.lbn.0 / CYLINDER_SECTORS) as u32);
            }
            Poll::Issue(_) => {}
            Poll::Later(time) => now = time,
            _ => return Ok(cylinders),
        }
    }
}

/// References drawn from a Markov chain, each by the transitions from the preceding cylinder.
fn generated(chain: &TransitionCounts, count: usize, random: &mut impl Rng) -> Vec<u32> {
    // For each cylinder, the cylinders that follow it with their cumulative counts.
    let mut next: BTreeMap<u32, Vec<(u64, u32)>> = BTreeMap::new();
    for ((before, cylinder), times) in chain.pairs() {
        let row = next.entry(before).or_default();
        let sum = row.last().map_or(0, |(sum, _)| *sum);
        row.push((sum + times, cylinder));
    }
    let Some(first) = next.keys().next().copied() else { return Vec::new() };
    let (mut last, mut references) = (first, Vec::with_capacity(count));
    for _ in 0..count {
        // The trace's last cylinder may have no transition from it.
        let row = next.get(&last).unwrap_or(&next[&first]);
        let drawn = random.random_range(0..row.last().map_or(1, |(sum, _)| *sum));
        last = row[row.partition_point(|(sum, _)| *sum <= drawn)].1;
        references.push(last);
    }
    references
}

fn periods(source: ReferenceSource<'_>, length: Length) -> Result<ReferencePeriods, StudyError> {
    let count = REFERENCES;
    let following = match source {
        ReferenceSource::Independent => 0.0,
        ReferenceSource::Chain => FOLLOWING,
        ReferenceSource::Trace(trace) => {
            let counted = counted(&cylinders_of(trace, length)?);
            let served = generated(&counted, count, &mut Pcg64Mcg::seed_from_u64(4));
            return Ok(ReferencePeriods { counted, served });
        }
    };
    let (first, served) = (drawn(following, count, 3)?, drawn(following, count, 4)?);
    Ok(ReferencePeriods { counted: counted(&first), served })
}

/// One read per reference, from the cylinder on which the referenced one was placed.
struct PlacedReads<'a> {
    references: std::slice::Iter<'a, u32>,
    places: &'a [u32],
    random: Pcg64Mcg,
}

impl Pick for PlacedReads<'_> {
    fn pick(&mut self, _now: Instant) -> Request {
        let cylinder = self.references.next().map_or(0, |cylinder| self.places[*cylinder as usize]);
        let starts = (CYLINDER_SECTORS - u64::from(SECTORS)) / u64::from(SECTORS);
        let offset = self.random.random_range(0..=starts) * u64::from(SECTORS);
        Request { op: Op::Read, lbn: cylinder_start(cylinder) + offset, sectors: SECTORS, fua: false }
    }
}

/// Mean times per reference.
#[derive(Clone, Copy)]
struct ArrangedTimes {
    service_ms: f64,
    seek_ms: f64,
}

fn serve(drive: &DriveSpec, references: &[u32], places: &[u32]) -> Result<ArrangedTimes, StudyError> {
    let random = Pcg64Mcg::seed_from_u64(5);
    let reads = PlacedReads { references: references.iter(), places, random };
    let (mut service, mut seek) = (Nanos::ZERO, Nanos::ZERO);
    let mut load = Closed::from_pick(reads, 1, references.len() as u64)?;
    Rig::from_drive(drive.clone()).build(1)?.run(&mut load, &mut |finished| {
        service += finished.completion.response();
        seek += finished.completion.parts.seek;
    });
    let mean = |sum: Nanos| sum.as_ms() / references.len() as f64;
    Ok(ArrangedTimes { service_ms: mean(service), seek_ms: mean(seek) })
}

/// The times with all cylinders at home, placed by the organ pipe, and placed by annealing.
fn arranged(source: ReferenceSource<'_>, length: Length) -> Result<[ArrangedTimes; 3], StudyError> {
    let drive = DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?;
    let curve = SeekCurve::for_reads(&drive.mechanics.seek, CYLINDERS);
    let moving = (1..CYLINDERS).map(|distance| curve.time(distance));
    let seeks: Vec<Nanos> = std::iter::once(Nanos::ZERO).chain(moving).collect();
    let ReferencePeriods { counted, served } = periods(source, length)?;
    let home: Vec<u32> = (0..CYLINDERS).collect();
    let annealed = counted.anneal(&seeks, &mut Pcg64Mcg::seed_from_u64(1));
    Ok([
        serve(&drive, &served, &home)?,
        serve(&drive, &served, &counted.organ_pipe())?,
        serve(&drive, &served, &annealed)?,
    ])
}

/// Runs the available sources of references.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>, trace: Option<&[u8]>) -> Result<Findings, StudyError> {
    let mut sources = vec![ReferenceSource::Chain, ReferenceSource::Independent];
    sources.extend(trace.map(ReferenceSource::Trace));
    let mut measured = Vec::new();
    let all = setting.map(&sources, |source| arranged(*source, setting.length))?;
    let columns = ["references", "arrangement", "service ms", "saved %", "seek ms", "saved %"];
    let mut table = Table::new("Annealing over a Markov chain", columns).with_words(2);
    for (source, times) in sources.iter().zip(&all) {
        let [home, pipe, annealed] = times;
        for (name, run) in ["at home", "organ pipe", "annealed"].into_iter().zip(times) {
            let service = share_saved(run.service_ms, home.service_ms);
            let seek = share_saved(run.seek_ms, home.seek_ms);
            table.named_row([source.name(), name], [run.service_ms, service, run.seek_ms, seek]);
        }
        let over =
            share_saved(annealed.service_ms, home.service_ms) - share_saved(pipe.service_ms, home.service_ms);
        measured.push(match source {
            ReferenceSource::Independent => Measured::new("annealing over organ pipe, independent", over),
            ReferenceSource::Chain => Measured::new("annealing over organ pipe, chain", over),
            ReferenceSource::Trace(_) => {
                let service = share_saved(annealed.service_ms, home.service_ms);
                Measured::new("week annealing service reduction", service)
            }
        });
    }
    Ok(Findings::new(measured, [Section::new("Annealing over a Markov chain").with_table(table)]))
}
