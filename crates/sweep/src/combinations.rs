//! The combinations of settings of a sweep. They are not listed: each is made from its number when it is needed.

use crate::draw::SettingDraws;
use crate::inputs::add;
use crate::settings::{CELLS_MAX, RandomSettings, SettingKind, SettingValues, leaves, word};
use blake3::Hasher;
use headstack_model::spec::Fault;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Every combination of the grid with each table of the list and each draw, each once, in the order of the definition.
#[derive(Debug)]
pub(crate) struct Combinations {
    /// The keys of the grid, each with its values; the last one varies fastest.
    axes: Vec<(String, Vec<String>)>,
    list: Vec<SettingValues>,
    draws: Option<SettingDraws>,
    /// Numbers of the tables and draws that differ from all before them; none if all do.
    others: Option<Vec<u32>>,
    /// Numbers of the combinations that differ from all before them; none if all do.
    distinct: Option<Vec<u32>>,
    kinds: BTreeMap<String, SettingKind>,
}

impl Combinations {
    /// *Errors:* a key and what is wrong with its values; too many combinations.
    pub(crate) fn new(
        grid: &Table,
        list: &[Table],
        random: Option<&RandomSettings>,
    ) -> Result<Combinations, Fault> {
        let mut made = Combinations {
            axes: axes(grid)?,
            list: list.iter().map(single).collect::<Result<_, _>>()?,
            draws: random.map(SettingDraws::new).transpose()?,
            others: None,
            distinct: None,
            kinds: BTreeMap::new(),
        };
        made.others = distinct(made.all_others(), |index| made.any_other(index));
        if made.all() > CELLS_MAX {
            return Err(Fault::new("grid", format!("more than {CELLS_MAX} combinations of settings")));
        }
        made.kinds = made.kinds_of(grid, list);
        // A table or draw overrides the grid, after which two combinations may be the same.
        let listed = made.list.iter().flat_map(SettingValues::keys);
        let drawn = made.draws.iter().flat_map(|draws| draws.kinds().map(|(key, _)| key));
        let others: BTreeSet<&String> = listed.chain(drawn).collect();
        if made.axes.iter().any(|(key, _)| others.contains(key)) {
            made.distinct = distinct(made.all(), |index| made.any(index));
        }
        Ok(made)
    }

    /// What all values of each key are, by key: the columns of the rows.
    pub(crate) fn kinds(&self) -> &BTreeMap<String, SettingKind> {
        &self.kinds
    }

    /// Number of combinations.
    pub(crate) fn len(&self) -> usize {
        self.distinct.as_ref().map_or_else(|| self.all(), Vec::len)
    }

    /// A combination.
    pub(crate) fn settings(&self, index: usize) -> SettingValues {
        self.any(self.distinct.as_ref().map_or(index, |distinct| distinct[index] as usize))
    }

    /// Number of combinations, the repeated ones included.
    fn all(&self) -> usize {
        let of_grid = |count: usize, (_, values): &(String, Vec<String>)| count.saturating_mul(values.len());
        self.axes.iter().fold(self.others(), of_grid)
    }

    fn any(&self, index: usize) -> SettingValues {
        let (mut grid, other) = (index / self.others(), index % self.others());
        let mut settings = SettingValues::new();
        for (key, values) in self.axes.iter().rev() {
            settings.insert(key.clone(), values[grid % values.len()].clone());
            grid /= values.len();
        }
        if self.all_others() > 0 {
            let other = self.others.as_ref().map_or(other, |others| others[other] as usize);
            settings.extend(self.any_other(other));
        }
        settings
    }

    /// Number of different tables and draws; 1 where there are none.
    fn others(&self) -> usize {
        self.others.as_ref().map_or_else(|| self.all_others(), Vec::len).max(1)
    }

    fn all_others(&self) -> usize {
        self.list.len() + self.draws.as_ref().map_or(0, SettingDraws::len)
    }

    fn any_other(&self, index: usize) -> SettingValues {
        match (self.list.get(index), &self.draws) {
            (Some(listed), _) => listed.clone(),
            (None, Some(draws)) => draws.settings(index - self.list.len()),
            (None, None) => SettingValues::new(),
        }
    }

    fn kinds_of(&self, grid: &Table, list: &[Table]) -> BTreeMap<String, SettingKind> {
        let mut kinds = BTreeMap::new();
        let mut add = |key: &str, kind: SettingKind| {
            let known = kinds.get(key).copied();
            kinds.insert(key.to_string(), known.map_or(kind, |known: SettingKind| known.or(kind)));
        };
        for (key, values) in leaves(grid) {
            values.as_array().into_iter().flatten().for_each(|value| add(&key, SettingKind::of_value(value)));
        }
        for (key, value) in list.iter().flat_map(leaves) {
            add(&key, SettingKind::of_value(value));
        }
        self.draws.iter().flat_map(SettingDraws::kinds).for_each(|(key, kind)| add(key, kind));
        kinds
    }
}

/// The keys of a grid, each with its different values.
fn axes(grid: &Table) -> Result<Vec<(String, Vec<String>)>, Fault> {
    let mut axes = Vec::new();
    let mut combinations = 1usize;
    for (key, values) in leaves(grid) {
        let Value::Array(values) = values else {
            return Err(Fault::new(key, "must be a list of values, such as [1, 8, 32]"));
        };
        if values.is_empty() {
            return Err(Fault::new(key, "is an empty list; name at least one value"));
        }
        let mut met = BTreeSet::new();
        let words: Vec<String> = values.iter().map(word).filter(|word| met.insert(word.clone())).collect();
        combinations = combinations.saturating_mul(words.len());
        if combinations > CELLS_MAX {
            return Err(Fault::new(key, format!("the grid has more than {CELLS_MAX} combinations")));
        }
        axes.push((key, words));
    }
    Ok(axes)
}

/// The settings of one table of the list.
fn single(table: &Table) -> Result<SettingValues, Fault> {
    let leaf = |(key, value): (String, &Value)| match value {
        Value::Table(_) => Err(Fault::new(key, "is an empty table; give a value")),
        _ => Ok((key, word(value))),
    };
    leaves(table).into_iter().map(leaf).collect()
}

/// The numbers of the settings that differ from all before them; none if all do.
fn distinct(count: usize, settings: impl Fn(usize) -> SettingValues) -> Option<Vec<u32>> {
    let mut met = BTreeSet::new();
    let mut found = Vec::new();
    for index in 0..count {
        let mut hasher = Hasher::new();
        for (key, value) in settings(index) {
            add(&mut hasher, key.as_bytes());
            add(&mut hasher, value.as_bytes());
        }
        let hash = hasher.finalize();
        if met.insert(u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))) {
            found.push(index as u32);
        }
    }
    (found.len() < count).then_some(found)
}
