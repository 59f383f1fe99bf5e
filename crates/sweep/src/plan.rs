//! The plan of a sweep: its cells, each with a key.

use crate::definition::SweepFile;
use crate::error::SweepError;
use crate::inputs::{LoadHasher, SharedFiles, add};
use crate::settings::SettingValues;
use blake3::Hasher;
use headstack::{Rig, TraceOptions, load_rig};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

/// Hexadecimal digits of a key: 128 bits.
pub(crate) const KEY_DIGITS: usize = 32;

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepCell {
    /// The hash of everything that its results depend on.
    pub key: String,
    /// The index of its rig among the names in the sweep file.
    pub rig: usize,
    /// The index of its load among the names in the sweep file.
    pub load: usize,
    /// The index of its settings in the plan.
    pub settings: usize,
    /// Its seed.
    pub seed: u64,
}

/// One of several parts of a plan, which may run at the same time on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPart {
    /// The number of the part, from 1 on.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl Default for SweepPart {
    fn default() -> SweepPart {
        SweepPart { number: 1, of: 1 }
    }
}

impl FromStr for SweepPart {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<SweepPart, SweepError> {
        let parts = text
            .split_once('/')
            .and_then(|(number, of)| Some(SweepPart { number: number.parse().ok()?, of: of.parse().ok()? }));
        parts
            .filter(|part| (1..=part.of).contains(&part.number))
            .ok_or_else(|| SweepError::Part(text.to_string()))
    }
}

/// The cells of a sweep: rigs × settings × loads × seeds. All cells of a seed get the same random numbers, so that they can be
/// compared in pairs.
pub struct SweepPlan {
    title: String,
    model_version: String,
    rig_names: Vec<String>,
    load_names: Vec<String>,
    /// The loads' paths, as they are opened.
    load_paths: Vec<String>,
    settings: Vec<SettingValues>,
    /// Every key that some cell sets, in order: a column of the rows.
    setting_keys: Vec<String>,
    /// Each rig with each combination of settings, or why the rig refuses it. The settings vary fastest.
    rigs: Vec<Result<Rig, String>>,
    trace_options: TraceOptions,
    histograms: bool,
    /// The column that decides when settings get no more seeds; empty if all get all.
    until_clear: String,
    seeds: u64,
    cells: Vec<SweepCell>,
}

impl SweepPlan {
    /// The plan of a sweep file. `origin` is the path of the file, to which its rigs and loads are relative; `model_version` is
    /// usually [`MODEL_VERSION`](crate::MODEL_VERSION).
    ///
    /// *Errors:* a rig or load that cannot be read or is invalid; settings that no rig accepts. Settings that some rigs refuse are
    /// failures of their cells.
    pub fn new(
        file: &SweepFile,
        origin: &str,
        model_version: &str,
        files: &(dyn headstack::FileSource + Sync),
    ) -> Result<SweepPlan, SweepError> {
        let settings = file.settings().map_err(|fault| SweepError::Settings {
            origin: origin.to_string(),
            message: fault.to_string(),
        })?;
        let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
        let load_base = |name: &String| {
            if headstack::is_file(name) {
                load_rig(&folder.join(name).display().to_string(), files)
            } else {
                load_rig(name, files)
            }
        };
        let bases = file.rigs.iter().map(load_base).collect::<Result<Vec<Rig>, _>>()?;
        let count = settings.len();
        let one = |index: usize| changed(&bases[index / count], &settings[index % count]);
        let rigs: Vec<Result<Rig, String>> = (0..bases.len() * count).into_par_iter().map(one).collect();
        if let Some(Err(message)) = rigs.first().filter(|_| rigs.iter().all(Result::is_err)) {
            return Err(SweepError::Settings { origin: origin.to_string(), message: message.clone() });
        }
        let keys: BTreeSet<&String> = settings.iter().flat_map(SettingValues::keys).collect();
        let mut plan = SweepPlan {
            title: file.title.clone(),
            model_version: model_version.to_string(),
            rig_names: file.rigs.clone(),
            load_names: file.loads.clone(),
            load_paths: file.loads.iter().map(|name| folder.join(name).display().to_string()).collect(),
            setting_keys: keys.into_iter().cloned().collect(),
            settings,
            rigs,
            trace_options: file.trace_options(),
            histograms: file.histograms,
            until_clear: file.until_clear.clone(),
            seeds: file.seeds,
            cells: Vec::new(),
        };
        plan.cells = plan.all_cells(file, &bases, files)?;
        Ok(plan)
    }

    /// Every cell once, even if it is drawn or listed twice.
    fn all_cells(
        &self,
        file: &SweepFile,
        bases: &[Rig],
        files: SharedFiles<'_>,
    ) -> Result<Vec<SweepCell>, SweepError> {
        let options = serde_json::to_string(&file.trace).expect("options are expressible in JSON");
        let mut hasher = LoadHasher::new(files);
        let (mut cells, mut met) = (Vec::new(), BTreeSet::new());
        for (rig, base) in bases.iter().enumerate() {
            let contents = self.load_paths.iter().map(|path| hasher.hash(path, base, &self.trace_options));
            let contents = contents.collect::<Result<Vec<_>, _>>()?;
            for settings in 0..self.settings.len() {
                let mut with_rig = self.rig_hasher(rig, settings);
                add(&mut with_rig, options.as_bytes());
                for (load, content) in contents.iter().enumerate() {
                    let mut with_load = with_rig.clone();
                    add(&mut with_load, self.load_names[load].as_bytes());
                    add(&mut with_load, content.as_bytes());
                    for index in 0..file.seeds {
                        let seed = file.first_seed.wrapping_add(index);
                        let mut hasher = with_load.clone();
                        add(&mut hasher, &seed.to_le_bytes());
                        let key = hasher.finalize().to_hex()[..KEY_DIGITS].to_string();
                        if met.insert(key.clone()) {
                            cells.push(SweepCell { key, rig, load, settings, seed });
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    /// A hasher of the model's version, the columns, the rig's name and settings as written, and the rig as resolved. The names are
    /// in the row, so that they are in the key.
    fn rig_hasher(&self, rig: usize, settings: usize) -> Hasher {
        let mut hasher = Hasher::new();
        add(&mut hasher, self.model_version.as_bytes());
        add(&mut hasher, self.setting_keys.join("\n").as_bytes());
        if self.histograms {
            add(&mut hasher, b"histograms");
        }
        add(&mut hasher, self.rig_names[rig].as_bytes());
        for (key, value) in &self.settings[settings] {
            add(&mut hasher, key.as_bytes());
            add(&mut hasher, value.as_bytes());
        }
        let resolved = match self.rig_of(rig, settings) {
            Ok(rig) => rig.to_toml(),
            Err(message) => message.to_string(),
        };
        add(&mut hasher, resolved.as_bytes());
        hasher
    }

    fn rig_of(&self, rig: usize, settings: usize) -> Result<&Rig, &str> {
        self.rigs[rig * self.settings.len() + settings].as_ref().map_err(String::as_str)
    }

    /// All cells: those of a rig are adjacent, the seeds change fastest.
    pub fn cells(&self) -> &[SweepCell] {
        &self.cells
    }

    /// The indices of the cells of a part: every n-th cell. Where settings are compared until the answer is clear, every n-th pair of rig
    /// and load, because a part can only compare its own rows.
    pub fn part(&self, part: SweepPart) -> impl Iterator<Item = usize> {
        let number = move |index: usize| match self.until_clear() {
            None => index,
            Some(_) => self.cells[index].rig * self.load_names.len() + self.cells[index].load,
        };
        (0..self.cells.len()).filter(move |index| number(*index) % part.of == part.number - 1)
    }

    /// The column that decides when settings get no more seeds.
    pub fn until_clear(&self) -> Option<&str> {
        Some(self.until_clear.as_str()).filter(|column| !column.is_empty())
    }

    /// The number of seeds of each rig, load and settings.
    pub(crate) fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The version of the models with which it runs.
    pub fn model_version(&self) -> &str {
        &self.model_version
    }

    /// The keys that its cells set, in the order of the columns.
    pub fn setting_keys(&self) -> &[String] {
        &self.setting_keys
    }

    /// Whether its rows have the distribution of the response times.
    pub(crate) fn has_histograms(&self) -> bool {
        self.histograms
    }

    /// The rig of a cell with its settings.
    ///
    /// *Errors:* why the rig refuses the settings.
    pub fn rig(&self, cell: &SweepCell) -> Result<&Rig, &str> {
        self.rig_of(cell.rig, cell.settings)
    }

    /// The name of a cell's rig in the sweep file.
    pub fn rig_name(&self, cell: &SweepCell) -> &str {
        &self.rig_names[cell.rig]
    }

    /// The name of a cell's load in the sweep file.
    pub fn load_name(&self, cell: &SweepCell) -> &str {
        &self.load_names[cell.load]
    }

    pub(crate) fn load_path(&self, cell: &SweepCell) -> &str {
        &self.load_paths[cell.load]
    }

    pub(crate) fn trace_options(&self) -> &TraceOptions {
        &self.trace_options
    }

    /// A cell's values of [`SweepPlan::setting_keys`]; none for a key that its settings do not set.
    pub fn setting_values(&self, cell: &SweepCell) -> impl Iterator<Item = Option<&str>> {
        let settings = &self.settings[cell.settings];
        self.setting_keys.iter().map(|key| settings.get(key).map(String::as_str))
    }

    /// A cell as one line for people: `atlas-10k drive.order=sptf, mix.fio, seed 3`.
    pub fn label(&self, cell: &SweepCell) -> String {
        let settings = self.settings[cell.settings].iter().map(|(key, value)| format!(" {key}={value}"));
        let settings: String = settings.collect();
        format!("{}{settings}, {}, seed {}", self.rig_name(cell), self.load_name(cell), cell.seed)
    }

    /// The hash of all keys in order.
    pub(crate) fn hash(&self) -> String {
        hash_of_keys(self.cells.iter().map(|cell| cell.key.as_str()))
    }

    /// The plan as JSON, for `sweep.json`. The text ends with a newline.
    pub fn to_json(&self) -> String {
        let cell = |cell: &SweepCell| {
            json!({
                "key": cell.key,
                "rig": self.rig_name(cell),
                "load": self.load_name(cell),
                "settings": self.settings[cell.settings],
                "seed": cell.seed,
            })
        };
        let mut document = json!({
            "model_version": self.model_version,
            "title": self.title,
            "plan": self.hash(),
            "setting_keys": self.setting_keys,
            "cells": self.cells.iter().map(cell).collect::<Vec<Value>>(),
        });
        if let Some(column) = self.until_clear() {
            document["until_clear"] = column.into();
        }
        serde_json::to_string_pretty(&document).expect("a plan is expressible in JSON") + "\n"
    }
}

/// The hash of a list of keys.
pub(crate) fn hash_of_keys<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Hasher::new();
    keys.for_each(|key| add(&mut hasher, key.as_bytes()));
    hasher.finalize().to_hex()[..KEY_DIGITS].to_string()
}

/// The rig with these settings.
fn changed(base: &Rig, settings: &SettingValues) -> Result<Rig, String> {
    let mut rig = base.clone();
    let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    rig.set_all(settings).map_err(|error| error.to_string())?;
    Ok(rig)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_parsed_and_its_bounds_are_checked() {
        assert_eq!("3/16".parse::<SweepPart>().ok(), Some(SweepPart { number: 3, of: 16 }));
        for text in ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"] {
            let refused = text.parse::<SweepPart>().expect_err("it is out of bounds").to_string();
            assert_eq!(refused, format!("part {text}: must be I/N with I from 1 to N, such as 3/16"));
        }
    }
}
