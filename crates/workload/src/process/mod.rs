//! Processes that compute, issue requests, and wait or do not wait: a load of many processes, each with a separate state.
//!
//! A [`Process`] returns its next [`Step`]: the time of its request, the request, and whether it then waits. [`Processes`] runs
//! several of them in parallel. A process's own time stops while it waits, and continues afterwards. Each process has a processor,
//! unless several share some ([`Processes::sharing`]).

mod burst;
mod fork_join;
mod synthetic;
mod think;

pub use burst::{Burst, BurstShape};
pub use fork_join::{ForkJoin, ForkJoinShape, Joined, Spread, ThreadCosts};
pub use synthetic::{Synthetic, SyntheticError, SyntheticSpec};
pub use think::{ThinkShape, Thinker};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_model::{Instant, Nanos, Request};

use crate::load::{Issue, Load, Poll};
use crate::shape::seed_of;
use crate::window::Window;
use crate::{ShapeError, VolumeInfo};

/// The most requests that all processes together have outstanding; further ones are delayed.
const MOST_OUTSTANDING: u32 = 1 << 20;

const MOST_PROCESSES: u64 = 1 << 16;

/// The next step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its own time from the last request, or from the completion it waited for, to this one.
    pub gap: Nanos,
    /// The device of its request.
    pub device: u32,
    /// Its request.
    pub request: Request,
    /// What the process does after issuing it.
    pub wait: Wait,
    /// Whether it is urgent: orders that support priorities serve it before others.
    pub urgent: bool,
}

/// Whether a process waits for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It continues at once.
    Not,
    /// It waits for the completion.
    AtOnce,
    /// It continues for this much process time, and then waits if the request is not complete.
    After(Nanos),
}

/// A process.
pub trait Process {
    /// The next step, decided at `now`; `None` when the process has ended.
    fn next(&mut self, now: Instant) -> Option<Step>;
}

/// Processes in parallel. The n-th request of process p, both counted from 0, has the id n · processes + p and the
/// source p.
#[derive(Clone, Debug)]
pub struct Processes<P> {
    members: Vec<Member<P>>,
    /// Wake-up times of processes that have a processor; one entry each.
    wakes: BinaryHeap<Reverse<(Instant, u32)>>,
    free: usize,
    /// The process that has the first processor.
    on_first: Option<u32>,
    /// Whether each processor but the first becomes unavailable once no process is ready for it.
    idle_cpu_never_wakes: bool,
    /// Processes that are ready and have no processor, and since when.
    ready: VecDeque<(u32, Instant)>,
    window: Window,
}

#[derive(Clone, Debug)]
struct Member<P> {
    process: P,
    step: Option<Step>,
    /// When the step is due, if the process does not wait before.
    due: Instant,
    issued: u64,
    /// The request it waits for, and since when.
    waits: Option<(u64, Instant)>,
    /// For each outstanding request with a time limit, when the process has to wait for it; the earliest first.
    limits: VecDeque<(Instant, u64)>,
}

impl<P: Process> Processes<P> {
    /// `requests` requests in all, or fewer if the processes end before that.
    ///
    /// *Errors:* there are no processes, or too many.
    pub fn new(processes: impl IntoIterator<Item = P>, requests: u64) -> Result<Processes<P>, ShapeError> {
        let members: Vec<Member<P>> = processes.into_iter().map(Member::new).collect();
        check_processes(members.len() as u64)?;
        let window = Window::new(MOST_OUTSTANDING, requests)?;
        let count = members.len();
        let (wakes, ready) = (BinaryHeap::with_capacity(count), VecDeque::new());
        let (on_first, idle_cpu_never_wakes) = (None, false);
        let all = Processes { members, wakes, free: 0, on_first, idle_cpu_never_wakes, ready, window };
        Ok(all.sharing(count as u32))
    }

    /// Makes the processes share this number of processors. A process keeps its processor until it waits; the others queue for one, and
    /// their own time stops meanwhile. Call it before the load starts.
    pub fn sharing(mut self, processors: u32) -> Processes<P> {
        self.free = processors as usize;
        self.on_first = None;
        self.wakes.clear();
        self.ready.clear();
        (0..self.members.len() as u32).for_each(|index| self.enter(Instant::ZERO, index));
        self
    }

    /// Makes every processor but the first idle for the rest of the run once a process leaves it and no other is ready. DiskSim
    /// looks for a ready process only where one leaves, and where a completion arrives, which is the first processor.
    pub fn idle_cpu_never_wakes(mut self) -> Processes<P> {
        self.idle_cpu_never_wakes = true;
        self
    }

    fn enter(&mut self, now: Instant, index: u32) {
        let Some(wake) = self.members[index as usize].wake() else { return };
        if self.free == 0 {
            return self.ready.push_back((index, now));
        }
        self.free -= 1;
        self.on_first = self.on_first.or(Some(index));
        self.wakes.push(Reverse((wake, index)));
    }

    /// Releases the processor of a process that waits, for the next one in the queue.
    fn leave(&mut self, at: Instant, leaver: u32) {
        let was_first = self.on_first == Some(leaver);
        if was_first {
            self.on_first = self.ready.front().map(|(next, _)| *next);
        }
        let Some((index, since)) = self.ready.pop_front() else {
            self.free += usize::from(was_first || !self.idle_cpu_never_wakes);
            return;
        };
        let member = &mut self.members[index as usize];
        member.pause(at.since(since));
        let wake = member.wake().expect("only a process that can continue is in the queue");
        self.wakes.push(Reverse((wake, index)));
    }

    /// Runs a process at the time of its wake-up; returns its request, if it issues one.
    fn run(&mut self, at: Instant, index: u32) -> Option<Issue> {
        let count = self.members.len() as u64;
        let member = &mut self.members[index as usize];
        let issue = match member.limits.front() {
            Some((limit, id)) if *limit <= at => {
                member.waits = Some((*id, at));
                member.limits.pop_front();
                None
            }
            _ if member.due <= at => {
                let id = member.issued * count + u64::from(index);
                let step = member.next_step(at, id);
                Some(Issue {
                    source: index,
                    urgent: step.urgent,
                    ..Issue::new(step.device, step.request, id)
                })
            }
            _ => None,
        };
        match member.wake() {
            Some(wake) => self.wakes.push(Reverse((wake, index))),
            None => self.leave(at, index),
        }
        issue
    }
}

impl Processes<Burst> {
    /// All runs of all processes, or `requests` requests. They go to device 0.
    ///
    /// *Errors:* one of the numbers is 0, or no run fits in the region.
    pub fn bursts(shape: &BurstShape, requests: u64, seed: u64) -> Result<Self, ShapeError> {
        Processes::new(shape.build(seed)?, requests)
    }
}

impl Processes<Thinker> {
    /// `requests` requests in all. They go to device 0.
    ///
    /// *Errors:* there are no processes, the think time cannot be drawn, or no request of that shape fits.
    pub fn thinking(shape: &ThinkShape, requests: u64, seed: u64) -> Result<Self, ShapeError> {
        Processes::new(shape.build(seed)?, requests)
    }
}

impl Processes<Synthetic> {
    /// Processes of several kinds in parallel, `requests` requests in all.
    ///
    /// *Errors:* as [`SyntheticSpec::build`].
    pub fn synthetic(
        specs: &[SyntheticSpec],
        volumes: &[VolumeInfo],
        requests: u64,
        seed: u64,
    ) -> Result<Self, SyntheticError> {
        let mut processes = Vec::new();
        for spec in specs {
            let seed = seed_of(seed, processes.len() as u64);
            processes.extend(spec.build(volumes, seed)?);
        }
        Ok(Processes::new(processes, requests)?)
    }
}

fn check_processes(found: u64) -> Result<(), ShapeError> {
    crate::shape::nonzero("the number of processes", found)?;
    if found > MOST_PROCESSES {
        return Err(ShapeError::Processes { found, most: MOST_PROCESSES });
    }
    Ok(())
}

impl<P: Process> Member<P> {
    fn new(mut process: P) -> Member<P> {
        let step = process.next(Instant::ZERO);
        let due = Instant::ZERO + step.map_or(Nanos::ZERO, |step| step.gap);
        Member { process, step, due, issued: 0, waits: None, limits: VecDeque::new() }
    }

    /// Issues the step that is due, and decides the next one.
    fn next_step(&mut self, at: Instant, id: u64) -> Step {
        let step = self.step.expect("only who has a step is woken");
        self.issued += 1;
        match step.wait {
            Wait::Not => {}
            Wait::AtOnce => self.waits = Some((id, at)),
            Wait::After(limit) => {
                let limit = at.saturating_add(limit);
                let place = self.limits.partition_point(|(earlier, _)| *earlier <= limit);
                self.limits.insert(place, (limit, id));
            }
        }
        self.step = self.process.next(at);
        self.due = at.saturating_add(self.step.map_or(Nanos::ZERO, |step| step.gap));
        step
    }

    /// When to run the process next, unless a completion comes first.
    fn wake(&self) -> Option<Instant> {
        if self.waits.is_some() || self.step.is_none() {
            return None;
        }
        Some(self.limits.front().map_or(self.due, |(limit, _)| self.due.min(*limit)))
    }

    /// Delays the process by a time in which its own time stopped.
    fn pause(&mut self, pause: Nanos) {
        self.due = self.due.saturating_add(pause);
        for (limit, _) in &mut self.limits {
            *limit = limit.saturating_add(pause);
        }
    }

    /// Records that a request completed; returns whether the process waited for it.
    fn complete(&mut self, now: Instant, id: u64) -> bool {
        match self.waits {
            Some((awaited, since)) if awaited == id => {
                self.pause(now.since(since));
                self.waits = None;
                true
            }
            _ => {
                self.limits.retain(|(_, limited)| *limited != id);
                false
            }
        }
    }
}

impl<P: Process> Load for Processes<P> {
    fn poll(&mut self, now: Instant) -> Poll {
        loop {
            let Some(Reverse((at, index))) = self.wakes.peek().copied() else {
                return self.window.ended();
            };
            if let Err(poll) = self.window.ready_at(now, at) {
                return poll;
            }
            self.wakes.pop();
            // A late call moves nothing: the process runs at its own time.
            if let Some(issue) = self.run(at, index) {
                self.window.next_id();
                return Poll::Issue(issue);
            }
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.window.close();
        let index = (id % self.members.len() as u64) as u32;
        if self.members[index as usize].complete(now, id) {
            self.enter(now, index);
        }
    }
}
