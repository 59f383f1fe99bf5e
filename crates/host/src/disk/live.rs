//! Events of an emulated disk, for a page that shows it live. Nothing is recorded until a page asks. The log is bounded, so that for a page
//! that does not keep up, events are lost but the disk is not delayed.

use headstack_model::Instant;
use headstack_sim::{ArmRecord, Engine, Finished};
use headstack_workload::Issue;
use std::collections::VecDeque;

/// Maximum number of events that are kept until they are drained; beyond it the oldest are dropped and counted. *Source:* assumption, a
/// second of the fastest disk.
const EVENTS_MAX: usize = 4096;

/// Something that happened in an emulated disk.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// A request was submitted at this time.
    Issued(Instant, Issue),
    /// A request was completed.
    Finished(Finished),
    /// The arm of a device, by its number, started an access.
    Access(usize, ArmRecord),
}

/// The events that have not been drained.
#[derive(Debug)]
pub(super) struct LiveLog {
    events: VecDeque<LiveEvent>,
    dropped: u64,
}

impl LiveLog {
    /// A log of the requests to an engine and of its arms. All its memory is allocated here, not by the disk's thread later.
    pub(super) fn new(engine: &mut Engine) -> LiveLog {
        engine.log_arms();
        LiveLog { events: VecDeque::with_capacity(EVENTS_MAX), dropped: 0 }
    }

    pub(super) fn push(&mut self, event: LiveEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Appends all events to `into`; returns how many have been dropped since the start.
    pub(super) fn drain(&mut self, engine: &mut Engine, into: &mut Vec<LiveEvent>) -> u64 {
        into.extend(self.events.drain(..));
        let mut dropped = self.dropped;
        for device in 0..engine.devices() {
            while let Some(record) = engine.poll_arm_record(device) {
                into.push(LiveEvent::Access(device, record));
            }
            dropped += engine.device(device).dropped_arm_records();
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::{Lbn, Request, drives};
    use headstack_sim::{Device, DeviceOptions};

    #[test]
    fn log_keeps_the_newest_events_and_counts_the_others() {
        let spec = drives::load("atlas-10k").expect("the drive is shipped");
        let device = Device::new(&spec, &DeviceOptions::default()).expect("the drive is good");
        let mut engine = Engine::new(vec![device]);
        let mut log = LiveLog::new(&mut engine);
        let issue =
            |id: usize| LiveEvent::Issued(Instant::ZERO, Issue::new(0, Request::read(Lbn(0), 8), id as u64));
        (0..EVENTS_MAX + 5).for_each(|id| log.push(issue(id)));
        let mut events = Vec::new();
        assert_eq!(log.drain(&mut engine, &mut events), 5);
        assert_eq!(events.len(), EVENTS_MAX);
        assert!(matches!(events[0], LiveEvent::Issued(_, Issue { id: 5, .. })), "{:?}", events[0]);
        events.clear();
        assert_eq!((log.drain(&mut engine, &mut events), events.len()), (5, 0));
    }
}
