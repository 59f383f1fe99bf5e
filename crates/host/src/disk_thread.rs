//! An emulated disk in real time: its machine, served by an event loop.
//!
//! It starts to send answers slightly early, because sending takes time ([`Lead`]).

use crate::connection::Link;
use crate::disk::{Emulator, Outcome};
use crate::event_loop::{ServiceThread, State, ThreadService, ThreadSettings};
use crate::lead::Lead;
use crate::links::{Links, QueuedRequest};
use crate::realtime::CpuLatencyLock;
use crate::shared::{self, DiskDetails, DiskHandle, DiskShared, Reply, RequestOrigin, ServedDisk};
use crate::{Answer, BlockError, Clock};
use headstack_model::Instant;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How a disk's thread meets its deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Time before a deadline at which it stops sleeping and polls the clock.
    pub spin: Duration,
    /// Whether the thread requests real-time priority and keeps processors from sleeping. Without effect for a disk that takes no
    /// time: it has no deadlines, and with priority its thread would wake up for each request instead of once for several.
    pub real_time: bool,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { spin: Duration::from_micros(100), real_time: true }
    }
}

/// A running disk.
#[derive(Debug)]
pub struct Disk {
    thread: ServiceThread<ServedDisk, DiskDetails>,
    _cpu_latency: CpuLatencyLock,
}

impl Disk {
    /// Starts a disk's thread.
    ///
    /// *Errors:* the system refuses a thread or a descriptor.
    pub fn start(name: &str, emulator: Emulator, clock: Clock, timing: Timing) -> io::Result<Disk> {
        let real_time = timing.real_time && emulator.has_deadlines();
        // The emulated drive has a queue of its own, so it gets all requests.
        let settings = ThreadSettings { spin: timing.spin, real_time, max_in_flight_cost: u64::MAX };
        let (shared, service) = (shared::new(emulator, clock)?, DiskService::default());
        let thread = ServiceThread::start(format!("disk {name}"), service, shared, settings)?;
        Ok(Disk { thread, _cpu_latency: CpuLatencyLock::acquire(real_time) })
    }

    /// A handle to it.
    pub fn handle(&self) -> DiskHandle {
        DiskHandle(Arc::clone(&self.thread.shared))
    }

    /// Whether its thread has real-time priority.
    pub fn is_real_time(&self) -> bool {
        self.thread.is_real_time
    }

    /// Stops the disk: it completes requests in flight (a long operation with its current piece), answers clients, takes no further
    /// requests, and writes all data to the media.
    ///
    /// *Errors:* no space was left for the data; the disk's thread had failed before.
    pub fn stop(mut self) -> Result<(), BlockError> {
        self.end();
        let mut state = self.thread.shared.lock();
        let written = state.served.emulator.finish_writing();
        if state.broken { Err(BlockError::Dead) } else { written }
    }

    fn end(&mut self) {
        self.thread.shared.lock().served.emulator.stop_long_tasks();
        self.thread.end();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Default)]
struct DiskService {
    /// Kept to reuse its memory.
    replies: Vec<Reply>,
    lead: Lead,
}

impl DiskService {
    fn advance_machine(&mut self, shared: &DiskShared, links: &mut Links, now: Instant) -> Option<Instant> {
        let mut state = shared.lock();
        let state = &mut *state;
        let (lead, real) = (self.lead.get(), shared.clock.real_now());
        links.take_arrived(&mut state.arrived, |_| {});
        state.served.emulator.handle_timeout(now);
        submit(links, state, now, real);
        // Includes completions that are due by the time their answers are sent.
        state.served.emulator.handle_timeout(now + shared.clock.disk(lead));
        state.served.collect(&mut self.replies);
        if state.served.emulator.is_dark() {
            // A disk without power sends no answers.
            links.clear();
        }
        answer(links, state, real);
        if state.stopping && state.served.emulator.outstanding() == 0 {
            return None;
        }
        let next = state.served.emulator.poll_timeout().unwrap_or(Instant::MAX);
        state.served.asleep_until = next;
        Some(next)
    }
}

impl ThreadService for DiskService {
    type State = ServedDisk;
    type Info = DiskDetails;

    fn run_due(&mut self, shared: &DiskShared, links: &mut Links) -> Option<Instant> {
        let now = shared.clock.now();
        let next = self.advance_machine(shared, links, now);
        let replied = shared.answer(&mut self.replies);
        let sent = settle(links, shared);
        if let Some(is_ready) = replied.or(sent) {
            self.lead.observe(shared.clock.real(is_ready.since(now)));
        }
        next
    }

    fn settle(&mut self, shared: &DiskShared, links: &mut Links) {
        settle(links, shared);
    }

    fn break_down(&mut self, shared: &DiskShared) {
        shared.lock().served.break_down(shared.clock.now(), &mut self.replies);
        shared.answer(&mut self.replies);
    }
}

/// Submits the queued requests at disk time `now` and real time `real`.
pub(crate) fn submit(links: &mut Links, state: &mut State<ServedDisk>, now: Instant, real: Instant) {
    links.begin_round();
    while let Some(QueuedRequest { answerable, volume, operation }) = links.next_request(real, state.stopping)
    {
        state.served.submit(now, volume, operation, RequestOrigin::Connection(answerable));
    }
}

pub(crate) fn answer(links: &mut Links, state: &mut State<ServedDisk>, now: Instant) {
    let ServedDisk { emulator, over, .. } = &mut state.served;
    for (answerable, due, result) in over.drain(..) {
        links.answer(answerable, due, |session, handle| match result {
            Ok(Outcome::Read { volume, offset, .. }) => {
                session.answer_read(now, handle, |into| emulator.read(volume, offset, into));
            }
            Ok(Outcome::Done) => session.answer(now, handle, Ok(Answer::Done)),
            Ok(Outcome::Allocation(extents)) => {
                session.answer(now, handle, Ok(Answer::Allocation(extents)));
            }
            Err(error) => session.answer(now, handle, Err(error)),
        });
    }
}

/// Serves the connections, and records the lateness of answers. Returns when the first was sent, if any was.
pub(crate) fn settle(links: &mut Links, shared: &DiskShared) -> Option<Instant> {
    let mut first = None;
    let note = |link: &mut Link| {
        let sent = link.take_sent();
        if sent.len() > 0 {
            let is_ready = shared.record_lateness(sent);
            first.get_or_insert(is_ready);
        }
    };
    links.settle(shared.clock.real_now(), note, |_| {});
    first
}
