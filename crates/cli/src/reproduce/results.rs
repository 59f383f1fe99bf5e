//! The rows of a study as JSON.

use super::Ran;
use crate::failure::Failure;
use headstack_studies::expect::Expected;
use headstack_studies::judge::Judged;
use headstack_studies::study::{Length, Study};
use serde_json::{Value, json};

/// One study as an object, several as a list; those that were not run come last.
pub(super) fn of(all: &[Ran], not_run: &[&Study], length: Length) -> Result<Value, Failure> {
    let mut objects: Vec<Value> = all.iter().map(|ran| object(ran, length)).collect();
    for study in not_run {
        objects.push(object_not_run(study, length)?);
    }
    Ok(match <[Value; 1]>::try_from(objects) {
        Ok([one]) => one,
        Err(several) => several.into(),
    })
}

fn object(ran: &Ran, length: Length) -> Value {
    json!({
        "study": ran.study.id,
        "title": ran.study.title,
        "version": env!("CARGO_PKG_VERSION"),
        "quick": length == Length::Quick,
        "partial": false,
        "report": ran.page.to_string_lossy(),
        "rows": ran.done.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn object_not_run(study: &Study, length: Length) -> Result<Value, Failure> {
    let rows = study.expected().map_err(Failure::input)?;
    Ok(json!({
        "study": study.id,
        "title": study.title,
        "version": env!("CARGO_PKG_VERSION"),
        "quick": length == Length::Quick,
        "partial": true,
        "report": null,
        "rows": rows.iter().map(|expected| row_of(expected, None, "not run")).collect::<Vec<_>>(),
    }))
}

/// A row as JSON; `tolerance` is in the row's unit for every kind of tolerance.
fn row(row: &Judged) -> Value {
    let mut object = row_of(&row.expected, row.ours, row.verdict.name());
    if let Some(reason) = row.reason() {
        object["reason"] = reason.into();
    }
    object
}

fn row_of(expected: &Expected, ours: Option<f64>, verdict: &str) -> Value {
    json!({
        "id": expected.metric,
        "what": expected.what,
        "published": expected.value,
        "ours": ours,
        "unit": expected.unit,
        "kind": expected.kind.name(),
        "tolerance": expected.room(),
        "source": expected.source,
        "basis": expected.basis.name(),
        "first_run": expected.first_run,
        "verdict": verdict,
    })
}
