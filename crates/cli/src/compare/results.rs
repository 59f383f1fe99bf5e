//! A comparison as JSON.

use super::Comparison;
use super::figures::{Metric, Ran};
use crate::versioned;
use serde_json::{Map, Value, json};

/// The document as text with a final newline.
pub(super) fn to_json(comparison: &Comparison) -> String {
    let rigs = comparison.rigs.iter().map(|(name, rig)| {
        json!({"name": name, "rig": serde_json::to_value(rig.resolved()).expect("a rig is expressible in JSON")})
    });
    let document = json!({
        "load": comparison.load,
        "seed": comparison.seed,
        "seeds": comparison.seeds,
        "baseline": comparison.baseline_label,
        "goal": comparison.goal.map(|goal| goal.text()),
        "partial": comparison.partial.map(|partial| {
            json!({"signal": partial.signal.name(), "runs": comparison.ran.len(), "of": partial.wanted})
        }),
        "rigs": rigs.collect::<Vec<_>>(),
        "failed": comparison.failed.iter().map(|cell| {
            json!({"label": cell.label, "error": cell.failure.to_string()})
        }).collect::<Vec<_>>(),
        "runs": comparison.ran.iter().map(|ran| run(comparison, ran)).collect::<Vec<_>>(),
    });
    versioned::text(&document)
}

fn run(comparison: &Comparison, ran: &Ran) -> Value {
    let settings: Map<String, Value> =
        ran.cell.settings.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    let others = ran.runs[1..].iter().map(|figures| figures.object.clone());
    json!({
        "label": ran.cell.label(),
        "rig_name": ran.cell.rig_name,
        "settings": settings,
        "seeds": ran.runs.len(),
        "meets_goal": comparison.goal.map(|goal| goal.is_met(ran)),
        "figures": figures(comparison, ran),
        "headstack": ran.runs[0].object,
        "other_seeds": others.collect::<Vec<_>>(),
    })
}

/// Each metric over the seeds, its interval, and its difference from the baseline.
fn figures(comparison: &Comparison, ran: &Ran) -> Map<String, Value> {
    let base = comparison.baseline().filter(|base| !std::ptr::eq(*base, ran));
    let figure = |metric: Metric| {
        let difference = base.and_then(|base| ran.difference(base, metric));
        let value = json!({
            "mean": ran.value(metric),
            "plus_minus": ran.interval(metric).map(|interval| interval.half_width),
            "difference_share": difference.map(|difference| difference.share),
            "difference_plus_minus": difference.and_then(|difference| difference.half_width),
            "by_chance": difference.and_then(|difference| difference.by_chance),
        });
        (metric.name().to_string(), value)
    };
    Metric::ALL.into_iter().map(figure).collect()
}
