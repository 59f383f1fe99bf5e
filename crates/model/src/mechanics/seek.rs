//! The seek curve: time over distance, as a table with one entry per distance.
//!
//! Modelled: measured tables, square root plus linear in pieces, a table continued by pieces, the four-phase physical curve, and
//! one computed from a data sheet's figures ([`super::SheetCurve`]). Not modelled: direction of the seek, differences over the
//! radius, temperature.
//!
//! *Source:* Ruemmler and Wilkes, "An introduction to disk drive modeling" (1994): the pieces; Lee and Katz: the physical curve.

use super::SheetCurve;
use super::table::Table;
use crate::Nanos;
use crate::spec::{PhysicalSeek, SeekPiece, SeekSpec};

/// Seek times of a drive for reads or for writes.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekCurve {
    /// Time of a seek over each distance, from 0 on, in ns.
    pub(super) table: Table,
}

impl SeekCurve {
    /// The curve for reads.
    pub fn for_reads(spec: &SeekSpec, cylinders: u32) -> SeekCurve {
        SeekCurve::new(read_times(spec, cylinders))
    }

    /// The curve for writes, where one was measured or follows from a data sheet.
    pub fn for_writes(spec: &SeekSpec, cylinders: u32) -> Option<SeekCurve> {
        write_times(spec, cylinders).map(SeekCurve::new)
    }

    /// The curve with these times in ns, from distance 0 on.
    pub(super) fn new(times: Vec<u32>) -> SeekCurve {
        SeekCurve { table: Table::new(times) }
    }

    /// Time to seek over `distance` cylinders, settle for a read included.
    #[inline]
    pub fn time(&self, distance: u32) -> Nanos {
        Nanos(u64::from(self.table.time(distance)))
    }
}

/// Times of seeks before reads in ns, from distance 0 on.
pub(super) fn read_times(spec: &SeekSpec, cylinders: u32) -> Vec<u32> {
    if let Some(sheet) = spec.curve_of_sheet() {
        let curve = SheetCurve::new(sheet, cylinders);
        return tabulate(cylinders, |d| curve.read_ms(d));
    }
    if let Some(physical) = spec.physical {
        return tabulate(cylinders, |d| physical_ms(&physical, d, cylinders));
    }
    let measured = spec.points_cylinders_ms.last().map_or(0, |(d, _)| *d);
    let mut points = interpolated(&spec.points_cylinders_ms);
    tabulate(cylinders, |d| {
        if d <= measured || spec.pieces.is_empty() { points(d) } else { piece_ms(&spec.pieces, d) }
    })
}

/// Times of seeks before writes in ns, from distance 0 on, where they were measured or follow from a data sheet.
pub(super) fn write_times(spec: &SeekSpec, cylinders: u32) -> Option<Vec<u32>> {
    if !spec.write_points_cylinders_ms.is_empty() {
        return Some(tabulate(cylinders, interpolated(&spec.write_points_cylinders_ms)));
    }
    let sheet = spec.curve_of_sheet().filter(|sheet| sheet.write_average_ms.is_some())?;
    let curve = SheetCurve::new(sheet, cylinders);
    Some(tabulate(cylinders, |d| curve.write_ms(d).unwrap_or_else(|| curve.read_ms(d))))
}

/// For each distance, the least time of a seek at least that long, before a read or a write, minus `reduction`; not below 0.
pub(super) fn floor_times(reads: &[u32], writes: Option<&[u32]>, reduction: Nanos) -> Vec<u32> {
    let mut times = reads.to_vec();
    for (time, write) in times.iter_mut().zip(writes.unwrap_or_default()) {
        *time = (*time).min(*write);
    }
    let reduction = reduction.0.min(u64::from(u32::MAX)) as u32;
    let mut least = u32::MAX;
    for time in times.iter_mut().rev() {
        least = least.min(*time);
        *time = least.saturating_sub(reduction);
    }
    times
}

/// Times in ns, from distance 0 on. Calls `ms` with rising distances.
fn tabulate(cylinders: u32, mut ms: impl FnMut(u32) -> f64) -> Vec<u32> {
    (0..cylinders.max(1)).map(|d| if d == 0 { 0 } else { whole_nanos(ms(d)) }).collect()
}

/// The nearest ns, at most 4 s. `f64::round` is a function call, slower than the rest of the computation.
#[inline]
fn whole_nanos(ms: f64) -> u32 {
    let exact = (ms.max(0.0) * 1e6).min(4e9);
    let below = exact as u32;
    below + u32::from(exact - f64::from(below) >= 0.5)
}

fn piece_ms(pieces: &[SeekPiece], distance: u32) -> f64 {
    let piece = pieces
        .iter()
        .find(|piece| piece.up_to_cylinders.is_none_or(|to| distance <= to))
        .or(pieces.last())
        .expect("a curve has pieces");
    let d = f64::from(distance);
    piece.constant_ms + piece.sqrt_ms * d.sqrt() + piece.linear_ms * d
}

/// Interpolates linearly from (0, 0) through the points and continues with the last slope. Distances must not fall from call to call.
fn interpolated(points: &[(u32, f64)]) -> impl FnMut(u32) -> f64 {
    let mut after = 0;
    move |distance| {
        while points.get(after).is_some_and(|(d, _)| *d < distance) {
            after += 1;
        }
        let line = |(x0, y0): (u32, f64), (x1, y1): (u32, f64)| {
            let share = (f64::from(distance) - f64::from(x0)) / (f64::from(x1) - f64::from(x0));
            y0 + share * (y1 - y0)
        };
        match (after, points) {
            (_, []) => 0.0,
            (0, [first, ..]) => line((0, 0.0), *first),
            (after, points) if after < points.len() => line(points[after - 1], points[after]),
            (_, [only]) => only.1,
            (_, [.., before, last]) => line(*before, *last),
        }
    }
}

/// Accelerates at a constant rate, coasts at the speed limit, decelerates at the same rate, settles.
fn physical_ms(physical: &PhysicalSeek, distance: u32, cylinders: u32) -> f64 {
    let (ramp, stroke) = (physical.acceleration_cylinders, f64::from(cylinders) - 1.0);
    let moving = physical.full_stroke_ms - physical.settle_ms;
    // Over the full stroke: two ramps of `t` each, and the rest at the speed 2 · ramp / t reached at their end.
    let ramp_ms = moving / (2.0 + (stroke - 2.0 * ramp).max(0.0) / (2.0 * ramp));
    let d = f64::from(distance);
    let motion = if d <= 2.0 * ramp {
        2.0 * ramp_ms * (d / (2.0 * ramp)).sqrt()
    } else {
        2.0 * ramp_ms + (d - 2.0 * ramp) * ramp_ms / (2.0 * ramp)
    };
    (physical.settle_ms + motion).max(physical.single_cylinder_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seek_table_meets_its_points_and_interpolates() {
        let spec =
            SeekSpec { points_cylinders_ms: vec![(1, 1.0), (11, 3.0), (21, 4.0)], ..SeekSpec::default() };
        let curve = SeekCurve::for_reads(&spec, 100);
        assert_eq!(curve.time(0), Nanos(0));
        assert_eq!(curve.time(1), Nanos::from_ms(1.0));
        assert_eq!(curve.time(6), Nanos::from_ms(2.0));
        assert_eq!(curve.time(21), Nanos::from_ms(4.0));
        assert_eq!(curve.time(31), Nanos::from_ms(5.0), "the last slope continues");
    }

    #[test]
    fn seek_pieces_continue_after_the_table() {
        let pieces = vec![
            SeekPiece { up_to_cylinders: Some(400), constant_ms: 3.0, sqrt_ms: 0.5, linear_ms: 0.0 },
            SeekPiece { up_to_cylinders: None, constant_ms: 8.0, sqrt_ms: 0.0, linear_ms: 0.01 },
        ];
        let spec = SeekSpec { points_cylinders_ms: vec![(1, 2.0), (2, 2.5)], pieces, ..SeekSpec::default() };
        let curve = SeekCurve::for_reads(&spec, 1000);
        assert_eq!(curve.time(2), Nanos::from_ms(2.5));
        assert_eq!(curve.time(400), Nanos::from_ms(13.0));
        assert_eq!(curve.time(500), Nanos::from_ms(13.0));
    }

    #[test]
    fn physical_seek_curve_meets_its_figures() {
        let physical = PhysicalSeek {
            single_cylinder_ms: 0.8,
            settle_ms: 0.7,
            acceleration_cylinders: 4000.0,
            full_stroke_ms: 15.0,
        };
        let spec = SeekSpec { physical: Some(physical), ..SeekSpec::default() };
        let curve = SeekCurve::for_reads(&spec, 50_000);
        assert_eq!(curve.time(1), Nanos::from_ms(0.8));
        assert!((curve.time(49_999).as_ms() - 15.0).abs() < 1e-3);
        // Beyond the ramps the arm coasts: equal distances take equal times.
        let step = |d: u32| curve.time(d + 1000).0 - curve.time(d).0;
        assert!(step(10_000).abs_diff(step(40_000)) <= 2);
        // Below them, four times the distance takes twice the motion.
        let motion = |d: u32| curve.time(d).as_ms() - 0.7;
        assert!((motion(8000) / motion(2000) - 2.0).abs() < 1e-3);
    }

    #[test]
    fn seek_floor_never_exceeds_a_longer_seek() {
        let points = vec![(1, 1.3), (2, 1.1), (3, 1.6), (4, 1.5), (9, 2.0)];
        let spec = SeekSpec { points_cylinders_ms: points, ..SeekSpec::default() };
        let times = read_times(&spec, 10);
        let floor = floor_times(&times, None, Nanos::ZERO);
        for (near, floor) in floor.iter().enumerate().skip(1) {
            assert!(times[near..].iter().all(|time| floor <= time));
        }
        assert_eq!(floor[1], 1_100_000);
        let writes = vec![1_000_000; 10];
        let lowered = floor_times(&times, Some(&writes), Nanos::from_ms(0.3));
        assert_eq!((lowered[0], lowered[1], lowered[9]), (0, 700_000, 700_000));
    }

    #[test]
    fn time_is_the_nearest_nanosecond() {
        for exact in [0.0, 0.4, 0.5, 0.6, 1.5, 2.5, 1e6 - 0.5, 3.999_999_999_9e9, 5e9, -3.0] {
            let ms = exact / 1e6;
            assert_eq!(f64::from(whole_nanos(ms)), (ms.max(0.0) * 1e6).round().min(4e9), "{exact}");
        }
    }
}
