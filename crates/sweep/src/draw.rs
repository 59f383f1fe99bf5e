//! Settings drawn at random. The draws depend on the seed and the keys alone.

use crate::settings::{RandomSettings, SettingKind, SettingValues, leaves, word};
use headstack_model::spec::Fault;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use toml::{Table, Value};

/// The values of a key from which one is drawn.
#[derive(Debug)]
enum Choices {
    Listed(Vec<String>),
    Whole { from: i64, to: i64, is_log: bool },
    Real { from: f64, to: f64, is_log: bool },
}

/// A drawn value; of a list, its place.
#[derive(Clone, Copy, Debug)]
enum DrawnValue {
    Listed(u32),
    Whole(i64),
    Real(f64),
}

/// The drawn combinations, in the order of the draws.
#[derive(Debug)]
pub(crate) struct SettingDraws {
    keys: Vec<(String, SettingKind, Choices)>,
    /// One for each key, draw after draw.
    values: Vec<DrawnValue>,
}

impl SettingDraws {
    /// *Errors:* a key and what is wrong with its values.
    pub(crate) fn new(random: &RandomSettings) -> Result<SettingDraws, Fault> {
        let mut keys = Vec::new();
        for (key, value) in leaves(&random.keys) {
            let (kind, found) = choices(value).map_err(|message| Fault::new(key.clone(), message))?;
            keys.push((key, kind, found));
        }
        if keys.is_empty() {
            return Err(Fault::new("keys", "is empty; name at least one key to draw"));
        }
        let mut generator = Pcg64::seed_from_u64(random.seed);
        let draws = (0..random.count).flat_map(|_| &keys);
        let values = draws.map(|(_, _, choices)| draw(choices, &mut generator)).collect();
        Ok(SettingDraws { keys, values })
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.keys.len()
    }

    /// Each key and what its values are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&String, SettingKind)> {
        self.keys.iter().map(|(key, kind, _)| (key, *kind))
    }

    /// The settings of a draw.
    pub(crate) fn settings(&self, index: usize) -> SettingValues {
        let drawn = &self.values[index * self.keys.len()..][..self.keys.len()];
        let word = |((key, _, choices), drawn): (&(String, SettingKind, Choices), &DrawnValue)| {
            let word = match (choices, drawn) {
                (Choices::Listed(words), DrawnValue::Listed(place)) => words[*place as usize].clone(),
                (_, DrawnValue::Listed(place)) => place.to_string(),
                (_, DrawnValue::Whole(whole)) => whole.to_string(),
                (_, DrawnValue::Real(number)) => Value::Float(*number).to_string(),
            };
            (key.clone(), word)
        };
        self.keys.iter().zip(drawn).map(word).collect()
    }
}

const FORM: &str =
    "must be a list of values, or { from = 1, to = 32 } with from < to (scale = \"log\" needs from > 0)";

/// What the values of a key are, and from which one is drawn.
fn choices(value: &Value) -> Result<(SettingKind, Choices), &'static str> {
    match value {
        Value::Array(values) if !values.is_empty() => {
            let kinds = values.iter().map(SettingKind::of_value);
            let kind = kinds.reduce(SettingKind::or).ok_or(FORM)?;
            Ok((kind, Choices::Listed(values.iter().map(word).collect())))
        }
        Value::Table(range) => {
            let found = range_of(range).ok_or(FORM)?;
            let is_whole = matches!(found, Choices::Whole { .. });
            Ok((if is_whole { SettingKind::Whole } else { SettingKind::Real }, found))
        }
        _ => Err(FORM),
    }
}

fn range_of(range: &Table) -> Option<Choices> {
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

fn draw(choices: &Choices, generator: &mut Pcg64) -> DrawnValue {
    match choices {
        Choices::Listed(words) => DrawnValue::Listed(generator.random_range(0..words.len()) as u32),
        Choices::Whole { from, to, is_log: false } => DrawnValue::Whole(generator.random_range(*from..=*to)),
        Choices::Whole { from, to, is_log: true } => {
            // Every whole number has the share of the logarithmic scale from itself to the next one.
            let drawn = between(*from as f64, *to as f64 + 1.0, true, generator);
            DrawnValue::Whole((drawn as i64).clamp(*from, *to))
        }
        Choices::Real { from, to, is_log } => DrawnValue::Real(between(*from, *to, *is_log, generator)),
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
        let found = SettingDraws::new(&RandomSettings { count: 200, seed, keys })
            .map_err(|fault| fault.to_string())?;
        Ok((0..found.len()).map(|index| found.settings(index)).collect())
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
