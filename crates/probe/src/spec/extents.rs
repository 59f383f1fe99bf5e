//! Pieces as `[geometry.extents]`, which can express any layout: runs of tracks, and groups of repeated runs.

use crate::learn::fit::{Angles, Seen};
use crate::learn::{LearnedMechanics, Piece, turn_between, within};
use headstack_model::spec::{ExtentRun, Extents, GeometrySpec, Layout, Repeated, Sparing, TrackKind};

/// Maximum difference of equal angles, in turns, without noise: tracks begin with a slipped sector or two.
const SLIPPED: f64 = 0.01;
/// Number of repetitions from which on a group is written.
const WORTH: usize = 3;

/// The geometry as runs of tracks, with groups of repeated runs or without.
pub(super) fn geometry(learned: &LearnedMechanics, cylinders: u32, groups: bool) -> GeometrySpec {
    let mut extents = Extents::default();
    let blocks: Vec<Vec<ExtentRun>> =
        learned.pieces.iter().map(|piece| runs(piece, &mut extents.tracks)).collect();
    let off = within(SLIPPED, learned.noise);
    let mut disk = Vec::new();
    let mut at = 0;
    while at < blocks.len() {
        let heads = learned.heads as usize;
        let periods = [1, 2, heads, 2 * heads];
        let best = periods
            .into_iter()
            .filter(|_| groups)
            .map(|period| (repeats(&blocks[at..], period, off), period));
        let (times, period) = best.max_by_key(|(times, period)| times * period).unwrap_or((1, 1));
        if times < WORTH {
            disk.extend(blocks[at].iter().copied());
            at += 1;
            continue;
        }
        let (group, run) = group(&blocks[at..at + times * period], period);
        extents.groups.push(group);
        disk.push(ExtentRun { of: Repeated::Group(extents.groups.len() as u32 - 1), ..run });
        at += times * period;
    }
    extents.groups.push(disk);
    GeometrySpec {
        heads: learned.heads,
        cylinders,
        layout: Layout::Extents,
        sparing: Sparing::None,
        slip_to_end: false,
        range_cylinders: None,
        zones: Vec::new(),
        band_zones: Vec::new(),
        extents: Some(extents),
    }
}

/// The runs of a piece: one along a surface, or one per track on a cylinder.
fn runs(piece: &Piece, kinds: &mut Vec<TrackKind>) -> Vec<ExtentRun> {
    let tracks = &piece.tracks;
    let kind = TrackKind {
        first_sector: 0,
        sectors: tracks.run.sectors,
        sectors_per_track: tracks.sectors_per_track.max(tracks.run.sectors),
    };
    let kind = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
        kinds.push(kind);
        kinds.len() - 1
    });
    let run = |track: u32, times: u32| ExtentRun {
        of: Repeated::Track { head: piece.head_of(track), kind: kind as u32 },
        times,
        cylinder: piece.cylinder_of(track) as i32,
        cylinder_step: if times > 1 { piece.cylinder_step } else { 0 },
        angle_turns: rounded(tracks.angle + f64::from(track) * tracks.skew),
        angle_step_turns: if times > 1 { rounded(tracks.skew) } else { 0.0 },
    };
    match piece.cylinder_step {
        0 => (0..tracks.run.tracks).map(|track| run(track, 1)).collect(),
        _ => vec![run(0, tracks.run.tracks)],
    }
}

/// How often the first blocks repeat, each time with the same steps within `off` turns.
fn repeats(blocks: &[Vec<ExtentRun>], period: usize, off: f64) -> usize {
    if blocks.len() < 2 * period {
        return 1;
    }
    let step = turn_between(blocks[0][0].angle_turns, blocks[period][0].angle_turns);
    let cylinders = blocks[period][0].cylinder - blocks[0][0].cylinder;
    let mut steps = Angles { first: blocks[0][0].angle_turns, steps: [step, 0.0] };
    let mut seen = vec![Seen { steps: [0.0, 0.0], angle: blocks[0][0].angle_turns }];
    for times in 1.. {
        let Some(next) = blocks.get(times * period..(times + 1) * period) else { return times };
        let count = times as f64;
        let on = [steps.after([count, 0.0]) - blocks[0][0].angle_turns, 0.0];
        let is_same = next
            .iter()
            .zip(blocks)
            .all(|(next, first)| is_like(first, next, (cylinders * times as i32, on[0]), off));
        if cylinders == 0 || !is_same {
            return times;
        }
        seen.push(Seen { steps: [count, 0.0], angle: next[0][0].angle_turns });
        if times.is_power_of_two() {
            steps = Angles::fit(&seen, steps.steps);
        }
    }
    1
}

/// Whether runs equal others, a number of cylinders and turns further, within `off` turns.
fn is_like(first: &[ExtentRun], next: &[ExtentRun], (cylinders, angle): (i32, f64), off: f64) -> bool {
    first.len() == next.len()
        && first.iter().zip(next).all(|(first, next)| {
            (first.of, first.times, first.cylinder_step) == (next.of, next.times, next.cylinder_step)
                && first.cylinder + cylinders == next.cylinder
                && turn_between(first.angle_turns + angle, next.angle_turns).abs() < off
                && turn_between(first.angle_step_turns, next.angle_step_turns).abs() * f64::from(first.times)
                    < off
        })
}

/// The repeated runs at their first place, and their repetition.
fn group(blocks: &[Vec<ExtentRun>], period: usize) -> (Vec<ExtentRun>, ExtentRun) {
    let start = blocks[0][0];
    let seen: Vec<Seen> = blocks
        .iter()
        .step_by(period)
        .enumerate()
        .map(|(times, block)| Seen { steps: [times as f64, 0.0], angle: block[0].angle_turns })
        .collect();
    let step = turn_between(start.angle_turns, blocks[period][0].angle_turns);
    let angles = Angles::fit(&seen, [step, 0.0]);
    // Each angle is the mean of the measured ones.
    let mut off = vec![0.0; blocks[..period].iter().map(Vec::len).sum()];
    for (times, repeated) in blocks.chunks(period).enumerate() {
        let from = angles.after([times as f64, 0.0]);
        for (sum, (first, run)) in off.iter_mut().zip(blocks.iter().flatten().zip(repeated.iter().flatten()))
        {
            *sum += turn_between(from + first.angle_turns - start.angle_turns, run.angle_turns);
        }
    }
    let count = (blocks.len() / period) as f64;
    let own = |(run, off): (&ExtentRun, f64)| ExtentRun {
        cylinder: run.cylinder - start.cylinder,
        angle_turns: rounded(run.angle_turns - start.angle_turns + off / count),
        ..*run
    };
    let group = blocks[..period].iter().flatten().zip(off).map(own).collect();
    let run = ExtentRun {
        times: (blocks.len() / period) as u32,
        cylinder_step: blocks[period][0].cylinder - start.cylinder,
        angle_turns: rounded(angles.first),
        angle_step_turns: rounded(angles.steps[0]),
        ..start
    };
    (group, run)
}

fn rounded(turns: f64) -> f64 {
    (turns.rem_euclid(1.0) * 1e9).round() / 1e9
}
