//! A bus that one device uses at a time (parallel SCSI): for a command, for data, for a status.
//!
//! A device that needs the bus requests it. All devices with a request when the bus is free take part in the arbitration, which
//! takes its time and which one of them wins; the others, and later requests, take part in the next. The winner has the bus until
//! it releases it, and requests it again for its next transfer.

use headstack_model::{Instant, Nanos};

/// How a bus is won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arbitration {
    pub(crate) takes: Nanos,
    /// Whether the device with the highest number wins, instead of the earliest request.
    pub(crate) by_priority: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ExclusiveBus {
    arbitration: Arbitration,
    owner: Option<u32>,
    /// Since when the owner has the bus, or since when the bus is free.
    since: Instant,
    /// The requests, and their times.
    asked: Vec<(Instant, u32)>,
    held: Nanos,
}

impl ExclusiveBus {
    pub(crate) fn new(arbitration: Arbitration) -> ExclusiveBus {
        ExclusiveBus { arbitration, owner: None, since: Instant::ZERO, asked: Vec::new(), held: Nanos::ZERO }
    }

    pub(crate) fn arbitration_time(&self) -> Nanos {
        self.arbitration.takes
    }

    /// Whether a device has the bus; if not, queues its request.
    pub(crate) fn ask(&mut self, now: Instant, device: u32) -> bool {
        if self.owner == Some(device) {
            return true;
        }
        if !self.asked.iter().any(|(_, other)| *other == device) {
            self.asked.push((now, device));
        }
        false
    }

    /// When a device wins the bus; `Instant::MAX` while it is in use or without requests.
    pub(crate) fn next_event(&self) -> Instant {
        match self.asked.iter().map(|(since, _)| *since).min() {
            Some(first) if self.owner.is_none() => self.since.max(first) + self.arbitration.takes,
            _ => Instant::MAX,
        }
    }

    /// Ends an arbitration whose time has come; returns the winner.
    pub(crate) fn arbitrate(&mut self, now: Instant) -> u32 {
        assert!(self.owner.is_none(), "a bus is arbitrated only while no device owns it");
        let began = now.saturating_sub(self.arbitration.takes);
        let taking_part = (0..self.asked.len()).filter(|index| self.asked[*index].0 <= began);
        let winner = if self.arbitration.by_priority {
            taking_part.max_by_key(|index| self.asked[*index].1)
        } else {
            taking_part.min_by_key(|index| self.asked[*index])
        };
        let (_, device) =
            self.asked.swap_remove(winner.expect("a device requested the bus before the arbitration began"));
        (self.owner, self.since) = (Some(device), now);
        device
    }

    /// Releases the bus if this device has it; returns since when the device had it.
    pub(crate) fn release(&mut self, now: Instant, device: u32) -> Option<Instant> {
        if self.owner != Some(device) {
            return None;
        }
        let from = self.since;
        self.held += now - from;
        (self.owner, self.since) = (None, now);
        Some(from)
    }

    pub(crate) fn held(&self) -> Nanos {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(takes: u64, by_priority: bool) -> ExclusiveBus {
        ExclusiveBus::new(Arbitration { takes: Nanos(takes), by_priority })
    }

    /// The devices that get a bus that device 5 holds until 100, with these requests, and when each gets it; each holds it for 50.
    fn served(mut bus: ExclusiveBus, asks: &[(u64, u32)]) -> Vec<(u64, u32)> {
        assert!(!bus.ask(Instant(0), 5));
        let first = bus.next_event();
        assert_eq!(bus.arbitrate(first), 5);
        asks.iter().for_each(|(at, device)| assert!(!bus.ask(Instant(*at), *device)));
        assert_eq!(bus.next_event(), Instant::MAX);
        bus.release(Instant(100), 5);
        let mut won = Vec::new();
        while bus.next_event() != Instant::MAX {
            let at = bus.next_event();
            let device = bus.arbitrate(at);
            assert_eq!((bus.ask(at, device), bus.next_event()), (true, Instant::MAX));
            won.push((at.0, device));
            assert_eq!(bus.release(at + Nanos(50), device), Some(at));
        }
        assert_eq!(bus.held().0, 100 - first.0 + 50 * won.len() as u64);
        won
    }

    #[test]
    fn arbitration_is_won_by_first_request_or_highest_priority() {
        let asks = [(30, 1), (20, 2), (40, 7)];
        assert_eq!(served(bus(0, false), &asks), [(100, 2), (150, 1), (200, 7)]);
        assert_eq!(served(bus(0, true), &asks), [(100, 7), (150, 2), (200, 1)]);
    }

    #[test]
    fn request_during_arbitration_waits_for_the_next_one() {
        assert_eq!(served(bus(10, true), &[(30, 1), (105, 7)]), [(110, 1), (170, 7)]);
    }
}
