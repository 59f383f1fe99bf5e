//! Settings drawn at random. The draws depend on the seed and the keys alone.

use crate::settings::{RandomSettings, SettingValues, leaves, word};
use headstack_model::spec::Fault;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use toml::{Table, Value};

/// The values of a key from which one is drawn.
enum Choices<'a> {
    Listed(&'a [Value]),
    Whole { from: i64, to: i64, is_log: bool },
    Real { from: f64, to: f64, is_log: bool },
}

/// The drawn combinations, in the order of the draws.
///
/// *Errors:* a key and what is wrong with its values.
pub(crate) fn settings(random: &RandomSettings) -> Result<Vec<SettingValues>, Fault> {
    let mut keys = Vec::new();
    for (key, value) in leaves(&random.keys) {
        let found = choices(value).map_err(|message| Fault::new(key.clone(), message))?;
        keys.push((key, found));
    }
    if keys.is_empty() {
        return Err(Fault::new("keys", "is empty; name at least one key to draw"));
    }
    let mut generator = Pcg64::seed_from_u64(random.seed);
    let mut one = || keys.iter().map(|(key, choices)| (key.clone(), draw(choices, &mut generator))).collect();
    Ok((0..random.count).map(|_| one()).collect())
}

const FORM: &str =
    "must be a list of values, or { from = 1, to = 32 } with from < to (scale = \"log\" needs from > 0)";

fn choices(value: &Value) -> Result<Choices<'_>, &'static str> {
    match value {
        Value::Array(values) if !values.is_empty() => Ok(Choices::Listed(values)),
        Value::Table(range) => range_of(range).ok_or(FORM),
        _ => Err(FORM),
    }
}

fn range_of(range: &Table) -> Option<Choices<'_>> {
    let is_log = match range.get("scale").map(Value::as_str) {
        None | Some(Some("linear")) => false,
        Some(Some("log")) => true,
        _ => return None,
    };
    if range.keys().any(|key| !["from", "to", "scale"].contains(&key.as_str())) {
        return None;
    }
    let (from, to) = (range.get("from")?, range.get("to")?);
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    let (low, high) = (number(from)?, number(to)?);
    let is_range = low.is_finite() && high.is_finite() && low < high && (!is_log || low > 0.0);
    match (from.as_integer(), to.as_integer()) {
        _ if !is_range => None,
        (Some(from), Some(to)) => Some(Choices::Whole { from, to, is_log }),
        _ => Some(Choices::Real { from: low, to: high, is_log }),
    }
}

fn draw(choices: &Choices<'_>, generator: &mut Pcg64) -> String {
    match choices {
        Choices::Listed(values) => word(&values[generator.random_range(0..values.len())]),
        Choices::Whole { from, to, is_log: false } => generator.random_range(*from..=*to).to_string(),
        Choices::Whole { from, to, is_log: true } => {
            // Every whole number has the share of the logarithmic scale from itself to the next one.
            let drawn = between(*from as f64, *to as f64 + 1.0, true, generator);
            (drawn as i64).clamp(*from, *to).to_string()
        }
        Choices::Real { from, to, is_log } => {
            Value::Float(between(*from, *to, *is_log, generator)).to_string()
        }
    }
}

fn between(from: f64, to: f64, is_log: bool, generator: &mut Pcg64) -> f64 {
    let share: f64 = generator.random();
    let drawn = if is_log {
        libm::exp(libm::log(from) + share * (libm::log(to) - libm::log(from)))
    } else {
        from + share * (to - from)
    };
    drawn.clamp(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, keys: &str) -> Result<Vec<SettingValues>, String> {
        let keys = toml::from_str(keys).expect("the keys are TOML");
        settings(&RandomSettings { count: 200, seed, keys }).map_err(|fault| fault.to_string())
    }

    #[test]
    fn draws_follow_from_the_seed_and_stay_in_range() {
        let keys = "depth = { from = 1, to = 32, scale = \"log\" }\nspeed = { from = 0.5, to = 1.0 }\norder = [\"a\", \"b\"]";
        let found = drawn(7, keys).unwrap_or_else(|message| panic!("{message}"));
        assert_eq!(Ok(&found), drawn(7, keys).as_ref());
        assert_ne!(Ok(&found), drawn(8, keys).as_ref());
        let depth = |one: &SettingValues| one["depth"].parse::<u32>().expect("it is whole");
        assert!(found.iter().all(|one| (1..=32).contains(&depth(one))));
        let small = found.iter().filter(|one| depth(one) <= 5).count();
        assert!((70..130).contains(&small), "half of the draws are below the geometric mean: {small}");
        assert!(found.iter().all(|one| (0.5..=1.0).contains(&one["speed"].parse().expect("a number"))));
    }

    #[test]
    fn range_without_extent_is_rejected() {
        for keys in
            ["d = { from = 3, to = 3 }", "d = { from = 0, to = 3, scale = \"log\" }", "d = 4", "d = []"]
        {
            assert_eq!(drawn(0, keys), Err(format!("d: {FORM}")), "{keys}");
        }
    }
}
