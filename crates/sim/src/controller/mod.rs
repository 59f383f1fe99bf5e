//! A smart controller: a queue, an order and a cache between the host and several drives.
//!
//! A [`Layer`]: it has a port for each drive, and the drives with their queues as children in the same order. The queue for each
//! drive, with its order, is not here: it is a host's queue ([`crate::os`]) with the controller's keys.
//!
//! A command waits until the controller has room for it. After the controller's delay it is passed on, or served by the cache:
//! memory in lines (`memory_cache`), or another drive (`cache_drive`). Data cross between host and memory one command at a time.
//!
//! *Time:* waiting for room for commands is `queued`, the delays are `overhead`, waiting for room in memory is `cache`, the host's
//! data are `bus`; a command that waited for transfers has their time split, as far as it waited.
//!
//! Modelled: queue depth, delays, memory of lines whose sectors are valid or dirty one by one, plain and segmented LRU, read-ahead
//! per stream, write-through and write-back, destaging on demand, at intervals and when idle, clusters of lines; a drive that
//! caches another. Not modelled: locks finer than a line, several processors, mirrored memory, power cuts.
//!
//! *Source:* Ganger, Worthington and Patt, the DiskSim reference manual, for the behaviour of such controllers.

mod cache_drive;
mod memory;
mod memory_cache;
mod spec;
mod streams;

pub use spec::{ControllerCacheSpec, ControllerKind, ControllerSpec, ControllerWrites};

use crate::device::{Completion, Outcome};
use crate::layer::{Completed, Layer, Out, Submission};
use crate::memory::{Agenda, Job, NONE, RequestTable, Resume};
use cache_drive::CacheDrive;
use headstack_model::{Instant, Nanos, Op, Request};
use memory_cache::MemoryCache;
use serde::Serialize;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct ControllerSetup<'a> {
    pub(crate) spec: &'a ControllerSpec,
    pub(crate) drives: Vec<u32>,
    /// Indices in it of the drive that is the cache, and of the cached drive.
    pub(crate) cache: Option<(u32, u32)>,
}

/// The counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ControllerActivity {
    /// Commands to read.
    pub reads: u64,
    /// Reads that its cache served without a drive, or from the drive that is the cache.
    pub read_hits: u64,
    /// Commands to write.
    pub writes: u64,
    /// Sectors read from drives into the cache.
    pub filled_sectors: u64,
    /// Sectors among these that no command had requested yet.
    pub read_ahead_sectors: u64,
    /// Sectors that went from the cache to their drives.
    pub destaged_sectors: u64,
    /// Times that a command had to wait for room in the memory.
    pub waited_for_room: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin,
    /// Its data have arrived from the host.
    Landed,
    Finish,
}

/// What a command holds and waits for.
#[derive(Clone, Copy, Debug)]
struct Holding {
    drive: u32,
    /// Lines that it holds, and number of lines reserved for it.
    pinned: u64,
    reserved: usize,
    /// Of a read: the number of sectors after it that are fetched with it.
    ahead: u32,
    waits: u32,
    /// Of a flush: it waits for the destages with ranks below this one.
    before: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Pass {
        job: u32,
    },
    /// Fetches lines, for a command or for none.
    Fill {
        job: u32,
    },
    /// Writes a command's data to the drive before the command ends.
    Through {
        job: u32,
    },
    /// Writes dirty sectors. It has a rank in the order of destages; `evicts`: a command waits for the line.
    Destage {
        turn: u64,
        evicts: bool,
    },
    /// Reads a command's data from the drive, to be kept on the cache drive.
    Populate {
        job: u32,
    },
    /// Writes data that were read to the cache drive.
    Keep,
    /// Writes a command's data to the cache drive.
    Shelve {
        job: u32,
    },
    /// Reads dirty sectors from the cache drive.
    Fetch,
    /// Writes these sectors to their drive.
    Return,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    purpose: Purpose,
    drive: u32,
    request: Request,
}

#[derive(Debug)]
enum Cache {
    None,
    Memory(Box<MemoryCache>),
    Drive(Box<CacheDrive>),
}

/// A smart controller with its cache.
#[derive(Debug)]
pub struct Controller {
    delay: Nanos,
    /// Time of a sector to or from the host, in 2⁻¹⁰ ns.
    host_sector: u64,
    host_free: Instant,
    queue_depth: usize,
    /// Number of commands that it holds, and the commands that wait in front of it.
    held: usize,
    outside: VecDeque<u32>,
    commands: RequestTable<Holding, Transfer>,
    agenda: Agenda<(u32, Step)>,
    /// Answers to commands that end in this call, each with its drive.
    ended: Vec<(u32, Completed)>,
    cache: Cache,
    /// When it was last active for the host.
    last_busy: Instant,
    activity: ControllerActivity,
}

impl Controller {
    /// Commands and transfers for which memory is allocated at the start.
    const AT_ONCE: usize = 256;

    /// A controller of drives with these numbers of blocks. `cache_drives`: the drive that is its cache, and the cached one.
    pub(crate) fn new(
        spec: &ControllerSpec,
        drives: Vec<u64>,
        cache_drives: Option<(u32, u32)>,
    ) -> Controller {
        let cache = match (&spec.cache, cache_drives) {
            (None, _) => Cache::None,
            (Some(cache), Some((shelf, cached))) => {
                Cache::Drive(Box::new(CacheDrive::new(cache, shelf, cached, &drives)))
            }
            (Some(cache), None) => Cache::Memory(Box::new(MemoryCache::new(cache, drives))),
        };
        Controller {
            delay: Nanos::from_us(spec.delay_us),
            host_sector: (spec.us_per_sector * 1e3 * 1024.0).round() as u64,
            host_free: Instant::ZERO,
            queue_depth: spec.queue_depth.map_or(usize::MAX, |depth| depth as usize),
            held: 0,
            outside: VecDeque::with_capacity(Controller::AT_ONCE),
            commands: RequestTable::new(Controller::AT_ONCE, Resume::NewestFirst),
            agenda: Agenda::new(Controller::AT_ONCE),
            ended: Vec::with_capacity(Controller::AT_ONCE),
            cache,
            last_busy: Instant::ZERO,
            activity: ControllerActivity::default(),
        }
    }

    /// Its counters.
    pub fn activity(&self) -> &ControllerActivity {
        &self.activity
    }

    /// Dirty data in its cache: lines of its memory, or sectors of the drive that is the cache.
    pub fn dirty(&self) -> u64 {
        match &self.cache {
            Cache::None => 0,
            Cache::Memory(memory) => memory.dirty_lines() as u64,
            Cache::Drive(shelf) => shelf.dirty_sectors(),
        }
    }

    fn next_event(&self) -> Instant {
        let noted = self.agenda.next_event();
        let is_idle = self.held == 0 && !self.commands.has_transfers();
        match &self.cache {
            Cache::None => noted,
            Cache::Memory(memory) => noted.min(memory.next_event(is_idle, self.last_busy)),
            Cache::Drive(shelf) => noted.min(shelf.next_event()),
        }
    }

    /// Continues the commands that waited for room, at the end of each call.
    fn go_on(&mut self, now: Instant, out: &mut Out<'_>) {
        while self.resume_for_room(now, out) {}
        out.wake_at(self.next_event());
    }

    fn command(&self, job: u32) -> (u32, Request) {
        let job = &self.commands[job];
        (job.state.drive, job.completion.request)
    }

    fn receive(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let command = &mut self.commands[job];
        let parts = &mut command.completion.parts;
        parts.queued += now - command.since;
        parts.overhead += self.delay;
        command.since = now + self.delay;
        match self.delay {
            Nanos::ZERO => self.begin(now, job, out),
            delay => self.agenda.add(now + delay, (job, Step::Begin)),
        }
    }

    fn begin(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        self.last_busy = now;
        match &self.cache {
            Cache::None => self.pass(job, out),
            Cache::Memory(_) => self.begin_in_memory(now, job, out),
            Cache::Drive(_) => self.begin_on_drive(now, job, out),
        }
    }

    fn pass(&mut self, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.command(job);
        self.transfer(Purpose::Pass { job }, drive, request, out);
    }

    fn transfer(&mut self, purpose: Purpose, drive: u32, request: Request, out: &mut Out<'_>) -> u32 {
        let number = self.commands.begin_transfer(Transfer { purpose, drive, request });
        let owner = match purpose {
            Purpose::Pass { job }
            | Purpose::Fill { job }
            | Purpose::Through { job }
            | Purpose::Populate { job }
            | Purpose::Shelve { job } => job,
            _ => NONE,
        };
        let urgent = owner != NONE && self.commands[owner].urgent;
        let submission = Submission { urgent, sync: owner != NONE, ..Submission::new(number, request) };
        out.down(drive, submission);
        number
    }

    fn account(&mut self, now: Instant, job: u32, how: &Completion) {
        let job = &mut self.commands[job];
        job.account(now, how);
        if how.outcome != Outcome::Done {
            job.completion.outcome = how.outcome;
        }
    }

    /// Accounts for the time that a command waited for room in the cache.
    fn waited_for_room(&mut self, now: Instant, job: u32) {
        let job = &mut self.commands[job];
        let waited = job.end_wait(now);
        job.completion.parts.cache += waited;
    }

    /// Transfers a command's data to or from the host; returns the end.
    fn move_data(&mut self, now: Instant, job: u32) -> Instant {
        let command = &mut self.commands[job];
        let Completion { request, parts, .. } = &mut command.completion;
        let begins = if self.host_sector > 0 { self.host_free.max(now) } else { now };
        let over = begins + Nanos((u64::from(request.sectors) * self.host_sector) >> 10);
        parts.queued += begins - now;
        parts.bus += over - begins;
        (command.since, self.host_free) = (over, over);
        over
    }

    /// Ends a command after the controller's delay.
    fn end(&mut self, now: Instant, job: u32) {
        self.commands[job].completion.parts.overhead += self.delay;
        self.agenda.add(now + self.delay, (job, Step::Finish));
    }

    fn finish(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let Job { id, completion, state, .. } = self.commands.end(job);
        let ended = Completion { completed: now, ..completion };
        assert_eq!(ended.parts.total(), ended.response(), "the parts add up: {ended:?}");
        self.ended.push((state.drive, Completed { id, completion: ended, cached: false }));
        self.last_busy = now;
        match self.outside.pop_front() {
            Some(next) => self.receive(now, next, out),
            None => self.held -= 1,
        }
    }

    fn transferred(&mut self, now: Instant, number: u32, how: &Completion, out: &mut Out<'_>) {
        let (Transfer { purpose, drive, request }, mut waiters) = self.commands.end_transfer(number);
        if let Cache::Drive(shelf) = &mut self.cache {
            shelf.note_use(now, drive);
        }
        match purpose {
            Purpose::Pass { job } => {
                self.account(now, job, how);
                self.end(now, job);
            }
            Purpose::Fill { job } => self.filled(now, number, job, drive, &request, how),
            Purpose::Through { job } => self.written_through(now, job, how),
            Purpose::Destage { turn, evicts } => {
                self.destaged(turn, evicts, drive, &request);
                self.finish_flushes(now, out);
            }
            Purpose::Populate { job } => self.populate(now, job, how, out),
            Purpose::Keep => self.kept(&request),
            Purpose::Shelve { job } => self.shelved(now, job, how, out),
            Purpose::Fetch => self.fetched(&request, out),
            Purpose::Return => self.returned(now, &request, out),
        }
        while let Some(job) = self.commands.next_waiter(&mut waiters) {
            self.account(now, job, how);
            self.go(now, job, out);
        }
    }
}

impl Layer for Controller {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let holding = Holding { drive: out.port(), pinned: 0, reserved: 0, ahead: 0, waits: 0, before: 0 };
        let job = self.commands.begin(now, &submission, holding);
        match submission.request.op {
            Op::Read => self.activity.reads += 1,
            Op::Write => self.activity.writes += 1,
            Op::Flush => {}
        }
        if self.held == self.queue_depth {
            return self.outside.push_back(job);
        }
        self.held += 1;
        self.receive(now, job, out);
        self.go_on(now, out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.transferred(now, answer.id, &answer.completion, out);
        self.go_on(now, out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        while let Some((job, step)) = self.agenda.pop_due(now) {
            match step {
                Step::Begin => self.begin(now, job, out),
                Step::Landed => self.landed(now, job, out),
                Step::Finish => self.finish(now, job, out),
            }
        }
        match &self.cache {
            Cache::None => {}
            Cache::Memory(_) => self.destage_in_time(now, out),
            Cache::Drive(_) => self.return_when_idle(now, out),
        }
        // Answers go up drive by drive, after all requests to drives.
        self.go_on(now, out);
        self.ended.sort_by_key(|(drive, _)| *drive);
        self.ended.drain(..).for_each(|(_, ended)| out.up(ended));
    }
}
