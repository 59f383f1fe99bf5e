//! Writes the drive file of a learned disk, which the simulator can run.
//!
//! A regular layout is written as `zones` or `band_zones`; any other as `[geometry.extents]`, with groups for repeated runs, or
//! without if groups are not exact enough. Each form is compared with the learned tracks before it is used.

mod bands;
mod extents;
mod zones;

use crate::DiskInfo;
use crate::learn::electronics::LearnedElectronics;
use crate::learn::{
    LearnedMechanics, Piece, SeekPoint, Seeks, mean_off, middle_angle, most_off, turn_between, within,
};
use headstack_model::spec::{
    BusSpec, CacheSpec, Evidence, GeometrySpec, MechanicsSpec, OverheadSpec, QueueSpec, SeekSpec, ZeroLatency,
};
use headstack_model::{DriveSpec, Geometry, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One of this number of tracks may lie elsewhere: its first sector may be slipped or remapped, or was read late.
const EXCEPTIONS: u32 = 200;
/// Maximum spread of the extra time of writes, as a share of the read, for a single settle time: seeks of real arms vary that much.
const SAME_SETTLE: f64 = 0.05;
/// Number of distances of which one may have another extra time of writes by chance.
const EXTRAS_PER_OUTLIER: usize = 6;
/// Maximum difference of equal settle times, without noise: a hundredth of a turn, which moves no response.
const SAME_TIME: Nanos = Nanos(100_000);

/// Why no drive file can be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SpecError {
    #[error("no drive file has all {pieces} runs of tracks where they were found")]
    Geometry { pieces: usize },
}

/// The drive file of a disk.
///
/// *Errors:* its tracks cannot be expressed.
pub fn drive_file(
    name: &str,
    info: &DiskInfo,
    mechanics: &LearnedMechanics,
    electronics: &LearnedElectronics,
) -> Result<DriveSpec, SpecError> {
    let mut spec = mechanics_file(name, info, mechanics)?;
    electronics.put_into(&mut spec);
    // Seeks of writes were measured relative to a write on the head's track, which waits for its data; a seek hides that wait.
    let wait = electronics.write_wait.as_ms();
    spec.mechanics.write_settle_ms += wait;
    for (_, time_ms) in &mut spec.mechanics.seek.write_points_cylinders_ms {
        *time_ms += wait;
    }
    Ok(spec)
}

/// The drive file of a disk whose electronics take no time.
///
/// *Errors:* its tracks cannot be expressed.
pub fn mechanics_file(
    name: &str,
    info: &DiskInfo,
    learned: &LearnedMechanics,
) -> Result<DriveSpec, SpecError> {
    let bytes = info.sectors * u64::from(info.sector_bytes);
    let with = |geometry: GeometrySpec| DriveSpec {
        name: name.to_string(),
        title: format!("{name}, {:.1} GB, probed", bytes as f64 / 1e9),
        year: None,
        evidence: Evidence::Derived,
        firmware: None,
        capacity_sectors: info.sectors,
        sector_bytes: info.sector_bytes,
        physical_sector_bytes: info.sector_bytes * info.physical_sectors.max(1),
        sources: BTreeMap::from([(
            "probed".to_string(),
            "learned from outside by headstack probe, from the times of the disk's answers".to_string(),
        )]),
        geometry,
        mechanics: mechanics(learned),
        overhead: OverheadSpec::default(),
        cache: CacheSpec::default(),
        media_cache: None,
        zones: None,
        shingled: None,
        bus: BusSpec::default(),
        queue: QueueSpec::default(),
    };
    let grouped = || Some(extents::geometry(learned, learned.cylinders, true));
    let single = || Some(extents::geometry(learned, learned.cylinders, false));
    let ways: [&dyn Fn() -> Option<GeometrySpec>; 3] = [&|| natural(learned), &grouped, &single];
    let mut files = ways.into_iter().filter_map(|way| way()).map(with);
    let found = files.find(|spec| agrees(spec, &learned.pieces, learned.noise));
    found.ok_or(SpecError::Geometry { pieces: learned.pieces.len() })
}

/// The layout in the form of its class, if it has one.
fn natural(learned: &LearnedMechanics) -> Option<GeometrySpec> {
    use headstack_model::spec::Layout;
    match learned.layout {
        Layout::Cylinder | Layout::Serpentine => Some(zones::geometry(learned, learned.cylinders)),
        Layout::Ff | Layout::Af | Layout::Fa | Layout::Aa => {
            Some(bands::geometry(learned, learned.cylinders))
        }
        Layout::SerpentineAbsolute | Layout::Extents => None,
    }
}

/// Whether a file has all pieces where they were found, at angles within their standard deviation `noise`, in turns.
pub fn agrees(spec: &DriveSpec, pieces: &[Piece], noise: f64) -> bool {
    let Ok(geometry) = Geometry::new(spec) else { return false };
    let block = |piece: &Piece, track: u32| {
        piece.tracks.run.first + u64::from(track) * u64::from(piece.tracks.run.sectors)
    };
    let is_there = |piece: &Piece| {
        let run = piece.tracks.run;
        run.end().0 <= geometry.sectors()
            && (0..run.tracks).all(|track| {
                let found = geometry.track_at(block(piece, track));
                (found.first, found.sectors) == (block(piece, track), run.sectors)
                    && (found.cylinder, found.head) == (piece.cylinder_of(track), piece.head_of(track))
            })
    };
    if !pieces.iter().all(is_there) {
        return false;
    }
    let turned = |piece: &Piece| {
        let of = |track: u32| {
            let angle = f64::from(geometry.extent_at(block(piece, track)).angle.0) / 4_294_967_296.0;
            angle - piece.tracks.angle - f64::from(track) * piece.tracks.skew
        };
        [of(0), of(piece.tracks.run.tracks - 1)]
    };
    let turned: Vec<f64> = pieces.iter().flat_map(turned).collect();
    // The origin of the angles is arbitrary.
    let origin = middle_angle(turned.clone()).unwrap_or(0.0);
    let mut exceptions = 0;
    let (mut squares, mut tracks) = (0.0, 0);
    let most = most_off(noise);
    for (piece, turned) in pieces.iter().zip(turned.chunks(2)) {
        let off = turned.iter().map(|angle| turn_between(origin, *angle));
        let (worst, square) =
            off.fold((0.0_f64, 0.0), |(worst, square), off| (worst.max(off.abs()), square + off * off));
        tracks += piece.tracks.run.tracks;
        if worst < most { squares += square } else { exceptions += piece.tracks.run.tracks }
    }
    let off = mean_off(noise);
    exceptions <= tracks / EXCEPTIONS && squares <= off * off * turned.len() as f64
}

fn mechanics(learned: &LearnedMechanics) -> MechanicsSpec {
    let seeks = &learned.seeks;
    let settle = seeks.write_settle_ns.unwrap_or(0);
    // If not measured separately, it is the same after a head switch as after a seek.
    let after_switch = seeks.switch_settle_ns.unwrap_or(settle);
    let extras = write_extras(seeks, settle, noise(learned));
    let differing = extras.iter().filter(|(_, extra)| *extra != settle as f64).count();
    let is_settle = differing * EXTRAS_PER_OUTLIER <= extras.len()
        && settle.abs_diff(after_switch) <= SAME_TIME.0.max(noise(learned) as u64);
    let write_points =
        if is_settle { Vec::new() } else { points(&seeks.reads, |distance| extra_at(&extras, distance)) };
    let write_settle = if write_points.is_empty() { settle } else { after_switch };
    let mut read_points = points(&seeks.reads, |_| 0.0);
    if read_points.is_empty() && learned.cylinders == 1 {
        // With a single cylinder nothing seeks, but a file needs a point.
        read_points.push((1, 0.0));
    }
    MechanicsSpec {
        rpm: (learned.rpm * 1e4).round() / 1e4,
        rpm_deviation_percent: 0.0,
        head_switch_ms: seeks.head_switch.map_or(0.0, |switch| in_ms(switch.0 as f64)),
        write_settle_ms: in_ms(write_settle as f64),
        zero_latency_read: ZeroLatency::None,
        zero_latency_write: ZeroLatency::None,
        waits_skip_spares: false,
        constant_access_ms: None,
        seek: SeekSpec {
            points_cylinders_ms: read_points,
            write_points_cylinders_ms: write_points,
            ..SeekSpec::default()
        },
        recalibration: None,
        retries: None,
        lost_turns: None,
        slow_periods: Vec::new(),
        stalls: Vec::new(),
        slow_patterns: Vec::new(),
    }
}

/// Maximum difference of two times of the arm due to noise, in nanoseconds: each combines many answers.
fn noise(learned: &LearnedMechanics) -> f64 {
    within(0.0, 0.5 * learned.noise) * 60e9 / learned.rpm
}

/// The extra time of writes over reads in nanoseconds, by the distances at which both were measured; what is as long as `settle`, within the
/// noise, is set to it.
fn write_extras(seeks: &Seeks, settle: i64, noise: f64) -> Vec<(u32, f64)> {
    let of_read = |distance| seeks.reads.iter().find(|read| read.distance == distance);
    let extra = |write: &SeekPoint| {
        let read = of_read(write.distance)?.time.0 as f64;
        let extra = write.time.0 as f64 - read;
        let is_settle = (extra - settle as f64).abs() <= noise.max(SAME_SETTLE * read);
        Some((write.distance, if is_settle { settle as f64 } else { extra }))
    };
    seeks.writes.iter().filter_map(extra).collect()
}

/// The extra time at a distance, over whose logarithm it is linear between the measured ones; beyond them it is that of the nearest.
fn extra_at(extras: &[(u32, f64)], distance: u32) -> f64 {
    let next = extras.partition_point(|(measured, _)| *measured < distance);
    match (next.checked_sub(1).map(|last| extras[last]), extras.get(next)) {
        (Some((low, before)), Some((high, after))) => {
            let above = |measured: u32| libm::log(f64::from(measured) / f64::from(low));
            before + (after - before) * above(distance) / above(*high)
        }
        (Some((_, extra)), None) | (None, Some(&(_, extra))) => extra,
        (None, None) => 0.0,
    }
}

/// The points of a curve, each later by `more` nanoseconds at its distance.
fn points(curve: &[SeekPoint], more: impl Fn(u32) -> f64) -> Vec<(u32, f64)> {
    let time = |point: &SeekPoint| in_ms((point.time.0 as f64 + more(point.distance)).max(0.0));
    curve.iter().map(|point| (point.distance, time(point))).collect()
}

/// In milliseconds, rounded to 0.1 µs.
fn in_ms(nanos: f64) -> f64 {
    (nanos / 100.0).round() / 1e4
}

/// The drive file with a mark on every probed number.
pub fn text(spec: &DriveSpec) -> String {
    let mut text = format!("# {}: learned from outside, by the times of its answers.\n", spec.title);
    let mut is_probed = true;
    for line in spec.to_toml().lines() {
        if line.starts_with('[') {
            is_probed = line != "[sources]";
        }
        let is_number = line.split_once(" = ").is_some_and(|(_, value)| {
            value.starts_with(|first: char| first.is_ascii_digit() || first == '-') && !value.ends_with(',')
        });
        let note = if is_probed && is_number { " # probed" } else { "" };
        writeln!(text, "{line}{note}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests;
