//! Reports the outcome of a search as JSON, and parses the names of knobs, metrics and limits.

use super::commands::{RebuildCommand, TuneDevices};
use super::goal::{TuneBound, TuneGoal, TuneMetric};
use super::knobs::{KNOBS, Knob, KnobOwner, NOT_TUNED};
use super::losses::{self, TuneJobChange};
use super::search::{AdvisedSetting, Gain, TuneOutcome};
use headstack_model::spec::{Evidence, nearest};
use headstack_sim::rig::Rig;
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;

/// The error message for a word that is none of `names`.
fn unknown(word: &str, names: &[&'static str]) -> String {
    let hint = nearest(word, names.iter().copied())
        .map_or_else(|| format!("one of {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
    format!("nothing is called `{word}`; {hint}")
}

/// Index in [`KNOBS`] of the knob with this name.
///
/// *Errors:* no such knob; the message suggests the nearest name.
pub fn knob_named(name: &str) -> Result<usize, String> {
    let found = KNOBS.iter().position(|knob| knob.name == name);
    found.ok_or_else(|| unknown(name, &KNOBS.map(|knob| knob.name)))
}

impl FromStr for TuneMetric {
    type Err = String;

    /// Parses a metric's name on the command line.
    fn from_str(text: &str) -> Result<TuneMetric, String> {
        let found = TuneMetric::ALL.into_iter().find(|metric| metric.name() == text);
        found.ok_or_else(|| unknown(text, &TuneMetric::ALL.map(TuneMetric::name)))
    }
}

impl FromStr for TuneBound {
    type Err = String;

    /// Parses a limit such as `p99<200`, `iops>500` or, of a job, `batch.iops>5`.
    fn from_str(text: &str) -> Result<TuneBound, String> {
        let form = "must be METRIC<NUMBER or METRIC>NUMBER, such as p99<200, or of a job JOB.METRIC>NUMBER, such as batch.iops>5";
        let place = text.rfind(['<', '>']).ok_or(form)?;
        let (job, metric) = match text[..place].rsplit_once('.') {
            Some((job, metric)) => (Some(job.trim().to_string()), metric),
            None => (None, &text[..place]),
        };
        let metric: TuneMetric = metric.trim().parse()?;
        if job.is_some() && metric == TuneMetric::Others {
            return Err("others is a figure of several jobs; a limit of one is JOB.iops or JOB.throughput"
                .to_string());
        }
        let is_most = text[place..].starts_with('<');
        if is_most == metric.grows() {
            let sign = if metric.grows() { '>' } else { '<' };
            return Err(format!("a limit of {} is {}{sign}NUMBER", metric.name(), metric.name()));
        }
        let limit = text[place + 1..].trim();
        match limit.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(TuneBound { job, metric, limit }),
            _ => Err(format!("`{limit}` is no number above 0")),
        }
    }
}

impl fmt::Display for TuneBound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.metric.grows() { '>' } else { '<' };
        if let Some(job) = &self.job {
            write!(out, "{job}.")?;
        }
        write!(out, "{}{sign}{}", self.metric.name(), self.limit)
    }
}

impl TuneOutcome {
    /// Each job's reads, writes and flushes, if there are several.
    pub fn jobs(&self) -> impl Iterator<Item = TuneJobChange<'_>> {
        losses::job_changes(self)
    }

    /// What the advice costs, each in a sentence without its end: figures of the load that become more than twice as bad, then jobs. None if
    /// nothing is advised.
    pub fn losses(&self) -> Vec<String> {
        losses::losses(self)
    }

    /// The advised settings in the order in which they must be set: a scheduler's parameters exist once it is chosen.
    pub(super) fn in_order(&self) -> Vec<&AdvisedSetting> {
        let mut all: Vec<&AdvisedSetting> = self.advised.iter().collect();
        all.sort_by_key(|advised| advised.choice.knob);
        all
    }

    /// The rig with the advised settings.
    pub(super) fn advised_rig(&self, rig: &Rig) -> Rig {
        let mut after = rig.clone();
        for advised in self.in_order() {
            let set = KNOBS[advised.choice.knob].set(&mut after, advised.choice.text());
            set.expect("the rig had it in a run");
        }
        after
    }

    /// Values of the advised settings, largest gain first. A partition's start is computed with the advised chunk.
    pub fn advised_values(&self, rig: &Rig) -> Vec<String> {
        let after = self.advised_rig(rig);
        let value = |advised: &AdvisedSetting| match (&KNOBS[advised.choice.knob], advised.choice.text()) {
            (knob, text) if knob.owner == KnobOwner::Partition => knob.key_value(&after, text),
            (_, text) => text.to_string(),
        };
        self.advised.iter().map(value).collect()
    }

    /// The advised settings of an owner, each with its value.
    pub(super) fn of_owner(&self, owner: KnobOwner) -> Vec<(&'static Knob, &'static str)> {
        let all = self.in_order().into_iter().map(|one| (&KNOBS[one.choice.knob], one.choice.text()));
        all.filter(|(knob, _)| knob.owner == owner).collect()
    }

    /// The outcome as a JSON object; `rig` is the rig before the advice.
    pub fn to_object(&self, rig: &Rig, goal: &TuneGoal, devices: &TuneDevices) -> Map<String, Value> {
        let after = self.advised_rig(rig);
        let advised = self.advised.iter().zip(self.advised_values(rig)).map(|(advised, value)| {
            let knob = &KNOBS[advised.choice.knob];
            json!({
                "setting": knob.name,
                "key": knob.key,
                "key_value": knob.key_value(&after, advised.choice.text()),
                "attribute": knob.attribute,
                "now": knob.value_in(rig),
                "advised": value,
                "change": change_to_json(goal.metric, &advised.gain),
            })
        });
        let figures = self.by_metric.iter().map(|(metric, change)| {
            let figure = json!({
                "unit": metric.unit(),
                "now": self.before.get(*metric),
                "advised": self.after.get(*metric),
                "change": change_to_json(*metric, change),
                "is_worse": change.is_loss(),
            });
            (metric.name().to_string(), figure)
        });
        let object = json!({
            "goal": goal.metric.name(),
            "bounds": goal.bounds.iter().map(TuneBound::to_string).collect::<Vec<_>>(),
            "job": goal.job,
            "bounds_kept": goal.is_kept_by(&self.after),
            "advised": advised.collect::<Vec<_>>(),
            "change": change_to_json(goal.metric, &self.whole),
            "figures": figures.collect::<Map<_, _>>(),
            "jobs": self.jobs().map(|change| change.to_json()).collect::<Vec<_>>(),
            "losses": self.losses(),
            "commands": self.commands(devices),
            "rebuild_commands": self.rebuild_commands(rig, devices).iter().map(RebuildCommand::to_json).collect::<Vec<_>>(),
            "array_layout": self.array_layout(rig).map(|layout| layout.to_json()),
            "runs": self.runs,
            "whole_runs": self.whole_runs,
            "combinations": self.combinations,
            "evidence": evidence(rig),
            "not_tuned": NOT_TUNED,
        });
        match object {
            Value::Object(object) => object,
            _ => Map::new(),
        }
    }
}

/// The change of a figure in percent with its interval, as JSON; negative where a response time improves. The interval is null where each seed
/// gave the same.
pub fn change_to_json(metric: TuneMetric, gain: &Gain) -> Value {
    let [mean, least, most] = gain.change_percent(metric);
    let end = |end: f64| (!gain.is_without_chance()).then_some(end);
    json!({"percent": mean, "least_percent": end(least), "most_percent": end(most)})
}

/// For each drive file of a rig, the evidence for it, as text.
pub fn evidence(rig: &Rig) -> String {
    let mut all: Vec<String> = Vec::new();
    for group in &rig.resolved().drive {
        let basis = match group.spec.evidence {
            Evidence::Validated => "was compared with the response times of a real one",
            Evidence::Fitted => "was fitted to measurements of a real one",
            Evidence::DataSheet => "is from its data sheet",
            Evidence::Derived => "has figures inferred from other drives",
        };
        let line = format!("the drive file {} {basis}", group.spec.name);
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_a_job_is_parsed_and_printed_alike() {
        for text in ["p99<200", "iops>0.5", "batch.iops>5", "nightly v1.2.throughput>3.5", "a<b.mean<7"] {
            assert_eq!(text.parse::<TuneBound>().map(|bound| bound.to_string()), Ok(text.to_string()));
        }
        let job = |text: &str| text.parse::<TuneBound>().map(|bound| bound.job);
        assert_eq!(job("nightly v1.2.throughput>3.5"), Ok(Some("nightly v1.2".to_string())));
        assert!(job("batch.others>5").is_err_and(|message| message.contains("JOB.throughput")));
        assert!(job("batch.iops<5").is_err_and(|message| message == "a limit of iops is iops>NUMBER"));
        assert!(job("batch.iop>5").is_err_and(|message| message.contains("did you mean `iops`?")));
    }
}
