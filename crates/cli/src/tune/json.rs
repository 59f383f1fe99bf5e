//! The advice as JSON.

use super::Tuned;
use super::verify::Verified;
use crate::versioned;
use serde_json::{Map, Value};

/// The document as text with a final newline.
pub(super) fn to_json(tuned: &Tuned<'_>) -> String {
    let command = tuned.command;
    let mut document = Map::new();
    document.insert("rig".to_string(), command.rig.as_str().into());
    document.insert("load".to_string(), command.load.as_str().into());
    document.extend(tuned.outcome.to_object(&tuned.rig, &tuned.goal, &tuned.devices));
    let verification = tuned.verified.as_ref().map(Verified::to_json);
    document.insert("verification".to_string(), verification.into());
    versioned::text(&Value::Object(document))
}
