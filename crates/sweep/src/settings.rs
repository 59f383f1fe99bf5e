//! Settings of a rig as a sweep file has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Settings drawn at random.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomSettings {
    /// Number of draws.
    #[schemars(range(min = 1, max = DRAWS_MAX))]
    pub count: u32,
    /// Seed of the draws.
    #[serde(default)]
    pub seed: u64,
    /// Keys of the rigs, each with the values to draw from: a list, or a range `{ from, to, scale }`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(crate) keys: Table,
}

/// Keys of a rig and their values: one combination.
pub(crate) type SettingValues = BTreeMap<String, String>;

/// Maximum number of draws, which are kept in memory.
pub(crate) const DRAWS_MAX: usize = 1_000_000;

/// Maximum number of combinations of settings, and of cells.
pub(crate) const CELLS_MAX: usize = 10_000_000;

/// What all values of a key are, and so the type of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    /// Whole numbers of 64 bits.
    Whole,
    /// Numbers, some of which are not whole.
    Real,
    /// True or false.
    Flag,
    /// Text, or values of several kinds.
    Text,
}

impl SettingKind {
    pub(crate) fn of_value(value: &Value) -> SettingKind {
        match value {
            Value::Integer(_) => SettingKind::Whole,
            Value::Float(_) => SettingKind::Real,
            Value::Boolean(_) => SettingKind::Flag,
            _ => SettingKind::Text,
        }
    }

    /// The kind of values of both kinds.
    pub(crate) fn or(self, other: SettingKind) -> SettingKind {
        match (self, other) {
            (one, other) if one == other => one,
            (SettingKind::Whole, SettingKind::Real) | (SettingKind::Real, SettingKind::Whole) => {
                SettingKind::Real
            }
            _ => SettingKind::Text,
        }
    }
}

/// The values of a table by dotted path. A table with the key `from` is a range, not a part of the path.
pub(crate) fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !inner.is_empty() && !inner.contains_key("from") => {
                found.extend(leaves(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            _ => found.push((key.clone(), value)),
        }
    }
    found
}

/// A value as it is set on a rig.
pub(crate) fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
