//! The numbers of a drive file that a trace can tell: where each stands, and what it may be.

use headstack_model::{DriveSpec, SeekCurve};

/// What a number is part of. Numbers of one part are fitted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FitPart {
    Seek,
    Overhead,
    Transfer,
}

/// Sets a number of a drive.
type SetNumber = dyn Fn(&mut DriveSpec, f64) + Send + Sync;

/// A number of the drive file.
pub(crate) struct FitNumber {
    pub(crate) part: FitPart,
    least: f64,
    most: f64,
    value: f64,
    set: Box<SetNumber>,
}

impl FitNumber {
    /// The number as a share of its range, on a scale that is finer near its lower end.
    pub(crate) fn share(&self) -> f64 {
        (((self.value - self.least) / (self.most - self.least)).clamp(0.0, 1.0)).sqrt()
    }

    /// Sets the number to a share of its range.
    pub(crate) fn set_share(&self, spec: &mut DriveSpec, share: f64) {
        (self.set)(spec, self.least + (self.most - self.least) * share.clamp(0.0, 1.0).powi(2));
    }
}

/// The numbers of a drive that a trace can tell.
pub(crate) fn all(spec: &DriveSpec) -> Vec<FitNumber> {
    macro_rules! number {
        ($part:ident, $least:expr, $most:expr, $($field:ident).+) => {
            FitNumber {
                part: FitPart::$part,
                least: $least,
                most: $most,
                value: spec.$($field).+,
                set: Box::new(|spec, value| spec.$($field).+ = value),
            }
        };
    }
    let mut numbers = vec![
        number!(Seek, 0.01, 5.0, mechanics.head_switch_ms),
        number!(Seek, -1.0, 4.0, mechanics.write_settle_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_read.read_hit_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_read.read_miss_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_read.write_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_write.read_hit_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_write.read_miss_ms),
        number!(Overhead, 0.0, 5.0, overhead.after_write.write_ms),
        number!(Overhead, 0.0, 3.0, overhead.read_completion_ms),
        number!(Overhead, 0.0, 3.0, overhead.write_completion_ms),
        number!(Overhead, 0.0, 5.0, overhead.first_ms),
        number!(Overhead, 0.0, 10.0, cache.destage_extra_ms),
        number!(Transfer, 0.2, 800.0, bus.read_us_per_sector),
        number!(Transfer, 0.2, 800.0, bus.write_us_per_sector),
    ];
    numbers.extend(seek(spec));
    numbers
}

/// Knots of the seek curve: the factor of its times at each, and between two in proportion to the logarithm of the distance.
const KNOTS: usize = 7;

/// The factor of the seek curve at each knot.
fn seek(spec: &DriveSpec) -> impl Iterator<Item = FitNumber> {
    let longest = spec.mechanics.seek.points_cylinders_ms.last().map_or(1, |(distance, _)| *distance);
    let has_writes = !spec.mechanics.seek.write_points_cylinders_ms.is_empty();
    let knot = move |knot: usize| FitNumber {
        part: FitPart::Seek,
        least: 0.4,
        most: 2.5,
        value: 1.0,
        set: Box::new(move |spec, factor| {
            let seek = &mut spec.mechanics.seek;
            for (distance, ms) in
                seek.points_cylinders_ms.iter_mut().chain(&mut seek.write_points_cylinders_ms)
            {
                let place = f64::from(*distance).ln() / f64::from(longest.max(2)).ln() * (KNOTS - 1) as f64;
                *ms *= 1.0 + (factor - 1.0) * (1.0 - (place - knot as f64).abs()).max(0.0);
            }
            rise(&mut seek.points_cylinders_ms);
            rise(&mut seek.write_points_cylinders_ms);
        }),
    };
    let write = FitNumber {
        part: FitPart::Seek,
        least: -3.0,
        most: 5.0,
        value: 0.0,
        set: Box::new(|spec, more| {
            spec.mechanics.seek.write_points_cylinders_ms.iter_mut().for_each(|(_, ms)| *ms += more);
        }),
    };
    (0..KNOTS).map(knot).chain(has_writes.then_some(write))
}

/// Makes no seek shorter than one over a shorter distance.
fn rise(points: &mut [(u32, f64)]) {
    let mut longest = 0.0_f64;
    for (_, ms) in points {
        longest = longest.max(*ms);
        *ms = longest;
    }
}

/// The same drive with its seek curve as points, which can move one by one.
pub(crate) fn with_points(spec: &DriveSpec) -> DriveSpec {
    let seek = &spec.mechanics.seek;
    if !seek.points_cylinders_ms.is_empty() && seek.pieces.is_empty() {
        return spec.clone();
    }
    let cylinders = spec.geometry.cylinders;
    let mut distances = vec![1u32];
    while let Some(last) = distances.last().copied().filter(|last| last + 1 < cylinders) {
        distances.push((last + 1).max(last + last / 4).min(cylinders - 1));
    }
    let points = |curve: SeekCurve| {
        distances.iter().map(|distance| (*distance, curve.time(*distance).as_ms())).collect()
    };
    let reads = points(SeekCurve::for_reads(seek, cylinders));
    let writes = SeekCurve::for_writes(seek, cylinders).map(points).unwrap_or_default();
    let mut spec = spec.clone();
    spec.mechanics.seek = headstack_model::spec::SeekSpec {
        points_cylinders_ms: reads,
        write_points_cylinders_ms: writes,
        ..Default::default()
    };
    spec
}
