//! Node files: a node's disks and exports, as one TOML document.

mod document;
mod plan;
mod spec;

pub(crate) use document::{Overlay, read};
pub(crate) use plan::{DiskPlan, ExportPlan, OrderPlan, Plan, Source};
pub(crate) use spec::NodeSpec;
