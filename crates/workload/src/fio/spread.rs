//! The distribution of random places over a file, as fio draws them.
//!
//! fio scatters the draws of zipf, pareto and normal over the file by a multiplicative hash, so that the most popular places are
//! far apart; so does this.
//!
//! *Source:* zipf after Gray et al. 1994, "Quickly generating billion-record synthetic databases"; the hash after Knuth; the other
//! definitions in fio's HOWTO under `random_distribution`.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;

use super::settings::{Spread, Zone};
use super::value::Amount;

/// 2⁶⁴ minus 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x61c8_8646_80b5_83eb;
/// Maximum number of terms of a Zipf sum that fio adds up.
const TERMS_MAX: u64 = 10_000_000;
/// Number of draws of which fio's normal distribution is the mean.
const NORMAL_DRAWS: u64 = 12;

/// A drawer of places from 0 up to a count.
#[derive(Clone, Debug)]
pub(super) enum Drawer {
    Uniform,
    Zipf { places: u64, shift: u64, theta: f64, zeta: f64, eta: f64 },
    Pareto { places: u64, shift: u64, power: f64 },
    Normal { places: u64, shift: u64, width: u64 },
    Zoned(Vec<Stretch>),
}

/// Places that a percent of the draws fall into, up to a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Percent of the draws up to and including this one.
    upto: u64,
    first: u64,
    count: u64,
}

impl Drawer {
    /// A drawer for `places` places, the shares of zones being of `blocks` blocks of `block` bytes.
    pub(super) fn new(
        spread: &Spread,
        direction: usize,
        places: u64,
        (blocks, block): (u64, u64),
        random: &mut Pcg64Mcg,
    ) -> Drawer {
        let mut shift = |center: &Option<f64>| match center {
            Some(center) => (places as f64 * center) as u64,
            None => random.next_u64() >> 32,
        };
        match spread {
            Spread::Uniform => Drawer::Uniform,
            Spread::Zipf { theta, center } => {
                let zeta = zeta(places.min(TERMS_MAX), *theta);
                let two = 1.0 + libm::pow(0.5, *theta);
                let eta = (1.0 - libm::pow(2.0 / places as f64, 1.0 - theta)) / (1.0 - two / zeta);
                Drawer::Zipf { places, shift: shift(center), theta: *theta, zeta, eta }
            }
            Spread::Pareto { share, center } => {
                let power = libm::log(*share) / libm::log(1.0 - share);
                Drawer::Pareto { places, shift: shift(center), power }
            }
            Spread::Normal { deviation, center } => {
                let width = ((places as f64 * deviation / 100.0).ceil() as u64).min(places / 2);
                let away = center.map_or(0.0, |center| center - 0.5);
                let shift = (places as f64 * away).rem_euclid(places as f64) as u64;
                Drawer::Normal { places, shift, width }
            }
            Spread::Zoned(zones) => Drawer::Zoned(stretches(&zones[direction], blocks, block)),
        }
    }

    /// The next place; `blocks` is where a uniform draw ends.
    #[inline]
    pub(super) fn draw(&self, blocks: u64, random: &mut Pcg64Mcg) -> u64 {
        match self {
            Drawer::Uniform => random.random_range(0..blocks),
            Drawer::Zipf { places, shift, theta, zeta, eta } => {
                let even: f64 = random.random();
                let mass = even * zeta;
                let rank = if mass < 1.0 {
                    0
                } else if mass < 1.0 + libm::pow(0.5, *theta) {
                    1
                } else {
                    (*places as f64 * libm::pow(eta * even - eta + 1.0, 1.0 / (1.0 - theta))) as u64
                };
                scatter(rank, *shift, *places)
            }
            Drawer::Pareto { places, shift, power } => {
                let rank = ((places - 1) as f64 * libm::pow(random.random(), *power)) as u64;
                scatter(rank, *shift, *places)
            }
            Drawer::Normal { places, shift, width } => {
                let sum: u64 = (0..NORMAL_DRAWS).map(|_| random.random_range(0..=*places)).sum();
                let middle = sum.div_ceil(NORMAL_DRAWS);
                scatter(swerve(middle, *width, *places, random), *shift, *places)
            }
            Drawer::Zoned(stretches) => {
                let percent = random.random_range(1..=100);
                let stretch = stretches.iter().find(|stretch| percent <= stretch.upto);
                let stretch = stretch.expect("the shares of zones add up to 100");
                stretch.first + random.random_range(0..stretch.count.max(1))
            }
        }
    }
}

/// The place of a rank: successive ranks lie far apart.
#[inline]
fn scatter(rank: u64, shift: u64, places: u64) -> u64 {
    rank.wrapping_mul(GOLDEN).wrapping_add(shift) % places
}

/// A place up to half a width to either side, or nearer where the range ends.
fn swerve(middle: u64, width: u64, places: u64, random: &mut Pcg64Mcg) -> u64 {
    if width == 0 {
        return middle;
    }
    let mut away = random.random_range(0..width) as i64 - (width / 2) as i64;
    while middle.checked_add_signed(away).is_none_or(|place| place >= places) && away != 0 {
        away /= 2;
    }
    middle.saturating_add_signed(away)
}

/// The stretches of zones, in blocks.
fn stretches(zones: &[Zone], blocks: u64, block: u64) -> Vec<Stretch> {
    let (mut upto, mut percent, mut bytes) = (0, 0, 0);
    let stretch = |zone: &Zone| {
        upto += zone.access_percent;
        let (first, count) = match zone.size {
            Amount::Percent(size) => {
                let first = (u128::from(percent) * u128::from(blocks) / 100) as u64;
                percent += size;
                (first, (u128::from(size) * u128::from(blocks) / 100) as u64)
            }
            // Zones of a disk are not among what this list may have.
            Amount::Zones(_) => (upto, 0),
            Amount::Bytes(size) => {
                let first = bytes / block;
                bytes += size;
                (first, bytes / block - first)
            }
        };
        Stretch { upto, first, count }
    };
    zones.iter().map(stretch).collect()
}

/// The sum of the first `terms` of 1 / kᵗʰᵉᵗᵃ.
///
/// *Source:* Euler and Maclaurin's formula beyond the first thousand terms, which is exact to the last digits there.
fn zeta(terms: u64, theta: f64) -> f64 {
    let power = |k: u64| libm::pow(k as f64, -theta);
    let first = terms.min(1000);
    let head: f64 = (1..=first).map(power).sum();
    if first == terms {
        return head;
    }
    let integral = |k: u64| libm::pow(k as f64, 1.0 - theta) / (1.0 - theta);
    let slope = |k: u64| -theta * libm::pow(k as f64, -theta - 1.0);
    let (from, to) = (first, terms);
    head + integral(to) - integral(from) + (power(to) - power(from)) / 2.0 + (slope(to) - slope(from)) / 12.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::generator;

    #[test]
    fn zipf_sum_matches_its_terms() {
        for theta in [0.5, 0.99, 1.2, 2.0] {
            let exact: f64 = (1..=50_000u64).map(|k| libm::pow(k as f64, -theta)).sum();
            assert!((zeta(50_000, theta) / exact - 1.0).abs() < 1e-12, "{theta}");
        }
    }

    #[test]
    fn hottest_zipf_place_gets_its_share() {
        let mut random = generator(3);
        let spread = Spread::Zipf { theta: 1.2, center: Some(0.25) };
        let drawer = Drawer::new(&spread, 0, 1000, (1000, 1), &mut random);
        let hits = (0..100_000).filter(|_| drawer.draw(1000, &mut random) == 250).count();
        let share = 1.0 / zeta(1000, 1.2);
        let four_sigma = 4.0 * (share * (1.0 - share) / 1e5).sqrt();
        assert!((hits as f64 / 1e5 - share).abs() < four_sigma, "{hits} of {share}");
    }

    #[test]
    fn every_draw_stays_in_range() {
        let zones = vec![
            Zone { access_percent: 60, size: Amount::Percent(10) },
            Zone { access_percent: 40, size: Amount::Percent(90) },
        ];
        for spread in [
            Spread::Uniform,
            Spread::Zipf { theta: 0.8, center: None },
            Spread::Pareto { share: 0.1, center: None },
            Spread::Normal { deviation: 99.0, center: Some(0.0) },
            Spread::Normal { deviation: 0.0, center: None },
            Spread::Zoned([zones.clone(), zones.clone(), zones.clone()]),
        ] {
            let mut random = generator(9);
            for places in [1, 2, 10, 977] {
                let drawer = Drawer::new(&spread, 0, places, (places, 1), &mut random);
                for _ in 0..2000 {
                    assert!(drawer.draw(places, &mut random) < places, "{spread:?} of {places}");
                }
            }
        }
    }
}
