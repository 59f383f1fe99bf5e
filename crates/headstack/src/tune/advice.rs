//! Reports the outcome of a search as text, JSON and Linux commands, and parses the names of knobs, metrics and limits.

use super::goal::{TuneBound, TuneGoal, TuneMetric};
use super::knobs::{IO_MAX, KNOBS, Knob, KnobOwner, NOT_TUNED, OTHERS};
use super::search::{AdvisedSetting, Gain, TuneOutcome};
use super::stripe;
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

    /// Parses a limit such as `p99<200` or `iops>500`.
    fn from_str(text: &str) -> Result<TuneBound, String> {
        let place = text.find(['<', '>']).ok_or("must be METRIC<NUMBER or METRIC>NUMBER, such as p99<200")?;
        let metric: TuneMetric = text[..place].trim().parse()?;
        let is_most = text[place..].starts_with('<');
        if is_most == metric.grows() {
            let sign = if metric.grows() { '>' } else { '<' };
            return Err(format!("a limit of {} is {}{sign}NUMBER", metric.name(), metric.name()));
        }
        let limit = text[place + 1..].trim();
        match limit.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(TuneBound { metric, limit }),
            _ => Err(format!("`{limit}` is no number above 0")),
        }
    }
}

impl fmt::Display for TuneBound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.metric.grows() { '>' } else { '<' };
        write!(out, "{}{sign}{}", self.metric.name(), self.limit)
    }
}

impl TuneOutcome {
    /// The advised settings in the order in which they must be set: a scheduler's parameters exist once it is chosen.
    fn in_order(&self) -> Vec<&AdvisedSetting> {
        let mut all: Vec<&AdvisedSetting> = self.advised.iter().collect();
        all.sort_by_key(|advised| advised.choice.knob);
        all
    }

    /// The rig with the advised settings.
    fn advised_rig(&self, rig: &Rig) -> Rig {
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
    fn of_owner(&self, owner: KnobOwner) -> Vec<(&'static Knob, &'static str)> {
        let all = self.in_order().into_iter().map(|one| (&KNOBS[one.choice.knob], one.choice.text()));
        all.filter(|(knob, _)| knob.owner == owner).collect()
    }

    /// Commands that apply the advised settings. Attributes of the disk last until the next boot, an array's chunk is permanent, a node's keys last
    /// until the node stops. A partition's start needs a new partition table, which loses the data. `PID` stands for each process of the other jobs.
    ///
    /// `rig` is the rig before the advice, `disk` is a name such as `sda`, `array` one such as `md0`.
    pub fn commands(&self, rig: &Rig, disk: &str, array: &str) -> Vec<String> {
        let after = self.advised_rig(rig);
        let parted = if rig.resolved().array.is_empty() { disk } else { array };
        let to_disk = |value: &str, attribute: &str| format!("echo {value} > /sys/block/{disk}/{attribute}");
        let mut all = Vec::new();
        for advised in self.in_order() {
            let knob @ Knob { owner, attribute, .. } = &KNOBS[advised.choice.knob];
            let value = advised.choice.text();
            all.push(match owner {
                KnobOwner::Disk => to_disk(value, attribute),
                KnobOwner::Array => format!("mdadm --grow /dev/{array} {attribute}={value}"),
                KnobOwner::Partition => {
                    let start = after.resolved().host.partition_start * stripe::UNIT_BYTES;
                    format!("parted --script /dev/{parted} mklabel gpt mkpart data {start}B 100%")
                }
                KnobOwner::OtherJobs if knob.name == IO_MAX => io_max_commands(parted, value),
                KnobOwner::OtherJobs => format!("ionice --class {value} --pid PID"),
                KnobOwner::Node => format!("headstack serve node.toml --set disk.{attribute}={value}"),
            });
            all.extend(knob.companion(value).map(|(attribute, value)| to_disk(value, attribute)));
        }
        all
    }

    /// A udev rule that applies the disk's settings whenever the disk appears, with `title` in its first line; none if no setting is of the disk.
    pub fn udev_rule(&self, disk: &str, title: &str) -> Option<String> {
        let advised = self.of_owner(KnobOwner::Disk);
        let with_companion =
            |(knob, value): &(&Knob, &'static str)| [Some((knob.attribute, *value)), knob.companion(value)];
        let one = |(attribute, value)| format!(", ATTR{{{attribute}}}=\"{value}\"");
        let settings: String = advised.iter().flat_map(with_companion).flatten().map(one).collect();
        (!advised.is_empty()).then(|| {
            format!(
                "# {title}: /etc/udev/rules.d/60-headstack-{disk}.rules\nACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\"{settings}\n"
            )
        })
    }

    /// The advised keys of a storage node, as lines below a `[[disk]]` of its node file; none if no setting is of a node.
    pub fn node_keys(&self, title: &str) -> Option<String> {
        let advised = self.of_owner(KnobOwner::Node);
        let lines: String =
            advised.iter().map(|(knob, value)| format!("{} = {value}\n", knob.attribute)).collect();
        (!advised.is_empty()).then(|| format!("# {title}: keys of a [[disk]]\n{lines}"))
    }

    /// The outcome as a JSON object; `rig` is the rig before the advice.
    pub fn to_object(&self, rig: &Rig, goal: &TuneGoal, disk: &str, array: &str) -> Map<String, Value> {
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
            "commands": self.commands(rig, disk, array),
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

/// Commands that put processes into a control group and limit what it reads and writes of a disk or an array. *Source:* the kernel's "Control
/// Group v2".
fn io_max_commands(disk: &str, bytes_per_s: &str) -> String {
    let group = format!("/sys/fs/cgroup/{OTHERS}");
    let limits = format!("$(cat /sys/block/{disk}/dev) rbps={bytes_per_s} wbps={bytes_per_s}");
    format!(
        "echo +io > /sys/fs/cgroup/cgroup.subtree_control && mkdir -p {group} && echo \"{limits}\" > {group}/io.max && echo PID > {group}/cgroup.procs"
    )
}

/// The change of a figure in percent with its interval, as JSON; negative where a response time improves.
pub fn change_to_json(metric: TuneMetric, gain: &Gain) -> Value {
    let [mean, least, most] = gain.change_percent(metric);
    json!({"percent": mean, "least_percent": least, "most_percent": most})
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
