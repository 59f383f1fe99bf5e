//! Requests of streams that wait for the disk.

use super::messages::Request;
use super::schedule::Schedule;
use headstack_model::Instant;
use std::collections::BTreeMap;

pub(super) type WaitKey = (u64, u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) request: Request,
    pub(super) bytes: u64,
    pub(super) stream: u32,
    pub(super) since: Instant,
    /// Whether staged bytes for it were discarded once, after which they are reread.
    is_reread: bool,
}

/// A search for the reads that wait for bytes of a run, in ascending order.
pub(super) struct Overlapping {
    place: u64,
    end: u64,
    from: WaitKey,
}

/// The requests of all streams that wait for the disk.
#[derive(Debug)]
pub(super) struct Waits {
    reads: BTreeMap<WaitKey, Wait>,
    writes: BTreeMap<WaitKey, Wait>,
    /// Reads that keep waiting although a frame that they need is discarded.
    spared: Vec<WaitKey>,
    longest: u64,
}

impl Waits {
    /// No request, where none is longer than `longest`.
    pub(super) fn new(longest: u64) -> Waits {
        Waits { reads: BTreeMap::new(), writes: BTreeMap::new(), spared: Vec::new(), longest }
    }

    /// The longest read that a stream may have, because all its frames are needed at the same time.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    pub(super) fn len(&self) -> usize {
        self.reads.len() + self.writes.len()
    }

    fn kind(&mut self, is_writer: bool) -> &mut BTreeMap<WaitKey, Wait> {
        if is_writer { &mut self.writes } else { &mut self.reads }
    }

    pub(super) fn count_of(&self, stream: u32) -> usize {
        self.reads.values().chain(self.writes.values()).filter(|wait| wait.stream == stream).count()
    }

    pub(super) fn insert(
        &mut self,
        now: Instant,
        schedule: &mut Schedule,
        stream: u32,
        request: Request,
        (offset, bytes): (u64, u64),
    ) {
        let end = schedule.table.mirror(stream, offset, bytes) + bytes;
        let found = &mut schedule[stream];
        found.wait(now, request.client, bytes, end);
        let is_writer = found.is_writer();
        let wait = Wait { request, bytes, stream, since: now, is_reread: false };
        self.kind(is_writer).insert((offset, request.ticket), wait);
        schedule.enqueue(stream);
        schedule.escalate(now, stream);
    }

    pub(super) fn remove(&mut self, schedule: &mut Schedule, is_writer: bool, key: WaitKey) -> Wait {
        let wait = self.kind(is_writer).remove(&key).expect("it waits");
        let stream = &mut schedule[wait.stream];
        stream.waiting -= 1;
        stream.skip_passed();
        if stream.waiting == 0 {
            schedule.end_escalation(wait.stream);
        }
        schedule.enqueue(wait.stream);
        wait
    }

    pub(super) fn reads_of(&self, client: u64) -> Vec<WaitKey> {
        let own = self.reads.iter().filter(|(_, wait)| wait.request.client == client);
        own.map(|(key, _)| *key).collect()
    }

    pub(super) fn read(&self, key: WaitKey) -> &Wait {
        &self.reads[&key]
    }

    pub(super) fn read_from(&self, from: WaitKey) -> Option<(WaitKey, Wait)> {
        self.reads.range(from..).next().map(|(key, wait)| (*key, *wait))
    }

    pub(super) fn first_write(&self) -> Option<(WaitKey, Wait)> {
        self.writes.first_key_value().map(|(key, wait)| (*key, *wait))
    }

    /// The first write that waits, from `begin` on and below `end`.
    pub(super) fn first_write_in(&self, begin: u64, end: u64) -> Option<(WaitKey, Wait)> {
        self.writes.range((begin, 0)..(end, 0)).next().map(|(key, wait)| (*key, *wait))
    }

    /// The first write that waits in a stream, from `begin` on and below `end`.
    pub(super) fn first_write_of(&self, stream: u32, begin: u64, end: u64) -> Option<(WaitKey, Wait)> {
        let mut waits = self.writes.range((begin, 0)..(end, 0)).map(|(key, wait)| (*key, *wait));
        waits.find(|(_, wait)| wait.stream == stream)
    }

    /// Starts a search for the reads that wait for bytes of a run.
    pub(super) fn overlapping(&self, place: u64, bytes: u64) -> Overlapping {
        let from = (place.saturating_sub(self.longest), 0);
        Overlapping { place, end: place.saturating_add(bytes), from }
    }

    pub(super) fn next(&self, search: &mut Overlapping) -> Option<WaitKey> {
        let upto = (search.end, 0).max(search.from);
        let mut waits = self.reads.range(search.from..upto);
        let (key, _) = waits.find(|((offset, _), wait)| offset + wait.bytes > search.place)?;
        search.from = (key.0, key.1 + 1);
        Some(*key)
    }

    /// Makes streams reread what waiting requests need of a run that is discarded. Each request causes this once.
    pub(super) fn rewind(&mut self, schedule: &mut Schedule, place: u64, bytes: u64) {
        let mut search = self.overlapping(place, bytes);
        while let Some(key) = self.next(&mut search) {
            let wait = self.reads.get_mut(&key).expect("it waits");
            if wait.is_reread || schedule[wait.stream].stride.is_some() {
                continue;
            }
            wait.is_reread = true;
            let at = schedule.table.mirror(wait.stream, key.0, wait.bytes);
            let stream = &mut schedule[wait.stream];
            stream.frontier = stream.frontier.min(at);
            schedule.enqueue(wait.stream);
            self.spared.push(key);
        }
    }

    /// Whether a read keeps waiting although a frame that it needs is discarded.
    pub(super) fn is_spared(&self, key: WaitKey) -> bool {
        self.spared.contains(&key)
    }

    pub(super) fn clear_spared(&mut self) {
        self.spared.clear();
    }
}
