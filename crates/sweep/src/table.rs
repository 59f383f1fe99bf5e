//! Rows as typed columns.

use crate::columns::{COUNTS, FIGURES, HISTOGRAM, RowLayout};
use crate::row::SweepRow;
use crate::settings::SettingKind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The values of a column, one for each row; none where the row has no such value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ColumnValues {
    Text(Vec<Option<Arc<str>>>),
    Whole(Vec<Option<i64>>),
    Unsigned(Vec<u64>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
    Lists(Vec<Vec<i64>>),
}

/// Makes a column of each value of another one, or of a place without a value.
macro_rules! each {
    ($values:expr, $found:ident => $made:expr) => {
        match $values {
            ColumnValues::Text($found) => ColumnValues::Text($made),
            ColumnValues::Whole($found) => ColumnValues::Whole($made),
            ColumnValues::Unsigned($found) => ColumnValues::Unsigned($made),
            ColumnValues::Real($found) => ColumnValues::Real($made),
            ColumnValues::Flag($found) => ColumnValues::Flag($made),
            ColumnValues::Lists($found) => ColumnValues::Lists($made),
        }
    };
}

/// These values, in this order.
fn chosen<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|row| values[*row].clone()).collect()
}

impl ColumnValues {
    fn of_kind(kind: SettingKind, rows: usize) -> ColumnValues {
        match kind {
            SettingKind::Text => ColumnValues::Text(vec![None; rows]),
            SettingKind::Whole => ColumnValues::Whole(vec![None; rows]),
            SettingKind::Real => ColumnValues::Real(vec![None; rows]),
            SettingKind::Flag => ColumnValues::Flag(vec![None; rows]),
        }
    }

    /// A column of the same type without a value.
    fn empty_like(&self, rows: usize) -> ColumnValues {
        each!(self, _found => vec![Default::default(); rows])
    }

    /// These rows of the column.
    fn rows(&self, rows: &[usize]) -> ColumnValues {
        each!(self, found => chosen(found, rows))
    }

    /// Appends another column. A number goes into a column of wider numbers or of text; where the types do not fit, the values are absent.
    pub(crate) fn append(&mut self, other: ColumnValues) {
        match (self, other) {
            (ColumnValues::Text(own), ColumnValues::Text(other)) => own.extend(other),
            (ColumnValues::Whole(own), ColumnValues::Whole(other)) => own.extend(other),
            (ColumnValues::Unsigned(own), ColumnValues::Unsigned(other)) => own.extend(other),
            (ColumnValues::Real(own), ColumnValues::Real(other)) => own.extend(other),
            (ColumnValues::Flag(own), ColumnValues::Flag(other)) => own.extend(other),
            (ColumnValues::Lists(own), ColumnValues::Lists(other)) => own.extend(other),
            (ColumnValues::Real(own), ColumnValues::Whole(other)) => {
                own.extend(other.into_iter().map(|value| value.map(|whole| whole as f64)));
            }
            (ColumnValues::Text(own), other) => own.extend(other.words()),
            (own, other) => {
                let absent = own.empty_like(other.len());
                own.append(absent);
            }
        }
    }

    fn words(self) -> Vec<Option<Arc<str>>> {
        let text = |word: String| Some(Arc::from(word));
        match self {
            ColumnValues::Text(found) => found,
            ColumnValues::Whole(found) => found.into_iter().map(|v| text(v?.to_string())).collect(),
            ColumnValues::Unsigned(found) => found.into_iter().map(|v| text(v.to_string())).collect(),
            ColumnValues::Real(found) => {
                found.into_iter().map(|v| text(toml::Value::Float(v?).to_string())).collect()
            }
            ColumnValues::Flag(found) => found.into_iter().map(|v| text(v?.to_string())).collect(),
            ColumnValues::Lists(found) => vec![None; found.len()],
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Text(found) => found.len(),
            ColumnValues::Whole(found) => found.len(),
            ColumnValues::Unsigned(found) => found.len(),
            ColumnValues::Real(found) => found.len(),
            ColumnValues::Flag(found) => found.len(),
            ColumnValues::Lists(found) => found.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn json(&self, row: usize) -> Value {
        match self {
            ColumnValues::Text(found) => found[row].as_deref().into(),
            ColumnValues::Whole(found) => found[row].into(),
            ColumnValues::Unsigned(found) => found[row].into(),
            ColumnValues::Real(found) => found[row].into(),
            ColumnValues::Flag(found) => found[row].into(),
            ColumnValues::Lists(found) => found[row].clone().into(),
        }
    }
}

/// Rows of a sweep as columns by name.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepTable {
    rows: usize,
    columns: Vec<(String, ColumnValues)>,
}

impl SweepTable {
    /// A table without rows, with the columns that all rows have.
    pub(crate) fn new(layout: &RowLayout) -> SweepTable {
        let text = || ColumnValues::Text(Vec::new());
        let mut columns: Vec<(String, ColumnValues)> =
            ["key", "rig", "load"].map(|name| (name.to_string(), text())).into();
        for (key, kind) in &layout.settings {
            columns.push((key.clone(), ColumnValues::of_kind(*kind, 0)));
        }
        columns.push(("seed".to_string(), ColumnValues::Unsigned(Vec::new())));
        columns.push(("error".to_string(), text()));
        columns.extend(COUNTS.map(|(name, _)| (name.to_string(), ColumnValues::Whole(Vec::new()))));
        columns.extend(FIGURES.map(|(name, _)| (name.to_string(), ColumnValues::Real(Vec::new()))));
        if layout.has_histograms {
            columns.extend(HISTOGRAM.map(|name| (name.to_string(), ColumnValues::Lists(Vec::new()))));
        }
        SweepTable { rows: 0, columns }
    }

    /// A table of columns that were read, of which all have this number of rows.
    pub(crate) fn of_columns(rows: usize, columns: Vec<(String, ColumnValues)>) -> SweepTable {
        SweepTable { rows, columns }
    }

    /// The rows of cells.
    pub(crate) fn of_rows(layout: &RowLayout, rows: &[SweepRow]) -> SweepTable {
        let mut table = SweepTable::new(layout);
        table.rows = rows.len();
        let extra: BTreeSet<&str> =
            rows.iter().flat_map(|row| &row.extra).map(|(name, _)| name.as_str()).collect();
        for name in extra {
            table.insert(name, ColumnValues::Real(Vec::new()));
        }
        for (name, values) in &mut table.columns {
            *values = column_of(name, values, layout, rows);
        }
        table
    }

    /// Appends the rows of another table.
    pub(crate) fn append(&mut self, other: SweepTable) {
        for (name, values) in &other.columns {
            if self.column(name).is_none() {
                self.insert(name, values.empty_like(self.rows));
            }
        }
        let mut theirs: BTreeMap<String, ColumnValues> = other.columns.into_iter().collect();
        for (name, values) in &mut self.columns {
            let found = theirs.remove(name).unwrap_or_else(|| values.empty_like(other.rows));
            values.append(found);
        }
        self.rows += other.rows;
    }

    /// Adds a column of what only some rows have: those are after the columns that all have, in the order of their names.
    fn insert(&mut self, name: &str, values: ColumnValues) {
        let fixed = self.columns.iter().position(|(own, _)| own == FIGURES[FIGURES.len() - 1].0);
        let first = fixed.map_or(0, |last| last + 1);
        let after = self.columns[first..]
            .iter()
            .take_while(|(own, _)| !HISTOGRAM.contains(&own.as_str()) && own.as_str() < name);
        let place = first + after.count();
        self.columns.insert(place, (name.to_string(), values));
    }

    /// These rows, in this order.
    pub(crate) fn select(&self, rows: &[usize]) -> SweepTable {
        let columns = self.columns.iter().map(|(name, values)| (name.clone(), values.rows(rows)));
        SweepTable { rows: rows.len(), columns: columns.collect() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns by name, in the order of the files.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &ColumnValues)> {
        self.columns.iter().map(|(name, values)| (name.as_str(), values))
    }

    /// A column.
    pub fn column(&self, name: &str) -> Option<&ColumnValues> {
        self.columns.iter().find(|(own, _)| own == name).map(|(_, values)| values)
    }

    /// The values of a column of text; none if there is no such column.
    pub(crate) fn texts(&self, name: &str) -> &[Option<Arc<str>>] {
        match self.column(name) {
            Some(ColumnValues::Text(found)) => found,
            _ => &[],
        }
    }

    /// The values of a column of numbers; none if there is no such column.
    pub(crate) fn numbers(&self, name: &str) -> &[Option<f64>] {
        match self.column(name) {
            Some(ColumnValues::Real(found)) => found,
            _ => &[],
        }
    }

    /// Each row as its columns by name; absent values are null.
    pub fn to_maps(&self) -> Vec<Map<String, Value>> {
        let row =
            |row: usize| self.columns.iter().map(|(name, values)| (name.clone(), values.json(row))).collect();
        (0..self.rows).map(row).collect()
    }
}

/// A column of the rows of cells; `like` has its type.
fn column_of(name: &str, like: &ColumnValues, layout: &RowLayout, rows: &[SweepRow]) -> ColumnValues {
    let setting = layout.settings.keys().position(|key| key == name);
    let count = COUNTS.iter().position(|(own, _)| *own == name);
    let figure = FIGURES.iter().position(|(own, _)| *own == name);
    let word = |row: &'_ SweepRow| -> Option<String> {
        match setting {
            Some(place) => row.settings[place].clone(),
            None => match name {
                "key" => Some(row.key.clone()),
                "rig" => Some(row.rig.clone()),
                "load" => Some(row.load.clone()),
                _ => row.error.clone(),
            },
        }
    };
    match like {
        ColumnValues::Text(_) => {
            ColumnValues::Text(rows.iter().map(|row| word(row).map(Arc::from)).collect())
        }
        ColumnValues::Flag(_) => ColumnValues::Flag(rows.iter().map(|row| word(row)?.parse().ok()).collect()),
        ColumnValues::Unsigned(_) => ColumnValues::Unsigned(rows.iter().map(|row| row.seed).collect()),
        ColumnValues::Whole(_) => {
            let value = |row: &SweepRow| match count {
                Some(place) if setting.is_none() => row.counts[place],
                _ => word(row)?.parse().ok(),
            };
            ColumnValues::Whole(rows.iter().map(value).collect())
        }
        ColumnValues::Real(_) => {
            let extra =
                |row: &SweepRow| row.extra.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
            let value = |row: &SweepRow| match (setting, figure) {
                (Some(_), _) => word(row)?.parse().ok(),
                (None, Some(place)) => row.figures[place],
                (None, None) => extra(row),
            };
            ColumnValues::Real(rows.iter().map(value).collect())
        }
        ColumnValues::Lists(_) => {
            let list = |row: &SweepRow| {
                let pair =
                    |(last, requests): &(i64, i64)| if name == HISTOGRAM[0] { *last } else { *requests };
                row.histogram.iter().map(pair).collect()
            };
            ColumnValues::Lists(rows.iter().map(list).collect())
        }
    }
}
