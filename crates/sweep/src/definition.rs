//! The sweep file: rigs, loads, settings and seeds.

use crate::columns::FIGURES;
use crate::combinations::Combinations;
use crate::settings::{CELLS_MAX, RandomSettings};
use headstack::TraceOptions;
use headstack_model::SpecError;
use headstack_model::spec::{Fault, KeyRules, nearest};
use headstack_workload::trace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::Table;

/// A definition: the runs are `rigs` × `loads` × settings × seeds.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// Title of the sweep, for people.
    #[serde(default)]
    pub title: String,
    /// Shipped rigs or drives, or files relative to the sweep file (a name with `/` or `.toml`).
    pub rigs: Vec<String>,
    /// Fio job files, load files or traces, relative to the sweep file.
    pub loads: Vec<String>,
    /// Number of seeds.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub seeds: u64,
    /// The first seed; the others follow it.
    #[serde(default)]
    pub first_seed: u64,
    /// Whether each row has the distribution of the response times.
    #[serde(default)]
    pub histograms: bool,
    /// Whether each row has the figures of each job of the load, in columns such as `job.log.flush_p99_ms`.
    #[serde(default)]
    pub by_job: bool,
    /// A column with figures, such as `p99_ms`. A combination of settings gets no more seeds once its figure in this column differs from
    /// that of the first combination by more than chance. Empty: all get all seeds.
    #[serde(default)]
    pub until_clear: String,
    /// How loads that are traces are read, as by the options of `sim`.
    #[serde(default)]
    pub trace: TraceKeys,
    /// Keys of the rigs, each with a list of values: every combination is run.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    grid: Table,
    /// Combinations one by one (`[[list]]`): keys of the rigs, each with one value.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    list: Vec<Table>,
    /// Settings drawn at random.
    #[serde(default)]
    random: Option<RandomSettings>,
}

fn one() -> u64 {
    1
}

/// How loads that are traces are read.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceKeys {
    /// The format, where the first bytes do not determine it.
    pub format: Option<String>,
    /// Factor of the times: 0.5 is twice as fast.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub time_scale: Option<f64>,
    /// Whether blocks beyond the end of a volume wrap around.
    #[serde(default)]
    pub wrap: bool,
    /// The volume for all devices of the trace, from 0 on.
    pub all_to: Option<u32>,
    /// Maximum number of malformed records that are skipped.
    #[serde(default)]
    pub skip_bad: u64,
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<SweepFile>);

impl SweepFile {
    /// Parses and checks a sweep file. `origin` (the file's name) goes into errors.
    ///
    /// *Errors:* the first fault, with its line, its key and what is allowed.
    pub fn parse(text: &str, origin: &str) -> Result<SweepFile, SpecError> {
        let file: SweepFile =
            toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))?;
        file.check().map_err(|fault| located(text, origin, fault))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), Fault> {
        RULES.check(self, "")?;
        let fault = |key: &str, message: &str| Err(Fault::new(key, message));
        if self.rigs.is_empty() {
            return fault("rigs", "is empty; name at least one rig or drive");
        }
        if self.loads.is_empty() {
            return fault("loads", "is empty; name at least one load");
        }
        if let Some(name) = self.trace.format.as_deref().filter(|name| trace::named(name).is_none()) {
            let names: Vec<&str> = trace::all().iter().map(|format| format.name).collect();
            return fault("format", &format!("`{name}` is none of {}", names.join(", ")));
        }
        self.check_until_clear()?;
        let settings = self.settings()?.len() as u64;
        let names = (self.rigs.len() * self.loads.len()) as u64;
        let cells = names.checked_mul(settings).and_then(|cells| cells.checked_mul(self.seeds));
        if cells.is_none_or(|cells| cells > CELLS_MAX as u64) {
            return fault("seeds", &format!("more than {CELLS_MAX} cells; divide the sweep"));
        }
        Ok(())
    }

    fn check_until_clear(&self) -> Result<(), Fault> {
        let column = self.until_clear.as_str();
        let names = || FIGURES.iter().map(|(name, _)| *name);
        if column.is_empty() || names().any(|name| name == column) {
            return Ok(());
        }
        let cure = nearest(column, names()).map_or_else(
            || format!("one of {}", names().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        Err(Fault::new("until_clear", format!("no column with figures is called `{column}`; {cure}")))
    }

    /// How its traces are read.
    pub(crate) fn trace_options(&self) -> TraceOptions {
        TraceOptions {
            format: self.trace.format.as_deref().and_then(trace::named),
            time_scale: self.trace.time_scale.unwrap_or(1.0),
            wrap: self.trace.wrap,
            all_to: self.trace.all_to,
            malformed_max: self.trace.skip_bad,
        }
    }

    /// All combinations of settings in order: every combination of the grid with each of the list and each draw, each once.
    ///
    /// *Errors:* a key and what is wrong with its values.
    pub(crate) fn settings(&self) -> Result<Combinations, Fault> {
        Combinations::new(&self.grid, &self.list, self.random.as_ref())
    }

    /// The settings as they are written: what decides about their combinations.
    pub(crate) fn written_settings(&self) -> Value {
        json!({"grid": self.grid, "list": self.list, "random": self.random})
    }
}

/// An error at the line where the key is written.
fn located(text: &str, origin: &str, Fault { key, message }: Fault) -> SpecError {
    let last = key.rsplit('.').next().unwrap_or(&key);
    let is_key = |line: &str| {
        let left = line.split('=').next().unwrap_or_default();
        left.split(['.', '"', '\'', '[', ']']).any(|part| part.trim() == last)
    };
    let line = text.lines().position(is_key).map_or(0, |index| index + 1);
    SpecError { origin: origin.to_string(), line, key, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "rigs = [\"atlas-10k\"]\nloads = [\"a.fio\"]\n";

    fn settings(text: &str) -> Vec<String> {
        let file = SweepFile::parse(&format!("{HEAD}{text}"), "s.toml").unwrap_or_else(|e| panic!("{e}"));
        let all = file.settings().unwrap_or_else(|fault| panic!("{fault}"));
        let line = |(key, value): (&String, &String)| format!("{key}={value}");
        let one = |index: usize| all.settings(index).iter().map(line).collect::<Vec<_>>().join(" ");
        (0..all.len()).map(one).collect()
    }

    fn refused(text: &str) -> String {
        SweepFile::parse(text, "s.toml").expect_err("the file is invalid").to_string()
    }

    #[test]
    fn grid_combines_with_each_entry_of_the_list() {
        let text = "[grid]\ndrive.order = [\"fcfs\", \"sptf\"]\n[[list]]\ndrive.queue_depth = 4\n[[list]]\n";
        let found = settings(text);
        assert_eq!(
            found,
            [
                "drive.order=fcfs drive.queue_depth=4",
                "drive.order=fcfs",
                "drive.order=sptf drive.queue_depth=4",
                "drive.order=sptf"
            ]
        );
        assert_eq!(settings(""), [""], "without settings there is one run for each rig, load and seed");
        let repeated =
            "[grid]\ndrive.queue_depth = [1, 1, 2]\n[[list]]\ndrive.queue_depth = 2\n[[list]]\n[[list]]\n";
        assert_eq!(settings(repeated), ["drive.queue_depth=2", "drive.queue_depth=1"], "each once");
    }

    #[test]
    fn invalid_definition_names_line_key_and_cure() {
        assert_eq!(
            refused("rigs = []\nloads = [\"a\"]"),
            "s.toml:1: rigs: is empty; name at least one rig or drive"
        );
        let found = refused(&format!("{HEAD}[grid]\ndrive.order = 4\n"));
        assert_eq!(found, "s.toml:4: drive.order: must be a list of values, such as [1, 8, 32]");
        assert!(refused(&format!("{HEAD}sedes = 4\n")).contains("did you mean `seeds`?"));
        let found = refused(&format!("{HEAD}until_clear = \"p99\"\n"));
        assert_eq!(
            found,
            "s.toml:3: until_clear: no column with figures is called `p99`; did you mean `p99_ms`?"
        );
        assert!(refused(&format!("{HEAD}seeds = 0\n")).contains("0 is outside 1 to 10000000"));
    }
}
