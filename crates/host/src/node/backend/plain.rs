//! A block device or a file by blocking calls in threads: for systems that refuse io_uring.
//!
//! Each thread has a buffer, and bytes are copied between it and the core's memory.

use super::place::{Place, failure, is_unknown};
use super::{Drive, Ends};
use crate::BlockError;
use crate::node::bytes::{Pool, drain, try_pages};
use crate::node::handle::Core;
use crate::node::messages::{Ended, Shape};
use headstack_streams::streams::{Command, RequestKind};
use memmap2::MmapMut;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
#[allow(clippy::disallowed_types, reason = "threads share what is to be done")]
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Threads of a disk, and so its maximum number of commands in flight.
const THREADS: usize = 8;

/// Bytes of the buffers of all threads, if there is more than one command. As many free ones are kept for the next commands.
const KEPT: u64 = 8 << 20;

/// Bytes of zeros per write, if the system cannot make zeros.
const ZEROS: usize = 1 << 20;

pub(super) struct Plain {
    place: Arc<Place>,
    wake: Arc<OwnedFd>,
    /// Closed to end the threads.
    tasks: Option<Sender<Task>>,
    over: Receiver<Over>,
    threads: Vec<JoinHandle<()>>,
    pool: Pool,
    /// Commands that wait for a buffer.
    waiting: VecDeque<Command>,
    /// Bytes of the commands that the threads have.
    in_flight: u64,
    ended: Ends,
}

struct Task {
    command: Command,
    room: Option<MmapMut>,
}

struct Over {
    task: Task,
    result: Result<Ended, BlockError>,
}

impl Plain {
    #[allow(clippy::disallowed_types, reason = "threads share what is to be done")]
    pub(super) fn new(place: Place) -> io::Result<Plain> {
        let (tasks, taken) = channel::<Task>();
        let (tell, over) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (place, taken) = (Arc::new(place), Arc::new(Mutex::new(taken)));
        let start = |_| {
            let (place, taken, tell, wake) = (place.clone(), taken.clone(), tell.clone(), wake.clone());
            let run = move || {
                loop {
                    let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut task) = next else { return };
                    let result = carry_out(&place, &mut task);
                    // Fails only if the node has ended.
                    let _ = tell.send(Over { task, result });
                    let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
                }
            };
            Builder::new().name("disk I/O".to_string()).spawn(run)
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<Vec<_>>>()?;
        let tasks = Some(tasks);
        Ok(Plain {
            place,
            wake,
            tasks,
            over,
            threads,
            pool: Pool::new(KEPT as usize),
            waiting: VecDeque::new(),
            in_flight: 0,
            ended: Vec::new(),
        })
    }

    /// Passes a command to the threads, with its bytes.
    ///
    /// *Errors:* there is no memory for them; the threads have ended.
    fn dispatch(&mut self, core: &mut Core, command: Command) -> Result<(), BlockError> {
        let room = match command.kind {
            RequestKind::Read { bytes, .. } => Some(self.pool.allocate(bytes as usize)?),
            RequestKind::Write { bytes, .. } => {
                let mut room = self.pool.allocate(bytes as usize)?;
                room[..bytes as usize].copy_from_slice(core.data(&command));
                Some(room)
            }
            _ => None,
        };
        let tasks = self.tasks.as_ref().expect("they are there until it is dropped");
        tasks.send(Task { command, room }).map_err(|_| BlockError::Dead)?;
        self.in_flight += buffered(&command);
        Ok(())
    }
}

/// Bytes of the buffer of a command.
fn buffered(command: &Command) -> u64 {
    match command.kind {
        RequestKind::Read { bytes, .. } | RequestKind::Write { bytes, .. } => bytes,
        _ => 0,
    }
}

fn carry_out(place: &Place, Task { command, room }: &mut Task) -> Result<Ended, BlockError> {
    let mut room = room.as_deref_mut().unwrap_or_default();
    match command.kind {
        RequestKind::Read { offset, bytes, .. } => {
            room = &mut room[..bytes as usize];
            transfer(bytes, |done| {
                let mut part = [IoSliceMut::new(&mut room[done..])];
                preadv2(&place.file, &mut part, offset + done as u64, ReadWriteFlags::empty())
            })?;
        }
        RequestKind::Write { offset, bytes, fua } => write(place, offset, &room[..bytes as usize], fua)?,
        RequestKind::Flush => sync(place)?,
        RequestKind::Zero { offset, bytes, may_trim, fua } => match place.allocate(offset, bytes, may_trim) {
            Ok(()) if fua => sync(place)?,
            Ok(()) => {}
            Err(error) if is_unknown(error) => fill(place, offset, bytes, fua)?,
            Err(error) => return Err(failure(error)),
        },
        RequestKind::Trim { offset, bytes } => match place.allocate(offset, bytes, true) {
            // A trim is a hint.
            Err(error) if !is_unknown(error) => return Err(failure(error)),
            _ => {}
        },
        RequestKind::BlockStatus { offset, bytes } => {
            return Ok(Ended::BlockStatus(place.block_status(offset, bytes)));
        }
    }
    Ok(Ended::Done)
}

fn sync(place: &Place) -> Result<(), BlockError> {
    rustix::fs::fdatasync(&place.file).map_err(failure)
}

fn write(place: &Place, offset: u64, data: &[u8], fua: bool) -> Result<(), BlockError> {
    let flags = if fua { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
    transfer(data.len() as u64, |done| {
        pwritev2(&place.file, &[IoSlice::new(&data[done..])], offset + done as u64, flags)
    })
}

fn fill(place: &Place, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
    let zeros = try_pages(ZEROS)?;
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(ZEROS as u64);
        write(place, offset + done, &zeros[..part as usize], fua)?;
        done += part;
    }
    Ok(())
}

/// Repeats `step` until all bytes are transferred. `step` gets the number done so far, and returns how many more it did.
fn transfer(bytes: u64, mut step: impl FnMut(usize) -> Result<usize, Errno>) -> Result<(), BlockError> {
    let mut done = 0;
    while done < bytes as usize {
        match step(done) {
            // The file ends before the disk does.
            Ok(0) => return Err(BlockError::Medium),
            Ok(more) => done += more,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(failure(error)),
        }
    }
    Ok(())
}

impl Drive for Plain {
    fn shape(&self) -> Shape {
        self.place.shape
    }

    fn title(&self) -> String {
        let how = if self.place.direct { "direct" } else { "buffered" };
        format!("{} (threads, {how})", self.place.title)
    }

    fn read_at_start(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.place.read_pages(offset, into)
    }

    fn wake(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn woken(&mut self) {
        // Fails only if there is nothing to read.
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
    }

    fn start(&mut self, _core: &mut Core, command: Command) {
        self.waiting.push_back(command);
    }

    fn issue(&mut self, core: &mut Core) {
        while let Some(&command) = self.waiting.front()
            && (self.in_flight == 0 || self.in_flight + buffered(&command) <= KEPT)
        {
            self.waiting.pop_front();
            if let Err(error) = self.dispatch(core, command) {
                self.ended.push((command, Err(error)));
            }
        }
    }

    fn take_ended(&mut self, core: &mut Core, ends: &mut Ends) {
        ends.append(&mut self.ended);
        while let Ok(Over { task: Task { command, room }, mut result }) = self.over.try_recv() {
            if let Some(mut room) = room {
                if let (RequestKind::Read { .. }, Ok(_)) = (command.kind, &result) {
                    match core.prepare(&command) {
                        Ok(()) => drain(&mut room, core.buffer(&command)),
                        Err(error) => result = Err(error),
                    }
                }
                self.pool.give(room);
            }
            self.in_flight -= buffered(&command);
            ends.push((command, result));
        }
        if !ends.is_empty() {
            self.issue(core);
        }
    }

    fn fetch(&self, _offset: u64, _into: &mut [u8]) {
        unreachable!("it leaves nothing");
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            // The result of a thread that failed is not needed.
            let _ = thread.join();
        }
    }
}
