//! Distributions of times and numbers, whose draws are the same on every machine, and their text form.
//!
//! Logarithms and powers come from the crate `libm`, which is written in Rust: those of the system differ between machines in the
//! last bit. Other crates of distributions cannot be used, because they switch to the system's functions as soon as any crate of the
//! program requests those.
//!
//! [`Distribution`] describes a distribution; [`Sampler`] is a checked one that draws. The popularity of places is separate:
//! [`Popularity`].

mod popularity;
mod quantity;
mod text;

pub use popularity::{Popularity, Ranks};
pub use quantity::Quantity;

use headstack_model::Nanos;
use rand::{Rng, RngExt};
use thiserror::Error;

/// A distribution of times ([`Nanos`]) or of numbers (`f64`).
///
/// Its text form is read by `FromStr`, written by `Display`, and stands in TOML and JSON: `exponential(20ms)`,
/// `normal(0,10000)`, `empirical(8:3,128:1)`. A value alone is a constant: `20ms`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution<V> {
    /// `constant(V)`: always the same.
    Constant(V),
    /// `uniform(LOW,HIGH)`: all values of a range are equally likely.
    Uniform {
        /// The least.
        low: V,
        /// The most; for times it is drawn as well, for numbers it is not.
        high: V,
    },
    /// `exponential(MEAN)` or `exponential(BASE,MEAN)`: memoryless, beyond a base.
    Exponential {
        /// Added to every draw.
        base: V,
        /// Mean of the part beyond the base.
        mean: V,
    },
    /// `normal(MEAN,DEVIATION)`: the bell curve. Times below zero are drawn again.
    Normal {
        /// Mean, before times below zero are cut off.
        mean: V,
        /// Standard deviation (not the variance).
        deviation: V,
    },
    /// `poisson(MEAN)` or `poisson(BASE,MEAN)`: a count of rare, independent events. Of numbers only.
    Poisson {
        /// Added to every draw.
        base: V,
        /// Mean of the part beyond the base.
        mean: V,
    },
    /// `two-valued(USUAL,OTHER,SHARE)`: one of two values.
    TwoValued {
        /// The usual value.
        usual: V,
        /// The other value.
        other: V,
        /// Share of draws that are the other value.
        share: f64,
    },
    /// `pareto(LEAST,SHAPE)`: a tail that falls as a power.
    Pareto {
        /// The least value.
        least: V,
        /// The power; the mean is finite above 1, the variance above 2.
        shape: f64,
    },
    /// `empirical(VALUE:WEIGHT,…)`: one of the values, with a probability in proportion to its weight.
    Empirical(Vec<(V, f64)>),
}

/// An invalid distribution.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DistributionError {
    #[error("`{found}` is no distribution; write a value or NAME(VALUE,…), such as exponential(20ms)")]
    Form { found: String },
    #[error("`{found}` is no distribution; known: {known}; did you mean `{nearest}`?")]
    Name { found: String, known: String, nearest: String },
    #[error("{name} takes {wanted}, where {found} values are given")]
    Arguments { name: String, wanted: &'static str, found: usize },
    #[error("`{found}` is no {wanted}")]
    Value { found: String, wanted: &'static str },
    #[error("{name}: {what} is {found}, where {allowed} is allowed")]
    Range { name: &'static str, what: &'static str, found: String, allowed: &'static str },
    #[error("{name} draws whole numbers, not times")]
    Times { name: &'static str },
}

fn range<T>(
    name: &'static str,
    what: &'static str,
    found: impl ToString,
    allowed: &'static str,
) -> Result<T, DistributionError> {
    Err(DistributionError::Range { name, what, found: found.to_string(), allowed })
}

impl<V: Quantity> Distribution<V> {
    /// Exponential without a base: the gaps of arrivals that are independent of each other.
    pub fn exponential(mean: V) -> Distribution<V> {
        Distribution::Exponential { base: V::ZERO, mean }
    }

    /// The name in the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Constant(_) => "constant",
            Distribution::Uniform { .. } => "uniform",
            Distribution::Exponential { .. } => "exponential",
            Distribution::Normal { .. } => "normal",
            Distribution::Poisson { .. } => "poisson",
            Distribution::TwoValued { .. } => "two-valued",
            Distribution::Pareto { .. } => "pareto",
            Distribution::Empirical(_) => "empirical",
        }
    }

    /// Checks that it can be drawn from.
    ///
    /// *Errors:* a range that ends before it begins, a share outside 0 to 1, invalid weights, and the like.
    pub fn check(&self) -> Result<(), DistributionError> {
        let name = self.name();
        let positive = |what, value: V| {
            if value.to_f64() >= 0.0 { Ok(()) } else { range(name, what, value.to_f64(), "0 or more") }
        };
        self.values().try_for_each(|value| value.check(name))?;
        match self {
            Distribution::Constant(_) => Ok(()),
            Distribution::Uniform { low, high } if high.to_f64() < low.to_f64() => {
                range(name, "the end", V::text(*high), "the start or more")
            }
            Distribution::Uniform { .. } => Ok(()),
            Distribution::Exponential { mean, .. } => positive("the mean", *mean),
            Distribution::Normal { deviation, .. } => positive("the deviation", *deviation),
            Distribution::Poisson { .. } if !V::COUNTS => Err(DistributionError::Times { name }),
            Distribution::Poisson { mean, .. } => match mean.to_f64() {
                0.0..=1e9 => Ok(()),
                found => range(name, "the mean", found, "0 to 1e9"),
            },
            Distribution::TwoValued { share, .. } if (0.0..=1.0).contains(share) => Ok(()),
            Distribution::TwoValued { share, .. } => range(name, "the share", share, "0 to 1"),
            Distribution::Pareto { least, shape } => match (least.to_f64() > 0.0, shape) {
                (false, _) => range(name, "the least value", V::text(*least), "more than 0"),
                (_, 0.01..=1e6) => Ok(()),
                _ => range(name, "the shape", shape, "0.01 to 1e6"),
            },
            Distribution::Empirical(values) => check_weights(values),
        }
    }

    fn values(&self) -> impl Iterator<Item = V> {
        let (pair, rest): ([Option<V>; 2], &[(V, f64)]) = match self {
            Distribution::Constant(value) => ([Some(*value), None], &[]),
            Distribution::Uniform { low, high } => ([Some(*low), Some(*high)], &[]),
            Distribution::Exponential { base, mean } | Distribution::Poisson { base, mean } => {
                ([Some(*base), Some(*mean)], &[])
            }
            Distribution::Normal { mean, deviation } => ([Some(*mean), Some(*deviation)], &[]),
            Distribution::TwoValued { usual, other, .. } => ([Some(*usual), Some(*other)], &[]),
            Distribution::Pareto { least, .. } => ([Some(*least), None], &[]),
            Distribution::Empirical(values) => ([None, None], values),
        };
        pair.into_iter().flatten().chain(rest.iter().map(|(value, _)| *value))
    }

    /// Makes it ready to be drawn from.
    ///
    /// *Errors:* as [`Distribution::check`].
    pub fn sampler(&self) -> Result<Sampler<V>, DistributionError> {
        self.check()?;
        let total = match self {
            Distribution::Empirical(values) => values.iter().map(|(_, weight)| weight).sum(),
            _ => 0.0,
        };
        Ok(Sampler { distribution: self.clone(), total })
    }
}

fn check_weights<V>(values: &[(V, f64)]) -> Result<(), DistributionError> {
    if let Some((_, weight)) = values.iter().find(|(_, weight)| !(0.0..=1e12).contains(weight)) {
        return range("empirical", "a weight", weight, "0 to 1e12");
    }
    if values.iter().all(|(_, weight)| *weight == 0.0) {
        return range("empirical", "the sum of weights", 0, "more than 0");
    }
    Ok(())
}

/// A distribution that was checked, and draws without allocating.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler<V> {
    distribution: Distribution<V>,
    /// Sum of an empirical distribution's weights.
    total: f64,
}

impl<V: Quantity> Sampler<V> {
    /// One draw.
    #[inline]
    pub fn draw(&self, random: &mut impl Rng) -> V {
        match &self.distribution {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { low, high } => V::between(*low, *high, random),
            Distribution::Exponential { base, mean } => {
                V::from_f64(base.to_f64() + mean.to_f64() * exponential(random))
            }
            Distribution::Normal { mean, deviation } => loop {
                let drawn = mean.to_f64() + deviation.to_f64() * normal(random);
                // A mean is not negative, so at least every other draw is valid.
                if V::has(drawn) {
                    return V::from_f64(drawn);
                }
            },
            Distribution::Poisson { base, mean } => {
                V::from_f64(base.to_f64() + poisson(mean.to_f64(), random))
            }
            Distribution::TwoValued { usual, other, share } => {
                if random.random::<f64>() < *share {
                    *other
                } else {
                    *usual
                }
            }
            Distribution::Pareto { least, shape } => {
                V::from_f64(least.to_f64() * libm::pow(1.0 - random.random::<f64>(), -1.0 / shape))
            }
            Distribution::Empirical(values) => {
                let mut left = random.random::<f64>() * self.total;
                let mut weighty = values.iter().filter(|(_, weight)| *weight > 0.0).peekable();
                loop {
                    let (value, weight) = weighty.next().expect("the last one with weight is returned");
                    if left < *weight || weighty.peek().is_none() {
                        return *value;
                    }
                    left -= weight;
                }
            }
        }
    }
}

fn exponential(random: &mut impl Rng) -> f64 {
    -libm::log(1.0 - random.random::<f64>())
}

/// A draw with mean 0 and standard deviation 1.
///
/// *Source:* Box and Muller 1958.
pub(crate) fn normal(random: &mut impl Rng) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(random));
    radius * libm::cos(std::f64::consts::TAU * random.random::<f64>())
}

/// A count with this mean.
///
/// *Source:* for means from 10 on, Hörmann 1993, "The transformed rejection method for generating Poisson random
/// variables", algorithm PTRS; below, the product of even draws falls under exp(-mean) (Knuth).
fn poisson(mean: f64, random: &mut impl Rng) -> f64 {
    if mean < 10.0 {
        let limit = libm::exp(-mean);
        let (mut count, mut product) = (0.0, random.random::<f64>());
        while product > limit {
            count += 1.0;
            product *= random.random::<f64>();
        }
        return count;
    }
    let b = 0.931 + 2.53 * libm::sqrt(mean);
    let a = -0.059 + 0.02483 * b;
    let (inverse_alpha, steep) = (1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0));
    loop {
        let u = random.random::<f64>() - 0.5;
        let v = random.random::<f64>();
        let us = 0.5 - u.abs();
        let count = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= steep {
            return count;
        }
        if count < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let bound = -mean + count * libm::log(mean) - libm::lgamma(count + 1.0);
        if libm::log(v * inverse_alpha / (a / (us * us) + b)) <= bound {
            return count;
        }
    }
}

impl Default for Distribution<Nanos> {
    /// No time at all.
    fn default() -> Self {
        Distribution::Constant(Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests;
