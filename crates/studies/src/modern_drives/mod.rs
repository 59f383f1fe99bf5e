//! Figures of data sheets and of other people's measurements, drive by drive.
//!
//! A metric is named `drive.figure`. Modelled: seeks over random pairs of blocks, sequential rates, track counts, random
//! accesses at a depth, FLUSH. Not modelled: vibration, temperature, background work of the drive.
//! *Source:* each row of `studies/modern-drives/expect.tsv` names its own.

mod queue;

use crate::judge::Measured;
use crate::runs;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack_model::spec::Layout;
use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics, TrackPlace, drives};
use headstack_workload::Region;

pub(crate) const STUDY: Study = Study {
    id: "modern-drives",
    title: "Drives from 1985 to today: sheets and single measurements",
    summary: "Mean seeks, sequential rates, track counts and random accesses of thirteen drives, compared with makers' sheets and measurements.",
    expect: include_str!("../../studies/modern-drives/expect.tsv"),
    run,
};

const COUNT: u64 = 20_000;

/// Pairs of blocks for a mean seek.
const PAIRS: u64 = 200_000;

/// Places, spread over the disk, from which an average rate is taken.
const PLACES: u64 = 32;

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let count = setting.length.pick(COUNT, COUNT / 4);
    let measured = setting.map(setting.rows, |row| {
        let (drive, figure) = row.metric.split_once('.').unwrap_or(("", &row.metric));
        let value = measure_one(&drives::load(drive)?, figure, count)?;
        Ok(value.map(|value| Measured::new(&row.metric, value)))
    })?;
    let (over_depth, section) = queue::measure(setting, count)?;
    let measured = measured.into_iter().flatten().chain(over_depth).collect();
    Ok(Findings { measured, sections: vec![section] })
}

/// The figure with this name; `None` where the name is unknown.
fn measure_one(spec: &DriveSpec, figure: &str, count: u64) -> Result<Option<f64>, StudyError> {
    let last = spec.geometry.cylinders - 1;
    let stretch = runs::stretch(spec);
    let read = |regions: Vec<Region>| runs::sequential_mb_s(spec, 1.0, regions.into_iter());
    Ok(Some(match figure {
        "mean_seek_ms" => mean_seek_ms(spec, spec.capacity_sectors)?,
        "first_zone_mean_seek_ms" => mean_seek_ms(spec, first_zone_sectors(spec)?)?,
        "single_cylinder_ms" => seek_ms(&Mechanics::new(spec), 0, 1),
        "full_stroke_ms" => seek_ms(&Mechanics::new(spec), 0, last),
        "tracks" => f64::from(spec.geometry.cylinders) * f64::from(spec.geometry.heads),
        "densest_track_sectors" => f64::from(track_sizes(spec).max().unwrap_or(0)),
        "sparsest_track_sectors" => f64::from(track_sizes(spec).min().unwrap_or(0)),
        "outer_mb_s" => read(vec![Region::whole(stretch)])?,
        "inner_mb_s" => read(vec![Region { first: Lbn(spec.capacity_sectors - stretch), sectors: stretch }])?,
        "average_mb_s" => read(runs::spread(spec, PLACES, stretch).collect())?,
        "random_read_qd1_mean_ms" => runs::random_reads(spec, 1, count)?.mean_ms(),
        "random_read_qd16_iops" => runs::random_reads(spec, 16, count)?.rate(),
        "random_read_qd32_iops" => runs::random_reads(spec, 32, count)?.rate(),
        "random_write_qd16_iops" => runs::random_write_rate(spec, 16, 30, 60)?,
        "flush_after_1_ms" => runs::flush_ms(spec, 1, 1000)?,
        _ => return Ok(None),
    }))
}

fn seek_ms(mechanics: &Mechanics, from: u32, to: u32) -> f64 {
    let place = |cylinder| TrackPlace { cylinder, head: 0 };
    mechanics.reposition(place(from), place(to), false).as_ms()
}

/// Mean time of a seek over pairs of blocks below `sectors`, all pairs equally likely.
pub(crate) fn mean_seek_ms(spec: &DriveSpec, sectors: u64) -> Result<f64, StudyError> {
    let (geometry, mechanics) = (Geometry::new(spec)?, Mechanics::new(spec));
    // Additive sequences of powers of the plastic number cover the square evenly. They need no random generator and scatter less than one.
    let cylinder = |index: u64, step: u64| {
        let share = index.wrapping_mul(step);
        geometry.extent_at(Lbn(((u128::from(share) * u128::from(sectors)) >> 64) as u64)).cylinder
    };
    const STEPS: [u64; 2] = [13_925_035_116_211_876_495, 10_511_698_010_929_265_437];
    let seek = |index| seek_ms(&mechanics, cylinder(index, STEPS[0]), cylinder(index, STEPS[1]));
    Ok((1..=PAIRS).map(seek).sum::<f64>() / PAIRS as f64)
}

fn first_zone_sectors(spec: &DriveSpec) -> Result<u64, StudyError> {
    let Some(zone) = spec.geometry.zones.get(1) else { return Ok(spec.capacity_sectors) };
    let first = Geometry::new(spec)?.lbn_at(zone.first_cylinder, 0, 0);
    Ok(first.map_or(spec.capacity_sectors, |lbn| lbn.0))
}

/// Physical sectors per track, by kind of track.
fn track_sizes(spec: &DriveSpec) -> impl Iterator<Item = u32> {
    let geometry = &spec.geometry;
    assert_ne!(geometry.layout, Layout::Extents, "an extent list has no zones");
    let banded = geometry.band_zones.iter().flat_map(|zone| zone.sectors_per_track.iter().copied());
    geometry.zones.iter().map(|zone| zone.sectors_per_track).chain(banded)
}
