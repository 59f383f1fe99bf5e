//! What clients were promised, and which of their streams is next to have it.
//!
//! A promise is a client's, however many streams it has: one of them at a time goes before those that were promised nothing, and its
//! turn then brings all that the promise is for. The others of the client have such turns after it.

use super::Streams;
use super::messages::Guarantee;
use headstack_model::Nanos;
use std::collections::VecDeque;

/// A promise to a client.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    pub(super) guarantee: Guarantee,
    /// When it last had a turn for it.
    kept: Option<Nanos>,
    /// Its streams that wait, and since when: the first is to have the next.
    waiting: VecDeque<(Nanos, u32)>,
    /// From when on that one goes before others.
    at: Nanos,
}

impl Promise {
    fn new(guarantee: Guarantee) -> Promise {
        Promise { guarantee, kept: None, waiting: VecDeque::new(), at: Nanos::MAX }
    }

    /// Half of the time that it promises: that much is left for those who have a turn.
    fn half(&self) -> Nanos {
        Nanos(self.guarantee.response.0 / 2)
    }

    /// From when on there may be a turn for it.
    fn next(&self) -> Nanos {
        self.kept.map_or(Nanos::ZERO, |kept| kept + self.half())
    }

    fn first(&self) -> Option<u32> {
        self.waiting.front().map(|(_, id)| *id)
    }
}

impl Streams {
    /// Promises a client something, for all its streams together; whether the disk can keep it was for others to see.
    pub fn set_guarantee(&mut self, client: u64, guarantee: Guarantee) {
        let promise = self.promises.entry(client).or_insert_with(|| Promise::new(guarantee));
        promise.guarantee = guarantee;
    }

    /// A client is promised nothing any more.
    pub(super) fn revoke_guarantee(&mut self, client: u64) {
        let Some(promise) = self.promises.remove(&client) else { return };
        if let Some(first) = promise.first() {
            self.dispatch.remove_deadline(promise.at, first);
        }
        promise.waiting.iter().for_each(|(_, id)| self.streams[*id as usize].escalated_for = None);
    }

    /// A stream that waits has a turn before others when half of the time is over that its client was promised.
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

    /// A stream has a turn, or is no more.
    pub(super) fn end_escalation(&mut self, id: u32) {
        let Some(client) = self.streams[id as usize].escalated_for.take() else { return };
        let promise = self.promises.get_mut(&client).expect("it is promised something");
        let is_first = promise.first() == Some(id);
        promise.waiting.retain(|(_, waiting)| *waiting != id);
        if is_first {
            self.dispatch.remove_deadline(promise.at, id);
            self.expect_first(client);
        }
    }

    /// Has the first of a client's streams go before others in time.
    fn expect_first(&mut self, client: u64) {
        let promise = self.promises.get_mut(&client).expect("it is promised something");
        let Some((since, id)) = promise.waiting.front().copied() else { return };
        promise.at = (since + promise.half()).max(promise.next());
        self.dispatch.add_deadline(promise.at, id);
    }

    /// Commands of the turn that a stream begins by which its client gets what it was promised until the next; none where another
    /// turn is for that.
    pub(super) fn promised_requests(&mut self, id: u32) -> u32 {
        let (now, read_bytes) = (self.now, self.read_bytes());
        let Some(client) = self.streams[id as usize].escalated_for else { return 0 };
        let promise = self.promises.get_mut(&client).expect("it is promised something");
        if promise.first() != Some(id) || now < promise.next() {
            return 0;
        }
        promise.kept = Some(now);
        let bytes = promise.guarantee.rate as f64 * promise.guarantee.response.as_secs();
        (bytes / read_bytes as f64).ceil() as u32
    }
}
