//! A disk's rotation as a clock: the angle of the answer to a read.
//!
//! Given the [turn](crate::spin), the end of a read, modulo the turn, is the angle at which the block ends, for any seek time and
//! number of lost turns. It replaces reads that all begin at one rotational phase, without waiting for that phase.

use super::TimingError;
use crate::Disk;
use crate::spin::{QUICK, spin};
use headstack_model::Lbn;

/// Tolerance in standard deviations of the noise.
const SIGMAS: f64 = 8.0;
/// Minimum tolerance, in turns: some slipped sectors within a track.
const LEAST_TOLERANCE: f64 = 0.012;
/// Maximum tolerance that distinguishes the skew of a track from noise.
const MOST_TOLERANCE: f64 = 0.04;

#[derive(Clone, Debug)]
pub(super) struct Clock {
    disk: Disk,
    /// A turn, in nanoseconds.
    pub(super) turn: f64,
    /// Standard deviation of an answer's time, in nanoseconds.
    pub(super) noise: f64,
    /// Tolerance of the angle between two consecutive blocks of a track.
    pub(super) tolerance: f64,
}

impl Clock {
    /// Measures the turn; twice, if late answers made it wrong, which all reads would contradict.
    pub(super) async fn new(disk: Disk) -> Result<Clock, TimingError> {
        match Clock::learned(disk.clone()).await {
            Err(TimingError::Noisy { .. }) => Clock::learned(disk).await,
            found => found,
        }
    }

    async fn learned(disk: Disk) -> Result<Clock, TimingError> {
        let spin = spin(&disk).await?;
        // Half of normally distributed errors are below 0.67 of their deviation.
        let (turn, noise) = (spin.turn_ns, 1.4826 * spin.noise.0 as f64);
        let tolerance = (SIGMAS * noise / turn).max(LEAST_TOLERANCE);
        if tolerance > MOST_TOLERANCE {
            return Err(TimingError::Noisy { us: noise / 1e3, most: MOST_TOLERANCE / SIGMAS * turn / 1e3 });
        }
        Ok(Clock { disk, turn, noise, tolerance })
    }

    pub(super) fn sectors(&self) -> Lbn {
        Lbn(self.disk.info().sectors)
    }

    /// Blocks per read.
    pub(super) fn unit(&self) -> u64 {
        u64::from(self.disk.info().physical_sectors)
    }

    /// The angle at which a block ends, in turns, by one read.
    pub(super) async fn angle(&self, lbn: Lbn) -> Result<f64, TimingError> {
        for _ in 0..4 {
            let answer = self.disk.read(lbn, self.unit() as u32).await;
            if answer.is_done() && answer.took() >= QUICK {
                return Ok((answer.ended.0 as f64 / self.turn).fract());
            }
            if answer.is_done() {
                self.forget(lbn).await;
            }
        }
        Err(TimingError::Unreadable { lbn: lbn.0 })
    }

    /// The angle by reads that agree.
    pub(super) async fn sure_angle(&self, lbn: Lbn) -> Result<f64, TimingError> {
        let mut seen: Vec<f64> = Vec::new();
        for _ in 0..8 {
            let angle = self.angle(lbn).await?;
            if let Some(other) = seen.iter().find(|other| apart(angle, **other).abs() < self.tolerance) {
                return Ok((other + apart(angle, *other) / 2.0).rem_euclid(1.0));
            }
            seen.push(angle);
        }
        Err(TimingError::Restless { lbn: lbn.0 })
    }

    /// Whether repeated reads of the blocks up to `end` take more than a turn each, because the arm moves between them.
    pub(super) async fn is_broken(&self, begin: Lbn, end: Lbn) -> Result<bool, TimingError> {
        let mut votes = 0i32;
        let mut last: Option<u64> = None;
        for _ in 0..8 {
            let answer = self.disk.read(begin, (end - begin) as u32).await;
            if !answer.is_done() {
                return Err(TimingError::Unreadable { lbn: begin.0 });
            }
            if let Some(last) = last {
                let turns = (answer.ended.0.saturating_sub(last) as f64 / self.turn).round();
                votes += if turns > 1.5 { 1 } else { -1 };
            }
            last = Some(answer.ended.0);
        }
        Ok(votes > 0)
    }

    /// Reads elsewhere, so that a cache evicts a block.
    async fn forget(&self, lbn: Lbn) {
        let sectors = self.sectors().0;
        for place in 1..=16 {
            let elsewhere = (lbn.0 + sectors / 17 * place) % sectors / self.unit() * self.unit();
            self.disk.read(Lbn(elsewhere), self.unit() as u32).await;
        }
    }
}

/// The difference of two angles, from -½ to ½.
pub(super) fn apart(angle: f64, other: f64) -> f64 {
    let apart = (angle - other).rem_euclid(1.0);
    if apart > 0.5 { apart - 1.0 } else { apart }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angle_difference_wraps_after_one_turn() {
        assert!((apart(0.01, 0.99) - 0.02).abs() < 1e-12);
        assert!((apart(0.99, 0.01) + 0.02).abs() < 1e-12);
    }
}
