//! Node files: a node's disks and exports, as one TOML document.

mod document;
mod plan;
mod spec;

pub(crate) use document::{Overlay, read};
pub(crate) use plan::{DiskPlan, ExportPlan, OrderPlan, Plan, Source};

use schemars::schema_for;
use spec::NodeSpec;

/// The JSON Schema of node files: every key with its type, default and documentation.
pub(crate) fn json_schema() -> serde_json::Value {
    schema_for!(NodeSpec).to_value()
}
