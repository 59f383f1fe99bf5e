//! The state of a node at a moment as `/json` has it, for `headstack top` and `--stats`.
//!
//! Rates are means since the last sample, usually a second before. Counts are since the node began.

use crate::sim::text::figure;
use serde_json::Value;

/// A part of a node's state. A path, such as `response/p99_ms`, leads to a value. What an older node lacks reads as 0, no or empty.
#[derive(Clone, Copy)]
pub(crate) struct StatePart<'a>(pub(crate) &'a Value);

impl<'a> StatePart<'a> {
    /// A part, unless it is absent or null.
    pub(crate) fn part(self, path: &str) -> Option<StatePart<'a>> {
        self.0.pointer(&format!("/{path}")).filter(|found| !found.is_null()).map(StatePart)
    }

    pub(crate) fn some_number(self, path: &str) -> Option<f64> {
        self.part(path)?.0.as_f64()
    }

    pub(crate) fn number(self, path: &str) -> f64 {
        self.some_number(path).unwrap_or_default()
    }

    pub(crate) fn whole(self, path: &str) -> u64 {
        self.part(path).and_then(|found| found.0.as_u64()).unwrap_or_default()
    }

    pub(crate) fn is(self, path: &str) -> bool {
        self.part(path).is_some_and(|found| found.0 == &Value::Bool(true))
    }

    pub(crate) fn text(self, path: &str) -> &'a str {
        self.part(path).and_then(|found| found.0.as_str()).unwrap_or_default()
    }

    pub(crate) fn list(self, path: &str) -> impl Iterator<Item = StatePart<'a>> + use<'a> {
        self.part(path).and_then(|found| found.0.as_array()).into_iter().flatten().map(StatePart)
    }
}

/// The names of the disks whose threads have failed, which ends the node.
pub(super) fn failed(node: StatePart<'_>) -> impl Iterator<Item = &str> {
    node.list("disk").filter(|disk| disk.is("has_failed")).map(|disk| disk.text("name"))
}

/// A short text for a slow disk; none for another one.
pub(crate) fn slowness(disk: StatePart<'_>) -> Option<String> {
    let lost = 100.0 * disk.number("slowness/late_share");
    let slowdown = disk.number("slowness/slowdown");
    disk.is("slowness/slow").then(|| {
        format!("SLOW: {lost:.1} % of the time lost to late commands, reads {slowdown:.1} times as long as at first")
    })
}

/// The order of a disk's commands, and how well its drive file predicts, in a few words.
pub(crate) fn order(order: StatePart<'_>) -> String {
    let error = |path: &str| order.some_number(path).map_or("-".to_string(), figure);
    match order.text("drive_file") {
        "agrees" => format!(
            "ordered by {}, predictions off by {} ms (p50) and {} ms (p90)",
            order.text("in_use"),
            error("error_p50_ms"),
            error("error_p90_ms")
        ),
        "differs" => "ordered by block number: ANOTHER DISK than the drive file's".to_string(),
        _ => format!(
            "ordered by block number until the drive file is seen to agree, then by {}",
            order.text("wanted")
        ),
    }
}

/// The copies of a disk's hot blocks, in a few words.
pub(crate) fn copies(copies: StatePart<'_>) -> String {
    let home = copies.number("home_seek_blocks");
    let share = if home > 0.0 {
        let saved = home - copies.number("seek_blocks");
        format!(", {:.0} % of the seek distance saved", 100.0 * saved / home)
    } else {
        String::new()
    };
    let state =
        if copies.is("read_only") { "; READ-ONLY: the hot block table cannot be written" } else { "" };
    let hits = 100.0 * (copies.number("hits") / copies.number("requests").max(1.0));
    let [held, slots, written] = ["copies", "slots", "dirty"].map(|path| copies.whole(path));
    format!("{held} of {slots} copies, {written} written, {hits:.0} % hits{share}{state}")
}
