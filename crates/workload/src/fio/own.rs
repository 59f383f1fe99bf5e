//! Headstack's own keys, in comments that fio skips: for what fio cannot express.
//!
//! `#headstack: think_time=exponential(20ms)` is written in a section like any key.

use headstack_model::Nanos;

use super::error::nearest;
use super::value::{Given, wrong};
use crate::Distribution;
use crate::dist::Quantity;

#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) think_time: Option<Distribution<Nanos>>,
    pub(super) gap: Option<Distribution<Nanos>>,
    pub(super) sequential: f64,
    pub(super) local: f64,
    pub(super) local_distance: Distribution<f64>,
}

impl Default for Own {
    fn default() -> Own {
        let local_distance = Distribution::Constant(0.0);
        Own { think_time: None, gap: None, sequential: 0.0, local: 0.0, local_distance }
    }
}

/// A key of Headstack, `#headstack: name=value`.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OwnKey {
    pub name: &'static str,
    pub example: &'static str,
    pub summary: &'static str,
    set: fn(&mut Own, &Given<'_>) -> Result<(), String>,
}

/// All keys of Headstack.
pub fn own_keys() -> &'static [OwnKey] {
    &KEYS
}

const KEYS: [OwnKey; 4] = [
    OwnKey {
        name: "think_time",
        example: "exponential(20ms)",
        summary: "As `thinktime`, each pause drawn from a distribution",
        set: |own, given| given.store(&mut own.think_time, |given| distribution(given.text()?)),
    },
    OwnKey {
        name: "gap",
        example: "uniform(5ms,15ms)",
        summary: "Time from one request to the next, whatever is outstanding, up to `iodepth` requests",
        set: |own, given| given.store(&mut own.gap, |given| distribution(given.text()?)),
    },
    OwnKey {
        name: "sequential",
        example: "0.2",
        summary: "Share of the random requests that continue where the last one ended",
        set: |own, given| given.store(&mut own.sequential, share),
    },
    OwnKey {
        name: "local",
        example: "0.3,normal(0,10000)",
        summary: "Share of the random requests that begin near the start of the last one, and their distance in sectors",
        set: |own, given| {
            let text = given.text()?;
            let (near, distance) = text
                .split_once(',')
                .ok_or_else(|| wrong(text, "a share and a distance, as in 0.3,normal(0,10000)"))?;
            own.local = share(&Given::new(Some(near), 1024))?;
            own.local_distance = distribution(distance.trim())?;
            Ok(())
        },
    },
];

fn share(given: &Given<'_>) -> Result<f64, String> {
    let share = given.real()?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong(given.text()?, "a share from 0 to 1")) }
}

fn distribution<V: Quantity>(text: &str) -> Result<Distribution<V>, String> {
    text.parse().map_err(|error: crate::DistributionError| error.to_string())
}

/// Stores the value of a key of Headstack; returns the key's name.
pub(super) fn set(own: &mut Own, name: &str, given: &Given<'_>) -> Result<&'static str, String> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let names = KEYS.iter().map(|key| key.name);
        return Err(format!("unknown key of ours{}", nearest(name, names)));
    };
    (key.set)(own, given).map(|()| key.name)
}
