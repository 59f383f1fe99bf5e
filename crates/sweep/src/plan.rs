//! The plan of a sweep: its cells, each with a number and a key.

use crate::columns::RowLayout;
use crate::combinations::Combinations;
use crate::definition::SweepFile;
use crate::error::SweepError;
use crate::inputs::{LoadHasher, add};
use crate::objects::{LoadPlace, SweepObjects, SweepRig, SweepSetup};
use crate::settings::{SettingKind, SettingValues};
use blake3::{Hash, Hasher};
use headstack::{FileSource, Rig, TraceOptions, load_rig};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Hexadecimal digits of a key: 128 bits.
pub(crate) const KEY_DIGITS: usize = 32;

/// One run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepCell {
    /// Its number in the plan, from 0 on.
    pub index: usize,
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

/// Combinations that are tried before a sweep of which no rig accepts one is refused.
const TRIED: usize = 1000;

/// The cells of a sweep: rigs × settings × loads × seeds. All cells of a seed get the same random numbers, so that they can be
/// compared in pairs. A plan does not list its cells: each is made from its number when it is needed.
pub struct SweepPlan {
    title: String,
    model_version: String,
    rig_names: Vec<String>,
    rigs: Vec<SweepRig>,
    load_names: Vec<String>,
    loads: Vec<LoadPlace>,
    /// The content of each load on each rig.
    contents: Vec<Vec<Hash>>,
    settings: Combinations,
    layout: RowLayout,
    /// How traces are read, as part of the keys.
    written_options: String,
    trace_options: TraceOptions,
    by_job: bool,
    /// The column that decides when settings get no more seeds; empty if all get all.
    until_clear: String,
    first_seed: u64,
    seeds: u64,
    identity: String,
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
        SweepPlan::with_objects(file, origin, model_version, files, &SweepObjects::default())
    }

    /// The plan of a sweep file, some of whose rigs and loads a program made: those that `objects` has by their names.
    ///
    /// *Errors:* those of [`SweepPlan::new`].
    pub fn with_objects(
        file: &SweepFile,
        origin: &str,
        model_version: &str,
        files: &(dyn headstack::FileSource + Sync),
        objects: &SweepObjects,
    ) -> Result<SweepPlan, SweepError> {
        let settings = file.settings().map_err(|fault| SweepError::Settings {
            origin: origin.to_string(),
            message: fault.to_string(),
        })?;
        let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
        let (rig_names, load_names) = (once_each(&file.rigs), once_each(&file.loads));
        let load_base = |name: &String| match objects.rigs.get(name) {
            Some(rig) => Ok(rig.clone()),
            None if headstack::is_file(name) => named(&folder.join(name).display().to_string(), files),
            None => named(name, files),
        };
        let load = |name: &String| match objects.loads.get(name) {
            Some(load) => LoadPlace::Object(Arc::clone(load)),
            None => LoadPlace::Path(folder.join(name).display().to_string()),
        };
        let mut plan = SweepPlan {
            title: file.title.clone(),
            model_version: model_version.to_string(),
            rigs: rig_names.iter().map(load_base).collect::<Result<_, _>>()?,
            rig_names,
            loads: load_names.iter().map(load).collect(),
            load_names,
            contents: Vec::new(),
            layout: RowLayout { settings: settings.kinds().clone(), has_histograms: file.histograms },
            settings,
            written_options: serde_json::to_string(&file.trace).expect("options are expressible in JSON"),
            trace_options: file.trace_options(),
            by_job: file.by_job,
            until_clear: file.until_clear.clone(),
            first_seed: file.first_seed,
            seeds: file.seeds,
            identity: String::new(),
        };
        plan.check_settings(origin)?;
        let mut hasher = LoadHasher::new(files);
        for rig in &plan.rigs {
            let hashes = plan.loads.iter().map(|load| hasher.hash(load, &rig.rig, &plan.trace_options));
            plan.contents.push(hashes.collect::<Result<_, _>>()?);
        }
        plan.identity = plan.identity_of(file);
        Ok(plan)
    }

    /// *Errors:* no rig accepts the settings; of many combinations some are tried, spread evenly.
    fn check_settings(&self, origin: &str) -> Result<(), SweepError> {
        let all = self.rigs.len() * self.settings.len();
        let step = all.div_ceil(TRIED).max(1);
        let mut refused = None;
        for index in (0..all).step_by(step) {
            match self.changed(index / self.settings.len(), index % self.settings.len()) {
                Ok(_) => return Ok(()),
                Err(message) => refused = refused.or(Some(message)),
            }
        }
        let error = |message| SweepError::Settings { origin: origin.to_string(), message };
        refused.map_or(Ok(()), |message| Err(error(message)))
    }

    /// A rig with a combination of settings.
    fn changed(&self, rig: usize, settings: usize) -> Result<Rig, String> {
        changed(&self.rigs[rig].rig, &self.settings.settings(settings))
    }

    /// The hash of all that decides about the cells and their order.
    fn identity_of(&self, file: &SweepFile) -> String {
        let mut hasher = self.common_hasher();
        let numbers = [self.rigs.len() as u64, self.loads.len() as u64, self.first_seed, self.seeds];
        numbers.iter().for_each(|number| add(&mut hasher, &number.to_le_bytes()));
        add(&mut hasher, file.written_settings().to_string().as_bytes());
        add(&mut hasher, self.written_options.as_bytes());
        for (name, rig) in self.rig_names.iter().zip(&self.rigs) {
            add(&mut hasher, name.as_bytes());
            add_rig(&mut hasher, rig, &rig.rig);
        }
        self.load_names.iter().for_each(|name| add(&mut hasher, name.as_bytes()));
        self.contents.iter().flatten().for_each(|hash| add(&mut hasher, hash.as_bytes()));
        hasher.finalize().to_hex()[..KEY_DIGITS].to_string()
    }

    /// A hasher of the model's version and the columns.
    fn common_hasher(&self) -> Hasher {
        let mut hasher = Hasher::new();
        add(&mut hasher, self.model_version.as_bytes());
        let keys: Vec<&str> = self.layout.settings.keys().map(String::as_str).collect();
        add(&mut hasher, keys.join("\n").as_bytes());
        if self.layout.has_histograms {
            add(&mut hasher, b"histograms");
        }
        if self.by_job {
            add(&mut hasher, b"by job");
        }
        hasher
    }

    /// The key of a cell: the hash of everything that its row depends on. The names are in the row, so that they are in the key.
    pub fn key(&self, cell: &SweepCell) -> String {
        let mut hasher = self.common_hasher();
        add(&mut hasher, self.rig_name(cell).as_bytes());
        let settings = self.settings.settings(cell.settings);
        for (key, value) in &settings {
            add(&mut hasher, key.as_bytes());
            add(&mut hasher, value.as_bytes());
        }
        let base = &self.rigs[cell.rig];
        match changed(&base.rig, &settings) {
            Ok(rig) => add_rig(&mut hasher, base, &rig),
            Err(message) => add(&mut hasher, message.as_bytes()),
        }
        add(&mut hasher, self.written_options.as_bytes());
        add(&mut hasher, self.load_name(cell).as_bytes());
        add(&mut hasher, self.contents[cell.rig][cell.load].as_bytes());
        add(&mut hasher, &cell.seed.to_le_bytes());
        hasher.finalize().to_hex()[..KEY_DIGITS].to_string()
    }

    /// All cells by their keys: about ten microseconds each, so that only the rows of another definition need it.
    pub(crate) fn index_by_key(&self) -> KeyIndex {
        let key = |cell: SweepCell| {
            let key = u128::from_str_radix(&self.key(&cell), 16);
            (key.expect("a key has hexadecimal digits"), cell.index)
        };
        let mut index: Vec<(u128, usize)> = self.cells().map(key).collect();
        index.sort_unstable();
        KeyIndex(index)
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.rigs.len() * self.settings.len() * self.loads.len() * self.seeds as usize
    }

    /// Whether it has no cells; a sweep file has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell of a number below [`SweepPlan::len`]. Those of a rig are adjacent, the seeds change fastest.
    pub fn cell(&self, index: usize) -> SweepCell {
        let (others, seed) = (index / self.seeds as usize, (index % self.seeds as usize) as u64);
        let (others, load) = (others / self.loads.len(), others % self.loads.len());
        let (rig, settings) = (others / self.settings.len(), others % self.settings.len());
        SweepCell { index, rig, load, settings, seed: self.first_seed.wrapping_add(seed) }
    }

    /// All cells, in the order of their numbers.
    pub fn cells(&self) -> impl Iterator<Item = SweepCell> {
        (0..self.len()).map(|index| self.cell(index))
    }

    /// The numbers of the cells of a part: every n-th cell. Where settings are compared until the answer is clear, every n-th pair of rig
    /// and load, because a part can only compare its own rows.
    pub fn part(&self, part: SweepPart) -> impl Iterator<Item = usize> {
        let step = if self.until_clear().is_none() { part.of } else { 1 };
        let first = if self.until_clear().is_none() { part.number - 1 } else { 0 };
        (first..self.len()).step_by(step).filter(move |index| self.part_of(*index, part.of) == part)
    }

    /// The part of several to which a cell belongs.
    pub fn part_of(&self, index: usize, of: usize) -> SweepPart {
        let number = match self.until_clear() {
            None => index,
            Some(_) => {
                let cell = self.cell(index);
                cell.rig * self.loads.len() + cell.load
            }
        };
        SweepPart { number: number % of + 1, of }
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

    /// The hash of all that decides about the cells and their order.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The keys that its cells set, each a column of the rows, and what their values are.
    pub fn setting_kinds(&self) -> &BTreeMap<String, SettingKind> {
        &self.layout.settings
    }

    /// The columns that all its rows have.
    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Whether its rows have the distribution of the response times.
    pub(crate) fn has_histograms(&self) -> bool {
        self.layout.has_histograms
    }

    /// Whether its rows have the figures of jobs.
    pub(crate) fn has_jobs(&self) -> bool {
        self.by_job
    }

    /// The rig of a cell with its settings.
    ///
    /// *Errors:* why the rig refuses the settings.
    pub fn rig(&self, cell: &SweepCell) -> Result<Rig, String> {
        self.changed(cell.rig, cell.settings)
    }

    /// What a program puts into each simulation of a cell's rig.
    pub(crate) fn setup(&self, cell: &SweepCell) -> Option<&dyn SweepSetup> {
        self.rigs[cell.rig].setup.as_deref()
    }

    /// The name of a cell's rig in the sweep file.
    pub fn rig_name(&self, cell: &SweepCell) -> &str {
        &self.rig_names[cell.rig]
    }

    /// The name of a cell's load in the sweep file.
    pub fn load_name(&self, cell: &SweepCell) -> &str {
        &self.load_names[cell.load]
    }

    pub(crate) fn load_place(&self, cell: &SweepCell) -> &LoadPlace {
        &self.loads[cell.load]
    }

    pub(crate) fn trace_options(&self) -> &TraceOptions {
        &self.trace_options
    }

    /// A cell's values of the keys that some cell sets, in the order of the columns; none for a key that its settings do not set.
    pub fn setting_values(&self, cell: &SweepCell) -> Vec<Option<String>> {
        let mut settings = self.settings.settings(cell.settings);
        self.layout.settings.keys().map(|key| settings.remove(key)).collect()
    }

    /// A cell as one line for people: `atlas-10k drive.order=sptf, mix.fio, seed 3`.
    pub fn label(&self, cell: &SweepCell) -> String {
        let settings = self.settings.settings(cell.settings);
        let settings: String = settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        format!("{}{settings}, {}, seed {}", self.rig_name(cell), self.load_name(cell), cell.seed)
    }

    /// The plan as JSON, for `sweep.json`. The text ends with a newline.
    pub(crate) fn to_json(&self) -> String {
        let mut document = json!({
            "model_version": self.model_version,
            "title": self.title,
            "plan": self.identity,
            "cells": self.len(),
            "rigs": self.rig_names,
            "loads": self.load_names,
            "settings": self.settings.len(),
            "setting_keys": self.layout.settings,
            "first_seed": self.first_seed,
            "seeds": self.seeds,
        });
        if let Some(column) = self.until_clear() {
            document["until_clear"] = column.into();
        }
        serde_json::to_string_pretty(&document).expect("a plan is expressible in JSON") + "\n"
    }
}

/// The numbers of a plan's cells by their keys.
pub(crate) struct KeyIndex(Vec<(u128, usize)>);

impl KeyIndex {
    pub(crate) fn get(&self, key: &str) -> Option<usize> {
        let key = u128::from_str_radix(key, 16).ok()?;
        let place = self.0.binary_search_by_key(&key, |(known, _)| *known).ok()?;
        Some(self.0[place].1)
    }
}

/// A rig by its name.
fn named(name: &str, files: &dyn FileSource) -> Result<SweepRig, headstack::Error> {
    Ok(SweepRig { rig: load_rig(name, files)?, setup: None })
}

/// The names, those that are repeated once.
fn once_each(names: &[String]) -> Vec<String> {
    let mut met = BTreeSet::new();
    names.iter().filter(|name| met.insert(*name)).cloned().collect()
}

/// Adds a rig as it is resolved, and what the program puts into its simulations.
fn add_rig(hasher: &mut Hasher, base: &SweepRig, rig: &Rig) {
    add(hasher, rig.to_toml().as_bytes());
    if let Some(setup) = &base.setup {
        add(hasher, &setup.content());
    }
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
