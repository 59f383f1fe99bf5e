//! The thread that serves connections, and its event loop: for an emulated disk and for a storage node ([`ThreadService`]).
//!
//! In each iteration the service handles what is due and sends replies. Then the thread sleeps until shortly before the next
//! deadline and polls the clock for the rest, because a wake-up is some 50 µs late.

use crate::connection::Link;
use crate::links::Links;
use crate::{Clock, realtime};
use headstack_model::{Instant, Nanos};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[allow(clippy::disallowed_types, reason = "threads share a service")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// State behind the lock of a [`Shared`].
pub(crate) struct State<T> {
    pub(crate) served: T,
    /// Connections whose clients have just chosen an export of the service.
    pub(crate) arrived: Vec<Link>,
    /// Whether the service accepts no more requests.
    pub(crate) stopping: bool,
    /// Whether its thread panicked, perhaps in the middle of a change: `served` is only read from then on.
    pub(crate) broken: bool,
}

/// A service as threads share it: `T` under a lock, `I` without.
#[allow(clippy::disallowed_types, reason = "threads share a service")]
pub(crate) struct Shared<T, I> {
    state: Mutex<State<T>>,
    /// Wakes the service's thread.
    wake: OwnedFd,
    pub(crate) clock: Clock,
    pub(crate) info: I,
}

impl<T, I: fmt::Debug> fmt::Debug for Shared<T, I> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Shared").field("info", &self.info).finish_non_exhaustive()
    }
}

impl<T, I> Shared<T, I> {
    #[allow(clippy::disallowed_types, reason = "threads share a service")]
    pub(crate) fn new(served: T, info: I, clock: Clock) -> io::Result<Shared<T, I>> {
        let state = State { served, arrived: Vec::new(), stopping: false, broken: false };
        Ok(Shared { state: Mutex::new(state), wake: event_counter()?, clock, info })
    }

    /// Locks the state. A panic in another thread does not prevent it, because it left the state as it was between two calls; clients still
    /// get an answer.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self) {
        signal(&self.wake);
    }

    /// Stops the service: it accepts no more requests.
    pub(crate) fn request_stop(&self) {
        self.lock().stopping = true;
        self.wake();
    }

    /// Passes a connection to the service's thread. It is closed if the thread stops.
    pub(crate) fn adopt(&self, link: Link) {
        let mut state = self.lock();
        if !state.stopping {
            state.arrived.push(link);
        }
        drop(state);
        self.wake();
    }
}

/// An event counter that epoll can wait for.
pub(crate) fn event_counter() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an event counter readable.
pub(crate) fn signal(counter: &OwnedFd) {
    // Fails only if the counter is full; then the thread is awake.
    let _ = rustix::io::write(counter, &1u64.to_ne_bytes());
}

/// Makes an event counter unreadable until the next event.
pub(crate) fn clear_signal(counter: &OwnedFd) {
    // Fails only if there was no event.
    let _ = rustix::io::read(counter, &mut [0; 8]);
}

/// What serves the requests of a thread's connections.
pub(crate) trait ThreadService: Send + Sized + 'static {
    type State;
    type Info;

    /// A descriptor that becomes readable when commands have ended.
    fn wake_source(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Handles the descriptor becoming readable.
    fn woken(&mut self) {}

    /// Called once in the service's thread, before anything else.
    fn begin(&mut self, _state: &mut Self::State) {}

    /// Handles what is due and sends replies. Returns when it must be called again, by the service's clock, or none once the service has
    /// stopped.
    fn run_due(&mut self, shared: &Shared<Self::State, Self::Info>, links: &mut Links) -> Option<Instant>;

    /// Sends replies and takes new requests from the connections.
    fn settle(&mut self, shared: &Shared<Self::State, Self::Info>, links: &mut Links);

    /// Fails all pending requests after a panic of the thread.
    fn break_down(&mut self, shared: &Shared<Self::State, Self::Info>);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSettings {
    /// Time before a deadline at which it stops sleeping and polls the clock.
    pub(crate) spin: Duration,
    pub(crate) real_time: bool,
    /// Maximum cost of the requests at the service, except for one of each connection.
    pub(crate) max_in_flight_cost: u64,
}

/// A service's thread. Dropping it stops the thread.
pub(crate) struct ServiceThread<T, I> {
    pub(crate) shared: Arc<Shared<T, I>>,
    thread: Option<JoinHandle<()>>,
    pub(crate) is_real_time: bool,
}

impl<T: Send + 'static, I: Send + Sync + 'static> ServiceThread<T, I> {
    pub(crate) fn start<S: ThreadService<State = T, Info = I>>(
        name: String,
        service: S,
        shared: Shared<T, I>,
        settings: ThreadSettings,
    ) -> io::Result<ServiceThread<T, I>> {
        let shared = Arc::new(shared);
        let links = Links::new(settings.max_in_flight_cost)?;
        epoll::add(links.epoll(), &shared.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        if let Some(source) = service.wake_source() {
            epoll::add(links.epoll(), source, EventData::new_u64(COMMANDS_ENDED), EventFlags::IN)?;
        }
        let spin = settings.spin;
        let mut event_loop =
            EventLoop { service, shared: Arc::clone(&shared), links, spin, drain_deadline: None };
        let (report_ready, is_ready) = mpsc::channel();
        let run = move || {
            realtime::set_timer_slack();
            let is_real_time = settings.real_time && realtime::set_realtime();
            report_ready.send(is_real_time).expect("the caller of `start` waits for this");
            // The state after a panic is only read; the panic hook has printed the message.
            if catch_unwind(AssertUnwindSafe(|| event_loop.run())).is_err() {
                event_loop.break_down();
            }
        };
        let thread = Some(Builder::new().name(name).spawn(run)?);
        let is_real_time = is_ready.recv().map_err(io::Error::other)?;
        Ok(ServiceThread { shared, thread, is_real_time })
    }
}

impl<T, I> ServiceThread<T, I> {
    /// Stops the service and waits until its thread has ended.
    pub(crate) fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.request_stop();
            // A thread that panicked has left its state behind, so its result is not needed.
            let _ = thread.join();
        }
    }
}

impl<T, I: fmt::Debug> fmt::Debug for ServiceThread<T, I> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(to)
    }
}

impl<T, I> Drop for ServiceThread<T, I> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Event number of the wake-up counter, above those of connections.
const WAKE: u64 = u64::MAX;
/// Event number of the service's [`ThreadService::wake_source`].
const COMMANDS_ENDED: u64 = u64::MAX - 1;

/// The state that the thread owns.
struct EventLoop<S: ThreadService> {
    // Dropped before `shared`, because the kernel may have its memory registered.
    service: S,
    shared: Arc<Shared<S::State, S::Info>>,
    links: Links,
    spin: Duration,
    /// Real time until which clients may receive the last replies; set once the service has stopped.
    drain_deadline: Option<Instant>,
}

impl<S: ThreadService> EventLoop<S> {
    /// Time for clients to receive the last replies.
    const DRAIN_TIME: Nanos = Nanos(5_000_000_000);

    fn run(&mut self) {
        let mut events = Vec::with_capacity(64);
        self.service.begin(&mut self.shared.lock().served);
        while let Some(next) = self.service.run_due(&self.shared, &mut self.links).or_else(|| self.drain()) {
            // Polls the sockets in each iteration, so that no client monopolises the thread.
            let next = if self.links.has_ready_requests() { Instant::ZERO } else { next };
            self.wait(next, &mut events);
        }
    }

    /// When to check again whether clients have received the last replies; none once they have, or the time is over.
    fn drain(&mut self) -> Option<Instant> {
        let clock = self.shared.clock;
        let Some(end) = self.drain_deadline else {
            // Requests that have arrived by now are answered, too.
            self.drain_deadline = Some(clock.real_now() + EventLoop::<S>::DRAIN_TIME);
            return Some(Instant::ZERO);
        };
        let left = Duration::from_nanos(end.since(clock.real_now()).0);
        let is_wanted = !left.is_zero() && (self.links.have_unsent() || self.links.has_requests());
        is_wanted.then(|| clock.now() + clock.disk(left))
    }

    /// Fails all pending requests and closes all connections, because the service cannot continue.
    fn break_down(&mut self) {
        let mut state = self.shared.lock();
        (state.stopping, state.broken) = (true, true);
        state.arrived.clear();
        drop(state);
        self.links.clear();
        self.service.break_down(&self.shared);
    }

    /// Sleeps until shortly before `next`, or until an event.
    fn wait(&mut self, next: Instant, events: &mut Vec<epoll::Event>) {
        let left = self.shared.clock.real(next.since(self.shared.clock.now()));
        let sleep = left.saturating_sub(self.spin).min(Duration::from_nanos(self.links.longest_sleep().0));
        let timeout = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };
        let has_end = next < Instant::MAX || !self.links.is_empty();
        events.clear();
        // An interrupted wait counts as an event.
        let _ = epoll::wait(self.links.epoll(), spare_capacity(events), has_end.then_some(&timeout));
        let now = self.shared.clock.real_now();
        for event in events {
            match event.data.u64() {
                WAKE => clear_signal(&self.shared.wake),
                COMMANDS_ENDED => self.service.woken(),
                place => self.links.handle_event(place as usize, event.flags, now),
            }
        }
        // Before the service runs again, which must see all requests that have arrived.
        self.service.settle(&self.shared, &mut self.links);
    }
}
