//! The engine: moves virtual time from event to event.
//!
//! Modelled: any number of devices, each behind a first-come queue of the host that holds what the device cannot take.
//! Not modelled: time that the host itself needs.

use crate::device::{Completion, Device, Tag};
use headstack_model::{Nanos, Request};
use headstack_workload::{Load, Poll};
use std::collections::VecDeque;

/// A request that came back, as the load sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The device it went to.
    pub device: u32,
    /// The load's number for it.
    pub id: u64,
    /// Who asked for it.
    pub source: u32,
    /// How it went. Its submission is the load's issue; waiting in the host's queue is part of `queued`.
    pub completion: Completion,
}

/// A request in the host's queue of a device.
#[derive(Clone, Copy, Debug)]
struct Held {
    request: Request,
    origin: Origin,
}

/// Where a request came from and when.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    issued: Nanos,
    id: u64,
    source: u32,
}

/// A device and what the host holds for it.
#[derive(Debug)]
struct Station {
    device: Device,
    held: VecDeque<Held>,
    /// The origin of each outstanding tag.
    issued: Vec<Origin>,
    next: Nanos,
}

impl Station {
    fn new(device: Device) -> Station {
        let issued = vec![Origin::default(); device.depth()];
        Station { device, held: VecDeque::new(), issued, next: Nanos::MAX }
    }

    fn issue(&mut self, now: Nanos, held: Held) {
        if self.held.is_empty() && self.device.outstanding() < self.issued.len() {
            self.submit(now, held);
        } else {
            self.held.push_back(held);
        }
    }

    fn submit(&mut self, now: Nanos, held: Held) {
        let Tag(tag) = self.device.submit(now, held.request).expect("the device was seen to have room");
        self.issued[tag as usize] = held.origin;
        self.next = self.device.poll_timeout().unwrap_or(Nanos::MAX);
    }

    /// Takes a completion out, and puts the next request of the host's queue in its place.
    fn finish(&mut self, now: Nanos, index: u32) -> Option<Finished> {
        let mut completion = self.device.poll_completion()?;
        let Origin { issued, id, source } = self.issued[completion.tag.0 as usize];
        completion.parts.queued += completion.submitted - issued;
        completion.submitted = issued;
        if let Some(held) = self.held.pop_front() {
            self.submit(now, held);
        }
        Some(Finished { device: index, id, source, completion })
    }
}

/// Turns devices by virtual time.
#[derive(Debug)]
pub struct Engine {
    stations: Vec<Station>,
    now: Nanos,
}

impl Engine {
    /// An engine at time 0 with these devices.
    pub fn new(devices: Vec<Device>) -> Engine {
        Engine { stations: devices.into_iter().map(Station::new).collect(), now: Nanos::ZERO }
    }

    /// The virtual time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// A device.
    pub fn device(&self, index: usize) -> &Device {
        &self.stations[index].device
    }

    /// Runs a load until it is done and all its requests have come back; `observe` sees each of them.
    ///
    /// Panics when the load names a device that is not there.
    pub fn run(&mut self, load: &mut dyn Load, observe: &mut dyn FnMut(&Finished)) {
        let mut wanted = self.feed(load);
        loop {
            let (next, station) = self.next_event();
            let at = next.min(wanted);
            if at == Nanos::MAX {
                return;
            }
            self.now = self.now.max(at);
            let mut changed = wanted <= at;
            if next <= at {
                changed |= self.turn(station, load, observe);
            }
            if changed {
                wanted = self.feed(load);
            }
        }
    }

    fn next_event(&self) -> (Nanos, usize) {
        let mut best = (Nanos::MAX, 0);
        for (index, station) in self.stations.iter().enumerate() {
            if station.next < best.0 {
                best = (station.next, index);
            }
        }
        best
    }

    /// Does what is due at one device; says whether anything came back.
    fn turn(&mut self, index: usize, load: &mut dyn Load, observe: &mut dyn FnMut(&Finished)) -> bool {
        let station = &mut self.stations[index];
        station.device.handle_timeout(self.now);
        let mut any = false;
        while let Some(finished) = station.finish(self.now, index as u32) {
            any = true;
            load.handle_completion(self.now, finished.id);
            observe(&finished);
        }
        station.next = station.device.poll_timeout().unwrap_or(Nanos::MAX);
        any
    }

    /// Issues what the load wants now; returns when it wants to be asked again.
    fn feed(&mut self, load: &mut dyn Load) -> Nanos {
        loop {
            match load.poll(self.now) {
                Poll::Issue(issue) => {
                    let origin = Origin { issued: self.now, id: issue.id, source: issue.source };
                    let held = Held { request: issue.request, origin };
                    self.stations[issue.device as usize].issue(self.now, held);
                }
                Poll::Later(at) => return at,
                Poll::Waiting | Poll::Done => return Nanos::MAX,
            }
        }
    }
}
