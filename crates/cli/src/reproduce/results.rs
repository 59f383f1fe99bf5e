//! The rows of a study as JSON.

use super::Ran;
use headstack_studies::judge::Judged;
use headstack_studies::study::Length;
use serde_json::{Value, json};

/// One study as an object, several as a list of them.
pub(super) fn of(all: &[Ran], length: Length) -> Value {
    match all {
        [one] => object(one, length),
        _ => all.iter().map(|ran| object(ran, length)).collect(),
    }
}

fn object(ran: &Ran, length: Length) -> Value {
    json!({
        "study": ran.study.id,
        "title": ran.study.title,
        "version": env!("CARGO_PKG_VERSION"),
        "quick": length == Length::Quick,
        "report": ran.page.to_string_lossy(),
        "rows": ran.done.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// A row; `tolerance` is in its unit, whatever its kind.
fn row(row: &Judged) -> Value {
    let expected = &row.expected;
    let mut object = json!({
        "id": expected.metric,
        "what": expected.what,
        "published": expected.value,
        "ours": row.ours,
        "unit": expected.unit,
        "kind": expected.kind.name(),
        "tolerance": expected.room(),
        "source": expected.source,
        "verdict": row.verdict.name(),
    });
    if let Some(reason) = row.reason() {
        object["reason"] = reason.into();
    }
    object
}
