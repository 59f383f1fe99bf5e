//! Where random requests go.

use crate::fio::value::{Amount, Given, Parsed, wrong};

const ZONES_MAX: usize = 256;

/// How random places are spread over a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::fio) enum Spread {
    #[default]
    Uniform,
    Zipf {
        theta: f64,
        center: Option<f64>,
    },
    Pareto {
        share: f64,
        center: Option<f64>,
    },
    Normal {
        deviation: f64,
        center: Option<f64>,
    },
    Zoned([Vec<Zone>; 3]),
}

/// A part of a file with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::fio) struct Zone {
    pub(in crate::fio) access_percent: u64,
    pub(in crate::fio) size: Amount,
}

impl Spread {
    /// `random_distribution=zipf:1.2`, `zoned:60/10:30/20:8/30:2/40`, …
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<Spread> {
        let (word, rest) = given.head()?;
        let kinds =
            [("random", 0), ("zipf", 1), ("pareto", 2), ("normal", 3), ("zoned", 4), ("zoned_abs", 5)];
        let kind = word.word(&kinds)?;
        let shape = |default: f64, check: fn(f64) -> bool, allowed: &str| {
            let (value, center) = rest.map_or(Ok((None, None)), |rest| rest.shape())?;
            let value = value.unwrap_or(default);
            if check(value) { Ok((value, center)) } else { Err(wrong(&value.to_string(), allowed)) }
        };
        Ok(match kind {
            0 => Spread::Uniform,
            1 => {
                let (theta, center) =
                    shape(1.1, |theta| theta > 0.0 && theta != 1.0, "a theta above 0 other than 1")?;
                Spread::Zipf { theta, center }
            }
            2 => {
                let (share, center) =
                    shape(0.2, |share| share > 0.0 && share < 1.0, "a power between 0 and 1")?;
                Spread::Pareto { share, center }
            }
            3 => {
                let (deviation, center) =
                    shape(0.0, |dev| (0.0..100.0).contains(&dev), "a deviation from 0 up to 100")?;
                Spread::Normal { deviation, center }
            }
            _ => {
                let rest = rest.ok_or("needs zones such as 60/10:40/90")?;
                let mut zones = [const { Vec::new() }; 3];
                rest.by_direction(&mut zones, |given| read_zones(given, kind == 5))?;
                Spread::Zoned(zones)
            }
        })
    }
}

/// Zones with shares of the accesses that add up to 100 %.
fn read_zones(given: &Given<'_>, absolute: bool) -> Parsed<Vec<Zone>> {
    let parse = if absolute { Given::bytes } else { Given::percent };
    let pairs = given.pairs(ZONES_MAX, Given::percent, parse)?;
    let sizes: Vec<Option<u64>> = pairs.iter().map(|(_, size)| *size).collect();
    if absolute && sizes.contains(&None) {
        return Err("each zone needs its size, as in 60/20g:40/80g".to_string());
    }
    if pairs.iter().map(|(access, _)| *access).sum::<u64>() != 100 {
        return Err(wrong(given.text()?, "100 % of the accesses in all"));
    }
    let sizes: Vec<Amount> = if absolute {
        sizes.into_iter().flatten().map(Amount::Bytes).collect()
    } else {
        given.fill_percents(sizes.into_iter())?.into_iter().map(Amount::Percent).collect()
    };
    let zones = pairs.iter().zip(sizes);
    Ok(zones.map(|((access, _), size)| Zone { access_percent: *access, size }).collect())
}

/// How random requests choose their places.
#[derive(Clone, Debug)]
pub(in crate::fio) struct RandomPlaces {
    /// Percentage of random requests in a random load.
    pub(in crate::fio) percent: [u64; 3],
    pub(in crate::fio) spread: Spread,
    pub(in crate::fio) without_map: bool,
    pub(in crate::fio) repeats: bool,
    pub(in crate::fio) seed: Option<u64>,
}

impl Default for RandomPlaces {
    fn default() -> RandomPlaces {
        RandomPlaces {
            percent: [100; 3],
            spread: Spread::Uniform,
            without_map: false,
            repeats: true,
            seed: None,
        }
    }
}
