//! A block device or a file by io_uring: commands are passed to the system in batches, and no thread waits for one.
//!
//! The kernel gets addresses of memory, which is `unsafe`. That memory stays in place until the command has completed: the stream
//! memory lives as long as the core, a request's buffer until the request is answered, a layer's buffer until its command has ended
//! (only built-in layers are put in front of a drive), and this drive waits for all commands before it is dropped.

use super::place::{Place, change, failure, is_unknown};
use super::{Drive, Ends};
use crate::BlockError;
use crate::node::bytes::pages;
use crate::node::handle::Core;
use crate::node::messages::{Ended, Shape};
use headstack_streams::streams::{Command, RequestKind};
use io_uring::squeue::Entry;
use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{IoUring, opcode};
use memmap2::MmapMut;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, ReadWriteFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Commands per submission; more take several calls, as do more completions.
const ENTRIES: u32 = 256;

/// Largest piece of memory, in bytes, that the kernel registers.
const PINNED: usize = 1 << 30;

/// Bytes of zeros per write, if the system cannot make zeros.
const ZEROS: usize = 1 << 20;

/// `IORING_ENTER_GETEVENTS`: makes the kernel post completions to the ring.
const GET_EVENTS: u32 = 1;

pub(super) struct Uring {
    place: Place,
    ring: IoUring,
    wake: OwnedFd,
    jobs: Vec<Option<Job>>,
    /// How many of them the kernel has.
    in_flight: usize,
    entries: Vec<Entry>,
    ended: Ends,
    /// Whether the kernel has signalled completions that are not posted yet.
    is_woken: bool,
    /// The registered stream memory: its first address and its length.
    pinned: (usize, usize),
    zeros: MmapMut,
}

/// A command that the kernel has.
#[derive(Clone, Copy)]
struct Job {
    command: Command,
    stage: Stage,
    /// The address of its first byte.
    address: usize,
    /// Bytes transferred so far.
    done: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Transfer,
    /// The system discards or zeroes a run.
    Allocate,
    /// Zeros are written.
    Zeros,
    Sync,
}

impl Uring {
    /// A ring for an open disk. [`Drive::begin`] is called in the thread that owns it from then on.
    ///
    /// *Errors:* the system has none, or allows none.
    pub(super) fn new(place: Place) -> Result<Uring, (Place, io::Error)> {
        match Uring::ring(&place) {
            Ok((ring, wake)) => Ok(Uring {
                place,
                ring,
                wake,
                jobs: Vec::new(),
                in_flight: 0,
                entries: Vec::new(),
                ended: Vec::new(),
                is_woken: false,
                pinned: (0, 0),
                zeros: pages(ZEROS),
            }),
            Err(error) => Err((place, error)),
        }
    }

    fn ring(place: &Place) -> io::Result<(IoUring, OwnedFd)> {
        let mut builder = IoUring::builder();
        builder.setup_r_disabled();
        let mut quick = builder.clone();
        quick.setup_single_issuer().setup_defer_taskrun();
        // Kernels before 6.1 lack these flags.
        let ring = quick.build(ENTRIES).or_else(|_| builder.build(ENTRIES))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        ring.submitter().register_eventfd(wake.as_raw_fd())?;
        ring.submitter().register_files(&[place.file.as_raw_fd()])?;
        Ok((ring, wake))
    }

    /// Submits queued commands, and takes completions.
    fn enter(&mut self) {
        loop {
            let mut queue = self.ring.submission();
            while let Some(entry) = self.entries.last() {
                // SAFETY: its addresses are in the stream memory, a request's or a layer's buffer or `zeros`, which outlive the
                // command (see the head of this file); no other code uses them before the completion is reported.
                if unsafe { queue.push(entry) }.is_err() {
                    break;
                }
                self.entries.pop();
            }
            let waiting = queue.len() as u32;
            drop(queue);
            // SAFETY: it submits what was pushed, without an argument.
            let entered = unsafe { self.ring.submitter().enter::<()>(waiting, 0, GET_EVENTS, None) };
            match entered {
                Ok(_) => {}
                // Completions have to be taken first, or the call was interrupted.
                Err(error) if is_passing(&error) => {}
                Err(error) => panic!("{}: io_uring: {error}", self.place.title),
            }
            self.reap();
            let queue = self.ring.submission();
            if self.entries.is_empty() && queue.is_empty() && !queue.cq_overflow() {
                return;
            }
        }
    }

    /// Takes the posted completions.
    fn reap(&mut self) {
        loop {
            let next = self.ring.completion().next();
            let Some(end) = next else { return };
            self.in_flight -= 1;
            let slot = end.user_data() as usize;
            let job = self.jobs[slot].take().expect("a command ends once");
            match next_stage(job, end.result(), self.place.direct) {
                Ok(Some(job)) => self.push(job),
                Ok(None) => self.ended.push((job.command, Ok(Ended::Done))),
                Err(error) => self.ended.push((job.command, Err(error))),
            }
        }
    }

    fn push(&mut self, job: Job) {
        let slot = job.command.id as usize;
        if self.jobs.len() <= slot {
            self.jobs.resize(slot + 1, None);
        }
        self.entries.push(self.entry(job).user_data(slot as u64));
        self.jobs[slot] = Some(job);
        self.in_flight += 1;
    }

    fn entry(&self, Job { command, stage, address, done }: Job) -> Entry {
        let file = Fixed(0);
        let priority = io_priority(command.limit);
        match (command.kind, stage) {
            (_, Stage::Sync) => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            (RequestKind::Read { offset, bytes, .. }, _) => {
                let (at, left) = ((address as u64 + done) as *mut u8, (bytes - done) as u32);
                match self.pinned(at as usize, left as usize) {
                    Some(piece) => {
                        let read = opcode::ReadFixed::new(file, at, left, piece).offset(offset + done);
                        read.ioprio(priority).build()
                    }
                    None => {
                        let read = opcode::Read::new(file, at, left).offset(offset + done);
                        read.ioprio(priority).build()
                    }
                }
            }
            (RequestKind::Write { offset, bytes, fua }, _) => {
                let (at, left) = ((address as u64 + done) as *const u8, (bytes - done) as u32);
                match self.pinned(at as usize, left as usize) {
                    Some(piece) => opcode::WriteFixed::new(file, at, left, piece)
                        .offset(offset + done)
                        .rw_flags(durably(fua))
                        .build(),
                    None => {
                        let write = opcode::Write::new(file, at, left).offset(offset + done);
                        write.rw_flags(durably(fua)).build()
                    }
                }
            }
            (RequestKind::Zero { offset, bytes, fua, .. }, Stage::Zeros) => {
                let left = (bytes - done).min(ZEROS as u64) as u32;
                let write = opcode::Write::new(file, self.zeros.as_ptr(), left).offset(offset + done);
                write.rw_flags(durably(fua)).build()
            }
            (RequestKind::Zero { offset, bytes, may_trim, .. }, _) => allocate(offset, bytes, may_trim),
            (RequestKind::Trim { offset, bytes }, _) => allocate(offset, bytes, true),
            (RequestKind::Flush | RequestKind::BlockStatus { .. }, _) => {
                unreachable!("they have no other stage")
            }
        }
    }

    /// The registered piece of memory that contains these bytes.
    fn pinned(&self, address: usize, bytes: usize) -> Option<u16> {
        let (first, length) = self.pinned;
        let from = address.checked_sub(first).filter(|from| from + bytes <= length)?;
        let piece = from / PINNED;
        (piece == (from + bytes - 1) / PINNED).then_some(piece as u16)
    }
}

/// The priority by which Linux, from version 6.5 on, sends a command with the disk's duration limit of this number: class best effort
/// (2, from bit 13 on) with its usual level (4), and the number as the hint (from bit 3 on). 0, the thread's own, for no limit. A hint
/// without a class would be lost: the block layer replaces a priority without a class by the thread's.
///
/// *Source:* `include/uapi/linux/ioprio.h` (IOPRIO_HINT_DEV_DURATION_LIMIT_1 to 7 are 1 to 7), `block/blk-core.c`.
fn io_priority(limit: u8) -> u16 {
    const BEST_EFFORT: u16 = 2 << 13;
    const USUAL_LEVEL: u16 = 4;
    if limit == 0 { 0 } else { BEST_EFFORT | u16::from(limit) << 3 | USUAL_LEVEL }
}

fn allocate(offset: u64, bytes: u64, may_trim: bool) -> Entry {
    let mode = change(may_trim).bits() as i32;
    opcode::Fallocate::new(Fixed(0), bytes).offset(offset).mode(mode).build()
}

/// The flag of a write that must be on the media when it completes.
fn durably(fua: bool) -> i32 {
    if fua { ReadWriteFlags::DSYNC.bits() as i32 } else { 0 }
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

/// The next stage of a command after the kernel's result; none once it is done.
fn next_stage(mut job: Job, reported: i32, direct: bool) -> Result<Option<Job>, BlockError> {
    let result = u64::try_from(reported).map_err(|_| Errno::from_raw_os_error(-reported));
    let (bytes, fua) = match job.command.kind {
        RequestKind::Read { bytes, fua, .. } | RequestKind::Write { bytes, fua, .. } => (bytes, fua),
        RequestKind::Zero { bytes, fua, .. } => (bytes, fua),
        RequestKind::Trim { bytes, .. } | RequestKind::BlockStatus { bytes, .. } => (bytes, false),
        RequestKind::Flush => (0, false),
    };
    match (job.stage, result) {
        (_, Err(Errno::INTR | Errno::AGAIN)) => Ok(Some(job)),
        (Stage::Allocate, Err(error)) if is_unknown(error) => {
            // A trim is a hint.
            job.stage = Stage::Zeros;
            Ok(matches!(job.command.kind, RequestKind::Zero { .. }).then_some(job))
        }
        (_, Err(error)) => Err(failure(error)),
        (Stage::Transfer | Stage::Zeros, Ok(0)) => Err(BlockError::Medium),
        (Stage::Transfer | Stage::Zeros, Ok(done)) => {
            job.done += done;
            match job.done < bytes {
                // A file that became shorter ends in a partial block.
                true if direct && !done.is_multiple_of(512) => Err(BlockError::Medium),
                true => Ok(Some(job)),
                false => Ok(None),
            }
        }
        (Stage::Allocate, Ok(_)) if fua => Ok(Some(Job { stage: Stage::Sync, ..job })),
        (Stage::Allocate | Stage::Sync, Ok(_)) => Ok(None),
    }
}

impl Drive for Uring {
    fn shape(&self) -> Shape {
        self.place.shape
    }

    fn title(&self) -> String {
        let how = if self.place.direct { "direct" } else { "buffered" };
        format!("{} (io_uring, {how})", self.place.title)
    }

    fn begin(&mut self, core: &mut Core) {
        if let Err(error) = self.ring.submitter().register_enable_rings() {
            panic!("{}: io_uring: {error}", self.place.title);
        }
        let memory = core.memory();
        let known = (memory.as_ptr() as usize, memory.len());
        let piece =
            |piece: &mut [u8]| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
        let pieces: Vec<libc::iovec> = memory.chunks_mut(PINNED).map(piece).collect();
        // SAFETY: the stream memory lives as long as the core, which outlives this.
        let registered = unsafe { self.ring.submitter().register_buffers(&pieces) };
        // If refused (RLIMIT_MEMLOCK), the kernel looks up each address.
        if registered.is_ok() {
            self.pinned = known;
        }
    }

    fn read_at_start(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.place.read_pages(offset, into)
    }

    fn wake(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn woken(&mut self) {
        // Fails only if there is nothing to read.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        self.is_woken = true;
    }

    fn start(&mut self, core: &mut Core, command: Command) {
        let is_write = matches!(command.kind, RequestKind::Write { .. });
        if (matches!(command.kind, RequestKind::Read { .. }) || is_write && self.place.direct)
            && let Err(error) = core.prepare(&command)
        {
            return self.ended.push((command, Err(error)));
        }
        let (stage, address) = match command.kind {
            RequestKind::Read { .. } => (Stage::Transfer, core.buffer(&command).as_ptr() as usize),
            RequestKind::Write { .. } if self.place.direct => {
                (Stage::Transfer, core.aligned_data(&command).as_ptr() as usize)
            }
            RequestKind::Write { .. } => (Stage::Transfer, core.data(&command).as_ptr() as usize),
            RequestKind::Flush => (Stage::Sync, 0),
            RequestKind::Zero { .. } | RequestKind::Trim { .. } => (Stage::Allocate, 0),
            RequestKind::BlockStatus { offset, bytes } => {
                return self
                    .ended
                    .push((command, Ok(Ended::BlockStatus(self.place.block_status(offset, bytes)))));
            }
        };
        self.push(Job { command, stage, address, done: 0 });
    }

    fn issue(&mut self, _core: &mut Core) {
        if !self.entries.is_empty() {
            // Entries are submitted from the end.
            self.entries.reverse();
            self.enter();
        }
    }

    fn take_ended(&mut self, _core: &mut Core, ends: &mut Ends) {
        if std::mem::take(&mut self.is_woken) {
            self.enter();
        }
        ends.append(&mut self.ended);
    }

    fn fetch(&self, _offset: u64, _into: &mut [u8]) {
        unreachable!("it leaves nothing");
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Entries that were never submitted are not waited for.
        self.in_flight -= self.entries.len() + self.ring.submission().len();
        while self.in_flight > 0 {
            // SAFETY: it submits nothing, without an argument.
            let entered = unsafe { self.ring.submitter().enter::<()>(0, 1, GET_EVENTS, None) };
            if entered.is_err_and(|error| !is_passing(&error)) {
                // The kernel may still access memory that would be freed.
                std::process::abort();
            }
            self.in_flight -= self.ring.completion().count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_limit_is_the_hint_of_a_best_effort_priority() {
        assert_eq!(io_priority(0), 0, "the thread's own priority");
        let [class, hint, level] = [13, 3, 0].map(|shift| move |priority: u16| priority >> shift);
        for limit in 1..=7 {
            let priority = io_priority(limit);
            assert_eq!((class(priority), hint(priority) & 0x3ff, level(priority) & 7), (2, limit.into(), 4));
        }
    }
}
