//! Real disks that answer probes: block devices, files and NBD exports, by the machine's clock.
//!
//! A probe goes to a thread that waits for its time, takes the time, hands it over, and takes the time again when it is done. Those
//! threads go before all that is not real-time, where the system allows it, so that the times are the disk's and not the
//! machine's.
//!
//! A disk is only read, unless it may be written. Then a write puts there what was there before, which is read first and kept; so
//! whatever happens its contents stay as they were. What somebody else writes there meanwhile is lost: a block device is opened so
//! that nothing else on the machine mounts or claims it, a file while nobody has it open; an NBD export cannot be kept from others.
//! Where a way to a disk cannot make writes end on the media (no FUA), such writes are refused rather than timed in a cache.

mod device;
mod nbd;
pub(crate) mod user;

use crate::Clock;
use crate::realtime::{self, CpuLatencyLock};
use headstack_model::{Lbn, Nanos};
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

/// How a disk is probed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Bytes of a physical sector; what the disk tells where it is not given.
    pub physical_bytes: Option<u32>,
    /// Probes under way at a time; 1 where it is not given.
    pub depth: Option<usize>,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether its threads stay as others are.
    pub no_real_time: bool,
}

/// Why a disk cannot be probed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum ProbeError {
    /// A device or a file that cannot be opened, or stopped answering.
    #[error("{}: {error}", path.display())]
    Device { path: PathBuf, error: io::Error },
    /// It is in use.
    #[error("{} is in use ({by}): probe a disk that nothing else uses", path.display())]
    InUse { path: PathBuf, by: String },
    /// A size of physical sectors that cannot be.
    #[error("physical sectors of {met} bytes: they are 1, 2, 4, 8 or more blocks of {block} bytes")]
    Physical {
        met: u32,
        /// Bytes of a block.
        block: u32,
    },
    /// A smallest block that cannot be.
    #[error("blocks of at least {met} bytes: NBD has powers of two up to 64 KiB")]
    Block { met: u32 },
    /// A server that does not serve.
    #[error("{uri}: {error}")]
    Nbd { uri: String, error: ClientError },
    /// Writing was asked for where it is not possible.
    #[error("{name} takes no writes")]
    ReadOnly { name: String },
    /// The thread that answers has gone.
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

/// The number of what is asked beside the probes.
const ASIDE: u64 = u64::MAX;

/// A real disk.
#[derive(Debug)]
pub struct RealDisk {
    info: DiskInfo,
    name: String,
    identity: Identity,
    /// Closed when the threads are to end.
    tasks: Option<Sender<Task>>,
    over: Receiver<TaskResult>,
    threads: Vec<JoinHandle<()>>,
    ready: VecDeque<(Probe, Answer)>,
    kept: BTreeMap<(u64, u32), Vec<u8>>,
    /// What was asked before.
    before: Option<ProbeCommand>,
    is_real_time: bool,
    /// Whether a write can be told to end on the media.
    to_media: bool,
    flushes: bool,
    clock: Clock,
    _cpu_latency: CpuLatencyLock,
}

/// Bytes of what was there that are kept.
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
    /// Opens a block device or a file, past the page cache.
    ///
    /// *Errors:* it is in use, cannot be opened or does not fit the options.
    pub fn open(path: &Path, options: Options) -> Result<RealDisk, ProbeError> {
        device::open(path, options).map(|opened| RealDisk::new(opened, options))
    }

    /// Connects to an NBD export.
    ///
    /// *Errors:* there is none, or it does not fit the options.
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

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it from other disks, wherever it is found.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether its threads go before all that is not real-time.
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

    /// Asks something beside the probes and waits for it.
    fn execute_aside(&mut self, command: ProbeCommand, keeps: bool) -> Result<Over, ProbeError> {
        let probe = Probe { number: ASIDE, command, at: Nanos::ZERO };
        self.hand_over(Task { probe, data: Vec::new(), keeps })?;
        loop {
            let over = self.next_over()?;
            if over.probe.number == ASIDE {
                return Ok(over);
            }
            self.ready.push_back((over.probe, over.answer));
        }
    }

    /// What lies where a write was asked for: known from before, else read now. The arm is then sent back to where it was.
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
            // One that failed has nothing to tell.
            let _ = thread.join();
        }
    }
}

fn physical_sectors(met: u32, block: u32) -> Result<u32, ProbeError> {
    match met.is_multiple_of(block) && (met / block).is_power_of_two() {
        true => Ok(met / block),
        false => Err(ProbeError::Physical { met, block }),
    }
}

/// How long before its time a thread stops to sleep and watches the clock instead.
const SPIN: Duration = Duration::from_micros(120);

/// Waits until a time, to the microsecond.
fn wait_until(clock: &Clock, at: Nanos) {
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

/// Starts a thread that answers; it says whether it goes first.
fn start(
    name: &str,
    options: Options,
    tell: Sender<bool>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let begin = move || {
        realtime::set_timer_slack();
        // Nobody asks any more where the disk could not be opened after all.
        let _ = tell.send(!options.no_real_time && realtime::set_realtime());
        run();
    };
    Builder::new().name(name.to_string()).spawn(begin)
}
