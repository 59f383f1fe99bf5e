//! Sequentiality: which requests begin where another one on their device ended, and the lengths of such runs.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;

use super::super::Record;

/// Number of previous requests compared with for a stream.
pub(super) const STREAMS: usize = 32;
/// Devices counted separately; all further ones count as one.
const DEVICES: usize = 1024;

#[derive(Debug)]
pub(super) struct Runs {
    devices: BTreeMap<u32, Device>,
    lengths: Histogram<u64>,
    requests: u64,
    sequential: u64,
    in_stream: u64,
}

#[derive(Debug, Default)]
struct Device {
    /// The ends of the last requests, the latest first.
    ends: VecDeque<u64>,
    run: u64,
}

impl Runs {
    pub(super) fn new() -> Runs {
        let lengths = super::histogram();
        Runs { devices: BTreeMap::new(), lengths, requests: 0, sequential: 0, in_stream: 0 }
    }

    pub(super) fn observe(&mut self, record: &Record) {
        let full = self.devices.len() >= DEVICES && !self.devices.contains_key(&record.device);
        let number = if full { u32::MAX } else { record.device };
        let device = self.devices.entry(number).or_default();
        self.requests += 1;
        let place = device.ends.iter().position(|end| *end == record.offset);
        self.in_stream += u64::from(place.is_some());
        if place == Some(0) {
            self.sequential += 1;
            device.run += 1;
        } else {
            if device.run > 0 {
                super::count(&mut self.lengths, device.run);
            }
            device.run = 1;
        }
        match place {
            Some(place) => drop(device.ends.remove(place)),
            None if device.ends.len() == STREAMS => drop(device.ends.pop_back()),
            None => {}
        }
        device.ends.push_front(record.end());
    }

    /// The shares of requests that continue the previous one, and any of the last ones, on their device.
    pub(super) fn shares(&self) -> (f64, f64) {
        let share = |count: u64| if self.requests > 0 { count as f64 / self.requests as f64 } else { 0.0 };
        (share(self.sequential), share(self.in_stream))
    }

    /// Lengths of all runs, in requests; unfinished runs count with their present length.
    pub(super) fn lengths(&self) -> Histogram<u64> {
        let mut all = self.lengths.clone();
        for device in self.devices.values().filter(|device| device.run > 0) {
            super::count(&mut all, device.run);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use headstack_model::Instant;

    use super::super::super::Kind;
    use super::*;

    fn runs(offsets: &[(u32, u64)]) -> Runs {
        let mut runs = Runs::new();
        for (device, offset) in offsets {
            runs.observe(&Record::new(Instant::ZERO, *device, Kind::Read, *offset, 10));
        }
        runs
    }

    #[test]
    fn run_ends_at_first_nonadjacent_request() {
        let runs = runs(&[(0, 0), (0, 10), (0, 20), (0, 99), (0, 109)]);
        assert_eq!(runs.shares(), (0.6, 0.6));
        let lengths = runs.lengths();
        assert_eq!((lengths.len(), lengths.max(), lengths.min()), (2, 3, 2));
    }

    #[test]
    fn interleaved_streams_are_detected() {
        let runs = runs(&[(0, 0), (0, 1000), (0, 10), (0, 1010), (1, 20)]);
        assert_eq!(runs.shares(), (0.0, 0.4));
    }
}
