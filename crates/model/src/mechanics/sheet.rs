//! The seek curve of a drive of which only a data sheet is known: single track, average and full stroke.
//!
//! A seek is a motion and a settling. The arm accelerates constantly, coasts at its speed limit and decelerates in the same way,
//! so that the motion time grows with the square root of the distance first and in proportion to it beyond. Then the head settles:
//! the remaining error of the motion decays exponentially, so that the time to come within a share of the track pitch grows with
//! the logarithm of the distance, from that of a single track to that of every long seek. Before a write, which must not touch the
//! neighbouring track, a head settles longer, by an extra that grows in the same way.
//!
//! The three figures leave one unknown. *Source:* the measured curves of the shipped drives (ten, of 1991 to 2004, with 2,100 to
//! 80,500 cylinders). In all of them a long seek settles for 0.2 to 0.32 of the average seek, most settling is reached within some
//! 200 tracks, and the share of the stroke that is covered at changing speed is 1.2 times the settling's share of the average. A
//! test of this module compares the curves computed from three figures with the measured ones.
//!
//! Drives with a second actuator at the head settle faster than that, so a file may give the settling as a fourth figure. The
//! share of the stroke at changing speed then follows from the full stroke, or, if that is absent, from a ratio: on drives of
//! today a seek over a fifth of the tracks takes 0.475 of the full stroke, so that the arm changes speed over most of it.
//! Not modelled: direction, radius, and the steps where a firmware changes from one control law to another.

use super::SeekCurve;
use crate::spec::SheetSeek;

/// Share of the average seek for which the head settles after a long seek, where the sheet gives no full stroke. *Source:* the mean of the
/// measured drives of 7,200 rpm: Atlas III 0.27, Barracuda 0.23, Ultrastar 18ES 0.32.
const SETTLE_SHARE: f64 = 0.27;
/// Upper bound of the settling's share.
const SETTLE_SHARE_MOST: f64 = 0.8;
/// Share of the stroke that is covered while the speed changes, for each share of the average that is settling. *Source:* as the
/// module; the drives have 1.0 to 1.65, with a mean of 1.2.
const CHANGING_PER_SETTLE: f64 = 1.2;
/// Lower bound of the share of the stroke that is covered while the speed changes.
const CHANGING_LEAST: f64 = 1e-4;
/// Time of a seek over a fifth of the tracks, as a share of the full stroke's, where the settling is given and the full stroke is not. *Source:* the middle
/// of 0.47 and 0.48, which measured drives of today have.
const FIFTH_OF_FULL: f64 = 0.475;
/// Distance from which on a seek settles as long as any. *Source:* as the module; the drives of 7,200 rpm have 134, 191 and 371 tracks.
const LONG_FROM_TRACKS: f64 = 200.0;
/// A write's extra settling after a single track, as a share of that on average. *Source:* HGST OEM specifications: Ultrastar DC
/// HC310 0.09 of 0.8 ms, Travelstar 5K320 and 5K160 0.1 of 1.0 ms; full strokes have what the average has.
const SINGLE_WRITE_EXTRA: f64 = 0.1;
/// Number of distances over which means are taken.
const SAMPLES: u32 = 1024;

/// A seek curve computed from a data sheet's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SheetCurve {
    stroke: f64,
    single_ms: f64,
    settle_ms: f64,
    /// Motion over the full stroke.
    motion_ms: f64,
    /// Share of the stroke that is covered while the speed changes.
    changing: f64,
    /// Extra settling before a write, after a single track and after a long seek, where the sheet gives writes.
    write_extra_ms: Option<[f64; 2]>,
}

impl SheetCurve {
    /// The curve with the sheet's single track, average over random pairs of cylinders, and full stroke.
    ///
    /// Figures outside [`SheetCurve::average_limits`] give the nearest possible curve.
    pub fn new(sheet: &SheetSeek, cylinders: u32) -> SheetCurve {
        let reads = match (sheet.settle_ms, sheet.full_stroke_ms) {
            (None, Some(full)) => through_full_stroke(sheet, full, cylinders),
            (None, None) => with_usual_settling(sheet, cylinders),
            (Some(settle), Some(full)) => settling_through_full_stroke(sheet, settle, full, cylinders),
            (Some(settle), None) => settling_through_a_fifth(sheet, settle, cylinders),
        };
        let extra = sheet.write_average_ms.map(|average| {
            let mean = average - sheet.average_ms;
            let single = sheet
                .write_single_track_ms
                .map_or(SINGLE_WRITE_EXTRA * mean, |ms| ms - sheet.single_track_ms);
            let long = mean_over_pairs(cylinders, settled_share);
            [single, if long > 0.0 { single + (mean - single) / long } else { mean }]
        });
        SheetCurve { write_extra_ms: extra, ..reads }
    }

    /// The shortest and the longest average seek that are possible with the sheet's single track and full stroke.
    pub fn average_limits(sheet: &SheetSeek, cylinders: u32) -> [f64; 2] {
        match (sheet.settle_ms, sheet.full_stroke_ms) {
            (settle, None) => [settle.unwrap_or(0.0).max(sheet.single_track_ms), f64::INFINITY],
            (None, Some(full)) => [0.0, SETTLE_SHARE_MOST]
                .map(|share| with_share(sheet, share, full, cylinders).mean_ms(cylinders)),
            (Some(settle), Some(full)) => [CHANGING_LEAST, 1.0]
                .map(|changing| with_settling(sheet, settle, changing, full, cylinders).mean_ms(cylinders)),
        }
    }

    /// Time of a seek before a read.
    pub fn read_ms(&self, distance: u32) -> f64 {
        let settle = self.single_ms + (self.settle_ms - self.single_ms) * settled_share(distance);
        settle + self.motion_ms * motion_share(f64::from(distance) / self.stroke, self.changing)
    }

    /// Time of a seek before a write, where the sheet gives writes.
    pub fn write_ms(&self, distance: u32) -> Option<f64> {
        let [single, long] = self.write_extra_ms?;
        Some(self.read_ms(distance) + single + (long - single) * settled_share(distance))
    }

    fn mean_ms(&self, cylinders: u32) -> f64 {
        mean_over_pairs(cylinders, |distance| self.read_ms(distance))
    }
}

impl SeekCurve {
    /// Mean over two different cylinders drawn at random, as makers define the average seek: the weight of a distance is the
    /// number of places where it fits.
    pub fn mean_ms(&self) -> f64 {
        let cylinders = u32::try_from(self.table.len()).expect("a curve has 10,000,000 distances at most");
        mean_over_pairs(cylinders, |distance| self.time(distance).as_ms())
    }
}

/// The curve with a known full stroke, whose settling gives the average. The average rises with the settling.
fn through_full_stroke(sheet: &SheetSeek, full_ms: f64, cylinders: u32) -> SheetCurve {
    let average = |share| with_share(sheet, share, full_ms, cylinders).mean_ms(cylinders);
    let share = rising_to(sheet.average_ms, [0.0, SETTLE_SHARE_MOST], average);
    with_share(sheet, share, full_ms, cylinders)
}

/// The curve with the usual settling, whose full stroke gives the average.
fn with_usual_settling(sheet: &SheetSeek, cylinders: u32) -> SheetCurve {
    with_average(sheet, cylinders, |full_ms| with_share(sheet, SETTLE_SHARE, full_ms, cylinders))
}

/// The curve with a known settling and full stroke. The share at changing speed, which slows the seek, is fitted to the average.
fn settling_through_full_stroke(
    sheet: &SheetSeek,
    settle_ms: f64,
    full_ms: f64,
    cylinders: u32,
) -> SheetCurve {
    let curve = |changing| with_settling(sheet, settle_ms, changing, full_ms, cylinders);
    curve(rising_to(sheet.average_ms, [CHANGING_LEAST, 1.0], |changing| curve(changing).mean_ms(cylinders)))
}

/// The curve with a known settling. Its full stroke is fitted to the average, its motion to the usual time of a fifth of it.
fn settling_through_a_fifth(sheet: &SheetSeek, settle_ms: f64, cylinders: u32) -> SheetCurve {
    let curve = |changing| {
        with_average(sheet, cylinders, |full_ms| {
            with_settling(sheet, settle_ms, changing, full_ms, cylinders)
        })
    };
    let fifth = |changing| {
        let curve = curve(changing);
        curve.read_ms(cylinders / 5) / curve.read_ms(cylinders.saturating_sub(1))
    };
    curve(rising_to(FIFTH_OF_FULL, [CHANGING_LEAST, 1.0], fifth))
}

/// The argument between two limits at which the rising function `of` has this value; the nearer limit if there is none.
fn rising_to(value: f64, [mut least, mut most]: [f64; 2], of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let middle = 0.5 * (least + most);
        if of(middle) < value {
            least = middle;
        } else {
            most = middle;
        }
    }
    0.5 * (least + most)
}

/// Of the curves that `curve` returns for a full stroke, the one with the sheet's average. The mean is linear in the full stroke.
fn with_average(sheet: &SheetSeek, cylinders: u32, curve: impl Fn(f64) -> SheetCurve) -> SheetCurve {
    let mean = |full_ms: f64| curve(full_ms).mean_ms(cylinders);
    let (none, one) = (mean(0.0), mean(1.0));
    curve(if one > none { (sheet.average_ms - none) / (one - none) } else { sheet.average_ms })
}

/// The curve whose motion follows from the settling's share of the average.
fn with_share(sheet: &SheetSeek, share: f64, full_ms: f64, cylinders: u32) -> SheetCurve {
    let changing = (CHANGING_PER_SETTLE * share).clamp(CHANGING_LEAST, 1.0);
    with_settling(sheet, share * sheet.average_ms, changing, full_ms, cylinders)
}

fn with_settling(
    sheet: &SheetSeek,
    settle_ms: f64,
    changing: f64,
    full_ms: f64,
    cylinders: u32,
) -> SheetCurve {
    let settle_ms = settle_ms.max(sheet.single_track_ms);
    let stroke = f64::from(cylinders.saturating_sub(1).max(1));
    // A single track has its own figure, which includes the motion.
    let first_ms = (full_ms - settle_ms) * motion_share(1.0 / stroke, changing);
    let single_ms = if stroke > 1.0 { sheet.single_track_ms - first_ms } else { sheet.single_track_ms };
    SheetCurve {
        stroke,
        single_ms,
        settle_ms,
        motion_ms: full_ms - settle_ms,
        changing,
        write_extra_ms: None,
    }
}

/// Settling of a seek over `distance` beyond that of a single track, as a share of a long seek's.
fn settled_share(distance: u32) -> f64 {
    let distance = f64::from(distance.max(1));
    // Holds for most distances, whose logarithms would take most of the time in which a curve is built.
    if distance >= LONG_FROM_TRACKS { 1.0 } else { distance.ln() / LONG_FROM_TRACKS.ln() }
}

/// Time of a motion over a share of the stroke, as a share of that over all of it.
fn motion_share(way: f64, changing: f64) -> f64 {
    if way <= changing {
        2.0 * (way * changing).sqrt() / (1.0 + changing)
    } else {
        (changing + way) / (1.0 + changing)
    }
}

/// Mean over two different cylinders drawn at random.
fn mean_over_pairs(cylinders: u32, ms: impl Fn(u32) -> f64) -> f64 {
    let distances = cylinders.saturating_sub(1).max(1);
    let samples = distances.min(SAMPLES);
    let (mut sum, mut weights) = (0.0, 0.0);
    for sample in 0..samples {
        let middle = (f64::from(sample) + 0.5) * f64::from(distances) / f64::from(samples) + 0.5;
        let weight = f64::from(cylinders) - middle;
        sum += weight * ms(middle as u32);
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;
    use crate::spec::SeekSpec;

    /// Figures as of a nearline drive of 7,200 rpm.
    const TODAY: SheetSeek = SheetSeek {
        single_track_ms: 0.4,
        average_ms: 8.0,
        full_stroke_ms: None,
        settle_ms: None,
        write_single_track_ms: None,
        write_average_ms: None,
    };
    const CYLINDERS: u32 = 440_000;

    fn tabulated(sheet: SheetSeek, cylinders: u32) -> (SeekCurve, Option<SeekCurve>) {
        let spec = SeekSpec { sheet: Some(sheet), ..SeekSpec::default() };
        (SeekCurve::for_reads(&spec, cylinders), SeekCurve::for_writes(&spec, cylinders))
    }

    #[track_caller]
    fn near(found: f64, wanted: f64, share: f64) {
        assert!((found / wanted - 1.0).abs() <= share, "{found}, wanted {wanted}");
    }

    #[test]
    fn sheet_curve_meets_the_sheet_figures() {
        for cylinders in [900, 8000, CYLINDERS] {
            for full_stroke_ms in [None, Some(14.0), Some(16.0), Some(18.0)] {
                let sheet = SheetSeek { full_stroke_ms, write_average_ms: Some(8.8), ..TODAY };
                let (reads, writes) = tabulated(sheet, cylinders);
                let writes = writes.expect("the sheet gives writes");
                near(reads.time(1).as_ms(), 0.4, 1e-3);
                near(reads.mean_ms(), 8.0, 2e-3);
                near(
                    reads.time(cylinders - 1).as_ms(),
                    full_stroke_ms.unwrap_or(14.5),
                    full_stroke_ms.map_or(0.03, |_| 1e-6),
                );
                near(writes.time(1).as_ms(), 0.48, 1e-3);
                near(writes.mean_ms(), 8.8, 2e-3);
            }
        }
    }

    #[test]
    fn fifth_stroke_seek_takes_47_percent_of_full_stroke() {
        let (reads, _) = tabulated(TODAY, CYLINDERS);
        let share = reads.time(CYLINDERS / 5).as_ms() / reads.time(CYLINDERS - 1).as_ms();
        assert!((0.47..=0.48).contains(&share), "{share}");
    }

    #[test]
    fn given_settle_keeps_sheet_figures_and_fifth_stroke_share() {
        for full_stroke_ms in [None, Some(14.6)] {
            let sheet = SheetSeek { settle_ms: Some(0.7), full_stroke_ms, single_track_ms: 0.23, ..TODAY };
            let (reads, _) = tabulated(sheet, CYLINDERS);
            near(reads.time(1).as_ms(), 0.23, 1e-3);
            near(reads.mean_ms(), 8.0, 2e-3);
            let full = reads.time(CYLINDERS - 1).as_ms();
            near(full, 14.5, 0.02);
            near(reads.time(CYLINDERS / 5).as_ms() / full, 0.475, 0.02);
            // Beyond settling, a seek of 500 tracks moves for a third of a millisecond.
            near(reads.time(500).as_ms(), 1.1, 0.1);
        }
    }

    #[test]
    fn seeks_of_100_to_500_tracks_take_2_to_2_7_ms() {
        let (reads, _) = tabulated(TODAY, CYLINDERS);
        let times: Vec<f64> = [100, 200, 500].map(|distance| reads.time(distance).as_ms()).to_vec();
        assert!(times.iter().all(|ms| (2.0..2.7).contains(ms)), "{times:?}");
    }

    #[test]
    fn write_settle_grows_with_distance_up_to_a_limit() {
        let sheet = SheetSeek { write_single_track_ms: Some(0.49), write_average_ms: Some(8.8), ..TODAY };
        let curve = SheetCurve::new(&sheet, CYLINDERS);
        let extra =
            |distance| curve.write_ms(distance).expect("the sheet gives writes") - curve.read_ms(distance);
        near(extra(1), 0.09, 1e-6);
        assert!((0.4..0.6).contains(&extra(14)), "{}", extra(14));
        near(extra(500), 0.8, 2e-3);
        near(extra(CYLINDERS - 1), 0.8, 2e-3);
    }

    #[test]
    fn longer_seek_never_takes_less_time() {
        for full_stroke_ms in [None, Some(15.0), Some(19.0)] {
            let curve = SheetCurve::new(&SheetSeek { full_stroke_ms, ..TODAY }, CYLINDERS);
            assert!(
                (1..CYLINDERS - 1).all(|distance| curve.read_ms(distance) <= curve.read_ms(distance + 1))
            );
        }
    }

    /// Drives whose seeks were measured.
    const MEASURED: [&str; 10] = [
        "atlas-10k",
        "atlas-10k-v-300",
        "atlas-iii",
        "barracuda-st32171w",
        "cheetah-4lp",
        "cheetah-9lp",
        "hp-c2490a",
        "hp-c3323a",
        "st41601n",
        "ultrastar-18es",
    ];

    /// Errors of a curve computed from three figures of a measured one: root mean square over distances of equal ratios, and the
    /// largest at a hundredth of the stroke and beyond.
    fn errors(name: &str) -> [f64; 2] {
        let spec = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
        let cylinders = spec.geometry.cylinders;
        let measured = SeekCurve::for_reads(&spec.mechanics.seek, cylinders);
        let sheet = SheetSeek {
            single_track_ms: measured.time(1).as_ms(),
            average_ms: measured.mean_ms(),
            full_stroke_ms: Some(measured.time(cylinders - 1).as_ms()),
            ..TODAY
        };
        let made = SheetCurve::new(&sheet, cylinders);
        let off = |distance: u32| made.read_ms(distance) / measured.time(distance).as_ms() - 1.0;
        let mut distances: Vec<u32> =
            (0..60).map(|step| f64::from(cylinders - 1).powf(f64::from(step) / 59.0) as u32).collect();
        distances.dedup();
        let mean = (distances.iter().map(|d| off(*d).powi(2)).sum::<f64>() / distances.len() as f64).sqrt();
        [mean, (cylinders / 100..cylinders).map(|d| off(d).abs()).fold(0.0, f64::max)]
    }

    #[test]
    fn three_figures_reproduce_measured_seek_curves() {
        let all: Vec<[f64; 2]> = MEASURED.into_iter().map(errors).collect();
        for (name, [mean, long]) in MEASURED.into_iter().zip(&all) {
            assert!(*mean < 0.13 && *long < 0.23, "{name}: {mean:.3} {long:.3}");
        }
        let mean = all.iter().map(|[mean, _]| mean).sum::<f64>() / all.len() as f64;
        assert!(mean < 0.08, "{mean:.3} over all drives");
    }

    #[test]
    fn average_limits_exclude_an_impossible_average() {
        let sheet = SheetSeek { full_stroke_ms: Some(9.0), ..TODAY };
        let [least, most] = SheetCurve::average_limits(&sheet, CYLINDERS);
        assert!(least < most && most < 8.0, "{least} to {most}");
    }
}
