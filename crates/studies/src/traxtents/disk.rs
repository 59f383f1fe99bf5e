//! Random requests of a track's length in the first zone of the study's four disks, and curves over their size on one.

use super::access::{Access, AccessTimes, Place, Size, TRACK};
use super::curves::{figure, in_tracks, line};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Chart, Section, Series, Table};
use headstack_model::spec::{Delivery, WriteCache};
use headstack_model::{DriveSpec, Op, drives};

/// Requests per run: as many as in the study; the short form has fewer.
const REQUESTS: [u64; 2] = [5000, 2000];

const MAIN: &str = "atlas-10k-ii";

const DISKS: [&str; 4] = [MAIN, "atlas-10k", "ultrastar-18es", "cheetah-x15"];

const EIGHTHS: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32];

/// A MiB in blocks.
const MIB: u32 = 2048;

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let requests = setting.length.pick(REQUESTS[0], REQUESTS[1]);
    let (mut measured, table) = whole_tracks(setting, requests)?;
    let place = Place::first_zone(disk(MAIN)?)?;
    let curves = Curves::new(setting, &place, requests)?;
    measured.extend(efficiency(&place, requests)?);
    measured.extend(delivery(&place, requests)?);
    measured.extend(deviation(&place, requests)?);
    measured.extend(latency(&place, requests)?);
    measured.extend(long_and_short(&place, requests)?);
    measured.extend(predicted(requests)?);
    let (delivered, spread) = (curves.head_times()?, curves.spread());
    let sections = vec![
        Section::new("Requests of a whole track")
            .with_text("Random requests in the first zone, aligned to tracks and not, one outstanding (onereq) or always one more in \
                 the queue (tworeq). Head time is the time of all over their number. Writes go to the media before they are done.")
            .with_table(table),
        Section::new("Over the request's size")
            .with_text(format!(
                "{}, first zone. Efficiency is the share of time in which wanted data pass; read in order, the zone comes to \
                 {:.1} %, because skews pass between tracks.",
                place.spec.title,
                100.0 * curves.streaming
            ))
            .with_chart(curves.efficiency())
            .with_chart(delivered[0].clone())
            .with_chart(delivered[1].clone()),
        Section::new("Deviation of the response, and latency")
            .with_text("One outstanding. A disk that reads on arrival waits (1 − f²)/2 turns for a share f of a track, one that does not \
                 half a turn.")
            .with_charts(spread),
    ];
    Ok(Findings::new(measured, sections))
}

fn disk(name: &str) -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load(name)?;
    // The drive files that were made for traces have slow adapters. The study's adapter had 80 MB/s for these two disks.
    if ["atlas-10k", "ultrastar-18es"].contains(&name) {
        (spec.bus.read_us_per_sector, spec.bus.write_us_per_sector) = (6.4, 6.4);
    }
    // The study states this for the Atlas 10K II; it is assumed for the predecessor, too.
    if name == "atlas-10k" {
        spec.bus.delivery = Delivery::InOrderWhole;
    }
    spec.cache.write_cache = WriteCache::None;
    Ok(spec)
}

fn name_of(op: Op, depth: u32) -> String {
    let op = if op == Op::Read { "read" } else { "write" };
    format!("{op}.{}", if depth == 1 { "onereq" } else { "tworeq" })
}

/// Reads of whole tracks on each disk: the metrics that have a row, and a table of all.
fn whole_tracks(setting: &Setting<'_>, requests: u64) -> Result<(Vec<Measured>, Table), StudyError> {
    let mut cases = Vec::new();
    for name in DISKS {
        for op in [Op::Read, Op::Write] {
            cases.extend([1, 2].map(|depth| (name, op, depth)));
        }
    }
    let outcomes = setting.map(&cases, |(name, op, depth)| {
        let place = Place::first_zone(disk(name)?)?;
        let run = |aligned| place.run(Access { op: *op, aligned, depth: *depth, size: TRACK }, requests);
        Ok([run(true)?, run(false)?])
    })?;
    let columns =
        ["disk", "requests", "aligned ms", "unaligned ms", "less %", "seek ms", "latency ms", "bus left ms"];
    let mut table = Table::new("Head time, and what the aligned ones spend of it", columns).with_words(2);
    let mut measured = Vec::new();
    for ((name, op, depth), [aligned, unaligned]) in cases.iter().zip(&outcomes) {
        let kind = name_of(*op, *depth);
        let less = aligned.reduction_of(unaligned);
        table.named_row(
            [*name, &kind.replace('.', " ")],
            [aligned.head_ms, unaligned.head_ms, less, aligned.seek_ms.0, aligned.latency_ms, aligned.bus_ms],
        );
        let values = [
            ("aligned", aligned.head_ms),
            ("unaligned", unaligned.head_ms),
            ("reduction", less),
            ("saved", unaligned.head_ms - aligned.head_ms),
            ("seek", aligned.seek_ms.0),
            ("seek_deviation", aligned.seek_ms.1),
        ];
        let named = values.map(|(what, value)| Measured::new(format!("{name}.{kind}.{what}"), value));
        // The study did not publish all of these.
        measured.extend(
            named.into_iter().filter(|found| setting.rows.iter().any(|row| row.metric == found.metric)),
        );
    }
    Ok((measured, table))
}

/// Efficiencies as shares of the maximum, which is that of reading the zone in order. The efficiency of 1 MiB is a share of the whole time.
fn efficiency(place: &Place, requests: u64) -> Result<Vec<Measured>, StudyError> {
    let most = place.streaming()?;
    let share = |aligned, size| -> Result<f64, StudyError> {
        let outcome = place.run(Access { size, ..Access::reads(aligned, 2) }, requests)?;
        Ok(outcome.efficiency(place.turn_ms))
    };
    let metric = |what: &str, value| Measured::new(format!("{MAIN}.efficiency.{what}"), value);
    Ok(vec![
        metric("aligned", share(true, TRACK)? / most),
        metric("unaligned", share(false, TRACK)? / most),
        metric("1_mib_unaligned", share(false, Size::Sectors(MIB))?),
    ])
}

/// How much of the bus transfer overlaps with the media transfer, and what out-of-order delivery would gain.
fn delivery(place: &Place, requests: u64) -> Result<Vec<Measured>, StudyError> {
    let one = place.run(Access::reads(true, 1), requests)?;
    let two = place.run(Access::reads(true, 2), requests)?;
    let without = place.with(without_bus).run(Access::reads(true, 1), requests)?;
    let any_order = place.with(in_any_order).run(Access::reads(true, 1), requests)?;
    let sectors = f64::from(place.spec.geometry.zones[0].sectors_per_track);
    let bus_ms = sectors * place.spec.bus.read_us_per_sector / 1e3;
    let slow = place.with(|spec| spec.bus.read_us_per_sector = 2e3 / sectors);
    let run = |aligned| slow.run(Access::reads(aligned, 1), requests);
    let metric = |what: &str, value| Measured::new(format!("{MAIN}.delivery.{what}"), value);
    Ok(vec![
        metric("reduction_at_2_ms", run(true)?.reduction_of(&run(false)?)),
        metric("overlap", 100.0 * (1.0 - one.bus_ms / bus_ms)),
        metric("zero_bus_over_tworeq", without.head_ms / two.head_ms),
        metric("any_order_over_zero_bus", any_order.head_ms / without.head_ms),
    ])
}

type Change = fn(&mut DriveSpec);

fn without_bus(spec: &mut DriveSpec) {
    spec.bus.read_us_per_sector = 0.0;
}

fn in_any_order(spec: &mut DriveSpec) {
    spec.bus.delivery = Delivery::OutOfOrder;
}

/// Standard deviations of the response at both ends of Fig 8.
fn deviation(place: &Place, requests: u64) -> Result<Vec<Measured>, StudyError> {
    let mut measured = Vec::new();
    for (what, aligned) in [("aligned", true), ("unaligned", false)] {
        for (length, size) in [("sector", Size::Sectors(1)), ("track", TRACK)] {
            let outcome = place.run(Access { size, ..Access::reads(aligned, 1) }, requests)?;
            measured.push(Measured::new(format!("{MAIN}.deviation.{what}.{length}"), outcome.deviation_ms));
        }
    }
    Ok(measured)
}

/// Rotational latency by the share of a track that is read.
fn latency(place: &Place, requests: u64) -> Result<Vec<Measured>, StudyError> {
    let mut measured = Vec::new();
    for eighths in [2, 4, 6, 8] {
        let outcome =
            place.run(Access { size: Size::Eighths(eighths), ..Access::reads(true, 1) }, requests)?;
        let turns = outcome.latency_ms / place.turn_ms;
        measured.push(Measured::new(format!("zero-latency.{eighths}_eighths"), turns));
    }
    Ok(measured)
}

/// The response to long requests, and how often short ones lie on two tracks.
fn long_and_short(place: &Place, requests: u64) -> Result<Vec<Measured>, StudyError> {
    let anywhere = Place::part(disk(MAIN)?, 0.0, 1.0)?;
    let mib = anywhere.run(Access { size: Size::Sectors(MIB), ..Access::reads(false, 1) }, requests)?;
    // A third of a track, as in the study's example of 64 KiB on a track of 192 KiB.
    let third = place.run(Access { size: Size::Sectors(528 / 3), ..Access::reads(false, 1) }, requests)?;
    Ok(vec![
        Measured::new(format!("{MAIN}.response.1_mib"), mib.response_ms),
        Measured::new("crossing.third_of_a_track", third.crossing),
    ])
}

/// What the study predicts for FFS on the Atlas 10K from requests to the disk alone. It compares the first blocks of files with their first
/// tracks, and whole tracks with the 256 KiB of unmodified FFS.
fn predicted(requests: u64) -> Result<Vec<Measured>, StudyError> {
    let name = "atlas-10k";
    let place = Place::first_zone(disk(name)?)?;
    let short = place.run(Access { size: Size::Sectors(32), ..Access::reads(false, 2) }, requests)?;
    let track = place.run(Access::reads(true, 2), requests)?;
    let long = place.run(Access { size: Size::Sectors(512), ..Access::reads(false, 2) }, requests)?;
    let ratio = track.efficiency(place.turn_ms) / long.efficiency(place.turn_ms);
    Ok(vec![
        Measured::new(format!("{name}.predicted.16_kib"), short.head_ms),
        Measured::new(format!("{name}.predicted.track"), track.head_ms),
        Measured::new(format!("{name}.predicted.efficiency"), ratio),
    ])
}

/// The results at each size.
struct Curves<'a> {
    place: &'a Place,
    setting: &'a Setting<'a>,
    requests: u64,
    streaming: f64,
    /// Aligned and unaligned reads, one outstanding and two.
    reads: Vec<(&'static str, Vec<AccessTimes>)>,
}

impl<'a> Curves<'a> {
    fn new(setting: &'a Setting<'a>, place: &'a Place, requests: u64) -> Result<Curves<'a>, StudyError> {
        let streaming = place.streaming()?;
        let mut curves = Curves { place, setting, requests, streaming, reads: Vec::new() };
        for (name, aligned, depth) in LINES {
            curves.reads.push((name, curves.over_sizes(place, Access::reads(aligned, depth))?));
        }
        Ok(curves)
    }

    fn over_sizes(&self, place: &Place, access: Access) -> Result<Vec<AccessTimes>, StudyError> {
        self.setting.map(&EIGHTHS, |eighths| {
            place.run(Access { size: Size::Eighths(*eighths), ..access }, self.requests)
        })
    }

    fn lines(&self, of: impl Fn(&AccessTimes) -> f64) -> Vec<Series> {
        let line = |(index, (name, outcomes)): (usize, &(&str, Vec<AccessTimes>))| {
            line(*name, &EIGHTHS, outcomes.iter().map(&of), index / 2, index % 2 == 0)
        };
        self.reads.iter().enumerate().map(line).collect()
    }

    /// Fig 1, with all four kinds of reads.
    fn efficiency(&self) -> Chart {
        let turn_ms = self.place.turn_ms;
        let mut lines = self.lines(|outcome| outcome.efficiency(turn_ms));
        let most = EIGHTHS.iter().map(|_| 100.0 * self.streaming);
        lines.push(line("read in order", &EIGHTHS, most, 2, true));
        figure("Efficiency of reads", "efficiency (%)", lines)
    }

    /// Figs 6 and 7, and the same for writes.
    fn head_times(&self) -> Result<[Chart; 2], StudyError> {
        let mut reads = self.lines(|outcome| outcome.head_ms);
        let changes: [(&str, Change); 2] = [
            ("aligned, onereq, bus in no time", without_bus),
            ("aligned, onereq, bus in any order", in_any_order),
        ];
        for (index, (name, change)) in changes.into_iter().enumerate() {
            let outcomes = self.over_sizes(&self.place.with(change), Access::reads(true, 1))?;
            reads.push(line(
                name,
                &EIGHTHS,
                outcomes.iter().map(|outcome| outcome.head_ms),
                2 + index,
                false,
            ));
        }
        let mut writes = Vec::new();
        for (index, (name, aligned, depth)) in LINES.into_iter().enumerate() {
            let access = Access { op: Op::Write, ..Access::reads(aligned, depth) };
            let outcomes = self.over_sizes(self.place, access)?;
            let ys = outcomes.iter().map(|outcome| outcome.head_ms);
            writes.push(line(name, &EIGHTHS, ys, index / 2, index % 2 == 0));
        }
        Ok([
            figure("Head time of reads", "head time (ms)", reads),
            figure("Head time of writes", "head time (ms)", writes),
        ])
    }

    /// Figs 8 and 3.
    fn spread(&self) -> Vec<Chart> {
        let one = |index: usize| &self.reads[index].1;
        let deviation = ["aligned", "unaligned"].iter().enumerate().map(|(family, name)| {
            line(*name, &EIGHTHS, one(2 * family).iter().map(|outcome| outcome.deviation_ms), family, false)
        });
        let turn_ms = self.place.turn_ms;
        let within = |share: f64| (1.0 - (share * share).min(1.0)) / 2.0;
        let shares = EIGHTHS.iter().map(|eighths| in_tracks(*eighths)).filter(|share| *share <= 1.0);
        let latency = vec![
            line(
                "aligned",
                &EIGHTHS,
                one(0).iter().take(8).map(|outcome| outcome.latency_ms / turn_ms),
                0,
                false,
            ),
            line("(1 − f²)/2", &EIGHTHS, shares.clone().map(within), 0, true),
            line("not on arrival", &EIGHTHS, shares.map(|_| 0.5), 1, true),
        ];
        vec![
            figure("Standard deviation of the response", "deviation (ms)", deviation.collect()),
            figure("Rotational latency", "latency (turns)", latency),
        ]
    }
}

/// The four kinds of reads in the curves; those with one outstanding are dashed.
const LINES: [(&str, bool, u32); 4] = [
    ("aligned, onereq", true, 1),
    ("aligned, tworeq", true, 2),
    ("unaligned, onereq", false, 1),
    ("unaligned, tworeq", false, 2),
];
