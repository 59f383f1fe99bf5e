//! Think times for formats that are replayed closed: the known one, or the gap to the next request.

use headstack_model::Nanos;

use super::Record;

/// Holds each request until the next one is known.
#[derive(Debug, Default)]
pub(super) struct Held(Option<Record>);

impl Held {
    /// The request before `next`, or the last one if there is none, with a think time.
    pub(super) fn step(&mut self, next: Option<&Record>) -> Option<Record> {
        let held = std::mem::replace(&mut self.0, next.copied())?;
        let completed = held.time.saturating_add(held.response.unwrap_or(Nanos::ZERO));
        let gap = next.map_or(Nanos::ZERO, |next| next.time.since(completed));
        Some(Record { think: held.think.or(Some(gap)), ..held })
    }
}
