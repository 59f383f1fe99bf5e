//! A disk in real time: the thread that runs its state machine by the real clock.
//!
//! It sleeps until just before the machine's next deadline and spins for the rest, because a wake-up is some fifty
//! microseconds late and reading the clock is not. It begins to send answers a little early, because sending takes time, too
//! ([`Lead`]).

use crate::connection::Link;
use crate::disk::{Emulator, Outcome};
use crate::lead::Lead;
use crate::links::{Links, QueuedRequest};
use crate::realtime::{self, CpuLatencyLock};
use crate::shared::{DiskHandle, Reply, RequestOrigin, Shared, State};
use crate::{Answer, BlockError, Clock};
use headstack_model::Nanos;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How a disk's thread meets its deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Time before a deadline at which it stops sleeping and polls the clock.
    pub spin: Duration,
    /// Whether it has real-time priority, and processors are kept from sleeping, where the system allows it. The thread of a disk that
    /// takes no time never has it: it would then be woken for each request instead of for several.
    pub real_time: bool,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { spin: Duration::from_micros(100), real_time: true }
    }
}

/// A disk that runs.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    is_real_time: bool,
    _cpu_latency: CpuLatencyLock,
}

impl Disk {
    /// Starts a disk's thread.
    ///
    /// *Errors:* the system has no thread, or none of what one sleeps on.
    pub fn start(name: &str, emulator: Emulator, clock: Clock, timing: Timing) -> io::Result<Disk> {
        let has_deadlines = emulator.has_deadlines();
        let shared = Arc::new(Shared::new(emulator, clock)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &shared.wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let (report_ready, is_ready) = std::sync::mpsc::channel();
        let mut event_loop = DiskLoop {
            shared: Arc::clone(&shared),
            epoll,
            timing,
            // The drive has a queue of its own, as a real one has: it gets all requests.
            links: Links::new(u64::MAX),
            replies: Vec::new(),
            lead: Lead::default(),
            drain_deadline: None,
        };
        let run = move || {
            realtime::set_timer_slack();
            let first = timing.real_time && has_deadlines && realtime::set_realtime();
            report_ready.send(first).expect("the caller of `start` waits for this");
            // The state after a panic is only read; the panic message was printed already.
            if catch_unwind(AssertUnwindSafe(|| event_loop.run())).is_err() {
                event_loop.break_down();
            }
        };
        let thread = Builder::new().name(format!("disk {name}")).spawn(run)?;
        let is_real_time = is_ready.recv().map_err(io::Error::other)?;
        let _cpu_latency = CpuLatencyLock::acquire(timing.real_time && has_deadlines);
        Ok(Disk { shared, thread: Some(thread), is_real_time, _cpu_latency })
    }

    /// A handle to it.
    pub fn handle(&self) -> DiskHandle {
        DiskHandle(Arc::clone(&self.shared))
    }

    /// Whether its thread has real-time priority.
    pub fn is_real_time(&self) -> bool {
        self.is_real_time
    }

    /// Stops the disk: it completes requests in flight (a long operation with its current piece), answers clients, takes no further
    /// requests, and writes all data to the media.
    ///
    /// *Errors:* no space was left for the data; the disk's thread had failed before.
    pub fn stop(mut self) -> Result<(), BlockError> {
        self.end();
        let mut state = self.shared.lock();
        let written = state.emulator.finish_writing();
        if state.broken { Err(BlockError::Dead) } else { written }
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            let mut state = self.shared.lock();
            state.stopping = true;
            state.emulator.stop_long_tasks();
            drop(state);
            self.shared.wake();
            // A thread that panicked has left its state behind.
            let _ = thread.join();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.end();
    }
}

/// The event of the shared wake-up.
const WAKE: u64 = u64::MAX;

/// What the thread owns.
struct DiskLoop {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    timing: Timing,
    links: Links,
    replies: Vec<Reply>,
    lead: Lead,
    /// Real time until which clients may take the last answers; set once the disk has stopped.
    drain_deadline: Option<Nanos>,
}

impl DiskLoop {
    /// Time that clients have to take the last answers.
    const DRAIN_TIME: Nanos = Nanos(5_000_000_000);

    fn run(&mut self) {
        let mut events = Vec::with_capacity(64);
        while let Some(next) = self.run_due().or_else(|| self.drain()) {
            // Sockets are polled in each round, so that no client has the thread for itself.
            let next = if self.links.has_ready_requests() { Nanos::ZERO } else { next };
            self.wait(next, &mut events);
        }
    }

    /// Does what is due and sends the answers. Returns when there is more to do, `None` once the disk has stopped.
    fn run_due(&mut self) -> Option<Nanos> {
        let now = self.shared.clock.now();
        let next = self.advance_machine(now);
        let replied = self.shared.answer(&mut self.replies);
        let sent = settle(&mut self.links, &self.shared, &self.epoll);
        if let Some(is_ready) = replied.or(sent) {
            self.lead.observe(self.shared.clock.real(is_ready.since(now)));
        }
        next
    }

    /// When to check again whether clients have taken the last answers; `None` once they have, or the time is over.
    fn drain(&mut self) -> Option<Nanos> {
        let clock = self.shared.clock;
        let Some(end) = self.drain_deadline else {
            // Requests that have arrived by now are answered, too.
            self.drain_deadline = Some(clock.elapsed() + DiskLoop::DRAIN_TIME);
            return Some(Nanos::ZERO);
        };
        let left = Duration::from_nanos(end.since(clock.elapsed()).0);
        let is_wanted = !left.is_zero() && (self.links.have_unsent() || self.links.has_requests());
        is_wanted.then(|| clock.now() + clock.disk(left))
    }

    /// Fails all pending requests, because the machine will not run any more.
    fn break_down(&mut self) {
        self.shared.lock().break_down(self.shared.clock.now(), &mut self.replies);
        self.links.clear();
        self.shared.answer(&mut self.replies);
    }

    fn advance_machine(&mut self, now: Nanos) -> Option<Nanos> {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let (lead, real) = (self.lead.get(), self.shared.clock.elapsed());
        self.links.take_arrived(&mut state.arrived, |_| {});
        state.emulator.handle_timeout(now);
        submit(&mut self.links, state, now, real);
        // Completions up to the time at which their answers are sent are included.
        state.emulator.handle_timeout(now + self.shared.clock.disk(lead));
        state.collect(&mut self.replies);
        if state.emulator.is_dark() {
            // A disk without power answers nothing.
            self.links.clear();
        }
        answer(&mut self.links, state, real);
        if state.stopping && state.emulator.outstanding() == 0 {
            return None;
        }
        let next = state.emulator.poll_timeout().unwrap_or(Nanos::MAX);
        state.asleep_until = next;
        Some(next)
    }

    /// Sleeps until shortly before `next`, or until an event.
    fn wait(&mut self, next: Nanos, events: &mut Vec<epoll::Event>) {
        let left = self.shared.clock.real(next.since(self.shared.clock.now()));
        let mut sleep = left.saturating_sub(self.timing.spin);
        sleep = sleep.min(Duration::from_nanos(self.links.longest_sleep().0));
        let timeout = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };
        let for_ever = next == Nanos::MAX && self.links.is_empty();
        events.clear();
        // An interrupted wait is as good as an event.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), (!for_ever).then_some(&timeout));
        let now = self.shared.clock.elapsed();
        for event in events {
            match event.data.u64() {
                WAKE => drop(rustix::io::read(&self.shared.wake, &mut [0; 8])),
                place => self.links.handle_event(place as usize, event.flags, now),
            }
        }
        // Before the machine runs again, which must see all requests that have arrived.
        settle(&mut self.links, &self.shared, &self.epoll);
    }
}

/// Submits the queued requests to the disk, at its time and the real one.
pub(crate) fn submit(links: &mut Links, state: &mut State, now: Nanos, real: Nanos) {
    links.begin_round();
    while let Some(QueuedRequest { answerable, volume, operation }) = links.next_request(real, state.stopping)
    {
        state.submit(now, volume, operation, RequestOrigin::Connection(answerable));
    }
}

/// Passes completions to their sessions.
pub(crate) fn answer(links: &mut Links, state: &mut State, now: Nanos) {
    for (answerable, due, result) in state.over.drain(..) {
        let emulator = &state.emulator;
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

/// Serves the connections, and records how late answers were sent. Returns when the first was sent, if any was.
pub(crate) fn settle(links: &mut Links, shared: &Shared, epoll: &OwnedFd) -> Option<Nanos> {
    let mut first = None;
    let note = |link: &mut Link| {
        let sent = link.take_sent();
        if sent.len() > 0 {
            let is_ready = shared.record_lateness(sent);
            first.get_or_insert(is_ready);
        }
    };
    links.settle(shared.clock.elapsed(), epoll, note, |_| {});
    first
}
