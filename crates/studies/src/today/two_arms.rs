//! Disks with two arms: what the second arm gains, by queue depth and by where the load lies.
//!
//! Modelled: the Exos 2X14 as two logical units, and the Exos 2X18 SATA as one unit whose halves have an arm each, behind one tag space
//! of 32. Random reads of 4 KiB, a fixed number outstanding; reads in sequence from the start of both halves.
//! *Source:* the makers' sheets, as the rows of `studies/today/expect.tsv` name them.

use super::run_job;
use crate::judge::Measured;
use crate::study::{Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_sim::rig::shipped;

/// The disk that is two logical units, the one that is a single unit, and a disk of the same size with one arm.
const TWO_UNITS: &str = "dual-actuator";
const ONE_UNIT: &str = "exos-2x18-sata";
const ONE_ARM: &str = "exos-x18";

const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Where random reads lie: what the figures call it, the rig, and the share of the volume in percent.
const PLACES: [(&str, &str, u32); 3] = [
    ("two arms, whole disk", ONE_UNIT, 100),
    ("two arms, lower half only", ONE_UNIT, 50),
    ("one arm (Exos X18), whole disk", ONE_ARM, 100),
];

const RANDOM_COUNT: u64 = 20_000;
const SEQUENTIAL_COUNT: u64 = 4_000;

/// A job of random reads of 4 KiB on a share of each of these volumes, with `depth` outstanding on each.
fn random_job(volumes: &[&str], percent: u32, depth: u32, count: u64) -> String {
    let jobs = volumes.iter().map(|name| format!("[{name}]\nfilename={name}\n")).collect::<String>();
    format!(
        "[global]\nrw=randread\nbs=4k\nioengine=libaio\niodepth={depth}\nsize={percent}%\nnumber_ios={count}\n{jobs}"
    )
}

/// MB/s of reads of 1 MiB in sequence in two places at once, from these jobs.
fn sequential_mb_s(rig: &str, jobs: &str, count: u64) -> Result<f64, StudyError> {
    let job =
        format!("[global]\nrw=read\nbs=1m\nioengine=libaio\niodepth=4\nnumber_ios={}\n{jobs}", count / 2);
    Ok(run_job(rig, &job)?.rate() * f64::from(1 << 20) / 1e6)
}

/// The rows of both disks, and a section with the rates over queue depth.
pub(super) fn measure(setting: &Setting<'_>) -> Result<(Vec<Measured>, Section), StudyError> {
    let count = setting.length.pick(RANDOM_COUNT, RANDOM_COUNT / 8);
    let runs: Vec<_> = PLACES.iter().flat_map(|place| DEPTHS.map(|depth| (*place, depth))).collect();
    let rates = setting.map(&runs, |((_, rig, percent), depth)| {
        let volume = shipped::load(rig)?.volumes().swap_remove(0).name;
        Ok(run_job(rig, &random_job(&[&volume], *percent, *depth, count))?.rate())
    })?;
    let places: Vec<&[f64]> = rates.chunks(DEPTHS.len()).collect();
    let measured = rows(&places, count, setting)?;
    Ok((measured, section(&places)))
}

fn rows(places: &[&[f64]], count: u64, setting: &Setting<'_>) -> Result<Vec<Measured>, StudyError> {
    let sequential = setting.length.pick(SEQUENTIAL_COUNT, SEQUENTIAL_COUNT / 4);
    let units = run_job(TWO_UNITS, &random_job(&["unit0", "unit1"], 100, 16, count / 2))?;
    let at = |place: usize, depth: u32| {
        places[place][DEPTHS.iter().position(|known| *known == depth).expect("it is a depth of the table")]
    };
    let both_units = "[low]\nfilename=unit0\n[high]\nfilename=unit1\n";
    let both_halves = "[low]\n[high]\noffset=50%\n";
    Ok(vec![
        Measured::new("exos-2x14.both_random_read_qd16_iops", units.rate()),
        Measured::new("exos-2x14.both_sequential_mb_s", sequential_mb_s(TWO_UNITS, both_units, sequential)?),
        Measured::new(
            "exos-2x18-sata.both_sequential_mb_s",
            sequential_mb_s(ONE_UNIT, both_halves, sequential)?,
        ),
        Measured::new("exos-2x18-sata.random_read_qd16_iops", at(0, 16)),
        Measured::new("exos-2x18-sata.qd1_whole_over_half", at(0, 1) / at(1, 1)),
    ])
}

fn section(places: &[&[f64]]) -> Section {
    let series = PLACES.iter().zip(places).enumerate().map(|(family, ((name, ..), rates))| {
        let points = DEPTHS.iter().zip(*rates).map(|(depth, rate)| (f64::from(*depth), *rate));
        Series::new((*name).to_string(), family, points)
    });
    let chart = Chart::new(
        "Random 4 KiB reads over queue depth",
        Axis::log("queue depth (requests)").with_ticks(DEPTHS.map(f64::from)),
        Axis::linear("IOPS"),
        series,
    );
    let names = PLACES.iter().map(|(name, ..)| format!("{name}: IOPS"));
    let mut table =
        Table::new("Random reads of 4 KiB over queue depth", ["depth".to_string()].into_iter().chain(names));
    for (index, depth) in DEPTHS.iter().enumerate() {
        table.named_row([depth.to_string()], places.iter().map(|rates| rates[index]));
    }
    Section::new(format!("What a second arm gains: {ONE_UNIT}"))
        .with_text(
            "With one request outstanding only one arm works, so that the second gains nothing. With more, each arm has about half of the \
             requests to choose from: two arms with 32 outstanding do less than twice what one does with 32. A load that lies in one half \
             of the LBNs has one arm.",
        )
        .with_chart(chart)
        .with_table(table)
}
