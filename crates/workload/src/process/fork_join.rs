//! Processes that use an array directly: each request forks into one thread per disk, and completes when they have joined.
//!
//! Modelled: a process thinks, chooses a number of neighbouring disks, the first of them at random, and queues a thread at each; a
//! disk serves one thread at a time, in the order in which they queued. A thread transfers its stripe unit by consecutive commands
//! of a limited length, the next one when the last is complete. The unit begins at the same block on each disk: anywhere, or after
//! the process's last one. Each thread that is created or joined takes processor time. Its time for commands is the host's.
//!
//! *Source:* the load of the striping study on a loop of SSA disks.

use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::check_processes;
use crate::ShapeError;
use crate::dist::{Distribution, Sampler};
use crate::load::{Issue, Load, Poll};
use crate::shape::{Reads, generator, nonzero, seed_of};

/// Decides over how many disks a request is spread.
pub trait Spread {
    /// The number of disks for a request of `sectors` blocks that meets `others` others; it is clamped to the disks there are.
    fn across(&mut self, sectors: u64, others: u32) -> u32;
}

/// The same number of disks for every request.
impl Spread for u32 {
    fn across(&mut self, _sectors: u64, _others: u32) -> u32 {
        *self
    }
}

/// The shape of a load of forking processes.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkJoinShape {
    /// Disks of the array.
    pub disks: u32,
    /// Blocks of each.
    pub disk_sectors: u64,
    /// Number of processes (MPL).
    pub processes: u32,
    /// Time from the end of a request to the process's next one.
    pub think: Distribution<Nanos>,
    /// Blocks per request.
    pub request_sectors: u64,
    /// Maximum number of blocks per command.
    pub command_sectors: u32,
    /// Share of reads among the requests; the others are writes.
    pub read_share: f64,
    /// Share of requests that continue the process's previous request: on each disk they begin at the same block, the one at which
    /// the previous request ended. A request that would not fit before the end of the disks begins at a random block instead.
    pub sequential_share: f64,
    /// Processor time to create a thread, and to join it.
    pub threads: ThreadCosts,
}

/// Processor time of the threads of a request; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCosts {
    /// To create a thread.
    pub create: Nanos,
    /// To join it once it has ended.
    pub join: Nanos,
}

/// Work of the processor for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ThreadWork {
    /// Creates the thread on a disk.
    Create {
        process: u32,
        disk: u32,
    },
    Join {
        process: u32,
    },
}

/// A request that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// When the process issued it.
    pub requested: Instant,
    /// When the disk began to serve the first thread.
    pub begun: Instant,
    /// When the last thread ended.
    pub ended: Instant,
    /// Requests of other processes in flight when it was issued.
    pub others: u32,
    /// Number of disks that served it.
    pub across: u32,
}

/// A process and its request in flight.
#[derive(Clone, Debug)]
struct Member {
    random: Pcg64Mcg,
    request: Joined,
    op: Op,
    /// Where the unit begins on each disk, and its blocks.
    first: u64,
    unit: u64,
    /// Number of threads that have not ended.
    threads: u32,
    done: u64,
}

#[derive(Clone, Debug)]
struct Disk {
    /// Processes whose threads queue, the one in service first.
    threads: VecDeque<u32>,
    /// The rest of the transfer of the thread in service.
    next: Lbn,
    left: u64,
}

/// Processes that fork over an array. Command n of disk d has the id n · disks + d, and its process as source.
#[derive(Debug)]
pub struct ForkJoin<S> {
    shape: ForkJoinShape,
    spread: S,
    think: Sampler<Nanos>,
    reads: Reads,
    members: Vec<Member>,
    disks: Vec<Disk>,
    wakes: BinaryHeap<Reverse<(Instant, u32)>>,
    ready: VecDeque<u32>,
    /// Work that the next polls pass to the processor.
    requested: VecDeque<ThreadWork>,
    /// Work that the processor has, by its end and the order in which it was passed to the processor.
    computed: BinaryHeap<Reverse<(Instant, u64, ThreadWork)>>,
    works: u64,
    /// Requests of each process that count.
    requests: u64,
    /// Number of processes that have not completed their requests.
    busy: u32,
    in_flight: u32,
    commands: u64,
    joined: Vec<Joined>,
}

impl<S: Spread> ForkJoin<S> {
    /// Processes that complete `requests` requests each. A process that has done so continues to issue requests until all have, so that
    /// the last ones do not have the array for themselves; these requests do not count.
    ///
    /// *Errors:* a number is 0, a share is invalid, the think time cannot be drawn, or the disks are too small.
    pub fn new(shape: ForkJoinShape, spread: S, requests: u64, seed: u64) -> Result<Self, ShapeError> {
        check_processes(u64::from(shape.processes))?;
        nonzero("the number of disks", u64::from(shape.disks))?;
        nonzero("the number of requests", requests)?;
        nonzero("the request size", shape.request_sectors)?;
        nonzero("the command size", u64::from(shape.command_sectors))?;
        if !(0.0..=1.0).contains(&shape.sequential_share) {
            return Err(ShapeError::SequentialShare { found: shape.sequential_share });
        }
        if shape.request_sectors > shape.disk_sectors {
            let (sectors, available, first) = (shape.request_sectors, shape.disk_sectors, Lbn(0));
            return Err(ShapeError::Narrow { sectors, available, first });
        }
        let start = Instant::ZERO;
        let nothing = Joined { requested: start, begun: start, ended: start, others: 0, across: 0 };
        let member = |index| Member {
            random: generator(seed_of(seed, index)),
            request: nothing,
            op: Op::Read,
            // After the disk's end: the first request continues nothing.
            first: shape.disk_sectors,
            unit: 0,
            threads: 0,
            done: 0,
        };
        let count = shape.processes;
        let disk = Disk { threads: VecDeque::with_capacity(count as usize), next: Lbn(0), left: 0 };
        let mut load = ForkJoin {
            spread,
            think: shape.think.sampler()?,
            reads: Reads::new(shape.read_share)?,
            members: (0..u64::from(count)).map(member).collect(),
            disks: vec![disk; shape.disks as usize],
            wakes: BinaryHeap::with_capacity(count as usize),
            ready: VecDeque::with_capacity(shape.disks as usize),
            requested: VecDeque::new(),
            computed: BinaryHeap::new(),
            works: 0,
            requests,
            busy: count,
            in_flight: 0,
            commands: 0,
            joined: Vec::with_capacity((requests * u64::from(count)) as usize),
            shape,
        };
        (0..count).for_each(|process| load.think(Instant::ZERO, process));
        Ok(load)
    }

    /// The completed requests that count, in the order of their ends.
    pub fn joined(&self) -> &[Joined] {
        &self.joined
    }

    /// The present spread.
    pub fn spread(&self) -> &S {
        &self.spread
    }

    fn think(&mut self, now: Instant, process: u32) {
        let think = self.think.draw(&mut self.members[process as usize].random);
        self.wakes.push(Reverse((now.saturating_add(think), process)));
    }

    fn fork(&mut self, now: Instant, process: u32) {
        let shape = &self.shape;
        let wanted = self.spread.across(shape.request_sectors, self.in_flight);
        let across = wanted.clamp(1, shape.disks.min(shape.request_sectors as u32));
        let member = &mut self.members[process as usize];
        let (unit, random) = (shape.request_sectors.div_ceil(u64::from(across)), &mut member.random);
        let continues = random.random::<f64>() < shape.sequential_share;
        let behind = member.first + member.unit;
        let anywhere = random.random_range(0..=shape.disk_sectors - unit);
        member.first = if continues && behind + unit <= shape.disk_sectors { behind } else { anywhere };
        member.op = self.reads.draw(random);
        (member.unit, member.threads) = (unit, across);
        member.request =
            Joined { requested: now, begun: Instant::MAX, ended: now, others: self.in_flight, across };
        self.in_flight += 1;
        let first = random.random_range(0..shape.disks);
        for step in 0..across {
            let disk = (first + step) % self.shape.disks;
            self.work(now, ThreadWork::Create { process, disk });
        }
    }

    fn work_time(&self, work: ThreadWork) -> Nanos {
        match work {
            ThreadWork::Create { .. } => self.shape.threads.create,
            ThreadWork::Join { .. } => self.shape.threads.join,
        }
    }

    fn work(&mut self, now: Instant, work: ThreadWork) {
        match self.work_time(work) {
            Nanos::ZERO => self.finish(now, work),
            _ => self.requested.push_back(work),
        }
    }

    fn finish(&mut self, now: Instant, work: ThreadWork) {
        match work {
            ThreadWork::Create { process, disk } => {
                self.disks[disk as usize].threads.push_back(process);
                if self.disks[disk as usize].threads.len() == 1 {
                    self.start(now, disk);
                }
            }
            ThreadWork::Join { process } => self.join(now, process),
        }
    }

    /// Finishes the work that the processor has done by now.
    fn finish_computed(&mut self, now: Instant) {
        while let Some(Reverse((until, _, work))) = self.computed.peek().copied() {
            if until > now {
                return;
            }
            self.computed.pop();
            self.finish(until, work);
        }
    }

    fn start(&mut self, now: Instant, index: u32) {
        let disk = &mut self.disks[index as usize];
        let Some(process) = disk.threads.front() else { return };
        let member = &mut self.members[*process as usize];
        member.request.begun = member.request.begun.min(now);
        (disk.next, disk.left) = (Lbn(member.first), member.unit);
        self.ready.push_back(index);
    }

    fn command(&mut self, index: u32) -> Issue {
        let disk = &mut self.disks[index as usize];
        let process = *disk.threads.front().expect("a disk that is ready serves a thread");
        let sectors = disk.left.min(u64::from(self.shape.command_sectors));
        let op = self.members[process as usize].op;
        let request = Request { op, lbn: disk.next, sectors: sectors as u32, fua: false };
        disk.next = disk.next + sectors;
        disk.left -= sectors;
        let id = self.commands * self.disks.len() as u64 + u64::from(index);
        self.commands += 1;
        Issue { source: process, ..Issue::new(index, request, id) }
    }

    fn join(&mut self, now: Instant, process: u32) {
        let member = &mut self.members[process as usize];
        member.threads -= 1;
        if member.threads > 0 {
            return;
        }
        member.request.ended = now;
        member.done += 1;
        if member.done <= self.requests {
            self.joined.push(member.request);
            self.busy -= u32::from(member.done == self.requests);
        }
        self.in_flight -= 1;
        self.think(now, process);
    }
}

impl<S: Spread> Load for ForkJoin<S> {
    fn poll(&mut self, now: Instant) -> Poll {
        if self.busy == 0 {
            return Poll::Done;
        }
        loop {
            if let Some(work) = self.requested.front() {
                return Poll::Compute { id: 0, time: self.work_time(*work) };
            }
            self.finish_computed(now);
            if let Some(disk) = self.ready.pop_front() {
                return Poll::Issue(self.command(disk));
            }
            match self.wakes.peek().copied() {
                Some(Reverse((at, process))) if at <= now => {
                    self.wakes.pop();
                    // A late call moves nothing: the process issues its request at its own time.
                    self.fork(at, process);
                }
                wake => {
                    let computed = self.computed.peek().map(|Reverse((until, ..))| *until);
                    let next = wake.map(|Reverse((at, _))| at).into_iter().chain(computed).min();
                    return next.map_or(Poll::Waiting, Poll::Later);
                }
            }
        }
    }

    fn handle_computed(&mut self, _now: Instant, _id: u64, until: Instant) {
        let work = self.requested.pop_front().expect("the processor does what was requested");
        self.works += 1;
        self.computed.push(Reverse((until, self.works, work)));
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let index = (id % self.disks.len() as u64) as u32;
        let disk = &mut self.disks[index as usize];
        if disk.left > 0 {
            return self.ready.push_back(index);
        }
        let process = disk.threads.pop_front().expect("only a thread that is served has commands");
        self.start(now, index);
        self.work(now, ThreadWork::Join { process });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> ForkJoinShape {
        ForkJoinShape {
            disks: 4,
            disk_sectors: 100_000,
            processes: 3,
            think: Distribution::Constant(Nanos::ZERO),
            request_sectors: 1024,
            command_sectors: 256,
            read_share: 1.0,
            sequential_share: 0.0,
            threads: ThreadCosts::default(),
        }
    }

    /// Runs a load on disks that take one ns per sector, with one command at a time each; returns each command with its disk.
    fn commands(load: &mut ForkJoin<u32>) -> Vec<(u32, Request, u32)> {
        let (mut now, mut out, mut all) = (Instant::ZERO, Vec::new(), Vec::new());
        loop {
            match load.poll(now) {
                Poll::Issue(issue) => {
                    assert!(out.iter().all(|(_, _, device)| *device != issue.device), "one command a disk");
                    let end = now.0 + u64::from(issue.request.sectors);
                    out.push((end, issue.id, issue.device));
                    all.push((issue.device, issue.request, issue.source));
                    continue;
                }
                Poll::Done => return all,
                Poll::Compute { id, time } => {
                    load.handle_computed(now, id, now + time);
                    continue;
                }
                Poll::Later(_) | Poll::Waiting => {}
            }
            out.sort_unstable();
            let (end, id, _) = out.remove(0);
            now = Instant(end);
            load.handle_completion(now, id);
        }
    }

    #[test]
    fn request_covers_adjacent_disks_at_one_place() {
        let mut load = ForkJoin::new(ForkJoinShape { processes: 1, ..shape() }, 2, 50, 1).expect("it fits");
        let all = commands(&mut load);
        let mut met = [0; 4];
        for request in all[..200].chunks(4) {
            // Two disks take two commands of 256 each, simultaneously.
            let [(first, one, _), (second, two, _), (third, three, _), (fourth, four, _)] = request else {
                panic!("four commands a request");
            };
            assert_eq!((*second, *third, *fourth), ((first + 1) % 4, *first, (first + 1) % 4));
            assert_eq!((one.lbn, three.lbn), (two.lbn, four.lbn));
            assert_eq!(three.lbn, one.lbn + 256);
            assert!(request.iter().all(|(_, request, _)| request.sectors == 256));
            met[*first as usize] += 1;
        }
        assert!(met.iter().all(|count| *count > 0), "every disk is first at times: {met:?}");
    }

    #[test]
    fn request_ends_with_its_slowest_thread() {
        let mut load = ForkJoin::new(shape(), 4, 20, 1).expect("it fits");
        commands(&mut load);
        assert_eq!(load.joined().len(), 60);
        for joined in load.joined() {
            // First come, first served: two others are always before, each for 256 ns on every disk.
            assert_eq!(joined.ended.since(joined.begun), Nanos(256));
            assert!(joined.across == 4 && joined.others <= 2);
        }
        let last = load.joined().last().expect("there are some");
        assert_eq!(last.ended.since(last.requested), Nanos(3 * 256));
    }

    #[test]
    fn sequential_process_continues_its_last_request() {
        let sequential = ForkJoinShape { processes: 1, sequential_share: 1.0, ..shape() };
        let mut load = ForkJoin::new(sequential, 4, 50, 1).expect("it fits");
        let all = commands(&mut load);
        for pair in all.chunks(4).collect::<Vec<_>>().windows(2) {
            assert_eq!(pair[1][0].1.lbn, pair[0][0].1.lbn + 256);
        }
    }

    #[test]
    fn every_process_issues_its_full_number_of_requests() {
        let mut load = ForkJoin::new(shape(), 1, 30, 7).expect("it fits");
        let sources: Vec<u32> = commands(&mut load).iter().map(|(_, _, source)| *source).collect();
        assert_eq!(load.joined().len(), 90);
        // Four commands per request; a process that is done continues.
        assert!((0..3).all(|process| sources.iter().filter(|source| **source == process).count() >= 120));
    }

    #[test]
    fn threads_take_processor_time_to_create_and_to_join() {
        let threads = ThreadCosts { create: Nanos(10), join: Nanos(5) };
        let shape = ForkJoinShape { processes: 1, threads, ..shape() };
        let mut load = ForkJoin::new(shape, 4, 20, 1).expect("it fits");
        // A processor of one lane, and disks of one ns a sector.
        let (mut now, mut free, mut out) = (Instant::ZERO, Instant::ZERO, Vec::new());
        loop {
            match load.poll(now) {
                Poll::Issue(issue) => out.push((now.0 + u64::from(issue.request.sectors), issue.id)),
                Poll::Compute { id, time } => {
                    free = now.max(free) + time;
                    load.handle_computed(now, id, free);
                }
                Poll::Done => break,
                Poll::Later(at) if out.iter().all(|(end, _)| *end > at.0) => now = at,
                Poll::Later(_) | Poll::Waiting => {
                    out.sort_unstable();
                    let (end, id) = out.remove(0);
                    now = Instant(end);
                    load.handle_completion(now, id);
                }
            }
        }
        // The last thread begins after four are created, and the last is joined after its disk.
        for joined in load.joined() {
            assert_eq!(joined.ended.since(joined.requested), Nanos(4 * 10 + 256 + 5));
            assert_eq!(joined.begun.since(joined.requested), Nanos(10));
        }
    }

    #[test]
    fn impossible_fork_join_load_is_rejected() {
        let refused = |change: fn(&mut ForkJoinShape)| {
            let mut shape = shape();
            change(&mut shape);
            ForkJoin::new(shape, 1, 10, 0).is_err()
        };
        assert!(refused(|shape| shape.disks = 0));
        assert!(refused(|shape| shape.processes = 0));
        assert!(refused(|shape| shape.command_sectors = 0));
        assert!(refused(|shape| shape.read_share = 1.5));
        assert!(refused(|shape| shape.sequential_share = f64::NAN));
        assert!(refused(|shape| shape.request_sectors = 100_001));
        assert!(!refused(|_| ()));
    }
}
