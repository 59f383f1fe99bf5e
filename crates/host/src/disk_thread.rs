//! A disk in real time: the thread that turns its machine by the real clock.
//!
//! It sleeps until just before the machine's next deadline and spins for the rest, because a wake-up comes some fifty
//! microseconds late and a look at the clock does not. It begins to tell of what is done a little early, since to tell
//! takes time, too ([`Lead`]).

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
    /// How long before a deadline it stops to sleep and watches the clock instead.
    pub spin: Duration,
    /// Whether it goes before all that is not real-time, and processors are kept awake, where the system allows it. The thread of a disk that takes no time
    /// never does, since it would then be woken for each request instead of for several that have come by then.
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
            // The drive has a queue of its own, as a real one has: it gets all that is asked.
            links: Links::new(u64::MAX),
            replies: Vec::new(),
            lead: Lead::default(),
            drain_deadline: None,
        };
        let run = move || {
            realtime::set_timer_slack();
            let first = timing.real_time && has_deadlines && realtime::set_realtime();
            report_ready.send(first).expect("whoever starts a disk waits for this");
            // What is half done then is only looked at; the system has told of it already.
            if catch_unwind(AssertUnwindSafe(|| event_loop.run())).is_err() {
                event_loop.break_down();
            }
        };
        let thread = Builder::new().name(format!("disk {name}")).spawn(run)?;
        let is_real_time = is_ready.recv().map_err(io::Error::other)?;
        let _cpu_latency = CpuLatencyLock::acquire(timing.real_time && has_deadlines);
        Ok(Disk { shared, thread: Some(thread), is_real_time, _cpu_latency })
    }

    /// A way to it.
    pub fn handle(&self) -> DiskHandle {
        DiskHandle(Arc::clone(&self.shared))
    }

    /// Whether the system lets its thread go first.
    pub fn is_real_time(&self) -> bool {
        self.is_real_time
    }

    /// Lets what is under way end (a long operation with the piece that it is at) and clients hear of it, takes nothing more, and
    /// puts all that is written on the media.
    ///
    /// *Errors:* there was no room left for it; the disk's thread failed long before.
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
            // What it left when it failed is taken as it is.
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
    /// Real time up to when clients may take what is left for them; set once the disk has stopped.
    drain_deadline: Option<Nanos>,
}

impl DiskLoop {
    /// How long clients may take for the last answers.
    const DRAIN_TIME: Nanos = Nanos(5_000_000_000);

    fn run(&mut self) {
        let mut events = Vec::with_capacity(64);
        while let Some(next) = self.run_due().or_else(|| self.drain()) {
            // Sockets are looked at each turn, whatever waits: one client is not to have the thread for itself.
            let next = if self.links.has_ready_requests() { Nanos::ZERO } else { next };
            self.wait(next, &mut events);
        }
    }

    /// Does what is due and tells of it; says when there is more, nothing once the disk has stopped.
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

    /// When to look again whether clients have taken the last answers; nothing once they have, or had time enough.
    fn drain(&mut self) -> Option<Nanos> {
        let clock = self.shared.clock;
        let Some(end) = self.drain_deadline else {
            // Those are answered, too, who have asked by now.
            self.drain_deadline = Some(clock.elapsed() + DiskLoop::DRAIN_TIME);
            return Some(Nanos::ZERO);
        };
        let left = Duration::from_nanos(end.since(clock.elapsed()).0);
        let is_wanted = !left.is_zero() && (self.links.have_unsent() || self.links.has_requests());
        is_wanted.then(|| clock.now() + clock.disk(left))
    }

    /// Answers all who wait, since nobody will turn the machine any more.
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
        // What is done by the time at which it can be told, is told.
        state.emulator.handle_timeout(now + self.shared.clock.disk(lead));
        state.collect(&mut self.replies);
        if state.emulator.is_dark() {
            // Who speaks with a disk that has no power hears nothing any more.
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

    /// Sleeps until shortly before `next`, unless something comes.
    fn wait(&mut self, next: Nanos, events: &mut Vec<epoll::Event>) {
        let left = self.shared.clock.real(next.since(self.shared.clock.now()));
        let mut sleep = left.saturating_sub(self.timing.spin);
        sleep = sleep.min(Duration::from_nanos(self.links.longest_sleep().0));
        let timeout = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };
        let for_ever = next == Nanos::MAX && self.links.is_empty();
        events.clear();
        // Interrupted, it has slept long enough.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), (!for_ever).then_some(&timeout));
        let now = self.shared.clock.elapsed();
        for event in events {
            match event.data.u64() {
                WAKE => drop(rustix::io::read(&self.shared.wake, &mut [0; 8])),
                place => self.links.handle_event(place as usize, event.flags, now),
            }
        }
        // Before the machine turns again, which must see what was asked by now.
        settle(&mut self.links, &self.shared, &self.epoll);
    }
}

/// Gives the disk what was asked of it, at its time and the real one.
pub(crate) fn submit(links: &mut Links, state: &mut State, now: Nanos, real: Nanos) {
    links.begin_round();
    while let Some(QueuedRequest { answerable, volume, operation }) = links.next_request(real, state.stopping)
    {
        state.submit(now, volume, operation, RequestOrigin::Connection(answerable));
    }
}

/// Hands sessions what is over.
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

/// Lets connections go on, and notes how late answers were that were sent; when the first of them were, if any.
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
