//! The engine: moves virtual time from event to event.
//!
//! A load asks *volumes*. Its request becomes an ask, which forks into one piece or more, each on one device; the ask ends
//! with its last piece. On the way to a device a piece passes the host's queue, which may split it further or merge it
//! with others. A volume is one device.
//!
//! Modelled: any number of devices, each behind a queue of the host. Not modelled: time that the host itself needs.

use crate::device::{Completion, Device, Outcome};
use crate::events::Events;
use crate::host::{HostError, HostSpec, Piece, Station};
use headstack_model::{Nanos, Request};
use headstack_workload::{Issue, Load, Poll};

/// A request that came back, as the load sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The volume it went to.
    pub volume: u32,
    /// The device that served it, or the last part of it.
    pub device: u32,
    /// The load's number for it.
    pub id: u64,
    /// Who asked for it.
    pub source: u32,
    /// How it went, from the load's issue to its end. Where several parts or commands served it, the time split is the
    /// last one's; what went by before that one came to its device is `queued`.
    pub completion: Completion,
}

/// Somebody who sees what happens.
pub trait Observer {
    /// A load's request came back.
    fn finished(&mut self, finished: &Finished);
    /// A device ended a command, which may be a part of a load's request, or several of them in one.
    fn served(&mut self, device: u32, command: &Completion);
}

/// An observer that wants the load's requests alone.
struct Requests<'a>(&'a mut dyn FnMut(&Finished));

impl Observer for Requests<'_> {
    fn finished(&mut self, finished: &Finished) {
        self.0(finished);
    }

    fn served(&mut self, _device: u32, _command: &Completion) {}
}

/// A load's request that is under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    issued: Nanos,
    request: Request,
    id: u64,
    volume: u32,
    source: u32,
    /// Pieces that have not come back.
    left: u32,
    /// How the worst piece ended.
    outcome: Outcome,
}

/// Turns devices by virtual time.
#[derive(Debug)]
pub struct Engine {
    stations: Vec<Station>,
    events: Events,
    asked: Vec<Asked>,
    free: Vec<u32>,
    /// Stations that got something and were not looked at since.
    touched: Vec<u32>,
    now: Nanos,
}

impl Engine {
    /// An engine at time 0 with these devices, each a volume, and a host that holds what they cannot take.
    pub fn new(devices: Vec<Device>) -> Engine {
        Engine::with_stations(devices.into_iter().map(Station::plain).collect())
    }

    /// An engine at time 0 with these devices, each a volume, behind a host.
    ///
    /// *Errors:* a key of the host is wrong.
    pub fn with_host(devices: Vec<Device>, host: &HostSpec) -> Result<Engine, HostError> {
        host.check()?;
        let stations = devices.into_iter().map(|device| Station::new(device, host));
        Ok(Engine::with_stations(stations.collect::<Result<_, _>>()?))
    }

    fn with_stations(stations: Vec<Station>) -> Engine {
        Engine {
            events: Events::new(stations.len()),
            touched: Vec::with_capacity(stations.len()),
            stations,
            asked: Vec::new(),
            free: Vec::new(),
            now: Nanos::ZERO,
        }
    }

    /// The virtual time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.stations.len()
    }

    /// A device.
    pub fn device(&self, index: usize) -> &Device {
        self.stations[index].device()
    }

    /// Runs a load until it is done and all its requests have come back; `observe` sees each of them.
    ///
    /// Panics when the load names a volume that is not there.
    pub fn run(&mut self, load: &mut dyn Load, observe: &mut dyn FnMut(&Finished)) {
        self.run_observed(load, &mut Requests(observe));
    }

    /// As [`Engine::run`], for an observer that also sees the devices' commands.
    pub fn run_observed<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) {
        let mut wanted = self.feed(load);
        loop {
            let next = self.events.first();
            let at = next.min(wanted);
            if at == Nanos::MAX {
                return;
            }
            self.now = self.now.max(at);
            let mut changed = wanted <= at;
            if next <= at {
                changed |= self.turn(self.events.first_index(), load, observer);
            }
            if changed {
                wanted = self.feed(load);
            }
        }
    }

    /// Does what is due at one device; says whether anything came back.
    fn turn<O: Observer + ?Sized>(&mut self, index: usize, load: &mut dyn Load, observer: &mut O) -> bool {
        self.stations[index].handle_timeout(self.now);
        let mut any = false;
        let completion = Completion::at_once(Request::flush(), self.now);
        let mut finished = Finished { volume: 0, device: index as u32, id: 0, source: 0, completion };
        while let Some(ask) = self.stations[index]
            .poll(self.now, &mut finished.completion, |command| observer.served(index as u32, command))
        {
            if self.finish(ask, &mut finished) {
                any = true;
                load.handle_completion(self.now, finished.id);
                observer.finished(&finished);
            }
        }
        self.settle(index);
        any
    }

    /// A piece of an ask came back as `finished` says; whether it was the last one, and that of a load's request then.
    #[inline]
    fn finish(&mut self, ask: u32, finished: &mut Finished) -> bool {
        let asked = &mut self.asked[ask as usize];
        let completion = &mut finished.completion;
        if completion.outcome != Outcome::Done {
            asked.outcome = completion.outcome;
        }
        asked.left -= 1;
        if asked.left > 0 {
            return false;
        }
        self.free.push(ask);
        (finished.volume, finished.id, finished.source) = (asked.volume, asked.id, asked.source);
        completion.parts.queued += completion.submitted - asked.issued;
        completion.submitted = asked.issued;
        (completion.request, completion.outcome) = (asked.request, asked.outcome);
        true
    }

    /// Lets a station's device have what may go to it, and notes when to come back.
    fn settle(&mut self, index: usize) {
        let station = &mut self.stations[index];
        station.settle(self.now);
        self.events.set(index, station.next_event(self.now));
    }

    /// Issues what the load wants now; returns when it wants to be asked again.
    fn feed(&mut self, load: &mut dyn Load) -> Nanos {
        let wanted = loop {
            match load.poll(self.now) {
                Poll::Issue(issue) => self.issue(&issue),
                Poll::Later(at) => break at,
                Poll::Waiting | Poll::Done => break Nanos::MAX,
            }
        };
        while let Some(index) = self.touched.pop() {
            self.settle(index as usize);
        }
        wanted
    }

    #[inline]
    fn issue(&mut self, issue: &Issue) {
        let Issue { device: volume, request, id, source, urgent, .. } = *issue;
        let outcome = Outcome::Done;
        let asked = Asked { issued: self.now, request, id, volume, source, left: 0, outcome };
        let ask = match self.free.pop() {
            Some(ask) => {
                self.asked[ask as usize] = asked;
                ask
            }
            None => {
                self.asked.push(asked);
                (self.asked.len() - 1) as u32
            }
        };
        // A volume is the device of its number: one piece.
        let piece = Piece { ask, request, source, urgent, sync: true };
        self.asked[ask as usize].left = self.stations[volume as usize].issue(self.now, piece);
        if self.touched.last() != Some(&volume) {
            self.touched.push(volume);
        }
    }
}
