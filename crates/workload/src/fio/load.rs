//! All jobs of a file as one load.

mod held;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_model::Instant;

use super::flow::Flows;
use super::logged::Logged;
use super::pace::Term;
use super::process::{Process, Step};
use super::request::FioRequest;
use super::settings::{ExitScope, FlowRules, SteadyRules};
use super::steady::SteadyWatch;
use super::zoned::ZonedVolumes;
use crate::load::{Issue, Load, Poll, ReadAdvice};
use crate::only_disk::OnlyDisk;
use crate::trace::ReplayError;

/// A clone of a job, as results name it. Its number in [`FioLoad::jobs`] is the source of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FioJob {
    pub name: String,
    pub description: Option<String>,
    /// Number of its section among those of jobs, counted from 0.
    pub section: u32,
    /// Number of the clone, counted from 0.
    pub clone: u32,
    /// Group of results; `stonewall` and `new_group` begin a new one.
    pub group: u32,
    /// Whether results are per group instead of per clone.
    pub group_reporting: bool,
    /// Requests outstanding at most.
    pub depth: u32,
    /// Whether its requests bypass the page cache (`direct=1`, or an engine that has none).
    pub direct: bool,
    /// Its control group, if it is in one.
    pub cgroup: Option<String>,
    /// The keys of its section with their values, as written.
    pub options: Vec<(String, String)>,
}

/// When a clone ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioWindow {
    /// When it began.
    pub started: Instant,
    /// From when on it is measured: after its ramp time.
    pub measured_from: Instant,
    /// Completion of its last request; `None` while it runs.
    pub ended: Option<Instant>,
}

/// A part of a volume that represents a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FioFile {
    pub name: String,
    pub volume: u32,
    /// Where it begins there, in bytes.
    pub first_byte: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) stage: u32,
    pub(super) waits_for: Option<u32>,
    pub(super) not_before: Instant,
    /// Which clones end with it.
    pub(super) ends: Option<ExitScope>,
    pub(super) flow: FlowRules,
    pub(super) steady: SteadyRules,
    pub(super) direct: bool,
    pub(super) advice: ReadAdvice,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) worker: Worker,
    pub(super) gate: Gate,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "most are of the large kind")]
pub(super) enum Worker {
    Made(Process),
    Logged(Box<Logged>),
}

impl Worker {
    pub(super) fn term(&mut self) -> &mut Term {
        match self {
            Worker::Made(process) => &mut process.term,
            Worker::Logged(logged) => &mut logged.term,
        }
    }

    /// Starts the clone; returns the time from which on it is measured.
    fn start(&mut self, now: Instant) -> Instant {
        match self {
            Worker::Made(process) => process.start(now),
            Worker::Logged(logged) => logged.term.start(now),
        }
        self.term().measured_from()
    }

    #[inline]
    fn poll(&mut self, now: Instant, zoned: &mut ZonedVolumes, only_disk: &mut OnlyDisk) -> Step {
        match self {
            Worker::Made(process) => process.poll(now, zoned),
            Worker::Logged(logged) => logged.poll(now, only_disk),
        }
    }

    /// Handles a completion. Returns whether the clone may issue again.
    #[inline]
    fn complete(&mut self, now: Instant, id: u64) -> bool {
        match self {
            Worker::Made(process) => process.complete(id),
            Worker::Logged(logged) => {
                logged.complete(now);
                true
            }
        }
    }

    /// Records the id of the request issued last.
    #[cold]
    fn note_id(&mut self, id: u64) {
        if let Worker::Made(process) = self {
            process.note_id(id);
        }
    }

    /// Number of outstanding requests.
    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Worker::Made(process) => process.outstanding(),
            Worker::Logged(logged) => logged.outstanding(),
        }
    }

    /// Whether its pass or its time is over.
    pub(super) fn is_at_end(&mut self, now: Instant) -> bool {
        self.term().is_over(now) || matches!(self, Worker::Made(process) if process.is_at_end())
    }

    /// Share of its work that is done by `now`; `None` where its amount is unknown.
    fn progress(&self, now: Instant) -> Option<f64> {
        match self {
            Worker::Made(process) => Some(process.progress(now)),
            Worker::Logged(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Waiting,
    Ready,
    Asleep,
    Blocked,
    Ended,
}

/// The jobs of a file on a rig. Built by [`JobFile::build`](super::JobFile::build).
///
/// The n-th request of all, counted from 0, by the clone of number s has the id n · clones + s.
#[derive(Debug)]
pub struct FioLoad {
    members: Vec<Member>,
    zoned: ZonedVolumes,
    only_disk: OnlyDisk,
    standing: Vec<Standing>,
    windows: Vec<Option<FioWindow>>,
    jobs: Vec<FioJob>,
    files: Vec<FioFile>,
    notes: Vec<String>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Clones not yet over, of each stage and of each section.
    stage_left: Vec<u32>,
    section_left: Vec<u32>,
    waiting: usize,
    running: usize,
    issued: u64,
    flows: Flows,
    steady: SteadyWatch,
}

impl FioLoad {
    pub(super) fn new(
        members: Vec<Member>,
        jobs: Vec<FioJob>,
        files: Vec<FioFile>,
        notes: Vec<String>,
        zoned: ZonedVolumes,
        only_disk: OnlyDisk,
    ) -> FioLoad {
        let count = members.len();
        let mut stage_left = Vec::new();
        let mut section_left = Vec::new();
        for (member, job) in members.iter().zip(&jobs) {
            add_at(&mut stage_left, member.gate.stage);
            add_at(&mut section_left, job.section);
        }
        let flows = Flows::new(members.iter().map(|member| member.gate.flow));
        let rules = members.iter().zip(&jobs);
        let steady =
            SteadyWatch::new(rules.map(|(member, job)| (member.gate.steady, job.group, job.group_reporting)));
        let mut load = FioLoad {
            members,
            zoned,
            only_disk,
            standing: vec![Standing::Waiting; count],
            windows: vec![None; count],
            jobs,
            files,
            notes,
            ready: VecDeque::with_capacity(count),
            timers: BinaryHeap::with_capacity(count),
            stage_left,
            section_left,
            waiting: count,
            running: count,
            issued: 0,
            flows,
            steady,
        };
        load.open_gates();
        load
    }

    /// The clones of all jobs; the number of each is the source of its requests.
    pub fn jobs(&self) -> &[FioJob] {
        &self.jobs
    }

    /// The files that lie on volumes.
    pub fn files(&self) -> &[FioFile] {
        &self.files
    }

    /// Notes on differences from the job file: a depth that its engine does not keep, files that are not volumes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The time in which a clone ran; `None` if it has not begun.
    pub fn window(&self, source: u32) -> Option<FioWindow> {
        self.windows[source as usize]
    }

    /// Whether a request of a clone that completed at `completed` counts: ramp time is left out, as in fio.
    pub fn is_measured(&self, source: u32, completed: Instant) -> bool {
        self.window(source).is_some_and(|window| completed >= window.measured_from)
    }

    /// The error that ended the replay of a log (`read_iolog`) before its end, if any.
    pub fn error(&self) -> Option<&ReplayError> {
        self.members.iter().find_map(|member| match &member.worker {
            Worker::Made(_) => None,
            Worker::Logged(logged) => logged.error(),
        })
    }

    /// As [`FioLoad::error`], and clears it.
    pub fn take_error(&mut self) -> Option<ReplayError> {
        self.members.iter_mut().find_map(|member| match &mut member.worker {
            Worker::Made(_) => None,
            Worker::Logged(logged) => logged.take_error(),
        })
    }

    /// Starts the clones whose gates are open now. They wait until their start time.
    fn open_gates(&mut self) {
        let stage = self.stage_left.iter().take_while(|left| **left == 0).count() as u32;
        for source in 0..self.members.len() {
            let gate = self.members[source].gate;
            let waits = gate.waits_for.is_some_and(|section| self.section_left[section as usize] > 0);
            if self.standing[source] == Standing::Waiting && gate.stage <= stage && !waits {
                self.standing[source] = Standing::Asleep;
                self.waiting -= 1;
                self.timers.push(Reverse((gate.not_before, source as u32)));
            }
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.steady.next().is_some_and(|next| next <= now) {
            let steady = self.steady.sample(now);
            steady.iter().for_each(|source| self.stop(*source as usize));
        }
        while let Some(Reverse((at, source))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let index = source as usize;
            // One that was stopped in its sleep is up already.
            if self.standing[index] != Standing::Asleep {
                continue;
            }
            if self.windows[index].is_none() {
                let measured_from = self.members[index].worker.start(now);
                self.flows.start(index);
                self.steady.start(now, index);
                self.windows[index] = Some(FioWindow { started: now, measured_from, ended: None });
            }
            self.standing[index] = Standing::Ready;
            self.ready.push_back(source);
        }
    }

    /// Polls the clone that is first in turn; `None` if it has nothing to issue.
    #[inline]
    fn next_issue(&mut self, now: Instant, source: u32) -> Option<Issue> {
        let index = source as usize;
        if !self.flows.is_empty() && self.is_held_back(now, index) {
            return None;
        }
        let member = &mut self.members[index];
        match member.worker.poll(now, &mut self.zoned, &mut self.only_disk) {
            Step::Issue(requested) => {
                if requested.more {
                    self.ready.push_back(source);
                } else {
                    self.standing[index] = Standing::Blocked;
                }
                let id = self.issued * self.members.len() as u64 + u64::from(source);
                self.issued += 1;
                if requested.tracked {
                    self.members[index].worker.note_id(id);
                }
                if !self.flows.is_empty() || !self.steady.is_empty() {
                    self.count_issued(index, id, requested.bytes());
                }
                let Gate { direct, advice, .. } = self.members[index].gate;
                let FioRequest { volume: device, request, urgent, idle, limit, resets_zone, .. } = requested;
                return Some(Issue {
                    device,
                    request,
                    id,
                    source,
                    urgent,
                    idle,
                    limit,
                    direct,
                    advice,
                    resets_zone,
                });
            }
            Step::Later(at) => {
                self.standing[index] = Standing::Asleep;
                self.timers.push(Reverse((at, source)));
            }
            Step::Blocked => self.standing[index] = Standing::Blocked,
            Step::Ended => self.end(now, index),
        }
        None
    }

    #[cold]
    fn end(&mut self, now: Instant, index: usize) {
        self.standing[index] = Standing::Ended;
        self.running -= 1;
        let window = self.windows[index].as_mut().expect("only what began ends");
        window.ended = Some(now);
        let gate = self.members[index].gate;
        let stage = &mut self.stage_left[gate.stage as usize];
        *stage -= 1;
        let section = &mut self.section_left[self.jobs[index].section as usize];
        *section -= 1;
        let opens = *stage == 0 || *section == 0;
        self.steady.end(index);
        let waited = self.flows.end(index);
        self.release(&waited);
        if let Some(scope) = gate.ends {
            self.stop_others(self.jobs[index].group, scope);
        }
        if opens && self.waiting > 0 {
            self.open_gates();
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct StageProgress {
    slowest: Option<f64>,
    /// The largest share among the clones whose end ends the others.
    quickest: f64,
}

impl StageProgress {
    fn add(&mut self, share: f64, ends_group: bool) {
        self.slowest = Some(self.slowest.map_or(share, |slowest| slowest.min(share)));
        if ends_group {
            self.quickest = self.quickest.max(share);
        }
    }

    /// The share of a stage; a stage without clones has nothing to do.
    fn share(&self) -> f64 {
        self.slowest.map_or(1.0, |slowest| slowest.max(self.quickest))
    }
}

fn add_at(counts: &mut Vec<u32>, place: u32) {
    let place = place as usize;
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

impl Load for FioLoad {
    fn poll(&mut self, now: Instant) -> Poll {
        self.wake(now);
        while let Some(source) = self.ready.pop_front() {
            if let Some(issue) = self.next_issue(now, source) {
                return Poll::Issue(issue);
            }
            // The end of one may let others begin at once.
            if self.ready.is_empty() {
                self.wake(now);
            }
        }
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        match timer.into_iter().chain(self.steady.next()).min() {
            _ if self.running == 0 => Poll::Done,
            Some(at) => Poll::Later(at),
            None => Poll::Waiting,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let source = (id % self.members.len() as u64) as u32;
        if !self.steady.is_empty() {
            self.steady.completed(source as usize, id);
        }
        let may_issue = self.members[source as usize].worker.complete(now, id);
        if !self.flows.is_empty() && self.sleeps_when_drained(now, source as usize) {
            return;
        }
        if may_issue && self.standing[source as usize] == Standing::Blocked {
            self.standing[source as usize] = Standing::Ready;
            self.ready.push_back(source);
        }
    }

    /// Share of the work that is done by `now`: the mean over the stages. The share of a stage is that of its slowest clone (or, with
    /// `exitall`, that of the quickest clone whose end ends the others). None if a log determines the amount of work.
    fn progress(&self, now: Instant) -> Option<f64> {
        let mut stages = vec![StageProgress::default(); self.stage_left.len()];
        for (index, member) in self.members.iter().enumerate() {
            let share = match (self.standing[index], &self.windows[index]) {
                (Standing::Ended, _) => 1.0,
                (_, None) => 0.0,
                (_, Some(_)) => member.worker.progress(now)?,
            };
            stages[member.gate.stage as usize].add(share, member.gate.ends.is_some());
        }
        Some(stages.iter().map(StageProgress::share).sum::<f64>() / stages.len().max(1) as f64)
    }

    fn measured_from(&self, source: u32) -> Instant {
        self.window(source).map_or(Instant::ZERO, |window| window.measured_from)
    }
}
