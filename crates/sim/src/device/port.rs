//! The port: electronics and bus, one transfer at a time. Commands, data and statuses cross it.

use super::config::BusRules;
use super::job::Job;
use super::split::Part;
use crate::link::{HostLink, PortSharing, Transfer};
use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

/// The next use of the port for a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// Data of a read that came from the media, the transfer ending no earlier than `bound`; `crossing` if they are already
    /// crossing a shared link, which reported that bound.
    ToHost { sectors: u64, bound: Instant, crossing: bool },
    /// Data of a write that waited for room in the cache, or for the arm.
    FromHost,
    /// The data of a write that gave up the bus after its command.
    FromHostLate,
    /// The data of an access of a drive without a buffer, as they pass under the head.
    Pass,
    /// The end of a command whose data have all been sent.
    Finish,
}

/// A command that needs the port from a time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    at: Instant,
    pub(super) slot: u32,
    pub(super) wanted: Wanted,
}

/// When the first of several commands needs the port. Not inlined, so that callers stay short.
#[inline(never)]
fn earliest(several: &[Ready]) -> Instant {
    several.iter().map(|ready| ready.at).min().unwrap_or(Instant::MAX)
}

/// Of several commands, the one that needs the port first, if that is by `now`.
#[inline(never)]
fn first_of(several: &[Ready], now: Instant) -> Option<usize> {
    let due = (0..several.len()).filter(|index| several[*index].at <= now);
    due.min_by_key(|index| (several[*index].at, *index))
}

pub(super) enum PortUse {
    Serve(Ready),
    Receive(u32),
}

#[derive(Debug)]
pub(super) struct Port {
    pub(super) bus: BusRules,
    pub(super) sharing: PortSharing,
    /// Whether it serves one command at a time.
    serves_one: bool,
    /// Whether one command uses the port until it is done, and disconnects meanwhile.
    is_one_commands: bool,
    /// When it is free again; `Instant::MAX` while a command that never disconnects holds it.
    until: Instant,
    pub(super) busy: bool,
    /// Whether it waits for a bus that others share.
    pub(super) waits: bool,
    /// The command that is done when the port becomes free.
    ending: Option<u32>,
    /// Commands not yet received, in order of arrival.
    pub(super) receptions: VecDeque<u32>,
    ready: Vec<Ready>,
}

impl Port {
    pub(super) fn new(bus: BusRules, depth: usize) -> Port {
        Port {
            is_one_commands: depth == 1 && !bus.holds(),
            bus,
            sharing: PortSharing::default(),
            serves_one: depth == 1,
            until: Instant::ZERO,
            busy: false,
            waits: false,
            ending: None,
            receptions: VecDeque::with_capacity(depth),
            ready: Vec::with_capacity(depth),
        }
    }

    pub(super) fn clear(&mut self) {
        (self.until, self.busy, self.waits, self.ending) = (Instant::ZERO, false, false, None);
        self.receptions.clear();
        self.ready.clear();
    }

    /// Makes the port share links from now on.
    pub(super) fn share(&mut self, sharing: PortSharing) {
        self.is_one_commands = self.serves_one && !sharing.is_shared && !self.bus.holds();
        self.sharing = sharing;
    }

    /// Whether one command uses the port until it is done, and disconnects meanwhile.
    #[inline]
    pub(super) fn is_one_commands(&self) -> bool {
        self.is_one_commands
    }

    #[inline]
    pub(super) fn event(&self) -> Instant {
        match self.busy {
            false if self.waits => Instant::MAX,
            false => self.first_ready(),
            true if self.ending.is_some() || !self.receptions.is_empty() || self.sharing.is_shared => {
                self.until
            }
            // That a port falls free which nothing waits for is no event.
            true => self.first_ready().max(self.until),
        }
    }

    /// When the first command needs the port; `Instant::MAX` for none. Mostly at most one does.
    #[inline]
    fn first_ready(&self) -> Instant {
        match &self.ready[..] {
            [] => Instant::MAX,
            [only] => only.at,
            several => earliest(several),
        }
    }

    #[inline]
    pub(super) fn want(&mut self, at: Instant, slot: u32, wanted: Wanted) {
        let at = self.earliest_request(at, wanted);
        self.ready.push(Ready { at, slot, wanted });
        if self.bus.never_disconnects && self.busy && self.until == Instant::MAX {
            // The bus is held for this very command, which continues then.
            self.until = at;
        }
    }

    /// When to request the port. Where others share the bus, or no other command could use the port meanwhile, that is not before data
    /// from the media can cross it without a pause.
    fn earliest_request(&self, at: Instant, wanted: Wanted) -> Instant {
        match wanted {
            Wanted::ToHost { sectors, bound, .. }
                if self.is_one_commands() || self.sharing.is_exclusive && !self.bus.holds() =>
            {
                let before = self.bus.reconnect_first + self.bus.data_preparation;
                at.max(bound.saturating_sub(before + self.bus.read_time(sectors)))
            }
            _ => at,
        }
    }

    /// Time from a request for the port, while no other uses it, to the first data.
    pub(super) fn lead(&self) -> Nanos {
        let won = if self.bus.never_disconnects {
            Nanos::ZERO
        } else {
            self.sharing.arbitration + self.bus.reconnect_first
        };
        won + self.bus.data_preparation
    }

    /// When the data of a read, which are `ready` then, begin to cross, if this command alone uses the port.
    #[inline]
    pub(super) fn next_crossing(
        &self,
        now: Instant,
        ready: Instant,
        sectors: u64,
        bound: Instant,
    ) -> Instant {
        let busy = if self.busy { self.until } else { now };
        let at = self.earliest_request(ready, Wanted::ToHost { sectors, bound, crossing: false });
        at.max(busy).max(now) + self.bus.reconnect_first + self.bus.data_preparation
    }

    /// Occupies the port until `until`, and ends a command then.
    pub(super) fn take(&mut self, until: Instant, ending: Option<u32>) {
        (self.busy, self.until, self.ending) = (true, until, ending);
    }

    /// Occupies the port until `until`, or until the end of the command if the drive never disconnects.
    pub(super) fn take_for_command(&mut self, until: Instant) {
        self.take(if self.bus.never_disconnects { Instant::MAX } else { until }, None);
    }

    /// Occupies the port until the end of a command, whose last part is overhead.
    pub(super) fn end(
        &mut self,
        link: &mut HostLink<'_>,
        now: Instant,
        slot: u32,
        job: &mut Job,
        done: Instant,
    ) {
        let done = link.interrupt(now, done);
        job.account(Part::Overhead, done);
        self.take(done, Some(slot));
    }

    /// Frees the port; returns the command that is done.
    #[inline]
    pub(super) fn fall_free(&mut self, link: &mut HostLink<'_>, now: Instant) -> Option<u32> {
        self.busy = false;
        if self.ending.is_some() || !self.bus.never_disconnects {
            link.release_bus(now);
        }
        self.ending.take()
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        !self.receptions.is_empty() || !self.ready.is_empty()
    }

    /// Whether the use of a port that is not shared is over, and ends no command.
    #[inline]
    fn is_over(&self, now: Instant) -> bool {
        self.until <= now && self.ending.is_none() && !self.sharing.is_shared
    }

    /// Whether the port is free at `now` and a command may need it.
    #[inline]
    pub(super) fn is_open(&mut self, now: Instant) -> bool {
        self.busy &= !self.is_over(now);
        !self.busy && self.is_wanted()
    }

    /// Whether the port can receive a command at once.
    #[inline]
    pub(super) fn is_unwanted(&self, now: Instant) -> bool {
        (!self.busy || self.is_over(now)) && !self.is_wanted() && !self.sharing.is_shared
    }

    /// Removes what is first at `now`: the earliest command that is ready, or the first command to be received, which arrived at
    /// `arrived` and may be received. `None` while neither is there, or the port waits for a shared bus.
    #[inline]
    pub(super) fn next(
        &mut self,
        link: &mut HostLink<'_>,
        now: Instant,
        arrived: Option<Instant>,
    ) -> Option<PortUse> {
        let first = match &self.ready[..] {
            [] => None,
            [only] => (only.at <= now).then_some(0),
            several => first_of(several, now),
        };
        let is_first = |index: &usize| arrived.is_none_or(|at| self.ready[*index].at <= at);
        let first = first.filter(|index| self.bus.never_disconnects || is_first(index));
        if first.is_none() && arrived.is_none() {
            return None;
        }
        self.waits = !link.has_bus(now);
        if self.waits {
            return None;
        }
        Some(match first {
            // The others keep their order: those that are ready at one time are served as they came.
            Some(index) => PortUse::Serve(self.ready.remove(index)),
            None => PortUse::Receive(self.receptions.pop_front().expect("it was seen")),
        })
    }

    pub(super) fn bytes(&self, sectors: u64) -> u64 {
        sectors * u64::from(self.bus.sector_bytes)
    }

    /// When a read's data that begin to cross at `begins` have crossed: no earlier than `bound`.
    pub(super) fn send(
        &self,
        link: &mut HostLink<'_>,
        now: Instant,
        begins: Instant,
        sectors: u64,
        bound: Instant,
    ) -> Instant {
        let end = (begins + self.bus.read_time(sectors)).max(bound);
        let bytes = self.bytes(sectors);
        link.transfer(now, Transfer { begins, least: end - begins, bytes, to_host: true })
    }

    /// Starts receiving a write's data at `begins`; returns when all have arrived.
    pub(super) fn receive(
        &self,
        link: &mut HostLink<'_>,
        now: Instant,
        job: &mut Job,
        begins: Instant,
    ) -> Instant {
        let sectors = u64::from(job.command.request.sectors);
        let (least, bytes) = (self.bus.write_time(sectors), self.bytes(sectors));
        let sent = link.transfer(now, Transfer { begins, least, bytes, to_host: false });
        let late = sent > begins + least;
        let bus_sector =
            if late { ((sent - begins).0 << 10).div_ceil(sectors) } else { self.bus.write_sector };
        (job.arriving.begins, job.arriving.bus_sector) = (begins, bus_sector);
        sent
    }
}
