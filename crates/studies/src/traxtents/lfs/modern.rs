//! The same on a drive of 2019, without published figures: segments from parts of a track to several tracks, at the start of the drive.

use super::super::access::{Access, Place, Size};
use super::super::curves::{figure, in_tracks, line};
use super::super::modern::RULES;
use super::{BLOCK, LOADS, log};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::spec::{WriteCache, ZeroLatency};
use headstack_model::{Op, drives};
use headstack_personalities::lfs::SegmentTable;
use headstack_workload::Region;

const DRIVE: &str = "exos-x16";

/// The part of the drive, from its start, in which segments are written.
const SHARE: f64 = 0.05;

/// Sizes of a segment, in eighths of a track.
const EIGHTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// For one size: write cost, KB, and the inefficiency of aligned and of unaligned segments.
struct Found {
    cost: f64,
    kb: f64,
    inefficiency: [f64; 2],
}

impl Found {
    fn overall(&self) -> [f64; 2] {
        self.inefficiency.map(|inefficiency| self.cost * inefficiency)
    }
}

fn find(setting: &Setting<'_>, rule: ZeroLatency, eighths: u32) -> Result<Found, StudyError> {
    let mut spec = drives::load(DRIVE)?;
    spec.cache.write_cache = WriteCache::None;
    spec.mechanics.zero_latency_write = rule;
    // A log writes blocks of 4 KB. No segment begins inside a physical sector, which the drive would have to read first.
    spec.physical_sector_bytes = spec.sector_bytes;
    let place = Place::part(spec, 0.0, SHARE)?;
    let run = |aligned| {
        let access = Access { op: Op::Write, aligned, depth: 2, size: Size::Eighths(eighths) };
        place.run(access, setting.length.pick(5000, 300))
    };
    let [aligned, unaligned] = [run(true)?, run(false)?];
    let sectors = (2.0 * aligned.kib / f64::from(BLOCK)).round() as u32 * BLOCK;
    let region = Region::whole(setting.length.pick(4 << 20, 1 << 19));
    let (cost, _) = log(SegmentTable::fixed(region, sectors, BLOCK), LOADS[0], setting)?;
    let inefficiency = [aligned, unaligned].map(|outcome| 100.0 / outcome.efficiency(place.turn_ms));
    Ok(Found { cost, kb: f64::from(sectors) / 2.0, inefficiency })
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let cases: Vec<_> = RULES.iter().flat_map(|(_, rule)| EIGHTHS.map(|eighths| (*rule, eighths))).collect();
    let found = setting.map(&cases, |(rule, eighths)| find(setting, *rule, *eighths))?;
    let columns = [
        "zero latency",
        "segment KB",
        "write cost",
        "inefficiency: aligned",
        "unaligned",
        "overall: aligned",
        "unaligned",
    ];
    let mut table = Table::new("Write cost, transfer inefficiency, their product", columns).with_words(2);
    let (mut measured, mut lines) = (Vec::new(), Vec::new());
    for (family, ((rule, _), found)) in RULES.iter().zip(found.chunks(EIGHTHS.len())).enumerate() {
        let word = if family == 0 { "no" } else { "yes" };
        for found in found {
            let numbers = [found.cost].into_iter().chain(found.inefficiency).chain(found.overall());
            table.named_row([word.to_string(), format!("{:.0}", found.kb)], numbers);
        }
        for (lie, word) in ["aligned", "unaligned"].into_iter().enumerate() {
            let name = if family == 0 { word.to_string() } else { format!("{word}, if it wrote on arrival") };
            lines.push(line(
                name,
                &EIGHTHS,
                found.iter().map(|found| found.overall()[lie]),
                family,
                lie == 1,
            ));
        }
        let sizes = EIGHTHS.iter().zip(found);
        let best = sizes.clone().min_by(|a, b| a.1.overall()[0].total_cmp(&b.1.overall()[0]));
        let track = sizes.clone().find(|(eighths, _)| **eighths == 8).map(|(_, found)| found.overall());
        let metric = |what: &str| format!("lfs.2020.{rule}.{what}");
        let best = best.map(|(eighths, _)| Measured::new(metric("best_segment"), in_tracks(*eighths)));
        let lower =
            track.map(|[aligned, unaligned]| Measured::new(metric("lower"), 1.0 - aligned / unaligned));
        measured.extend(best.into_iter().chain(lower));
    }
    let section = Section::new("Log-structured file system on a drive of 2019")
        .with_text("The same files on an Exos X16, segments at its start; writes wait for the media, two of them outstanding. The drive's file has \
             no access on arrival; the comparison includes the same drive with it.")
        .with_chart(figure("Overall write cost", "overall write cost", lines))
        .with_table(table);
    Ok(Findings::new(measured, [section]))
}
