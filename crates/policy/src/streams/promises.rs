//! Guarantees of clients, and which of a client's streams is next to fulfil one.
//!
//! A guarantee is a client's, however many streams it has: one of them at a time has precedence over streams without a guarantee, and its
//! turn then transfers all that the guarantee covers. The client's other streams have such turns after it.

use super::Streams;
use super::messages::Guarantee;
use headstack_model::Nanos;
use std::collections::VecDeque;

/// The state of a client's guarantee.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    pub(super) guarantee: Guarantee,
    /// When a turn last fulfilled it.
    kept: Option<Nanos>,
    /// The client's waiting streams, and since when; the first has the next turn.
    waiting: VecDeque<(Nanos, u32)>,
    /// When the first stream gets precedence.
    at: Nanos,
}

impl Promise {
    fn new(guarantee: Guarantee) -> Promise {
        Promise { guarantee, kept: None, waiting: VecDeque::new(), at: Nanos::MAX }
    }

    /// Half of the guaranteed response time: the other half is left for turns that have begun.
    fn half(&self) -> Nanos {
        Nanos(self.guarantee.response.0 / 2)
    }

    /// When the next turn for it may begin.
    fn next(&self) -> Nanos {
        self.kept.map_or(Nanos::ZERO, |kept| kept + self.half())
    }

    fn first(&self) -> Option<u32> {
        self.waiting.front().map(|(_, id)| *id)
    }
}

impl Streams {
    /// Gives a client a guarantee for all its streams together. The caller has checked that the disk can keep it.
    pub fn set_guarantee(&mut self, client: u64, guarantee: Guarantee) {
        let promise = self.promises.entry(client).or_insert_with(|| Promise::new(guarantee));
        promise.guarantee = guarantee;
    }

    /// Ends a client's guarantee.
    pub(super) fn revoke_guarantee(&mut self, client: u64) {
        let Some(promise) = self.promises.remove(&client) else { return };
        if let Some(first) = promise.first() {
            self.dispatch.remove_deadline(promise.at, first);
        }
        promise.waiting.iter().for_each(|(_, id)| self.streams[*id as usize].escalated_for = None);
    }

    /// Registers a waiting stream: it gets precedence when half of its client's guaranteed response time has passed.
    pub(super) fn escalate(&mut self, id: u32) {
        let stream = &mut self.streams[id as usize];
        if stream.turn.is_some() || stream.escalated_for.is_some() || stream.waiting == 0 {
            return;
        }
        let Some(promise) = self.promises.get_mut(&stream.client) else { return };
        stream.escalated_for = Some(stream.client);
        promise.waiting.push_back((self.now, id));
        let client = stream.client;
        if self.promises[&client].first() == Some(id) {
            self.expect_first(client);
        }
    }

    /// Removes a stream that has a turn or has ended.
    pub(super) fn end_escalation(&mut self, id: u32) {
        let Some(client) = self.streams[id as usize].escalated_for.take() else { return };
        let promise = self.promises.get_mut(&client).expect("a registered stream's client has a guarantee");
        let is_first = promise.first() == Some(id);
        promise.waiting.retain(|(_, waiting)| *waiting != id);
        if is_first {
            self.dispatch.remove_deadline(promise.at, id);
            self.expect_first(client);
        }
    }

    /// Sets when the first of a client's streams gets precedence.
    fn expect_first(&mut self, client: u64) {
        let promise = self.promises.get_mut(&client).expect("a registered stream's client has a guarantee");
        let Some((since, id)) = promise.waiting.front().copied() else { return };
        promise.at = (since + promise.half()).max(promise.next());
        self.dispatch.add_deadline(promise.at, id);
    }

    /// Commands of a stream's new turn that fulfil its client's guarantee until the next such turn; 0 if another turn does.
    pub(super) fn promised_requests(&mut self, id: u32) -> u32 {
        let (now, read_bytes) = (self.now, self.read_bytes());
        let Some(client) = self.streams[id as usize].escalated_for else { return 0 };
        let promise = self.promises.get_mut(&client).expect("a registered stream's client has a guarantee");
        if promise.first() != Some(id) || now < promise.next() {
            return 0;
        }
        promise.kept = Some(now);
        let bytes = promise.guarantee.rate as f64 * promise.guarantee.response.as_secs();
        (bytes / read_bytes as f64).ceil() as u32
    }
}
