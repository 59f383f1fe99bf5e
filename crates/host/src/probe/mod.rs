//! Real disks that answer probes: block devices, files and NBD exports, timed by the machine's clock.
//!
//! A thread waits for the time of a probe, reads the clock, issues the probe, and reads the clock again when it is done. These
//! threads request real-time priority, so that the times are the disk's and not the machine's.
//!
//! A disk is only read, unless writes are allowed. Then a write writes back what was there, which is read first and kept, so that
//! the contents stay as they were. A concurrent write of another program would be lost: a block device is therefore opened
//! exclusively, and a file only if no other program has it open; an NBD export cannot be protected. Where writes cannot be forced
//! to the media (no FUA), such probes are refused, because they would time a cache.

mod device;
mod nbd;
pub(crate) mod user;

use crate::Clock;
use crate::realtime::{self, CpuLatencyLock};
use headstack_model::{Instant, Lbn};
use headstack_nbd::NbdUri;
use headstack_nbd::client::ClientError;
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
use headstack_tracks::map::Identity;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How to probe a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Bytes of a physical sector. Default: what the disk reports.
    pub physical_bytes: Option<u32>,
    /// Maximum number of probes in flight. Default: 1.
    pub depth: Option<usize>,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether its threads keep normal priority.
    pub no_real_time: bool,
}

/// Why a disk cannot be probed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum ProbeError {
    /// A device or file that cannot be opened, or stopped answering.
    #[error("{}: {error}", path.display())]
    Device { path: PathBuf, error: io::Error },
    /// It is in use.
    #[error("{} is in use ({by}): probe a disk that nothing else uses", path.display())]
    InUse { path: PathBuf, by: String },
    /// An invalid size of physical sectors.
    #[error("physical sectors of {met} bytes: they are 1, 2, 4, 8 or more blocks of {block} bytes")]
    Physical {
        met: u32,
        /// Bytes of a block.
        block: u32,
    },
    /// A minimum block size that is not supported.
    #[error("blocks of at least {met} bytes: NBD has powers of two up to 64 KiB")]
    Block { met: u32 },
    /// The server refused, or failed.
    #[error("{uri}: {error}")]
    Nbd { uri: String, error: ClientError },
    /// Writes were requested and are not possible.
    #[error("{name} takes no writes")]
    ReadOnly { name: String },
    /// The thread that answers has ended.
    #[error("{name} does not answer any more")]
    Gone { name: String },
}

#[derive(Debug)]
struct Task {
    probe: Probe,
    data: Vec<u8>,
    keeps: bool,
}

#[derive(Debug)]
struct Over {
    probe: Probe,
    answer: Answer,
    data: Vec<u8>,
}

type TaskResult = Result<Over, ProbeError>;

/// Number of a command that is not a probe.
const ASIDE: u64 = u64::MAX;

/// A real disk.
#[derive(Debug)]
pub struct RealDisk {
    info: DiskInfo,
    name: String,
    identity: Identity,
    /// Closed to end the threads.
    tasks: Option<Sender<Task>>,
    over: Receiver<TaskResult>,
    threads: Vec<JoinHandle<()>>,
    ready: VecDeque<(Probe, Answer)>,
    kept: BTreeMap<(u64, u32), Vec<u8>>,
    before: Option<ProbeCommand>,
    is_real_time: bool,
    /// Whether writes can be forced to the media (FUA).
    to_media: bool,
    flushes: bool,
    clock: Clock,
    _cpu_latency: CpuLatencyLock,
}

/// Maximum bytes of kept contents.
const KEPT: usize = 64 << 20;

struct Opened {
    info: DiskInfo,
    name: String,
    identity: Identity,
    tasks: Sender<Task>,
    over: Receiver<TaskResult>,
    threads: Vec<JoinHandle<()>>,
    is_real_time: bool,
    to_media: bool,
    flushes: bool,
    clock: Clock,
}

impl RealDisk {
    /// Opens a block device or a file for direct I/O.
    ///
    /// *Errors:* it is in use, cannot be opened or does not fit the options.
    pub fn open(path: &Path, options: Options) -> Result<RealDisk, ProbeError> {
        device::open(path, options).map(|opened| RealDisk::new(opened, options))
    }

    /// Connects to an NBD export.
    ///
    /// *Errors:* there is no such export, or it does not fit the options.
    pub fn connect(uri: &NbdUri, options: Options) -> Result<RealDisk, ProbeError> {
        nbd::connect(uri, options).map(|opened| RealDisk::new(opened, options))
    }

    fn new(opened: Opened, options: Options) -> RealDisk {
        let Opened { info, name, identity, tasks, over, threads, is_real_time, to_media, flushes, clock } =
            opened;
        RealDisk {
            info,
            name,
            identity,
            tasks: Some(tasks),
            over,
            threads,
            ready: VecDeque::new(),
            kept: BTreeMap::new(),
            before: None,
            is_real_time,
            to_media,
            flushes,
            clock,
            _cpu_latency: CpuLatencyLock::acquire(!options.no_real_time),
        }
    }

    /// The name to show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identity of the disk, wherever it is attached.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether its threads have real-time priority.
    pub fn is_real_time(&self) -> bool {
        self.is_real_time
    }

    /// The clock of its answers.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    fn can(&self, command: &ProbeCommand) -> bool {
        match command {
            ProbeCommand::Read { .. } => true,
            ProbeCommand::Write { to_media, .. } => self.info.may_write && (self.to_media || !to_media),
            ProbeCommand::Flush => self.flushes,
            _ => false,
        }
    }

    fn hand_over(&self, task: Task) -> Result<(), ProbeError> {
        let tasks = self.tasks.as_ref().expect("they are there until it is dropped");
        tasks.send(task).map_err(|_| self.gone())
    }

    fn gone(&self) -> ProbeError {
        ProbeError::Gone { name: self.name.clone() }
    }

    fn next_over(&self) -> Result<Over, ProbeError> {
        self.over.recv().map_err(|_| self.gone())?
    }

    /// Executes a command that is not a probe, and waits for it.
    fn execute_aside(&mut self, command: ProbeCommand, keeps: bool) -> Result<Over, ProbeError> {
        let probe = Probe { number: ASIDE, command, at: Instant::ZERO };
        self.hand_over(Task { probe, data: Vec::new(), keeps })?;
        loop {
            let over = self.next_over()?;
            if over.probe.number == ASIDE {
                return Ok(over);
            }
            self.ready.push_back((over.probe, over.answer));
        }
    }

    /// The contents where a write goes: kept from before, else read now. The arm is then sent back to where it was.
    fn content(&mut self, lbn: Lbn, sectors: u32) -> Result<Option<Vec<u8>>, ProbeError> {
        if let Some(content) = self.kept.get(&(lbn.0, sectors)) {
            return Ok(Some(content.clone()));
        }
        let read = self.execute_aside(ProbeCommand::Read { lbn, sectors, from_media: false }, true)?;
        if !read.answer.is_done() {
            return Ok(None);
        }
        if let Some(before @ ProbeCommand::Read { .. }) = self.before {
            self.execute_aside(before, false)?;
        }
        while self.kept.values().map(Vec::len).sum::<usize>() > KEPT {
            self.kept.pop_first();
        }
        self.kept.insert((lbn.0, sectors), read.data.clone());
        Ok(Some(read.data))
    }

    fn end(&mut self, probe: Probe, outcome: Outcome) {
        let at = self.clock.now().max(probe.at);
        self.ready.push_back((probe, Answer { issued: at, ended: at, outcome }));
    }
}

impl ProbeTarget for RealDisk {
    type Error = ProbeError;

    fn info(&self) -> DiskInfo {
        self.info
    }

    fn submit(&mut self, probe: Probe) -> Result<(), ProbeError> {
        if !self.can(&probe.command) {
            self.end(probe, Outcome::Refused);
            return Ok(());
        }
        let data = match probe.command {
            ProbeCommand::Write { lbn, sectors, .. } => match self.content(lbn, sectors)? {
                Some(content) => content,
                None => {
                    self.end(probe, Outcome::Failed);
                    return Ok(());
                }
            },
            _ => Vec::new(),
        };
        self.before = Some(probe.command);
        self.hand_over(Task { probe, data, keeps: false })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), ProbeError> {
        match self.ready.pop_front() {
            Some(ready) => Ok(ready),
            None => self.next_over().map(|over| (over.probe, over.answer)),
        }
    }
}

impl Drop for RealDisk {
    fn drop(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            // The result of a thread that failed is not needed.
            let _ = thread.join();
        }
    }
}

fn physical_sectors(met: u32, block: u32) -> Result<u32, ProbeError> {
    if met.is_multiple_of(block) && (met / block).is_power_of_two() {
        Ok(met / block)
    } else {
        Err(ProbeError::Physical { met, block })
    }
}

/// Time before a deadline at which a thread stops sleeping and polls the clock.
const SPIN: Duration = Duration::from_micros(120);

/// Waits until a time, to the microsecond.
fn wait_until(clock: &Clock, at: Instant) {
    loop {
        let left = Duration::from_nanos(at.since(clock.now()).0);
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SPIN) {
            #[allow(clippy::disallowed_methods, reason = "a probe has its time")]
            Some(sleep) => std::thread::sleep(sleep),
            None => std::hint::spin_loop(),
        }
    }
}

/// Starts a thread that answers; it reports whether it has real-time priority.
fn start(
    name: &str,
    options: Options,
    tell: Sender<bool>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let begin = move || {
        realtime::set_timer_slack();
        // Fails only if the disk could not be opened after all.
        let _ = tell.send(!options.no_real_time && realtime::set_realtime());
        run();
    };
    Builder::new().name(name.to_string()).spawn(begin)
}
