//! The drive with its queue, cache and bus: a machine that is told the time and never asks for it.
//!
//! Call [`Device::submit`] and [`Device::handle_timeout`] with the time, take what comes out of
//! [`Device::poll_completion`], and come back at [`Device::poll_timeout`]. An operation starts when its resource was
//! free and its command had arrived, whenever the call came: late calls move nothing.
//!
//! Modelled: one arm and one port (electronics and bus) that work in parallel; command overheads; read-ahead that goes
//! on until another command needs the arm; tagged queueing as SCSI and SATA know it; write-through, immediate reporting and write-back with destaging; FLUSH and
//! FUA; a log on the media for writes that must be safe; turns lost to retries. Not modelled: several actuators, power states. What a drive shares with others on its way to the host is lent to it by the engine.

mod activity;
mod arm;
mod command;
mod config;
mod cost;
mod destage;
mod faults;
mod host_transfer;
mod job;
mod lost;
mod media;
mod media_cache;
mod pass;
mod port;
mod read_ahead;
mod recalibrate;
mod record;
mod sending;
mod spares;
mod split;
mod view;
mod waiting;

pub use activity::{Activity, ArmTime, CacheUse, SeekDistances, Travel};
pub use command::{Command, TaskAttribute};
pub use faults::{Fault, FaultError};
pub(crate) use media::Arm;
pub use media::Drive;
pub use record::MediaWrite;
pub use split::TimeSplit;
pub use view::{ArmWork, DeviceView};

use arm::Work;
use config::Config;
use destage::Destage;
use faults::Faults;
use headstack_model::cache::Cache;
use headstack_model::spec::{Retries, Tagging};
use headstack_model::{DriveSpec, Extent, Geometry, Lbn, Mechanics, Nanos, Op, Request, SpecError};
use headstack_policy::order;
use host_transfer::Lent;
use job::Job;
use lost::Lost;
use media_cache::MediaCache;
use port::Port;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use read_ahead::{Ahead, ReadAheadRule};
use recalibrate::Recalibrate;
use record::Record;
use std::collections::VecDeque;
use std::sync::Arc;
use waiting::Waiting;

/// A command's number while it is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u32);

/// The queue holds as many commands as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drive's queue is full")]
pub struct QueueFull;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// It names blocks that the drive does not have, or none.
    OutOfRange,
    /// One of its blocks cannot be read.
    MediumError,
    /// The disk is dead.
    Dead,
}

/// A command that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's tag, free again.
    pub tag: Tag,
    /// The command.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was done.
    pub completed: Nanos,
    /// How it ended.
    pub outcome: Outcome,
    /// Where the time between went; the parts add up to it exactly.
    pub parts: TimeSplit,
    /// How the cache served it.
    pub cache: CacheUse,
    /// Where the arm went for it; none where it needed no access of its own.
    pub travel: Option<Travel>,
}

impl Completion {
    /// What takes no time and no device.
    pub(crate) fn at_once(request: Request, at: Nanos) -> Completion {
        Completion {
            tag: Tag(0),
            request,
            submitted: at,
            completed: at,
            outcome: Outcome::Done,
            parts: TimeSplit::default(),
            cache: CacheUse::Miss,
            travel: None,
        }
    }

    /// The response time: from submission to completion.
    pub fn response(&self) -> Nanos {
        self.completed - self.submitted
    }
}

/// What a device takes beside its drive file.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Seed of retries, lost turns, recalibrations and random replacement.
    pub seed: u64,
    /// Commands that may be outstanding, in place of the drive file's.
    pub depth: Option<u32>,
    /// Order policy of the queue, in place of the drive file's.
    pub order: Option<String>,
}

/// Why a device could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// The drive file does not hold.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No such order policy.
    #[error(transparent)]
    Order(#[from] order::OrderError),
    /// Queue depth outside 1 to 1,024.
    #[error("queue depth {0} is outside 1 to 1024")]
    Depth(u32),
    /// More commands than NCQ has tags.
    #[error(
        "queue depth {0} is outside 1 to 32, the tags of NCQ; a drive on SAS (bus.interface = \"sas\") has more"
    )]
    Tags(u32),
}

/// A rotating disk.
#[derive(Debug)]
pub struct Device {
    drive: Arc<Drive>,
    config: Config,
    sectors: u64,
    sector_bytes: u32,
    cylinders: u32,
    cache: Cache,
    rule: ReadAheadRule,
    now: Nanos,
    jobs: Vec<Job>,
    free: Vec<u32>,
    port: Port,
    /// What it shares with others, while the engine lends it, and whether it shares anything.
    lent: Option<Lent>,
    shares: bool,
    /// Commands that wait for the arm.
    waiting: Waiting,
    tagging: Tagging,
    /// Commands received and not done.
    in_flight: usize,
    /// The one of them that must be alone.
    alone: Option<u32>,
    /// Where the arm is, and since when (or from when on) it is free there.
    arm: Arm,
    work: Work,
    /// The read-ahead under way, or the last one. It stands apart from `work`, which is small to copy without it.
    ahead: Ahead,
    /// The run of blocks accessed last.
    last_extent: Extent,
    /// Block after the last one accessed.
    last_lbn: Lbn,
    depth: usize,
    /// When the arm's work needs attention; `Nanos::MAX` when never.
    arm_event: Nanos,
    destage: Destage,
    media_cache: Option<Box<MediaCache>>,
    last_was_write: bool,
    last_read_end: Lbn,
    last_write_end: Lbn,
    /// Commands that are done, each with when; their jobs keep the rest until they are polled.
    done: VecDeque<(u32, Nanos)>,
    random: Pcg64Mcg,
    retries: Option<Retries>,
    lost: Option<Box<Lost>>,
    recalibration: Option<Recalibrate>,
    /// What has gone to the media, where somebody wants to know.
    record: Option<Box<Record>>,
    /// Whether the power is gone.
    powered_off: bool,
    faults: Option<Box<Faults>>,
    /// When the disk dies, or died.
    dies_at: Nanos,
    activity: Activity,
}

impl Device {
    /// A device of the drive that `spec` describes, idle at time 0 with the arm over cylinder 0.
    ///
    /// *Errors:* a spec that does not hold, an unknown order policy, a queue depth outside 1 to 1,024.
    pub fn new(spec: &DriveSpec, options: &DeviceOptions) -> Result<Device, DeviceError> {
        let drive = Drive { geometry: Geometry::new(spec)?, mechanics: Mechanics::new(spec) };
        Device::with_drive(Arc::new(drive), spec, options)
    }

    /// A device whose geometry and mechanics are shared with others of the same kind.
    ///
    /// *Errors:* as [`Device::new`].
    pub fn with_drive(
        drive: Arc<Drive>,
        spec: &DriveSpec,
        options: &DeviceOptions,
    ) -> Result<Device, DeviceError> {
        let depth = options.depth.unwrap_or(spec.queue.depth);
        if !(1..=1024).contains(&depth) {
            return Err(DeviceError::Depth(depth));
        }
        if spec.tagging() == Tagging::Ncq && depth > Tagging::NCQ_TAGS {
            return Err(DeviceError::Tags(depth));
        }
        let order_name = options.order.as_deref().unwrap_or(&spec.queue.order);
        let mut random = Pcg64Mcg::seed_from_u64(options.seed);
        let recalibration = spec.mechanics.recalibration.map(|r| Recalibrate::new(r, &mut random));
        let slots = depth as usize;
        Ok(Device {
            config: Config::new(spec),
            sectors: drive.geometry.sectors(),
            sector_bytes: spec.sector_bytes,
            cylinders: spec.geometry.cylinders,
            media_cache: MediaCache::of(spec, &drive)?,
            lost: Lost::of(spec, drive.mechanics.spindle().period()),
            drive,
            cache: Cache::new(spec, random.random()),
            rule: ReadAheadRule::new(&spec.cache),
            now: Nanos::ZERO,
            // Those that are done and not yet taken have their places, too.
            jobs: Vec::with_capacity(2 * slots),
            free: Vec::with_capacity(2 * slots),
            port: Port::new(slots),
            lent: None,
            shares: false,
            waiting: Waiting::new(spec, order::built_in(order_name)?.into(), slots)?,
            tagging: spec.tagging(),
            in_flight: 0,
            alone: None,
            arm: Arm::default(),
            work: Work::Idle,
            ahead: Ahead::default(),
            last_extent: Extent::default(),
            last_lbn: Lbn(0),
            depth: slots,
            arm_event: Nanos::MAX,
            destage: Destage::new(spec)?,
            last_was_write: false,
            last_read_end: Lbn(u64::MAX),
            last_write_end: Lbn(u64::MAX),
            done: VecDeque::with_capacity(slots),
            random,
            retries: spec.mechanics.retries,
            recalibration,
            record: None,
            powered_off: false,
            faults: None,
            dies_at: Nanos::MAX,
            activity: Activity::default(),
        })
    }

    /// Blocks the host can address.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes in a block.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Cylinders of the disk.
    pub(crate) fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Time from the submission of a read and of a write to when an idle arm sets out for it, as it usually is.
    pub(crate) fn usual_overheads(&self) -> (Nanos, Nanos) {
        let usual = self.config.overheads(false);
        (usual.read_miss, usual.write)
    }

    /// Geometry and mechanics.
    pub fn drive(&self) -> &Arc<Drive> {
        &self.drive
    }

    /// What it has done so far.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Commands outstanding.
    pub fn outstanding(&self) -> usize {
        self.jobs.len() - self.free.len() - self.done.len()
    }

    /// Commands that may be outstanding.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Takes a command at `now`.
    ///
    /// *Errors:* [`QueueFull`] when as many commands are outstanding as the queue holds.
    pub fn submit(&mut self, now: Nanos, command: impl Into<Command>) -> Result<Tag, QueueFull> {
        self.take(now, command.into())
    }

    fn take(&mut self, now: Nanos, command: Command) -> Result<Tag, QueueFull> {
        assert!(!self.powered_off, "a drive without power takes no commands");
        self.handle_timeout(now);
        let command = command.on(self.tagging);
        if self.outstanding() == self.depth {
            return Err(QueueFull);
        }
        let found_idle = self.outstanding() == 0;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.jobs[slot as usize] = Job::new(command, self.now, found_idle);
                slot
            }
            None => {
                self.jobs.push(Job::new(command, self.now, found_idle));
                (self.jobs.len() - 1) as u32
            }
        };
        if self.is_dead() {
            self.fail_dead(slot);
            self.handle_death(now);
            return Ok(Tag(slot));
        }
        self.receive_or_queue(slot);
        Ok(Tag(slot))
    }

    /// Does all that is due up to `now`, each thing at its own time.
    #[inline]
    pub fn handle_timeout(&mut self, now: Nanos) {
        match self.dies_at <= now {
            true => self.handle_death(now),
            false => self.go_on(now),
        }
    }

    #[inline]
    fn go_on(&mut self, now: Nanos) {
        loop {
            let (arm, port) = (self.arm_event, self.port_event());
            if arm.min(port) > now || arm.min(port) == Nanos::MAX {
                break;
            }
            self.handle_first(arm, port);
        }
        self.now = self.now.max(now);
    }

    /// Does the first thing that is due: at the arm, or at the port.
    #[inline]
    fn handle_first(&mut self, arm: Nanos, port: Nanos) {
        self.now = self.now.max(arm.min(port));
        if port <= arm {
            self.handle_port();
        } else {
            self.handle_arm();
        }
    }

    /// Does all that is due up to `now`, and then what is due up to `until`, each thing at its own time, until a command is
    /// done. Says up to when all is done: commands that come later change nothing of it.
    #[inline]
    pub(crate) fn run_to_completion(&mut self, now: Nanos, until: Nanos) -> Nanos {
        let mut reached = now;
        if self.dies_at != Nanos::MAX {
            self.handle_timeout(now);
            return now;
        }
        loop {
            let (arm, port) = (self.arm_event, self.port_event());
            let next = arm.min(port);
            if next > reached {
                if next > until || self.has_completions() {
                    break;
                }
                reached = next;
            }
            self.handle_first(arm, port);
        }
        self.now = self.now.max(reached);
        reached
    }

    /// The next command that is done. Its tag is free from now on.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        let (slot, completed) = self.done.pop_front()?;
        self.free.push(slot);
        let job = &self.jobs[slot as usize];
        Some(Completion {
            tag: Tag(slot),
            request: job.command.request,
            submitted: job.submitted,
            completed,
            outcome: job.outcome,
            parts: job.parts,
            cache: job.cache,
            travel: job.travel,
        })
    }

    /// Whether [`Device::poll_completion`] has something.
    #[inline]
    pub fn has_completions(&self) -> bool {
        !self.done.is_empty()
    }

    /// When [`Device::handle_timeout`] has something to do; `None` while only a command can change anything.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let mut next = self.arm_event.min(self.port_event());
        if self.dies_at != Nanos::MAX {
            next = self.event_of_dying(next);
        }
        (next != Nanos::MAX).then_some(next)
    }

    fn job(&mut self, slot: u32) -> &mut Job {
        &mut self.jobs[slot as usize]
    }

    /// Reports a command done at `at`.
    fn complete(&mut self, slot: u32, at: Nanos) {
        let job = &self.jobs[slot as usize];
        assert_eq!(job.parts.total(), at - job.submitted, "the parts add up: {job:?}");
        match job.command.request.op {
            _ if job.outcome != Outcome::Done => {}
            Op::Read => self.activity.reads[job.cache.index()] += 1,
            Op::Write => self.activity.writes[job.cache.index()] += 1,
            Op::Flush => self.activity.flushes += 1,
        }
        self.in_flight -= 1;
        self.alone = self.alone.filter(|alone| *alone != slot);
        self.done.push_back((slot, at));
    }
}
