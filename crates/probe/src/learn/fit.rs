//! Least-squares fit of angles that advance by steps, on a circle.

use super::tracks::{Piece, middle_angle, turn_between};

/// An angle measured after some steps of two kinds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) steps: [f64; 2],
    pub(crate) angle: f64,
}

/// An angle, and the increment of each of two kinds of steps, in turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Angles {
    pub(crate) first: f64,
    pub(crate) steps: [f64; 2],
}

/// Weight of the guess relative to a measured angle; it determines what no angle does.
const GUESS: f64 = 1.0;

impl Angles {
    pub(crate) fn after(&self, steps: [f64; 2]) -> f64 {
        self.first + steps[0] * self.steps[0] + steps[1] * self.steps[1]
    }

    /// The best fit to measured angles, in the order of their steps, from a guess of the steps.
    ///
    /// A small error of a step is many turns after many steps, so the first angles give steps that are valid for twice as many, and so on.
    pub(crate) fn fit(seen: &[Seen], guess: [f64; 2]) -> Angles {
        let mut found = Angles { first: seen.first().map_or(0.0, |seen| seen.angle), steps: guess };
        let mut count = 2;
        loop {
            count = (count * 2).min(seen.len());
            found = found.corrected(&seen[..count]);
            if count == seen.len() {
                return found.corrected(seen);
            }
        }
    }

    /// The fit without angles farther than `most` turns from the fit to all.
    pub(crate) fn fit_most(seen: &[Seen], guess: [f64; 2], most: f64) -> Angles {
        let all = Angles::fit(seen, guess);
        let near: Vec<Seen> = seen.iter().copied().filter(|one| all.off(one).abs() < most).collect();
        if near.len() < seen.len() && 2 * near.len() > seen.len() { all.corrected(&near) } else { all }
    }

    /// By how many turns a measured angle exceeds the fit.
    pub(crate) fn off(&self, seen: &Seen) -> f64 {
        turn_between(self.after(seen.steps), seen.angle)
    }

    fn corrected(&self, seen: &[Seen]) -> Angles {
        let mut matrix = [[0.0, 0.0, 0.0], [0.0, GUESS, 0.0], [0.0, 0.0, GUESS]];
        let mut right = [0.0; 3];
        for one in seen {
            let off = self.off(one);
            let row = [1.0, one.steps[0], one.steps[1]];
            for (line, factor) in row.iter().enumerate() {
                right[line] += factor * off;
                row.iter().enumerate().for_each(|(column, other)| matrix[line][column] += factor * other);
            }
        }
        let more = solve(matrix, right);
        Angles { first: self.first + more[0], steps: [self.steps[0] + more[1], self.steps[1] + more[2]] }
    }
}

/// Solves three equations; an undetermined unknown is 0.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        if matrix[pivot][pivot].abs() < 1e-12 {
            continue;
        }
        for line in 0..3 {
            if line != pivot {
                let factor = matrix[line][pivot] / matrix[pivot][pivot];
                let from = matrix[pivot];
                from.iter().zip(&mut matrix[line]).for_each(|(from, to)| *to -= factor * from);
                right[line] -= factor * right[pivot];
            }
        }
    }
    let of =
        |line: usize| if matrix[line][line].abs() < 1e-12 { 0.0 } else { right[line] / matrix[line][line] };
    [of(0), of(1), of(2)]
}

/// Index of a piece's first track on its cylinder, in the order of blocks.
pub(crate) fn order(piece: &Piece, heads: u32) -> u32 {
    if piece.head_step < 0 { heads - 1 - piece.head } else { piece.head }
}

/// Angles of the first and last tracks of pieces that lie on one cylinder each, by cylinders and by tracks of a cylinder.
pub(crate) fn seen_on_cylinders(pieces: &[Piece], heads: u32) -> Vec<Seen> {
    let first_cylinder = pieces.iter().map(|piece| piece.cylinder).min().unwrap_or(0);
    let both = |piece: &Piece| {
        let (cylinder, order) = (f64::from(piece.cylinder - first_cylinder), f64::from(order(piece, heads)));
        let more = f64::from(piece.tracks.run.tracks - 1);
        let last = piece.tracks.angle + more * piece.tracks.skew;
        [
            Seen { steps: [cylinder, order], angle: piece.tracks.angle },
            Seen { steps: [cylinder, order + more], angle: last },
        ]
    };
    pieces.iter().flat_map(both).collect()
}

/// Median angles between such pieces: from cylinder to cylinder, and from track to track.
pub(crate) fn usual_steps(pieces: &[Piece], heads: u32) -> [f64; 2] {
    let longer = pieces.iter().filter(|piece| piece.tracks.run.tracks > 1);
    let track = middle_angle(longer.map(|piece| piece.tracks.skew).collect()).unwrap_or(0.0);
    let neighbours = pieces.windows(2).filter(|pair| pair[1].cylinder == pair[0].cylinder + 1);
    let step = neighbours.map(|pair| {
        let at_start = |piece: &Piece| piece.tracks.angle - f64::from(order(piece, heads)) * track;
        at_start(&pair[1]) - at_start(&pair[0])
    });
    [middle_angle(step.collect()).unwrap_or(0.0), track]
}

/// A number of sectors, rounded if it is whole within `almost`.
pub(crate) fn in_sectors(turns: f64, sectors_per_track: u32, almost: f64) -> f64 {
    let sectors = turns.rem_euclid(1.0) * f64::from(sectors_per_track);
    let near = sectors.round();
    let sectors = if (sectors - near).abs() < almost { near } else { (sectors * 1e6).round() / 1e6 };
    if sectors >= f64::from(sectors_per_track) { 0.0 } else { sectors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angle_steps_are_fitted_over_many_turns() {
        let truth = Angles { first: 0.3, steps: [0.1887, 0.5619] };
        let seen: Vec<Seen> = (0..2000)
            .map(|index| {
                let steps = [f64::from(index * 7), f64::from(index)];
                let noise = f64::from(index * 7919 % 11 - 5) * 2e-4;
                Seen { steps, angle: (truth.after(steps) + noise).rem_euclid(1.0) }
            })
            .collect();
        let found = Angles::fit(&seen, [0.1886, 0.5625]);
        for one in &seen {
            assert!(turn_between(found.after(one.steps), truth.after(one.steps)).abs() < 1e-4, "{found:?}");
        }
        assert_eq!(Angles::fit(&[], [0.1, 0.2]), Angles { first: 0.0, steps: [0.1, 0.2] });
    }
}
