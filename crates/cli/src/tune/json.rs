//! The advice as JSON.

use super::{Tuned, apply, text};
use headstack::tune::{Gain, KNOBS, NOT_TUNED, TuneMetric};
use serde_json::{Value, json};

/// The document as text with a final newline.
pub(super) fn to_json(tuned: &Tuned<'_>) -> String {
    let outcome = &tuned.outcome;
    let advised = outcome.advised.iter().map(|advised| {
        let knob = &KNOBS[advised.choice.knob];
        json!({
            "setting": knob.name,
            "key": knob.key,
            "attribute": knob.attribute,
            "now": knob.value_in(&tuned.rig),
            "advised": advised.choice.text(),
            "change": percent(tuned.goal.metric, &advised.gain),
        })
    });
    let figures = outcome.by_metric.iter().map(|(metric, change)| {
        let name: &str = metric.name();
        (name.to_string(), figure(tuned, *metric, change))
    });
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "rig": tuned.command.rig,
        "load": tuned.command.load,
        "goal": tuned.goal.metric.name(),
        "bounds": tuned.goal.bounds.iter().map(text::bound).collect::<Vec<_>>(),
        "bounds_kept": tuned.goal.is_kept_by(&outcome.after),
        "advised": advised.collect::<Vec<_>>(),
        "change": percent(tuned.goal.metric, &outcome.whole),
        "figures": figures.collect::<serde_json::Map<_, _>>(),
        "commands": apply::commands(tuned),
        "runs": outcome.runs,
        "whole_runs": outcome.whole_runs,
        "combinations": outcome.combinations,
        "evidence": text::evidence(&tuned.rig),
        "not_tuned": NOT_TUNED,
    });
    serde_json::to_string_pretty(&document).expect("numbers and words are expressible in JSON") + "\n"
}

fn figure(tuned: &Tuned<'_>, metric: TuneMetric, change: &Gain) -> Value {
    let (before, after) = (tuned.outcome.before.get(metric), tuned.outcome.after.get(metric));
    json!({
        "unit": metric.unit(),
        "now": before,
        "advised": after,
        "change": percent(metric, change),
        "is_worse": change.is_loss(),
    })
}

/// Of the figure; a time that gets better changes by less than 0.
fn percent(metric: TuneMetric, gain: &Gain) -> Value {
    let [mean, least, most] = gain.change_percent(metric);
    json!({"percent": mean, "least_percent": least, "most_percent": most})
}
