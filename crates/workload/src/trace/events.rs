//! Converts events of the block layer to requests, and requests to events.
//!
//! A request begins at its queueing (Q), or at its issue (D) in a trace that has no Q so far. A completion (C) gives
//! its response time to the latest outstanding request with the same run of bytes; otherwise, because requests may have been
//! merged, to all requests within its run. Requests are returned in the order in which they arrived. A request whose
//! completion never comes holds the others back until 4096 are outstanding, and is then returned without a response time.
//!
//! *Source:* the events are those of blktrace(8) and blkparse(1).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_model::Instant;

use super::{Kind, Record};

/// Requests that may be outstanding: more than any queue of the block layer holds.
const OUTSTANDING: usize = 4096;

/// The longest response time, in nanoseconds.
pub(super) const LONGEST_RESPONSE: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Queue(Record),
    Issue(Record),
    /// A run was completed; its time is the record's.
    Complete(Record),
}

#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// Requests in their order, from number `first` on.
    requests: VecDeque<(Record, State)>,
    first: u64,
    /// Numbers of those that are outstanding, in their order.
    outstanding: VecDeque<u64>,
    queued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outstanding,
    Ready,
}

impl Pairing {
    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Queue(record) => {
                self.queued = true;
                self.begin(record);
            }
            Event::Issue(record) if !self.queued => self.begin(record),
            Event::Issue(_) => {}
            Event::Complete(run) => self.complete(&run),
        }
    }

    fn begin(&mut self, record: Record) {
        self.outstanding.push_back(self.first + self.requests.len() as u64);
        self.requests.push_back((record, State::Outstanding));
        if self.outstanding.len() > OUTSTANDING
            && let Some(lost) = self.outstanding.pop_front()
        {
            self.entry_at(lost).1 = State::Ready;
        }
    }

    fn entry_at(&mut self, number: u64) -> &mut (Record, State) {
        &mut self.requests[(number - self.first) as usize]
    }

    fn complete(&mut self, run: &Record) {
        let (first, requests) = (self.first, &self.requests);
        let of = |number: &u64| &requests[(number - first) as usize].0;
        let alike = |record: &Record| {
            let same = record.device == run.device && record.kind == run.kind;
            same && record.time <= run.time && run.time.since(record.time).0 <= LONGEST_RESPONSE
        };
        let exact =
            |record: &Record| alike(record) && record.offset == run.offset && record.bytes == run.bytes;
        let within = |record: &Record| {
            alike(record) && record.bytes > 0 && record.offset >= run.offset && record.end() <= run.end()
        };
        match self.outstanding.iter().rposition(|number| exact(of(number))) {
            Some(place) => {
                let number = self.outstanding.remove(place).expect("it was found there");
                self.settle(number, run.time);
            }
            None => {
                let met: Vec<u64> =
                    self.outstanding.iter().copied().filter(|number| within(of(number))).collect();
                self.outstanding.retain(|number| !met.contains(number));
                met.into_iter().for_each(|number| self.settle(number, run.time));
            }
        }
    }

    fn settle(&mut self, number: u64, completed: Instant) {
        let (record, state) = self.entry_at(number);
        record.response = Some(completed.since(record.time));
        *state = State::Ready;
    }

    /// The next request that is complete, or, at the trace's end, the next one.
    pub(super) fn next_complete(&mut self, at_end: bool) -> Option<Record> {
        let (_, state) = self.requests.front()?;
        if !at_end && *state == State::Outstanding {
            return None;
        }
        self.first += 1;
        self.requests.pop_front().map(|(record, _)| record)
    }
}

#[derive(Debug, Default)]
pub(super) struct Completions {
    waiting: BinaryHeap<Reverse<(Instant, u64)>>,
    records: VecDeque<Option<Record>>,
    first: u64,
}

impl Completions {
    /// Keeps the completion of `record`, if it is known.
    pub(super) fn add(&mut self, record: &Record) {
        if let Some(response) = record.response {
            let done = record.time.saturating_add(response);
            self.waiting.push(Reverse((done, self.first + self.records.len() as u64)));
            self.records.push_back(Some(Record { time: done, ..*record }));
        }
    }

    /// The first completion, at its time, if that is at or before `until`; if more are kept than any queue holds, the
    /// first in any case.
    pub(super) fn next_until(&mut self, until: Instant) -> Option<Record> {
        let Reverse((time, number)) = *self.waiting.peek()?;
        if time > until && self.waiting.len() <= OUTSTANDING {
            return None;
        }
        self.waiting.pop();
        let record = self.records[(number - self.first) as usize].take().expect("each is taken once");
        while self.records.front().is_some_and(Option::is_none) {
            self.records.pop_front();
            self.first += 1;
        }
        Some(record)
    }
}

/// The kind of a request with the given letters or bits, and its number of bytes.
pub(super) fn kind_of(discard: bool, read: bool, write: bool, flush: bool, bytes: u64) -> Option<Kind> {
    match (discard, read, write || flush) {
        (true, _, _) => Some(Kind::Trim),
        (_, true, _) => Some(Kind::Read),
        (_, _, true) if bytes == 0 => Some(Kind::Flush),
        (_, _, true) if write => Some(Kind::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::{Instant, Nanos};

    fn entry_at(time: u64, offset: u64, bytes: u64) -> Record {
        Record::new(Instant(time), 1, Kind::Read, offset, bytes)
    }

    fn responses(events: &[Event]) -> Vec<Option<u64>> {
        let mut pairing = Pairing::default();
        events.iter().for_each(|event| pairing.handle(*event));
        std::iter::from_fn(|| pairing.next_complete(true))
            .map(|record| record.response.map(|time| time.0))
            .collect()
    }

    #[test]
    fn merged_requests_complete_together() {
        let events = [
            Event::Queue(entry_at(0, 0, 512)),
            Event::Queue(entry_at(1, 512, 512)),
            Event::Issue(entry_at(2, 0, 1024)),
            Event::Complete(entry_at(10, 0, 1024)),
        ];
        assert_eq!(responses(&events), [Some(10), Some(9)]);
    }

    #[test]
    fn issue_counts_as_request_only_without_queue_event() {
        let issued = [Event::Issue(entry_at(3, 0, 512)), Event::Complete(entry_at(5, 0, 512))];
        assert_eq!(responses(&issued), [Some(2)]);
        let queued = [
            Event::Queue(entry_at(1, 0, 512)),
            Event::Issue(entry_at(3, 0, 512)),
            Event::Complete(entry_at(5, 0, 512)),
        ];
        assert_eq!(responses(&queued), [Some(4)]);
    }

    #[test]
    fn lost_completion_is_abandoned_at_outstanding_limit() {
        let mut pairing = Pairing::default();
        pairing.handle(Event::Queue(entry_at(0, 0, 512)));
        for number in 1..=OUTSTANDING as u64 {
            assert_eq!(pairing.next_complete(false), None);
            pairing.handle(Event::Queue(entry_at(number, number * 512, 512)));
        }
        assert_eq!(pairing.next_complete(false).expect("it is given up").response, None);
        assert_eq!(pairing.next_complete(false), None);
    }

    #[test]
    fn completion_never_precedes_its_request() {
        let events = [
            Event::Queue(entry_at(100, 0, 512)),
            Event::Queue(entry_at(5, 0, 512)),
            Event::Complete(entry_at(6, 0, 512)),
            Event::Complete(entry_at(110, 0, 512)),
        ];
        assert_eq!(responses(&events), [Some(10), Some(1)]);
    }

    #[test]
    fn completions_are_ordered_by_time() {
        let mut completions = Completions::default();
        for (time, response) in [(0, 100), (1, 5), (2, 50)] {
            completions.add(&Record { response: Some(Nanos(response)), ..entry_at(time, 0, 512) });
        }
        let times: Vec<u64> =
            std::iter::from_fn(|| completions.next_until(Instant(60))).map(|r| r.time.0).collect();
        assert_eq!(times, [6, 52]);
        assert_eq!(completions.next_until(Instant::MAX).map(|record| record.time.0), Some(100));
        assert_eq!(completions.next_until(Instant::MAX), None);
    }
}
