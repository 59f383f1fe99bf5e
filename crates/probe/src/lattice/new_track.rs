//! Measures an unknown track: its density, its end, and where the next track begins.

use super::boundary::BoundaryVerifier;
use super::irregular::{EndSearch, IrregularTrack};
use super::pattern::{Shape, wrap, wrap_from};
use super::prober::Resolution;
use super::{LatticeError, LatticeResult};

/// Shares of a track at which its density is measured: three equal steps, before the spares and slips that are mostly at its end.
const PLACES: [f64; 3] = [0.22, 0.46, 0.7];
/// Scales of [`PLACES`]: most of the track, and half of it if that includes slipped sectors or the track's end.
const SCALES: [f64; 2] = [1.0, 0.5];
/// Turns by which a place may seem to lie before the one before it, because angles wrap: less than half a turn.
const BEFORE_PLACE: f64 = 0.4;
/// Possible densities between two places, as shares of the estimate: outside, an angle was wrapped wrongly.
const POSSIBLE: (f64, f64) = (0.45, 2.0);
/// Tolerances of a step between two places: each place has one.
const STEP_TOLERANCES: f64 = 2.0;
/// Minimum share up to which densities are equal.
const SAME_DENSITY: f64 = 0.03;
/// Share within which a part of the track shows a known density.
const SHOWN_DENSITY: f64 = 0.02;
/// Turns up to which the distance is doubled: at twice that, angles wrap.
const DOUBLED: f64 = 0.42;
/// Maximum tolerances by which a doubled angle differs from twice the single one: it has 1 + 2² times the variance, √5 = 2.2 deviations,
/// and margin.
const DOUBLED_TOLERANCES: f64 = 4.0;
/// Minimum of that difference as a share of the angle, for slipped sectors.
const DOUBLED_SHARE: f64 = 0.1;
/// Turns by which angles must change to give a density: 2 % of a turn, seven degrees.
const LEAST_TURNS: f64 = 0.02;
/// Tolerances of the density over one turn, [`PLACES`] being 0.7 of one: 1 / 0.7, rounded up.
const DENSITY_TOLERANCES: f64 = 1.5;
/// Minimum difference, in sectors, below which a density counts as the track's number of sectors.
const SAME_NUMBER: f64 = 0.4;
/// Uncertainty, in sectors, below which a density is rounded to a whole number.
const WHOLE_NUMBER: f64 = 0.5;
/// Sectors behind the first that show whether the first is remapped, and up to which its track seems to end.
const FIRST_NEIGHBOURS: [u64; 2] = [2, 4];
/// Tolerances within which the neighbours agree: √2 = 1.4 deviations.
const AGREE: f64 = 1.5;
/// Tolerances by which the first sector is off if it is remapped.
const REMAPPED: f64 = 2.0;
/// Tolerances of a gap between two tracks that angles show.
const LEAST_GAP: f64 = 2.0;

/// A track that matches no known shape.
#[derive(Debug)]
pub(super) struct NewTrack<'a> {
    pub(super) boundaries: &'a mut BoundaryVerifier,
    /// Densities of earlier tracks, the likeliest first.
    pub(super) densities: Vec<f64>,
    pub(super) at: u64,
    pub(super) angle: f64,
    /// Whether it is the disk's first, whose gap decides how exact angles must be.
    pub(super) is_first: bool,
}

/// The measurement of such a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredTrack {
    pub(super) shape: Shape,
    /// Whether the region ends with it.
    pub(super) is_last: bool,
}

impl NewTrack<'_> {
    /// Measures the track with enough readings to count its sectors.
    ///
    /// *Errors:* all angles are equal, or none breaks, however many readings there are.
    pub(super) async fn learn(&mut self) -> LatticeResult<MeasuredTrack> {
        if self.boundaries.prober.set_resolution(Resolution::CountSectors) {
            let within = 2.0 * self.boundaries.tolerance() + self.boundaries.prober.usual_tolerance();
            let again = self.boundaries.prober.angle(self.at).await?;
            // If its first sector is remapped, the predicted angle is right.
            self.angle = again.filter(|again| wrap(again - self.angle).abs() < within).unwrap_or(self.angle);
        }
        let mut learned = self.learn_exactly().await;
        // A small skew needs more readings than the first angles had; and late answers that agree by chance hide sectors.
        while let Err(LatticeError::NoSkew { .. } | LatticeError::NoSectors { .. }) = learned
            && self.boundaries.prober.refine_resolution()
        {
            self.angle = self.boundaries.prober.angle(self.at).await?.unwrap_or(self.angle);
            learned = self.learn_exactly().await;
        }
        self.boundaries.prober.set_resolution(Resolution::TellTracksApart);
        learned
    }

    async fn learn_exactly(&mut self) -> LatticeResult<MeasuredTrack> {
        let (mut turn, mut end) = self.measured().await?;
        if end.sectors <= FIRST_NEIGHBOURS[0] && self.begins_at_neighbour(turn).await? {
            (turn, end) = self.measured().await?;
        }
        let turn = self.whole(turn, end.sectors);
        let skew = end.next.map_or(0.0, |next| wrap(next - self.angle));
        let shape = Shape { sectors: end.sectors, turn, skew };
        if self.is_first && end.next.is_some() {
            if shape.gap().abs() < LEAST_GAP * self.boundaries.tolerance() {
                return Err(LatticeError::NoSkew { lbn: self.boundaries.prober.lbn(self.at) });
            }
            self.boundaries.prober.resolve_gap(shape.gap());
        }
        Ok(MeasuredTrack { shape, is_last: end.next.is_none() })
    }

    /// Corrects a measured rate of a track of this number of sectors: equal to it within the measurement's uncertainty, and
    /// rounded if whole numbers can be distinguished. A single spare sector matters on short tracks.
    fn whole(&self, turn: f64, sectors: u64) -> f64 {
        let uncertain = DENSITY_TOLERANCES * self.boundaries.tolerance() * turn;
        if (turn - sectors as f64).abs() < uncertain.max(SAME_NUMBER) {
            return sectors as f64;
        }
        if uncertain < WHOLE_NUMBER { libm::round(turn) } else { turn }
    }

    /// Sectors of a turn, and the end of the track that begins here.
    async fn measured(&mut self) -> LatticeResult<(f64, IrregularTrack)> {
        let known = self.densities.clone();
        let mut turn = match known.first() {
            Some(last) => self.rate(*last, &known).await?,
            None => self.first_rate().await?,
        };
        let mut end = self.end_of(turn).await?;
        for known in known {
            if end.breaks {
                break;
            }
            (turn, end) = (known, self.end_of(known).await?);
        }
        Ok((turn, end))
    }

    async fn end_of(&mut self, turn: f64) -> LatticeResult<IrregularTrack> {
        let (at, angle) = (self.at, self.angle);
        let mut search = EndSearch { boundaries: self.boundaries, at, angle, leading_slips: 0.0 };
        search.locate(Shape::of_turn(turn), None).await
    }

    /// Takes the angle here from the next sectors, if those are consistent with each other but not with this one: it is remapped.
    async fn begins_at_neighbour(&mut self, turn: f64) -> LatticeResult<bool> {
        let [second, fourth] = FIRST_NEIGHBOURS;
        let (near, far) = (self.along(second).await?, self.along(fourth).await?);
        let Some((near, far)) = near.zip(far) else { return Ok(false) };
        let tolerance = self.boundaries.tolerance();
        let step = second as f64 / turn;
        let continues = wrap(far - near - step).abs() <= AGREE * tolerance;
        let off = wrap(near - step);
        if !continues || off.abs() <= REMAPPED * tolerance {
            return Ok(false);
        }
        self.angle = wrap(self.angle + off);
        Ok(true)
    }

    /// The rate without a hypothesis.
    async fn first_rate(&mut self) -> LatticeResult<f64> {
        let lbn = self.boundaries.prober.lbn(self.at);
        let turn = self.doubled().await?.ok_or(LatticeError::NoSectors { lbn })?;
        self.rate(turn, &[turn]).await
    }

    /// The rate by doubling the distance up to half a turn; `None` if angles do not change.
    async fn doubled(&mut self) -> LatticeResult<Option<f64>> {
        let (mut far, mut angle) = (1u64, 0.0);
        let within = DOUBLED_TOLERANCES * self.boundaries.tolerance();
        let mut known = false;
        while far < self.boundaries.end - self.at && angle < DOUBLED {
            let Some(found) = self.along(far).await? else { break };
            let off = wrap(found - 2.0 * angle);
            if known && off.abs() > within.max(DOUBLED_SHARE * angle) {
                break;
            }
            angle = 2.0 * angle + off;
            known = true;
            far *= 2;
        }
        Ok((angle > within.max(LEAST_TURNS)).then(|| (far / 2) as f64 / angle))
    }

    /// The rate, given an estimate and the known rates.
    async fn rate(&mut self, turn: f64, known: &[f64]) -> LatticeResult<f64> {
        let mut rates = Vec::new();
        // Over most of the track; over less if that includes slipped sectors or the track's end.
        for scale in SCALES {
            let mut marks = vec![(0.0, 0.0)];
            for share in PLACES.map(|share| share * scale) {
                let far = (turn * share) as u64;
                if far == 0 || self.at + far >= self.boundaries.end {
                    break;
                }
                if let Some(angle) = self.along(far).await? {
                    marks.push((far as f64, wrap_from(share - BEFORE_PLACE, angle)));
                }
            }
            let Some((far, angle)) = marks.last().filter(|_| marks.len() > 2) else { return Ok(turn) };
            let seen =
                marks.windows(2).map(|pair| (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1).max(1e-6));
            let seen: Vec<f64> =
                seen.filter(|rate| *rate > POSSIBLE.0 * turn && *rate < POSSIBLE.1 * turn).collect();
            let most = seen.iter().copied().fold(0.0, f64::max);
            let least = seen.iter().copied().fold(f64::MAX, f64::min);
            let noise = STEP_TOLERANCES * self.boundaries.tolerance() / (PLACES[0] * scale);
            if seen.len() + 1 == marks.len() && most < (1.0 + noise.max(SAME_DENSITY)) * least {
                return Ok(far / angle);
            }
            rates.extend(seen);
        }
        // Slipped sectors or the track's end lie between: take a known rate that a part of it shows.
        let is_seen = |known: &&f64| rates.iter().any(|rate| (rate / **known - 1.0).abs() < SHOWN_DENSITY);
        match known.iter().find(is_seen) {
            Some(known) => Ok(*known),
            None => Ok(self.doubled().await?.unwrap_or(turn)),
        }
    }

    /// Turns from here to a sector, counted from here.
    async fn along(&mut self, sector: u64) -> LatticeResult<Option<f64>> {
        Ok(self.boundaries.prober.angle(self.at + sector).await?.map(|angle| wrap(angle - self.angle)))
    }
}
