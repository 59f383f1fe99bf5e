//! Where the region of hot blocks should lie on a zoned disk: near the middle, seeks are shorter; near the outer edge, transfers are.
//!
//! Modelled: one request at a time; a share of the requests goes to the region, the others evenly over the disk. Not modelled: counting
//! and copying.

use crate::judge::Measured;
use crate::runs::run_load;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{DriveSpec, Geometry, Instant, Lbn, Nanos, Op, Request};
use headstack_sim::DeviceOptions;
use headstack_workload::{Closed, Pick, Region};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const ZONED_DISK: &str = include_str!("../../studies/rearrangement/zoned.toml");

/// Centres of the region, in percent of the stroke from the outer edge. At both ends the region lies as near to the edge as its size
/// permits.
const CENTRES: [f64; 15] =
    [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 80.0, 100.0];

/// The middle cylinder among the centres.
const MIDDLE: usize = 10;

/// Number of centres on either side of the lowest one to which the parabola is fitted.
const FITTED: usize = 3;

/// Sizes of requests, in sectors, with their names.
const SIZES: [(&str, u32); 4] = [("4 KiB", 8), ("64 KiB", 128), ("256 KiB", 512), ("1 MiB", 2048)];

/// Shares of the requests that go to the region, in percent. Rows are judged at the first. *Source:* assumption, near the week's 63 %.
const HOT_PERCENT: [u32; 3] = [71, 50, 90];

/// The region is the disk's sectors divided by this. *Source:* assumption; the study's is 1.2 %.
const REGION_PART: u64 = 100;

/// Requests begin at multiples of this number of sectors.
const ALIGNMENT: u64 = 8;

/// Requests, a share of which goes to the region.
struct HotMix {
    random: Pcg64Mcg,
    hot: Region,
    disk: Region,
    hot_share: f64,
    sectors: u32,
}

impl Pick for HotMix {
    fn pick(&mut self, _now: Instant) -> Request {
        // Each request draws the same two numbers wherever the region is, so that runs differ by its place alone.
        let is_hot = self.random.random_range(0.0..1.0) < self.hot_share;
        let place = self.random.random_range(0.0..1.0);
        let region = if is_hot { self.hot } else { self.disk };
        let starts = (region.sectors - u64::from(self.sectors)) / ALIGNMENT;
        let lbn = region.first + (starts as f64 * place) as u64 * ALIGNMENT;
        Request { op: Op::Read, lbn, sectors: self.sectors, fua: false }
    }
}

/// The first sector at or behind the start of a cylinder.
fn first_of(geometry: &Geometry, sectors: u64, cylinder: u32) -> u64 {
    let (mut low, mut high) = (0, sectors - 1);
    while low < high {
        let half = low.midpoint(high);
        if geometry.track_at(Lbn(half)).cylinder < cylinder {
            low = half + 1;
        } else {
            high = half;
        }
    }
    low
}

/// The region with its centre at a place of the stroke, moved as far as the disk's edges require.
fn region_around(spec: &DriveSpec, geometry: &Geometry, percent: f64) -> Region {
    let sectors = spec.capacity_sectors;
    let cylinder = (f64::from(spec.geometry.cylinders - 1) * percent / 100.0) as u32;
    let length = sectors / REGION_PART / ALIGNMENT * ALIGNMENT;
    let first = first_of(geometry, sectors, cylinder).saturating_sub(length / 2).min(sectors - length);
    Region { first: Lbn(first / ALIGNMENT * ALIGNMENT), sectors: length }
}

/// A share of hot requests, the index of a size, and the index of a centre.
type RegionCase = (u32, usize, usize);

/// Mean service time of a request.
fn service_ms(
    spec: &DriveSpec,
    geometry: &Geometry,
    case: RegionCase,
    count: u64,
) -> Result<f64, StudyError> {
    let (hot_percent, size, centre) = case;
    let mix = HotMix {
        random: Pcg64Mcg::seed_from_u64(1),
        hot: region_around(spec, geometry, CENTRES[centre]),
        disk: Region::whole(spec.capacity_sectors),
        hot_share: f64::from(hot_percent) / 100.0,
        sectors: SIZES[size].1,
    };
    let mut sum = Nanos::ZERO;
    let mut load = Closed::from_pick(mix, 1, count)?;
    run_load(spec, &DeviceOptions::default(), &mut load, |finished| sum += finished.completion.response())?;
    Ok(sum.as_ms() / count as f64)
}

/// The service times of one size over the centres.
struct RegionSweep {
    hot_percent: u32,
    size: usize,
    service_ms: Vec<f64>,
}

impl RegionSweep {
    fn lowest(&self) -> usize {
        let by_time = |a: &usize, b: &usize| self.service_ms[*a].total_cmp(&self.service_ms[*b]);
        (0..CENTRES.len()).min_by(by_time).expect("there are centres")
    }

    /// The best place in percent of the stroke: the lowest point of a parabola fitted to the centres around the lowest one.
    fn best(&self) -> f64 {
        let lowest = self.lowest();
        let fitted = lowest.saturating_sub(FITTED)..(lowest + FITTED + 1).min(CENTRES.len());
        let points: Vec<(f64, f64)> =
            fitted.map(|index| (CENTRES[index] - CENTRES[lowest], self.service_ms[index])).collect();
        CENTRES[lowest] + vertex(&points).unwrap_or(0.0)
    }

    /// By how much a centre is slower than the best one, in percent.
    fn more_percent(&self, centre: usize) -> f64 {
        100.0 * (self.service_ms[centre] / self.service_ms[self.lowest()] - 1.0)
    }
}

/// The minimum of the least-squares parabola through points; `None` where it has no minimum.
fn vertex(points: &[(f64, f64)]) -> Option<f64> {
    let sum = |power: i32| points.iter().map(|(x, _)| x.powi(power)).sum::<f64>();
    let with_y = |power: i32| points.iter().map(|(x, y)| x.powi(power) * y).sum::<f64>();
    let [n, s1, s2, s3, s4] = [0, 1, 2, 3, 4].map(sum);
    let [t0, t1, t2] = [0, 1, 2].map(with_y);
    // Cramer's rule. The common determinant cancels in the ratio; only its sign matters.
    let determinant = n * (s2 * s4 - s3 * s3) - s1 * (s1 * s4 - s3 * s2) + s2 * (s1 * s3 - s2 * s2);
    let linear = n * (t1 * s4 - s3 * t2) - t0 * (s1 * s4 - s3 * s2) + s2 * (s1 * t2 - t1 * s2);
    let square = n * (s2 * t2 - t1 * s3) - s1 * (s1 * t2 - t1 * s2) + t0 * (s1 * s3 - s2 * s2);
    (determinant > 0.0 && square > 0.0).then(|| -linear / (2.0 * square))
}

fn sweeps(setting: &Setting<'_>) -> Result<Vec<RegionSweep>, StudyError> {
    let spec = DriveSpec::parse(ZONED_DISK, "studies/rearrangement/zoned.toml")?;
    let geometry = Geometry::new(&spec)?;
    let shares = setting.length.pick(&HOT_PERCENT[..], &HOT_PERCENT[..1]);
    let sizes = || shares.iter().flat_map(|share| (0..SIZES.len()).map(move |size| (*share, size)));
    let cases: Vec<RegionCase> = sizes()
        .flat_map(|(share, size)| (0..CENTRES.len()).map(move |centre| (share, size, centre)))
        .collect();
    let count = setting.length.pick(100_000, 10_000);
    let times = setting.map(&cases, |case| service_ms(&spec, &geometry, *case, count))?;
    let sweep = |((hot_percent, size), times): ((u32, usize), &[f64])| RegionSweep {
        hot_percent,
        size,
        service_ms: times.to_vec(),
    };
    Ok(sizes().zip(times.chunks(CENTRES.len())).map(sweep).collect())
}

/// Sweeps the region over the stroke.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let all = sweeps(setting)?;
    let columns =
        ["requests", "hot %", "best place %", "service ms", "outer edge +%", "middle +%", "inner edge +%"];
    let mut table = Table::new("The best place of the region", columns);
    let (mut measured, mut lines) = (Vec::new(), Vec::new());
    for sweep in &all {
        let name = SIZES[sweep.size].0;
        let middle = sweep.more_percent(MIDDLE);
        let numbers = [
            f64::from(sweep.hot_percent),
            sweep.best(),
            sweep.service_ms[sweep.lowest()],
            sweep.more_percent(0),
            middle,
            sweep.more_percent(CENTRES.len() - 1),
        ];
        table.named_row([name], numbers);
        if sweep.hot_percent != HOT_PERCENT[0] {
            continue;
        }
        measured.push(Measured::new(format!("region {name} best"), sweep.best()));
        if sweep.size == 0 {
            measured.push(Measured::new(format!("region {name} middle"), middle));
        }
        let points = CENTRES.iter().enumerate().map(|(index, centre)| (*centre, sweep.more_percent(index)));
        lines.push(Series::new(name, sweep.size, points));
    }
    let chart = Chart::new(
        format!("Service time over that of the best place, {} % hot requests", HOT_PERCENT[0]),
        Axis::linear("centre of the region (% of the stroke, from the outer edge)"),
        Axis::linear("more service time (%)"),
        lines,
    );
    let text = "A region of 1 % of a disk whose inner tracks have half the sectors of the outer ones. Requests come one at a time: the hot ones \
        to the region, the others evenly over the disk. The middle of its LBNs is at 42 % of the stroke.";
    let section =
        Section::new("The region on a zoned disk").with_text(text).with_chart(chart).with_table(table);
    Ok(Findings::new(measured, [section]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertex_is_that_of_a_parabola_and_absent_of_a_line() {
        let parabola = [-10.0, -5.0, 0.0, 5.0, 15.0].map(|x: f64| (x, 7.0 + 0.5 * (x - 3.0) * (x - 3.0)));
        let found = vertex(&parabola).expect("the parabola has a lowest point");
        assert!((found - 3.0).abs() < 1e-9, "{found}");
        assert_eq!(vertex(&[(0.0, 1.0), (1.0, 0.5), (2.0, 0.0)]), None);
    }
}
