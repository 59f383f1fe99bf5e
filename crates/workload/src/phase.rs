//! Phases of a load that does several things one after the other, as a benchmark does.

use headstack_model::Instant;

/// A phase of a load, with the work by which its rate is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPhase {
    /// The name in results.
    pub name: String,
    /// When it began.
    pub began: Option<Instant>,
    /// When it ended.
    pub ended: Option<Instant>,
    /// Bytes that it reads or writes.
    pub bytes: u64,
    /// Operations that it consists of.
    pub operations: u64,
}

impl LoadPhase {
    /// A phase that has not begun.
    pub fn new(name: &str, bytes: u64, operations: u64) -> LoadPhase {
        LoadPhase { name: name.to_string(), began: None, ended: None, bytes, operations }
    }
}
