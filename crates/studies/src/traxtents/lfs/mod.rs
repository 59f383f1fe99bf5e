//! A log-structured file system: the cost of writes by segment size, aligned to tracks or not.
//!
//! Overall write cost is write cost times transfer inefficiency. Write cost is the number of blocks moved per block written; it comes from
//! the simulated log and its cleaner. Transfer inefficiency is the time of a segment's write over that of its media transfer; it comes from
//! the simulated drive.
//!
//! The study took its write costs from Matthews et al. (1997), for the Auspex trace; neither these nor the trace can be obtained. The load
//! here rewrites whole files of 24 KB on average. A tenth of them are hot and get nine tenths of the updates, and the disk is 75 % full.
//! Mean size and fullness are those of a file system that Rosenblum and Ousterhout measured; the rest is their test load.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 5.4; M. Rosenblum and J. Ousterhout, "The design and implementation of a
//! log-structured file system" (1992).

mod modern;

use super::access::{FirstZone, boundaries};
use crate::judge::Measured;
use crate::runs::{Script, time_of};
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn, Op, Request, drives};
use headstack_personalities::lfs::{Choice, Cleaning, Lfs, SegmentTable, UpdateShape, Updates};
use headstack_workload::Region;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Sectors of a file-system block of 4 KB, and of a track of the first zone.
const BLOCK: u32 = 8;
const TRACK: u32 = 528;

/// Sectors of a segment: 32 KB to 4 MB; from one track on, whole tracks.
const SIZES: [u32; 8] = [64, 128, 264, TRACK, 2 * TRACK, 4 * TRACK, 8 * TRACK, 16 * TRACK];

/// Start of a partition that ignores tracks.
const PARTITION: Lbn = Lbn(63);

/// Cylinders on either side of the end of the first zone that the log uses: half of its tracks are shorter.
const AROUND: u32 = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Files {
    name: &'static str,
    mean_blocks: f64,
    hot: f64,
    to_hot: f64,
}

const LOADS: [Files; 3] = [
    Files { name: "files of 24 KB, hot and cold", mean_blocks: 6.0, hot: 0.1, to_hot: 0.9 },
    Files { name: "blocks of 4 KB, hot and cold", mean_blocks: 1.0, hot: 0.1, to_hot: 0.9 },
    Files { name: "blocks of 4 KB, uniform", mean_blocks: 1.0, hot: 0.5, to_hot: 0.5 },
];

/// Share of the segments' blocks that are live.
const FULL: f64 = 0.75;

/// Runs the log into its steady state and beyond; returns the write cost of the steady state, and the transfers.
fn log(table: SegmentTable, files: Files, setting: &Setting<'_>) -> Result<(f64, Vec<Request>), StudyError> {
    let blocks = (table.blocks() as f64 * FULL) as u32;
    let segments = table.segments().len() as u32;
    // A fiftieth to a twenty-fifth of the disk is kept as clean segments, whatever their size.
    let cleaning =
        Cleaning { choice: Choice::CostBenefit, low: (segments / 50).max(2), high: (segments / 25).max(4) };
    let shape = UpdateShape { blocks, file_blocks: files.mean_blocks, hot: files.hot, to_hot: files.to_hot };
    let mut updates = Updates::new(shape, 1).map_err(|error| StudyError::Input(error.to_string()))?;
    let mut lfs = Lfs::new(table, cleaning, blocks);
    let write = |lfs: &mut Lfs, file: std::ops::Range<u32>| {
        file.into_iter()
            .try_for_each(|block| lfs.write(block))
            .map_err(|full| StudyError::Input(full.to_string()))
    };
    for block in 0..blocks {
        write(&mut lfs, block..block + 1)?;
    }
    for turns in [setting.length.pick(8, 4), setting.length.pick(6, 2)] {
        lfs.take_cost();
        lfs.take_transfers();
        let mut written = 0;
        while written < turns * u64::from(blocks) {
            let file = updates.draw();
            written += u64::from(file.end - file.start);
            write(&mut lfs, file)?;
        }
    }
    Ok((lfs.take_cost().write_cost(), lfs.take_transfers()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Aligned,
    Anywhere,
}

const LIES: [(&str, Lie); 2] = [("aligned", Lie::Aligned), ("unaligned", Lie::Anywhere)];

/// Time of a segment's write divided by that of its media transfer, for random segments of the first zone with `depth` outstanding.
fn inefficiency(spec: &DriveSpec, sectors: u32, lie: Lie, depth: u32, count: u32) -> Result<f64, StudyError> {
    let tracks = FirstZone::of(spec, &Geometry::new(spec)?).cylinders * spec.geometry.heads;
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let spanned = sectors.div_ceil(TRACK);
    let requests = (0..count).map(|_| {
        let lbn = match lie {
            Lie::Aligned => {
                let track = random.random_range(0..=tracks - spanned);
                track * TRACK + random.random_range(0..(TRACK / sectors).max(1)) * sectors
            }
            Lie::Anywhere => random.random_range(0..=tracks * TRACK - sectors),
        };
        Request::write(Lbn(lbn.into()), sectors)
    });
    let time = time_of(spec, &mut Script::with_depth(requests.collect(), depth))?;
    Ok(time.as_ms() / f64::from(count) / media_ms(spec, sectors))
}

/// The media transfer alone, in the first zone.
fn media_ms(spec: &DriveSpec, sectors: u32) -> f64 {
    60e3 / spec.mechanics.rpm * f64::from(sectors) / f64::from(TRACK)
}

/// The tracks around the end of the first zone.
fn tracks(spec: &DriveSpec) -> Result<Vec<Lbn>, StudyError> {
    let geometry = Geometry::new(spec)?;
    let border = FirstZone::of(spec, &geometry).cylinders;
    let at = |cylinder| geometry.lbn_at(cylinder, 0, 0).expect("each of these cylinders begins with a block");
    Ok(boundaries(&geometry, at(border - AROUND), at(border + AROUND)))
}

/// Time of all the log's transfers on the drive, divided by the media transfer time of the new data: the overall write cost, measured
/// directly.
fn played(spec: &DriveSpec, transfers: Vec<Request>, write_cost: f64) -> Result<f64, StudyError> {
    let moved: f64 = transfers.iter().map(|transfer| media_ms(spec, transfer.sectors)).sum();
    let time = time_of(spec, &mut Script::with_depth(transfers, 2))?;
    Ok(time.as_ms() / (moved / write_cost))
}

/// For one segment size: the write cost of each load, and the inefficiency of each alignment at depths 2 and 1.
struct Found {
    costs: [f64; LOADS.len()],
    inefficiency: [[f64; 2]; LIES.len()],
}

impl Found {
    fn overall(&self, load: usize, lie: usize) -> f64 {
        self.costs[load] * self.inefficiency[lie][0]
    }
}

fn find(setting: &Setting<'_>, spec: &DriveSpec, sectors: u32) -> Result<Found, StudyError> {
    let region = Region::whole(setting.length.pick(2 << 20, 1 << 18));
    let count = setting.length.pick(5000, 300);
    let mut found = Found { costs: [0.0; LOADS.len()], inefficiency: [[0.0; 2]; LIES.len()] };
    for (cost, files) in found.costs.iter_mut().zip(LOADS) {
        *cost = log(SegmentTable::fixed(region, sectors, BLOCK), files, setting)?.0;
    }
    for (row, (_, lie)) in found.inefficiency.iter_mut().zip(LIES) {
        for (value, depth) in row.iter_mut().zip([2, 1]) {
            *value = inefficiency(spec, sectors, lie, depth, count)?;
        }
    }
    Ok(found)
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drives::load("atlas-10k-ii")?;
    let found = setting.map(&SIZES, |sectors| find(setting, &spec, *sectors))?;
    let best = |lie: usize| {
        let overall = |index: &usize| found[*index].overall(0, lie);
        (0..SIZES.len()).min_by(|a, b| overall(a).total_cmp(&overall(b))).expect("there are sizes")
    };
    let track = SIZES.iter().position(|size| *size == TRACK).expect("a track is among the sizes");
    let [aligned, unaligned] = [0, 1].map(|lie| found[track].overall(0, lie));
    let least = found[best(1)].overall(0, 1);
    let measured = vec![
        Measured::new("lfs.best_segment", f64::from(SIZES[best(0)]) / f64::from(TRACK)),
        Measured::new("lfs.lower", 1.0 - aligned / unaligned),
        Measured::new("lfs.higher", unaligned / aligned - 1.0),
        Measured::new("lfs.lower_than_best", 1.0 - found[best(0)].overall(0, 0) / least),
    ];
    let own = Findings::new(measured, [overall(&found), direct(setting, &spec)?]);
    Ok(Findings::join([own, modern::run(setting)?]))
}

fn kb(sectors: u32) -> f64 {
    f64::from(sectors) / 2.0
}

/// The product of both, over the size of segments.
fn overall(found: &[Found]) -> Section {
    let mut table = Table::new(
        "Write cost, transfer inefficiency of a write (two outstanding; one) and their product",
        [
            "segment KB",
            "cost: files",
            "cost: hot blocks",
            "cost: uniform",
            "aligned",
            "(one)",
            "unaligned",
            "(one)",
            "overall: aligned",
            "overall: unaligned",
        ],
    );
    for (sectors, found) in SIZES.iter().zip(found) {
        let [aligned, unaligned] = found.inefficiency;
        let numbers = found.costs.into_iter().chain(aligned).chain(unaligned);
        let products = [0, 1].map(|lie| found.overall(0, lie));
        table.named_row([format!("{:.0}", kb(*sectors))], numbers.chain(products));
    }
    let line = |name: String, family: usize, load: usize, lie: usize| {
        Series::new(
            name,
            family,
            SIZES.iter().zip(found).map(|(size, found)| (kb(*size), found.overall(load, lie))),
        )
        .with_dashes(load > 0)
    };
    let lines = [0, 1].into_iter().flat_map(|load| {
        (0..LIES.len()).map(move |lie| line(format!("{}, {}", LIES[lie].0, LOADS[load].name), lie, load, lie))
    });
    let figure = Chart::new(
        "Overall write cost of a log-structured file system",
        Axis::log("KB a segment").with_ticks(SIZES.map(kb)),
        Axis::linear("overall write cost"),
        lines,
    );
    let text = "Files that are written again whole, a tenth of them with nine tenths of the updates, on a disk that is 75 % full, stand in \
                for the Auspex trace."
        .to_string();
    Section::new("Log-structured file system").with_text(text).with_chart(figure).with_table(table)
}

/// The log's own transfers on the drive, at the end of the first zone, where half of the tracks are shorter.
fn direct(setting: &Setting<'_>, spec: &DriveSpec) -> Result<Section, StudyError> {
    let tracks = tracks(spec)?;
    let (first, end) = (tracks[0], tracks[tracks.len() - 1]);
    let region = Region { first: first + PARTITION.0, sectors: end - first - PARTITION.0 };
    let mut cases = vec![("a track".to_string(), SegmentTable::of_tracks(&tracks, 1, BLOCK))];
    cases.push(("two tracks".to_string(), SegmentTable::of_tracks(&tracks, 2, BLOCK)));
    for kib in setting.length.pick(&[64, 128, 256, 512, 1024, 4096][..], &[256][..]) {
        cases.push((format!("{kib} KB"), SegmentTable::fixed(region, 2 * kib, BLOCK)));
    }
    let rows = setting.map(&cases, |(_, table)| {
        let (write_cost, transfers) = log(table.clone(), LOADS[0], setting)?;
        let reads = transfers.iter().filter(|transfer| transfer.op == Op::Read).count() as f64;
        let share = reads / transfers.len() as f64;
        Ok((write_cost, share, played(spec, transfers, write_cost)?))
    })?;
    let mut table = Table::new(
        "The log's own reads and writes, played on the drive",
        ["segments", "how many", "write cost", "reads", "overall write cost"],
    );
    for ((name, segments), (write_cost, share, overall)) in cases.iter().zip(rows) {
        let count = segments.segments().len() as f64;
        table.named_row([name.clone()], [count, write_cost, share, overall]);
    }
    let text = "Segments of tracks have the sizes of the tracks, 264 KB on this side of the zone's end and 255 KB beyond; those of one size \
                begin at sector 63, as partitions did."
        .to_string();
    Ok(Section::new("Log-structured file system, played").with_text(text).with_table(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_never_hurts_and_gains_most_at_track_size() {
        let spec = drives::load("atlas-10k-ii").expect("it is shipped");
        let gains: Vec<f64> = SIZES[..6]
            .iter()
            .map(|sectors| {
                let [aligned, unaligned] = LIES
                    .map(|(_, lie)| inefficiency(&spec, *sectors, lie, 2, 400).expect("the drive is good"));
                assert!(aligned >= 1.0 && aligned <= unaligned, "{sectors}: {aligned} and {unaligned}");
                unaligned / aligned
            })
            .collect();
        let most = gains.iter().copied().fold(0.0, f64::max);
        assert_eq!(gains[3], most, "{gains:?}");
    }

    #[test]
    fn segments_around_the_zone_have_two_track_sizes() {
        let spec = drives::load("atlas-10k-ii").expect("it is shipped");
        let tracks = tracks(&spec).expect("the drive is good");
        let table = SegmentTable::of_tracks(&tracks, 1, BLOCK);
        let lengths: Vec<u32> = table.segments().iter().map(|segment| segment.sectors).collect();
        assert_eq!((lengths.len(), lengths[0], lengths[3999]), (4000, 528, 511));
        assert!(lengths.iter().all(|length| [528, 511].contains(length)));
    }
}
