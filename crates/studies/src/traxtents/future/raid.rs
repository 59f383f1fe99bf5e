//! Stripes of a RAID-5 in place of tracks: what a file system gains by writing whole stripes.
//!
//! Five Atlas 10K II with 64 KB on each disk: a stripe holds 256 KB of data. Unmodified FFS writes clusters of 256 KB, wherever they begin.
//! The other file system uses the stripe boundaries as track boundaries. No block spans two stripes, so that none is excluded.

use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::WriteCache;
use headstack_model::{Lbn, Op, Request, drives};
use headstack_personalities::ffs::{
    Call, FileGrouping, GroupExtent, Layout, NextGroup, Session, SmallFiles, TrackList, Variant, copy,
};
use headstack_policy::stripe::{Array, Organisation, Shape as ArrayShape, Unit};
use headstack_sim::{ArrayVolume, Device, DeviceOptions, Engine, HostSpec};

const DRIVE: &str = "atlas-10k-ii";

const DISKS: u32 = 5;

/// Sectors of a stripe on each disk. *Source:* assumption, 64 KiB, as in the shipped rig `raid5`.
const UNIT: u64 = 128;

/// Sectors of data in a stripe.
const STRIPE: u64 = UNIT * (DISKS as u64 - 1);

/// Sectors of the partition: 4 GiB.
const PARTITION: u64 = (4 << 30) / 512;

const MB: u64 = 1 << 20;

/// Bytes that a program writes at a time.
const PIECE: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayLoad {
    /// A large file is written.
    Write,
    /// A large file is copied.
    Copy,
    /// Directories of small files are made.
    SmallFiles,
}

const LOADS: [ArrayLoad; 3] = [ArrayLoad::Write, ArrayLoad::Copy, ArrayLoad::SmallFiles];

impl ArrayLoad {
    fn name(self) -> &'static str {
        match self {
            ArrayLoad::Write => "write",
            ArrayLoad::Copy => "copy",
            ArrayLoad::SmallFiles => "small files",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct ArrayRun {
    seconds: f64,
    /// Sectors written: all of them, and those in whole stripes.
    written: u64,
    in_stripes: u64,
    writes: u64,
}

impl ArrayRun {
    fn full_share(&self) -> f64 {
        self.in_stripes as f64 / self.written.max(1) as f64
    }

    fn mb_s(&self) -> f64 {
        self.written as f64 * 512.0 / 1e6 / self.seconds
    }
}

/// The array, whose drives turn at slightly different speeds so that their spindles are not in step.
fn array() -> Result<Engine, StudyError> {
    let mut spec = drives::load(DRIVE)?;
    spec.cache.write_cache = WriteCache::None;
    let device = |index: u32| {
        let mut spec = spec.clone();
        spec.mechanics.rpm_deviation_percent += 0.1 * f64::from(index);
        Device::new(&spec, &DeviceOptions::default())
    };
    let devices: Vec<Device> = (0..DISKS).map(device).collect::<Result<_, _>>()?;
    let members = devices.iter().map(|device| device.sectors()).collect();
    let shape = ArrayShape::new(Organisation::Raid5, members, Unit::Sectors(UNIT));
    let input = |error: &dyn ToString| StudyError::Input(error.to_string());
    let array = Array::new(shape).map_err(|error| input(&error))?;
    let arrays = vec![ArrayVolume::new(array, (0..DISKS).collect())];
    Engine::with_arrays(devices, arrays, &HostSpec::default()).map_err(|error| input(&error))
}

/// Unmodified FFS, and FFS with stripes for tracks. Both keep small files in groups of one stripe.
fn layouts() -> [Layout; 2] {
    let stripes = (0..PARTITION / STRIPE).map(|stripe| stripe * STRIPE);
    let tracks = TrackList::new(stripes, PARTITION).expect("stripes are equal and longer than a block");
    let blocks = (STRIPE / 16) as u32;
    let grouping = |extent| FileGrouping { extent, most_file_blocks: 8 };
    let layout = |variant| Layout::new(tracks.clone(), variant, NextGroup::Following).with_clusters(blocks);
    [
        layout(Variant::Unmodified).with_grouping(grouping(GroupExtent::Blocks(blocks))),
        layout(Variant::Traxtent).with_grouping(grouping(GroupExtent::Traxtent)),
    ]
}

const NAMES: [&str; 2] = ["unmatched", "matched"];

/// Sectors of a write that belong to whole stripes.
fn in_stripes(request: &Request) -> u64 {
    let first = request.lbn.0.div_ceil(STRIPE);
    let end = request.end().0 / STRIPE;
    end.saturating_sub(first) * STRIPE
}

fn play(setting: &Setting<'_>, load: ArrayLoad, layout: &Layout) -> Result<ArrayRun, StudyError> {
    let bytes = setting.length.pick(512, 16) * MB;
    let small = SmallFiles {
        directories: setting.length.pick(100, 20),
        files_each: 100,
        least_bytes: 1 << 10,
        most_bytes: 16 << 10,
        seed: 1,
    };
    let calls: Box<dyn Iterator<Item = Call>> = match load {
        ArrayLoad::Write => {
            let pieces = (0..bytes / PIECE).map(|_| Call::Append(0, PIECE));
            Box::new([Call::Create(0)].into_iter().chain(pieces).chain([Call::Close(0)]))
        }
        ArrayLoad::Copy => Box::new(copy(bytes)),
        ArrayLoad::SmallFiles => Box::new(small.create_all()),
    };
    let mut session = Session::new(layout.clone(), Lbn(0), calls);
    if load == ArrayLoad::Copy {
        session = session.with_file(0, bytes);
    }
    let mut engine = array()?;
    let mut run = ArrayRun { seconds: 0.0, written: 0, in_stripes: 0, writes: 0 };
    engine.run(&mut session, &mut |finished| {
        let request = finished.completion.request;
        // Writes of single blocks carry names, inodes and indirect blocks.
        if request.op == Op::Write && request.sectors > 16 {
            run.written += u64::from(request.sectors);
            run.in_stripes += in_stripes(&request);
            run.writes += 1;
        }
    });
    run.seconds = engine.now().as_secs();
    Ok(run)
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let layouts = layouts();
    let cases: Vec<(ArrayLoad, usize)> = LOADS.into_iter().flat_map(|load| [(load, 0), (load, 1)]).collect();
    let played = setting.map(&cases, |(load, layout)| play(setting, *load, &layouts[*layout]))?;
    let of = |load: ArrayLoad, layout: usize| {
        let index = cases.iter().position(|case| *case == (load, layout)).expect("each case was played");
        played[index]
    };
    let ratio = |load| of(load, 0).seconds / of(load, 1).seconds;
    let measured = vec![
        Measured::new("raid5.unmatched.full-stripes", of(ArrayLoad::Copy, 0).full_share()),
        Measured::new("raid5.matched.full-stripes", of(ArrayLoad::Copy, 1).full_share()),
        Measured::new("raid5.copy.matched.over-unmatched", ratio(ArrayLoad::Copy)),
        Measured::new("raid5.write.matched.over-unmatched", ratio(ArrayLoad::Write)),
        Measured::new("raid5.grouped.full-stripes", of(ArrayLoad::SmallFiles, 1).full_share()),
    ];
    Ok(Findings::new(measured, [section(&cases, &played)]))
}

fn section(cases: &[(ArrayLoad, usize)], played: &[ArrayRun]) -> Section {
    let columns =
        ["load", "file system", "s", "MB/s written", "writes", "KB a write", "share in whole stripes"];
    let mut table = Table::new("Writes to a RAID-5 of five disks", columns).with_words(2);
    let mut lines = [0, 1].map(|family| Series::new(NAMES[family], family, []).with_draw(Draw::Marks));
    for (index, ((load, layout), run)) in cases.iter().zip(played).enumerate() {
        let kb = run.written as f64 / 2.0 / run.writes.max(1) as f64;
        let numbers = [run.seconds, run.mb_s(), run.writes as f64, kb, run.full_share()];
        table.named_row([load.name(), NAMES[*layout]], numbers);
        lines[*layout].points.push(((index / 2) as f64, run.mb_s()));
    }
    Section::new("Stripes of a RAID-5 for tracks")
        .with_text(
            "FFS on five Atlas 10K II with 64 KB on each disk. Matched: the stripes' boundaries are the file system's track list, so that a \
             write begins and ends with a stripe and its parity needs no reads. Unmatched: clusters of the same 256 KB, anywhere. Small files \
             are in groups of 256 KB in both; making them is limited by awaited writes of names and inodes.",
        )
        .with_chart(Chart::new(
            "Rate of writes",
            Axis::of_names("load", LOADS.map(|load| load.name().to_string())),
            Axis::linear("MB/s"),
            lines,
        ))
        .with_table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_stripes_of_a_write_are_counted() {
        let sectors = |first: u64, sectors: u32| in_stripes(&Request::write(Lbn(first), sectors));
        assert_eq!(sectors(0, 512), 512);
        assert_eq!(sectors(1, 512), 0);
        assert_eq!(sectors(511, 1026), 1024);
        assert_eq!(sectors(512, 511), 0);
    }
}
