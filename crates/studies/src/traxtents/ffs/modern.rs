//! The same programs over the same file systems on a drive of 2019, without published figures.
//!
//! The partition is the drive's first 16 GiB, empty at first. Writes wait for the media, as in the study; the rest is as on the disk of
//! 2000. Clusters are as long as a track, so that the requests of all variants are about equally long and only alignment differs. The
//! comparison includes unmodified FFS with its own clusters of 256 KB. Files of head* are 1.2 tracks long, as in the study.

use super::super::modern::RULES;
use super::{Program, ProgramRun, play, tracks_of};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::{DriveSpec, WriteCache, ZeroLatency};
use headstack_model::{Geometry, Lbn, drives};
use headstack_personalities::ffs::{BLOCK_BYTES, BLOCK_SECTORS, Layout, NextGroup, Variant};

const DRIVE: &str = "exos-x16";

const PARTITION: u64 = (16 << 30) / 512;

const PROGRAMS: [Program; 5] =
    [Program::Scan, Program::Diff, Program::Copy, Program::Postmark(500), Program::Head];

/// Unmodified FFS with clusters of 256 KB.
const SHORT: &str = "short-clusters";

/// A file system: its name, and the placement of its blocks.
type Kind = (&'static str, Layout);

fn drive(rule: ZeroLatency) -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load(DRIVE)?;
    spec.cache.write_cache = WriteCache::None;
    (spec.mechanics.zero_latency_read, spec.mechanics.zero_latency_write) = (rule, rule);
    Ok(spec)
}

/// Unmodified FFS with short clusters, and all variants with clusters of `cluster` blocks.
fn kinds(geometry: &Geometry, cluster: u32) -> Vec<Kind> {
    let tracks = tracks_of(geometry, PARTITION);
    let layout = |variant| Layout::new(tracks.clone(), variant, NextGroup::Following);
    let long = Variant::ALL.map(|variant| (variant.name(), layout(variant).with_clusters(cluster)));
    std::iter::once((SHORT, layout(Variant::Unmodified))).chain(long).collect()
}

/// The results of one program under one rule: unmodified FFS with short clusters first, then the variants in their order.
struct Played {
    rule: &'static str,
    program: Program,
    outcomes: Vec<ProgramRun>,
}

impl Played {
    /// Seconds of each file system, divided by those of unmodified FFS with long clusters.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        let plain = self.outcomes[1].seconds;
        self.outcomes.iter().map(move |outcome| outcome.seconds / plain)
    }
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let geometry = Geometry::new(&drive(ZeroLatency::None)?)?;
    let cluster = geometry.track_at(Lbn(0)).sectors / BLOCK_SECTORS;
    let kinds = kinds(&geometry, cluster);
    let head_bytes = u64::from(cluster) * BLOCK_BYTES * 6 / 5;
    let mut cases = Vec::new();
    for rule in RULES {
        for program in PROGRAMS {
            cases.extend(kinds.iter().map(|(_, layout)| (rule.1, program, layout)));
        }
    }
    let outcomes = setting.map(&cases, |(rule, program, layout)| {
        play(&drive(*rule)?, layout, *program, &program.files(setting.length, head_bytes))
    })?;
    let pairs = RULES.into_iter().flat_map(|rule| PROGRAMS.map(|program| (rule.0, program)));
    let played: Vec<Played> = pairs
        .zip(outcomes.chunks(kinds.len()))
        .map(|((rule, program), outcomes)| Played { rule, program, outcomes: outcomes.to_vec() })
        .collect();
    let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
    Ok(Findings::new(measured(setting, &names, &played), [section(&names, &played, cluster)]))
}

fn measured(setting: &Setting<'_>, names: &[&str], played: &[Played]) -> Vec<Measured> {
    let ratios = played.iter().flat_map(|played| {
        let metric =
            |name: &str| format!("ffs.2020.{}.{}.{name}.over-unmodified", played.rule, played.program.name());
        names.iter().zip(played.ratios()).map(move |(name, ratio)| Measured::new(metric(name), ratio))
    });
    ratios.filter(|found| setting.rows.iter().any(|row| row.metric == found.metric)).collect()
}

fn section(names: &[&str], played: &[Played], cluster: u32) -> Section {
    let columns =
        ["zero latency", "program", "variant", "s", "over unmodified", "reads", "KB a read", "writes"];
    let mut table = Table::new("Programs over the file systems", columns).with_words(3);
    for played in played {
        for ((name, outcome), ratio) in names.iter().zip(&played.outcomes).zip(played.ratios()) {
            let reads = outcome.counts.reads;
            table.named_row(
                [if played.rule == RULES[0].0 { "no" } else { "yes" }, &played.program.name(), name],
                [
                    Some(outcome.seconds),
                    Some(ratio),
                    Some(reads as f64),
                    Some(outcome.mean_read_kb()).filter(|_| reads > 0),
                    Some(outcome.counts.writes as f64),
                ],
            );
        }
    }
    let kb = u64::from(cluster) * BLOCK_BYTES / 1024;
    Section::new("FFS on a drive of 2019")
        .with_text(format!(
            "The first 16 GiB of an Exos X16, whose tracks are up to {kb} KB long; writes wait for the media. Clusters are of {kb} KB, but for \
             `{SHORT}`, which is unmodified FFS with its 256 KB. The drive's file has no access on arrival; the comparison includes the same \
             drive with it."
        ))
        .with_charts(RULES.iter().map(|(rule, _)| figure(names, played, rule)))
        .with_table(table)
}

/// The results of the programs under one rule, as marks: bars of several variants would be stacked.
fn figure(names: &[&str], played: &[Played], rule: &str) -> Chart {
    let mut lines: Vec<Series> = names
        .iter()
        .enumerate()
        .map(|(family, name)| Series::new(*name, family, []).with_draw(Draw::Marks))
        .collect();
    for (at, played) in played.iter().filter(|played| played.rule == rule).enumerate() {
        for (line, ratio) in lines.iter_mut().zip(played.ratios()) {
            line.points.push((at as f64, ratio));
        }
    }
    let title = if rule == RULES[0].0 { "As the drive is" } else { "If it read and wrote on arrival" };
    Chart::new(
        title,
        Axis::of_names("program", PROGRAMS.iter().map(|program| program.name())),
        Axis::linear("time over that of unmodified FFS"),
        lines,
    )
}
