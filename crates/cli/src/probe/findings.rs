//! The findings on a disk's electronics, key by key.

use crate::report::Table;
use headstack_probe::learn::LearnedElectronics;
use headstack_probe::learn::electronics::FindingConfidence;
use serde_json::{Map, Value, json};

pub(super) fn parts(learned: &LearnedElectronics) -> Map<String, Value> {
    let parts = json!({
        "overhead": learned.overhead,
        "bus": learned.bus,
        "cache": learned.cache,
        "queue": learned.queue,
        "mechanics": {
            "zero_latency_read": learned.zero_latency_read,
            "zero_latency_write": learned.zero_latency_write,
        },
    });
    match parts {
        Value::Object(parts) => parts,
        _ => unreachable!("an object was written"),
    }
}

pub(super) fn word(sure: FindingConfidence) -> &'static str {
    match sure {
        FindingConfidence::Measured => "measured",
        FindingConfidence::LowerBound => "lower bound",
        FindingConfidence::UpperBound => "upper bound",
        FindingConfidence::Default => "default",
    }
}

/// Each tested key, with its value and its confidence.
pub(super) fn table(learned: &LearnedElectronics) -> Table {
    let parts = Value::Object(parts(learned));
    let mut table = Table::new("Electronics", &["key", "value", "is"]);
    table.words = 3;
    for (key, sure) in learned.findings.iter() {
        let value = parts.pointer(&format!("/{}", key.replace('.', "/"))).map(shown);
        table.row([key.to_string(), value.unwrap_or_else(|| "-".to_string()), word(sure).to_string()]);
    }
    table
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            let rounded = (number.as_f64().unwrap_or(0.0) * 1e4).round() / 1e4;
            rounded.to_string()
        }
        other => other.to_string(),
    }
}
