use super::*;
use crate::simulated::{Noise, SimulatedDisk};
use crate::synthetic::in_bands;
use crate::{Extraction, drive};
use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics, TrackPlace, drives};
use headstack_tracks::Run;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The tracks that a drive's layout has, as an extraction finds them.
pub(crate) fn stretches_of(geometry: &Geometry) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    let mut first = Lbn(0);
    while first.0 < geometry.sectors() {
        let track = geometry.track_at(first);
        let angle = f64::from(geometry.extent_at(first).angle.0) / 4_294_967_296.0;
        let next = Stretch {
            run: Run { first, sectors: track.sectors, tracks: 1 },
            sectors_per_track: track.sectors_per_track,
            angle,
            skew: 0.0,
        };
        let continues = |last: &Stretch| {
            let skew = (angle - last.last().angle).rem_euclid(1.0);
            let is_even = last.run.tracks == 1 || tracks::turn_between(last.skew, skew).abs() < 1e-6;
            last.run.sectors == track.sectors && last.sectors_per_track == track.sectors_per_track && is_even
        };
        match found.last_mut().filter(|last| continues(last)) {
            Some(last) => {
                if last.run.tracks == 1 {
                    last.skew = (angle - last.angle).rem_euclid(1.0);
                }
                last.run.tracks += 1;
            }
            None => found.push(next),
        }
        first = Lbn(first.0 + u64::from(track.sectors));
    }
    // A single track has the skew of the tracks around it.
    for index in 1..found.len() {
        if found[index].run.tracks == 1 {
            found[index].skew = found[index - 1].skew;
        }
    }
    found
}

/// Error of the given angles, in turns.
const ANGLE_OFF: f64 = 0.002;

pub(crate) fn learn(spec: &DriveSpec, noise: Noise) -> (LearnedMechanics, SimulatedDisk) {
    let mut disk = SimulatedDisk::new(spec, noise, 7).expect("it holds");
    let mut stretches = stretches_of(&disk.device().drive().geometry);
    // With the noise of a host's clock.
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for stretch in &mut stretches {
        stretch.angle += random.random_range(-ANGLE_OFF..ANGLE_OFF);
    }
    let period = 60e9 / (spec.mechanics.rpm * (1.0 + spec.mechanics.rpm_deviation_percent / 100.0));
    let mut extraction = Extraction::new(crate::drive::ProbeTarget::info(&disk), async move |disk| {
        mechanics_of(disk, &stretches, period, ANGLE_OFF / 3_f64.sqrt()).await
    });
    let learned = drive::run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    (learned.expect("it is not cancelled"), disk)
}

/// Largest and mean error of a learned curve against the model's, as shares.
fn errors(spec: &DriveSpec, learned: &LearnedMechanics) -> (f64, f64) {
    let mechanics = Mechanics::new(spec);
    let last = spec.geometry.cylinders - 1;
    let truth = |distance: u32| {
        let to = TrackPlace { cylinder: distance.min(last), head: 0 };
        mechanics.reposition(TrackPlace::default(), to, false).0 as f64
    };
    let points = &learned.seeks.reads;
    let errors = points.iter().map(|point| (point.time.0 as f64 / truth(point.distance) - 1.0).abs());
    let (most, sum) =
        errors.fold((0.0, 0.0), |(most, sum): (f64, f64), error| (most.max(error), sum + error));
    (most, sum / points.len() as f64)
}

/// Number of pieces that the model has at other cylinders and heads; cylinders count from the first.
fn misplaced(learned: &LearnedMechanics, geometry: &Geometry) -> usize {
    let base = geometry.track_at(Lbn(0)).cylinder;
    let is_right = |piece: &&Piece| {
        let track = geometry.track_at(piece.tracks.run.first);
        (track.cylinder, track.head) == (piece.cylinder + base, piece.head)
    };
    learned.pieces.len() - learned.pieces.iter().filter(is_right).count()
}

#[test]
fn learned_layout_and_seeks_match_drive() {
    // A heads-first disk, one of short bands that reverse, the same with a quarter of the cylinders on one surface in a row, and
    // one whose surfaces differ.
    let shipped = |name: &str| drives::load(name).expect("it is shipped");
    for (spec, layout, heads) in [
        (shipped("dec-rz26"), Layout::Cylinder, 14),
        (in_bands(shipped("st3146707lw"), Layout::Aa, 32), Layout::Aa, 4),
        (shipped("st3146707lw"), Layout::Ff, 4),
        (shipped("toshiba-x300"), Layout::Af, 10),
    ] {
        let name = &spec.name;
        let (learned, disk) = learn(&spec, Noise::USUAL);
        assert_eq!((learned.layout, learned.heads), (layout, heads), "{name}");
        let geometry = &disk.device().drive().geometry;
        assert_eq!(misplaced(&learned, geometry), 0, "{name}");
        let (most, mean) = errors(&spec, &learned);
        assert!(most < 0.02 && mean < 0.004, "{name}: seeks off by up to {most}, {mean} on average");
        let switch = learned.seeks.head_switch.expect("it has heads").as_ms();
        assert!(
            (switch - spec.mechanics.head_switch_ms).abs() < 0.015,
            "{name}: {switch} ms to switch heads"
        );
    }
}

#[test]
fn zone_rate_is_one_track_per_turn_and_skew() {
    let (learned, _) = learn(&drives::load("wd800jd").expect("it is shipped"), Noise::USUAL);
    let rates = learned.rates();
    assert_eq!(rates.iter().map(|rate| rate.blocks).sum::<u64>(), 156_301_488);
    assert!(rates.windows(2).all(|pair| pair[1].blocks_a_second < pair[0].blocks_a_second));
    // All but one track switch in 600 have the same skew of a quarter turn.
    let sectors = f64::from(learned.pieces[0].tracks.run.sectors);
    let expected = sectors / 1.25 * 120.0;
    assert!((rates[0].blocks_a_second / expected - 1.0).abs() < 0.002, "{:?} and {expected}", rates[0]);
}

#[test]
#[ignore = "a table of figures: make probe-full"]
fn learning_errors_of_every_drive_are_printed() {
    for (name, _) in drives::all() {
        let spec = drives::load(name).expect("it is shipped");
        if spec.mechanics.constant_access_ms.is_some() {
            continue;
        }
        let (learned, disk) = learn(&spec, Noise::USUAL);
        let (most, mean) = errors(&spec, &learned);
        println!(
            "{name}: {:?} (truly {:?}), {} heads ({}), {} cylinders ({}), {} of {} pieces elsewhere, seeks off by {:.2} % \
             on average and {:.2} % at most, head switch {:?} ms ({}), write settle {:?} ms ({}); {} probes, {:.0} s",
            learned.layout,
            spec.geometry.layout,
            learned.heads,
            spec.geometry.heads,
            learned.cylinders,
            spec.geometry.cylinders,
            misplaced(&learned, &disk.device().drive().geometry),
            learned.pieces.len(),
            100.0 * mean,
            100.0 * most,
            learned.seeks.head_switch.map(|switch| switch.as_ms()),
            spec.mechanics.head_switch_ms,
            learned.seeks.write_settle_ns.map(|settle| settle as f64 / 1e6),
            spec.mechanics.write_settle_ms,
            disk.probes(),
            disk.now().as_secs(),
        );
    }
}
