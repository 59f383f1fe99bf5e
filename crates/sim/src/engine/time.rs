//! Time: the engine runs until a load is done, or advances step by step to given times.
//!
//! Step by step it can follow a real clock. Every event happens at its own time, however late the call, so that any sequence of
//! calls of [`Engine::advance`] shows the same completions as one [`Engine::run`].

use super::Engine;
use crate::observe::{Finished, Observer, Requests, Stoppable};
use headstack_model::Instant;
use headstack_workload::Load;
use std::ops::ControlFlow;

impl Engine {
    /// Runs a load until it is done and all its requests have completed; calls `observe` with each. Dirty data of page caches
    /// and nodes stay there, spares are not rebuilt further, and disks clean no further bands in idle time.
    ///
    /// Panics when the load names a volume that does not exist.
    pub fn run(&mut self, load: &mut dyn Load, observe: &mut dyn FnMut(&Finished)) {
        self.run_observed(load, &mut Requests(observe));
    }

    /// As [`Engine::run`], but ends as soon as `observe` breaks. Outstanding requests then do not complete.
    ///
    /// Panics when the load names a volume that does not exist.
    pub fn run_while(&mut self, load: &mut dyn Load, observe: &mut dyn FnMut(&Finished) -> ControlFlow<()>) {
        self.run_observed(load, &mut Stoppable { observe, is_stopped: false });
    }

    /// As [`Engine::run`], for an observer that also sees the devices' commands.
    pub fn run_observed<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) {
        self.start(load, observer);
        while !observer.stops() && self.step(Instant::MAX, load, observer) {}
    }

    /// Starts a run that [`Engine::step`] continues: issues what the load wants now.
    ///
    /// Panics when the load names a volume that is not there.
    pub fn start<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) {
        self.done = false;
        self.parts = observer.sees_parts().then(Vec::new);
        self.feed(load, observer);
    }

    /// Moves a run to its next event, unless that is after `until`; returns whether there was one. Any sequence of steps shows the
    /// same completions as one [`Engine::run`].
    ///
    /// Panics when the load names a volume that does not exist.
    #[inline]
    pub fn step<O: Observer + ?Sized>(
        &mut self,
        until: Instant,
        load: &mut dyn Load,
        observer: &mut O,
    ) -> bool {
        let at = self.due(self.done && self.outstanding == 0);
        if at == Instant::MAX || at > until {
            return false;
        }
        self.handle_event(at, until, load, observer);
        true
    }

    /// Whether a run has no further event: the load is done, and all its requests have completed.
    pub fn is_over(&self) -> bool {
        self.due(self.done && self.outstanding == 0) == Instant::MAX
    }

    /// Handles every event up to `until`, each at its own time, and polls the load at its times and after completions. Background
    /// work (page caches, nodes, the rebuilding of spares) continues whether or not the load issues anything. Afterwards the time is
    /// `until`, unless it was later already.
    ///
    /// A load that learns of requests from outside, as [`headstack_workload::Inbox`] does, must issue each at the time at which it
    /// arrived, not before: it is first polled at the time of the last call. Without power it is not polled.
    ///
    /// Panics when the load names a volume that does not exist.
    pub fn advance<O: Observer + ?Sized>(&mut self, until: Instant, load: &mut dyn Load, observer: &mut O) {
        self.parts = observer.sees_parts().then(Vec::new);
        if !self.powered_off {
            self.feed(load, observer);
        }
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            self.handle_event(at, until, load, observer);
        }
        self.now = self.now.max(until);
    }

    /// When to call [`Engine::advance`] again, by the load's last answer; `None` if only a new request can change anything.
    pub fn next_event(&self) -> Option<Instant> {
        let at = self.due(false);
        (at != Instant::MAX && !self.powered_off).then_some(at)
    }

    /// The first time at which something is due; `Instant::MAX` if nothing is. With `rests`, background work does not count.
    #[inline]
    fn due(&self, rests: bool) -> Instant {
        let (devices, branches) = if rests {
            (self.tree.next_device_event_at_rest(), Instant::MAX)
        } else {
            (self.tree.device_events.first(), self.tree.branch_events.first())
        };
        let links = self.links.next_event();
        devices.min(branches).min(self.wanted).min(links).min(self.late.at)
    }

    /// The first time at which anything is due elsewhere than at one device.
    #[inline]
    pub(super) fn due_elsewhere(&self, device: usize) -> Instant {
        let links = self.links.next_event();
        let others = self.tree.device_events.first_of_others(device).min(self.tree.branch_events.first());
        others.min(self.wanted).min(links).min(self.late.at)
    }

    /// Handles one of the events that are due at `at`, the earliest time of any event, and nothing after `until`.
    #[inline]
    fn handle_event<O: Observer + ?Sized>(
        &mut self,
        at: Instant,
        until: Instant,
        load: &mut dyn Load,
        observer: &mut O,
    ) {
        self.now = self.now.max(at);
        let mut changed = self.wanted <= at;
        if self.tree.device_events.first() <= at {
            changed |= self.turn_device(self.tree.device_events.first_index(), until, load, observer);
        } else if self.tree.branch_events.first() <= at {
            self.turn_branch(self.tree.branch_events.first_index(), load, observer);
            changed = true;
        } else if self.wanted > at {
            if self.late.at == Instant::MAX || self.links.next_event() <= at {
                self.turn_links()
            } else {
                self.settle_late()
            }
        }
        while let Some(tenure) = self.links.poll_tenure() {
            observer.held(&tenure);
        }
        if changed {
            self.feed(load, observer);
        }
    }
}
