//! Popularity: which of many places a request goes to.

use rand::{Rng, RngExt};

use super::{DistributionError, normal, range};

/// How accesses are distributed over places, the most popular first.
///
/// Its text form is read by `FromStr` and written by `Display`: `even`, `zipf(1.1)`, `pareto(0.2)`, `normal(10)`,
/// `zoned(60/10,40/90)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Popularity {
    /// All places are equally popular.
    Even,
    /// The frequency of the k-th place is in proportion to 1 / k to this power.
    Zipf {
        /// The power.
        exponent: f64,
    },
    /// This share of the places gets all accesses except this share, and so on recursively within them (0.2: four fifths go to one
    /// fifth of the places).
    Pareto {
        /// The share.
        share: f64,
    },
    /// A bell curve around the middle.
    Normal {
        /// Standard deviation, in percent of all places.
        percent: f64,
    },
    /// Zones one after the other: percent of the accesses, and percent of the places over which they are spread. Each sums to 100.
    Zoned(Vec<(f64, f64)>),
}

impl Popularity {
    /// Whether places can be drawn.
    ///
    /// *Errors:* a number out of its range, or zones that do not sum up to 100 percent.
    pub fn check(&self) -> Result<(), DistributionError> {
        match self {
            Popularity::Even => Ok(()),
            Popularity::Zipf { exponent: 0.01..=20.0 } => Ok(()),
            Popularity::Zipf { exponent } => range("zipf", "the exponent", exponent, "0.01 to 20"),
            Popularity::Pareto { share: 0.001..=0.999 } => Ok(()),
            Popularity::Pareto { share } => range("pareto", "the share", share, "0.001 to 0.999"),
            Popularity::Normal { percent: 0.001..=100.0 } => Ok(()),
            Popularity::Normal { percent } => {
                range("normal", "the deviation", percent, "0.001 to 100 percent")
            }
            Popularity::Zoned(zones) => check_zones(zones),
        }
    }

    /// Prepares drawing from `places` places.
    ///
    /// *Errors:* as [`Popularity::check`], or no places.
    pub fn ranks(&self, places: u64) -> Result<Ranks, DistributionError> {
        self.check()?;
        if places == 0 {
            return range("popularity", "the number of places", places, "1 or more");
        }
        let kind = match self {
            Popularity::Even => Kind::Even,
            Popularity::Zipf { exponent } => Kind::Zipf(Zipf::new(places, *exponent)),
            Popularity::Pareto { share } => Kind::Power(libm::log(*share) / libm::log(1.0 - share)),
            Popularity::Normal { percent } => Kind::Normal(percent / 100.0),
            Popularity::Zoned(zones) => Kind::Zoned(zones.clone()),
        };
        Ok(Ranks { places, kind })
    }
}

fn check_zones(zones: &[(f64, f64)]) -> Result<(), DistributionError> {
    let mut sums = (0.0, 0.0);
    for (accesses, size) in zones {
        if let Some(found) = [accesses, size].into_iter().find(|share| !(0.0..=100.0).contains(*share)) {
            return range("zoned", "a share", found, "0 to 100 percent");
        }
        if *size == 0.0 && *accesses > 0.0 {
            return range("zoned", "the size of a zone with accesses", size, "more than 0 percent");
        }
        sums = (sums.0 + accesses, sums.1 + size);
    }
    for (what, sum) in [("the sum of accesses", sums.0), ("the sum of sizes", sums.1)] {
        if (sum - 100.0).abs() > 1e-6 {
            return range("zoned", what, sum, "100 percent");
        }
    }
    Ok(())
}

/// A popularity over a number of places, which draws without allocating.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    places: u64,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Even,
    Zipf(Zipf),
    /// An even draw to this power.
    Power(f64),
    /// The standard deviation as a share of the places.
    Normal(f64),
    Zoned(Vec<(f64, f64)>),
}

impl Ranks {
    /// A place, counted from 0.
    #[inline]
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        let share = match &self.kind {
            Kind::Even => return random.random_range(0..self.places),
            Kind::Zipf(zipf) => return zipf.draw(random),
            Kind::Power(power) => libm::pow(random.random::<f64>(), *power),
            Kind::Normal(deviation) => loop {
                let share = 0.5 + deviation * normal(random);
                // The middle is inside, so even the widest curve lies inside for a third.
                if (0.0..1.0).contains(&share) {
                    break share;
                }
            },
            Kind::Zoned(zones) => in_zones(zones, random),
        };
        ((share * self.places as f64) as u64).min(self.places - 1)
    }
}

/// The drawn position among all places, as a share of them.
fn in_zones(zones: &[(f64, f64)], random: &mut impl Rng) -> f64 {
    let (mut left, within) = (100.0 * random.random::<f64>(), random.random::<f64>());
    let mut first = 0.0;
    let mut last = 0.0;
    for (accesses, size) in zones {
        if *accesses > 0.0 {
            last = first + size * within;
            if left < *accesses {
                break;
            }
        }
        left -= accesses;
        first += size;
    }
    last / 100.0
}

/// Zipf's law over 1 to n, at a cost that does not grow with n.
///
/// *Source:* Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete
/// distributions".
#[derive(Clone, Debug, PartialEq)]
struct Zipf {
    places: f64,
    exponent: f64,
    /// The integral from 1 to the lower end of the first place's bar, and to the upper end of the last one's.
    low: f64,
    high: f64,
    /// A draw this near to its place is accepted without a further test.
    near: f64,
}

impl Zipf {
    fn new(places: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { places: places as f64, exponent, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.places + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// The integral of the weight from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 { libm::log(x) } else { libm::expm1(rest * libm::log(x)) / rest }
    }

    fn inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 { libm::exp(area) } else { libm::exp(libm::log1p((area * rest).max(-1.0)) / rest) }
    }

    fn draw(&self, random: &mut impl Rng) -> u64 {
        loop {
            let area = self.high + random.random::<f64>() * (self.low - self.high);
            let x = self.inverse(area);
            let place = x.round().clamp(1.0, self.places);
            if place - x <= self.near || area >= self.integral(place + 0.5) - self.weight(place) {
                return place as u64 - 1;
            }
        }
    }
}
