//! How the host makes writes durable on a block device: with FLUSH, with FUA, or without either.
//!
//! A disk without a volatile write cache gets neither: a FLUSH ends at once, and a write with FUA is a plain write. A disk with one gets
//! FLUSH. A write with FUA goes to it as such if it has FUA and the host uses it; elsewhere it is a write, and then a FLUSH.
//!
//! At most one FLUSH is in progress. Those that arrive meanwhile share the next one, which waits until no write that needs a FLUSH is in
//! progress, but not for more than 5 s.
//!
//! *Source:* Linux `block/blk-flush.c` (the rules C1 to C3), `block/blk-core.c` (a queue that is "write through"), libata's parameter `fua`.

use super::HostSpec;
use crate::device::{Completion, Outcome};
use crate::layer::{Completed, Layer, Out, Submission};
use headstack_model::spec::{Interface, WriteCache};
use headstack_model::{DriveSpec, Instant, Nanos, Op, Request};
use slab::Slab;
use std::collections::VecDeque;

/// The host's number for the FLUSH in progress.
const FLUSH: u32 = u32::MAX;

/// Time after which a FLUSH no longer waits for writes in progress. *Source:* Linux, `FLUSH_PENDING_TIMEOUT`.
const PENDING_MAX: Nanos = Nanos(5_000_000_000);

/// What the host sends to a block device so that a write is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the device has no volatile write cache (Linux: its queue is "write through").
    WriteThrough,
    /// A FLUSH after the write.
    Flush,
    /// FUA with the write, and FLUSH where a program asks for one.
    Fua,
}

/// What the host knows of a block device's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSafety {
    /// Whether it has a volatile write cache that is on.
    pub is_volatile: bool,
    /// Whether the host uses FUA on it.
    pub has_fua: bool,
}

impl DriveSafety {
    /// For a drive behind this host. Every write cache but `none` is volatile: `sequential` (immediate reporting) and `segment` are what
    /// the bit WCE of SCSI's caching mode page turns on, for which Linux sends SYNCHRONIZE CACHE.
    pub fn of(drive: &DriveSpec, host: &HostSpec) -> DriveSafety {
        let is_ata = matches!(drive.bus.interface, Some(Interface::Sata | Interface::Ide));
        DriveSafety { is_volatile: drive.cache.write_cache != WriteCache::None, has_fua: host.fua || !is_ata }
    }

    /// For a disk that two such arms make up.
    pub(crate) fn both(self, other: DriveSafety) -> DriveSafety {
        DriveSafety {
            is_volatile: self.is_volatile || other.is_volatile,
            has_fua: self.has_fua && other.has_fua,
        }
    }

    /// What the host sends.
    pub fn durability(self) -> Durability {
        match self {
            DriveSafety { is_volatile: false, .. } => Durability::WriteThrough,
            DriveSafety { has_fua: false, .. } => Durability::Flush,
            _ => Durability::Fua,
        }
    }
}

impl Durability {
    /// Whether a request needs the host's care.
    #[inline(always)]
    pub(crate) fn concerns(request: &Request) -> bool {
        request.op == Op::Flush || (request.fua && request.op == Op::Write)
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The sender's number.
    id: u32,
    source: u32,
    /// The write that the FLUSH follows, once it has ended.
    write: Option<Completion>,
}

/// Makes the writes to one block device durable. It gets only the requests that [`Durability::concerns`].
#[derive(Debug)]
pub(crate) struct DurabilityLayer {
    durability: Durability,
    jobs: Slab<Waiting>,
    /// Jobs that share the next FLUSH, and since when the first of them waits.
    pending: Vec<u32>,
    since: Instant,
    /// Jobs of the FLUSH in progress.
    running: Vec<u32>,
    /// Writes in progress that need a FLUSH.
    writing: usize,
    /// Requests that end without a command.
    at_once: VecDeque<Completed>,
}

impl DurabilityLayer {
    pub(crate) fn new(durability: Durability) -> DurabilityLayer {
        DurabilityLayer {
            durability,
            jobs: Slab::new(),
            pending: Vec::new(),
            since: Instant::ZERO,
            running: Vec::new(),
            writing: 0,
            at_once: VecDeque::new(),
        }
    }

    fn write(&mut self, submission: Submission, job: u32, out: &mut Out<'_>) {
        let needs_flush = self.durability == Durability::Flush;
        self.writing += usize::from(needs_flush);
        let fua = self.durability == Durability::Fua;
        let request = Request { fua, ..submission.request };
        out.down(0, Submission { id: job, request, ..submission });
    }

    fn wait_for_flush(&mut self, now: Instant, job: u32) {
        if self.pending.is_empty() {
            self.since = now;
        }
        self.pending.push(job);
    }

    /// Sends the next FLUSH, if one is wanted and may go.
    fn kick(&mut self, now: Instant, out: &mut Out<'_>) {
        let is_deferred = self.writing > 0 && now < self.since + PENDING_MAX;
        if !self.running.is_empty() || self.pending.is_empty() || is_deferred {
            return;
        }
        std::mem::swap(&mut self.running, &mut self.pending);
        let source = self.jobs[self.running[0] as usize].source;
        let submission = Submission { source, ..Submission::new(FLUSH, Request::flush()) };
        out.down(0, submission);
    }

    fn end_flush(&mut self, flush: &Completion, out: &mut Out<'_>) {
        let mut ended = std::mem::take(&mut self.running);
        for job in ended.drain(..) {
            let Waiting { id, write, .. } = self.jobs.remove(job as usize);
            let completion = write.map_or(*flush, |write| with_flush(&write, flush));
            out.up(Completed { id, completion, cached: false });
        }
        // The memory is used again.
        self.running = ended;
    }

    fn end_write(&mut self, now: Instant, job: u32, answer: &Completed, out: &mut Out<'_>) {
        let needs_flush = self.durability == Durability::Flush;
        self.writing -= usize::from(needs_flush);
        if needs_flush && answer.completion.outcome == Outcome::Done {
            self.jobs[job as usize].write = Some(answer.completion);
            return self.wait_for_flush(now, job);
        }
        let id = self.jobs.remove(job as usize).id;
        out.up(Completed { id, ..*answer });
    }
}

/// A write with the FLUSH that followed it, as one request.
fn with_flush(write: &Completion, flush: &Completion) -> Completion {
    let mut both = *write;
    both.parts += flush.parts;
    both.parts.queued += flush.submitted - write.completed;
    (both.completed, both.outcome) = (flush.completed, flush.outcome);
    both
}

impl Layer for DurabilityLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let Submission { id, request, source, .. } = submission;
        // A dead disk answers itself: writes that it refused are on no media.
        let ends_at_once = self.durability == Durability::WriteThrough && !out.child(0).is_dead(now);
        if request.op == Op::Flush && ends_at_once {
            let completion = Completion::at_once(request, now);
            self.at_once.push_back(Completed { id, completion, cached: false });
            return out.wake_at(now);
        }
        let job = self.jobs.insert(Waiting { id, source, write: None }) as u32;
        match request.op {
            Op::Flush => self.wait_for_flush(now, job),
            _ => self.write(submission, job, out),
        }
        self.kick(now, out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        match answer.id {
            FLUSH => self.end_flush(&answer.completion, out),
            job => self.end_write(now, job, answer, out),
        }
        self.kick(now, out);
    }

    fn wake(&mut self, _now: Instant, out: &mut Out<'_>) {
        self.at_once.drain(..).for_each(|ended| out.up(ended));
    }
}
