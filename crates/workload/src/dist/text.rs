//! The text form of distributions, read and written here alone.

use std::fmt;
use std::str::FromStr;

use headstack_model::spec::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

use super::{Distribution, DistributionError, Popularity, Quantity};

const NAMES: [&str; 8] =
    ["constant", "uniform", "exponential", "normal", "poisson", "two-valued", "pareto", "empirical"];

const POPULARITIES: [&str; 5] = ["even", "zipf", "pareto", "normal", "zoned"];

/// A name and the values in the parentheses after it.
struct Call<'a> {
    name: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Call<'a> {
    fn parse(text: &'a str) -> Result<Call<'a>, DistributionError> {
        let form = || DistributionError::Form { found: text.chars().take(80).collect() };
        let (name, rest) = text.split_once('(').ok_or_else(form)?;
        let values = rest.trim_end().strip_suffix(')').filter(|rest| !rest.contains(['(', ')']));
        let values = values.ok_or_else(form)?.split(',').map(str::trim).collect();
        Ok(Call { name: name.trim(), values })
    }

    fn unknown(&self, known: &[&str]) -> DistributionError {
        let found: String = self.name.chars().take(40).collect();
        let nearest = nearest(&found, known.iter().copied()).expect("some are known").to_string();
        DistributionError::Name { found, known: known.join(", "), nearest }
    }

    fn wrong_count<T>(&self, wanted: &'static str) -> Result<T, DistributionError> {
        Err(DistributionError::Arguments { name: self.name.to_string(), wanted, found: self.values.len() })
    }

    fn pairs<V: Quantity>(
        &self,
        sign: char,
        wanted: &'static str,
    ) -> Result<Vec<(V, f64)>, DistributionError> {
        let pair = |text: &&str| {
            let (value, weight) = text.split_once(sign).ok_or_else(|| no(text, wanted))?;
            Ok((read(value.trim())?, read(weight.trim())?))
        };
        self.values.iter().map(pair).collect()
    }
}

fn no(found: &str, wanted: &'static str) -> DistributionError {
    DistributionError::Value { found: found.chars().take(40).collect(), wanted }
}

fn read<V: Quantity>(text: &str) -> Result<V, DistributionError> {
    V::read(text).ok_or_else(|| no(text, V::WANTED))
}

impl<V: Quantity> FromStr for Distribution<V> {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Distribution<V>, DistributionError> {
        let distribution = match V::read(text.trim()) {
            Some(value) => Distribution::Constant(value),
            None => parse(&Call::parse(text)?)?,
        };
        distribution.check()?;
        Ok(distribution)
    }
}

fn parse<V: Quantity>(call: &Call<'_>) -> Result<Distribution<V>, DistributionError> {
    let (base, mean) = match call.values[..] {
        [mean] => (None, mean),
        [base, mean] => (Some(base), mean),
        _ => (None, ""),
    };
    let base_and_mean = || Ok((base.map_or(Ok(V::ZERO), read)?, read(mean)?));
    Ok(match (call.name, &call.values[..]) {
        ("constant", [value]) => Distribution::Constant(read(value)?),
        ("uniform", [low, high]) => Distribution::Uniform { low: read(low)?, high: read(high)? },
        ("exponential", [_] | [_, _]) => {
            let (base, mean) = base_and_mean()?;
            Distribution::Exponential { base, mean }
        }
        ("normal", [mean, deviation]) => {
            Distribution::Normal { mean: read(mean)?, deviation: read(deviation)? }
        }
        ("poisson", _) if !V::COUNTS => return Err(DistributionError::Times { name: "poisson" }),
        ("poisson", [_] | [_, _]) => {
            let (base, mean) = base_and_mean()?;
            Distribution::Poisson { base, mean }
        }
        ("two-valued", [usual, other, share]) => {
            Distribution::TwoValued { usual: read(usual)?, other: read(other)?, share: read(share)? }
        }
        ("pareto", [least, shape]) => Distribution::Pareto { least: read(least)?, shape: read(shape)? },
        ("empirical", _) => Distribution::Empirical(call.pairs(':', "VALUE:WEIGHT")?),
        ("constant", _) => call.wrong_count("1 value")?,
        ("exponential" | "poisson", _) => call.wrong_count("a mean, or a base and a mean")?,
        ("uniform" | "normal" | "pareto", _) => call.wrong_count("2 values")?,
        ("two-valued", _) => call.wrong_count("3 values")?,
        _ => return Err(call.unknown(&NAMES)),
    })
}

impl<V: Quantity> fmt::Display for Distribution<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name())?;
        match self {
            Distribution::Constant(value) => f.write_str(&value.text())?,
            Distribution::Uniform { low: one, high: other }
            | Distribution::Normal { mean: one, deviation: other } => {
                write!(f, "{},{}", one.text(), other.text())?;
            }
            Distribution::Exponential { base, mean } | Distribution::Poisson { base, mean } => {
                if *base != V::ZERO {
                    write!(f, "{},", base.text())?;
                }
                f.write_str(&mean.text())?;
            }
            Distribution::TwoValued { usual, other, share } => {
                write!(f, "{},{},{share}", usual.text(), other.text())?;
            }
            Distribution::Pareto { least, shape } => write!(f, "{},{shape}", least.text())?,
            Distribution::Empirical(values) => write_pairs(f, values, ':')?,
        }
        f.write_str(")")
    }
}

fn write_pairs<V: Quantity>(f: &mut fmt::Formatter<'_>, pairs: &[(V, f64)], sign: char) -> fmt::Result {
    for (index, (value, weight)) in pairs.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}{}{sign}{weight}", value.text())?;
    }
    Ok(())
}

impl FromStr for Popularity {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Popularity, DistributionError> {
        if text.trim() == "even" {
            return Ok(Popularity::Even);
        }
        let call = Call::parse(text)?;
        let popularity = match (call.name, &call.values[..]) {
            ("zipf", [exponent]) => Popularity::Zipf { exponent: read(exponent)? },
            ("pareto", [share]) => Popularity::Pareto { share: read(share)? },
            ("normal", [percent]) => Popularity::Normal { percent: read(percent)? },
            ("zoned", _) => Popularity::Zoned(call.pairs('/', "ACCESSES/SIZE in percent")?),
            ("zipf" | "pareto" | "normal", _) => call.wrong_count("1 value")?,
            _ => return Err(call.unknown(&POPULARITIES)),
        };
        popularity.check()?;
        Ok(popularity)
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Even => f.write_str("even"),
            Popularity::Zipf { exponent } => write!(f, "zipf({exponent})"),
            Popularity::Pareto { share } => write!(f, "pareto({share})"),
            Popularity::Normal { percent } => write!(f, "normal({percent})"),
            Popularity::Zoned(zones) => {
                f.write_str("zoned(")?;
                write_pairs(f, zones, '/')?;
                f.write_str(")")
            }
        }
    }
}

impl<V: Quantity> Serialize for Distribution<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, V: Quantity> Deserialize<'de> for Distribution<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl Serialize for Popularity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Popularity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl<V> JsonSchema for Distribution<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl JsonSchema for Popularity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Popularity".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = DistributionError>,
{
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}
