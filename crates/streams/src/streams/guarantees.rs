//! Guarantees of clients, and which stream of a client is next to fulfil its guarantee.
//!
//! A guarantee belongs to a client, however many streams it has. One stream at a time has precedence over streams without a guarantee, and
//! its turn then transfers all that the guarantee covers. The client's other streams have such turns after it.

use super::messages::Guarantee;
use headstack_model::{Instant, Nanos};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug)]
struct ClientGuarantee {
    guarantee: Guarantee,
    kept: Option<Instant>,
    /// The client's waiting streams, and since when; the first has the next turn.
    waiting: VecDeque<(Instant, u32)>,
    /// When the first stream gets precedence.
    at: Instant,
    /// Until when the guaranteed rate covers what the client has requested, and whether its last request was within that rate.
    paid_until: Instant,
    is_within_rate: bool,
}

impl ClientGuarantee {
    /// Half of the guaranteed response time: the other half is left for turns that have begun.
    fn half(&self) -> Nanos {
        Nanos(self.guarantee.response.0 / 2)
    }

    /// When the next turn for it may begin.
    fn next(&self) -> Instant {
        self.kept.map_or(Instant::ZERO, |kept| kept + self.half())
    }

    fn first(&self) -> Option<u32> {
        self.waiting.front().map(|(_, id)| *id)
    }
}

#[derive(Debug, Default)]
pub(super) struct Guarantees {
    clients: BTreeMap<u64, ClientGuarantee>,
    /// First streams of clients, by the time from which on they have precedence.
    urgent: BTreeSet<(Instant, u32)>,
}

impl Guarantees {
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(super) fn set(&mut self, client: u64, guarantee: Guarantee) {
        let new = || ClientGuarantee {
            guarantee,
            kept: None,
            waiting: VecDeque::new(),
            at: Instant::MAX,
            paid_until: Instant::ZERO,
            is_within_rate: true,
        };
        self.clients.entry(client).or_insert_with(new).guarantee = guarantee;
    }

    /// Records bytes that a client requests. They are within its rate unless the rate needs more than the guaranteed response time to cover what
    /// the client has requested.
    pub(super) fn note_request(&mut self, now: Instant, client: u64, bytes: u64) {
        let Some(found) = self.clients.get_mut(&client) else { return };
        let paid_until = found.paid_until.max(now);
        found.is_within_rate = paid_until.since(now) <= found.guarantee.response;
        let time = bytes as f64 / found.guarantee.rate.max(1) as f64;
        found.paid_until = paid_until.saturating_add(Nanos::from_ms(time * 1e3));
    }

    /// The guaranteed response time of a client, if it requests no more than its guaranteed rate.
    pub(super) fn response(&self, client: u64) -> Option<Nanos> {
        let found = self.clients.get(&client).filter(|found| found.is_within_rate)?;
        Some(found.guarantee.response)
    }

    /// Ends a client's guarantee. Returns the streams that waited for it.
    pub(super) fn revoke(&mut self, client: u64) -> impl Iterator<Item = u32> + use<> {
        let revoked = self.clients.remove(&client);
        if let Some(found) = &revoked
            && let Some(first) = found.first()
        {
            self.urgent.remove(&(found.at, first));
        }
        revoked.into_iter().flat_map(|revoked| revoked.waiting).map(|(_, id)| id)
    }

    /// Registers a waiting stream: it gets precedence when half of its client's guaranteed response time has passed. Returns whether
    /// the client has a guarantee.
    pub(super) fn register(&mut self, now: Instant, id: u32, client: u64) -> bool {
        let Some(found) = self.clients.get_mut(&client) else { return false };
        found.waiting.push_back((now, id));
        if found.first() == Some(id) {
            self.expect_first(client);
        }
        true
    }

    /// Removes a registered stream that has a turn or has ended.
    pub(super) fn deregister(&mut self, id: u32, client: u64) {
        let found = self.registered(client);
        let (is_first, at) = (found.first() == Some(id), found.at);
        found.waiting.retain(|(_, waiting)| *waiting != id);
        if is_first {
            self.urgent.remove(&(at, id));
            self.expect_first(client);
        }
    }

    /// Sets when the first of a client's streams gets precedence.
    fn expect_first(&mut self, client: u64) {
        let found = self.registered(client);
        let Some((since, id)) = found.waiting.front().copied() else { return };
        found.at = (since + found.half()).max(found.next());
        let at = found.at;
        self.urgent.insert((at, id));
    }

    fn registered(&mut self, client: u64) -> &mut ClientGuarantee {
        self.clients.get_mut(&client).expect("a registered stream's client has a guarantee")
    }

    /// The stream that precedes all others, among those that `is_eligible` admits.
    pub(super) fn urgent(&self, now: Instant, is_eligible: impl Fn(u32) -> bool) -> Option<u32> {
        let due = self.urgent.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).find(|id| is_eligible(*id))
    }

    /// Number of commands of a registered stream's new turn that fulfil its client's guarantee until the next such turn; 0 if another turn does.
    pub(super) fn requests(&mut self, now: Instant, id: u32, client: u64, read_bytes: u64) -> u32 {
        let found = self.registered(client);
        if found.first() != Some(id) || now < found.next() {
            return 0;
        }
        found.kept = Some(now);
        let bytes = found.guarantee.rate as f64 * found.guarantee.response.as_secs();
        (bytes / read_bytes as f64).ceil() as u32
    }
}
