//! The drive with its queue, cache and bus: a machine without a clock, whose every call has the time.
//!
//! Call [`Device::submit`] and [`Device::handle_timeout`] with the time, take completions from [`Device::poll_completion`], and
//! call again at [`Device::poll_timeout`]. An operation starts when its resource was free and its command had arrived, whenever
//! the call came: late calls move nothing.
//!
//! Modelled: one arm and one port (electronics and bus) that work in parallel; command overheads; read-ahead that continues until
//! another command needs the arm; tagged queueing as on SCSI and SATA; write-through, immediate reporting and write-back with
//! destaging; FLUSH and FUA; a log on the media for writes that must be safe; revolutions lost to retries. Not modelled: several
//! actuators, power states. The engine passes in the links that a drive shares with others on its way to the host.

mod activity;
mod arm;
mod command;
mod config;
mod cost;
mod destage;
mod drive;
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
mod state;
mod view;
mod waiting;

pub use activity::{Activity, ArmTime, CacheUse, SeekDistances, Travel};
pub use command::{Command, TaskAttribute};
pub use drive::Drive;
pub use faults::{Fault, FaultError};
pub(crate) use media::Arm;
pub use record::MediaWrite;
pub use split::TimeSplit;
pub use view::{ArmWork, DeviceView};

use arm::Work;
use config::Config;
use destage::Destage;
use headstack_model::cache::Cache;
use headstack_model::spec::Tagging;
use headstack_model::{DriveSpec, Geometry, Mechanics, Nanos, Op, Request, SpecError};
use headstack_policy::order;
use job::Job;
use lost::Lost;
use media_cache::MediaCache;
use port::Port;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use read_ahead::{Ahead, ReadAheadRule};
use recalibrate::Recalibrate;
use record::Record;
use state::{Chance, Commands, DiskSize, Health, LastAccess, SharedBus};
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
    /// The command has blocks that the drive does not have, or none.
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
    /// The seek for it; `None` if it needed no access of its own.
    pub travel: Option<Travel>,
}

impl Completion {
    /// A completion that takes no time and no device.
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

/// Options of a device in addition to its drive file.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Seed of retries, lost revolutions, recalibrations and random replacement.
    pub seed: u64,
    /// Commands that may be outstanding, in place of the drive file's.
    pub depth: Option<u32>,
    /// Order policy of the queue, in place of the drive file's.
    pub order: Option<String>,
}

/// Why a device could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// The drive file is invalid.
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
    size: DiskSize,
    cache: Cache,
    rule: ReadAheadRule,
    now: Nanos,
    commands: Commands,
    port: Port,
    bus: SharedBus,
    /// Where the arm is, and since when (or from when on) it is free there.
    arm: Arm,
    work: Work,
    /// When the arm's work needs attention; `Nanos::MAX` when never.
    arm_event: Nanos,
    /// The read-ahead in progress, or the last one. It is separate from `work`, which is then small to copy.
    ahead: Ahead,
    last: LastAccess,
    destage: Destage,
    media_cache: Option<Box<MediaCache>>,
    chance: Chance,
    health: Health,
    /// The media-write log, if it is enabled.
    record: Option<Box<Record>>,
    activity: Activity,
}

impl Device {
    /// A device of the drive that `spec` describes, idle at time 0 with the arm over cylinder 0.
    ///
    /// *Errors:* an invalid spec, an unknown order policy, a queue depth outside 1 to 1,024.
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
        let depth = depth as usize;
        let cache = Cache::new(spec, random.random());
        let waiting = Waiting::new(spec, order::built_in(order_name)?.into(), depth)?;
        let lost = Lost::of(spec, drive.mechanics.spindle().period());
        let (sectors, cylinders) = (drive.geometry.sectors(), spec.geometry.cylinders);
        Ok(Device {
            config: Config::new(spec),
            size: DiskSize { sectors, sector_bytes: spec.sector_bytes, cylinders },
            media_cache: MediaCache::of(spec, &drive)?,
            drive,
            cache,
            rule: ReadAheadRule::new(&spec.cache),
            now: Nanos::ZERO,
            commands: Commands::new(depth, spec.tagging(), waiting),
            port: Port::new(depth),
            bus: SharedBus::default(),
            arm: Arm::default(),
            work: Work::Idle,
            arm_event: Nanos::MAX,
            ahead: Ahead::default(),
            last: LastAccess::none(),
            destage: Destage::new(spec)?,
            chance: Chance { random, retries: spec.mechanics.retries, lost, recalibration },
            health: Health { powered_off: false, faults: None, dies_at: Nanos::MAX },
            record: None,
            activity: Activity::default(),
        })
    }

    /// Blocks the host can address.
    pub fn sectors(&self) -> u64 {
        self.size.sectors
    }

    /// Bytes in a block.
    pub fn sector_bytes(&self) -> u32 {
        self.size.sector_bytes
    }

    /// Cylinders of the disk.
    pub(crate) fn cylinders(&self) -> u32 {
        self.size.cylinders
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

    /// Its counters.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Commands outstanding.
    pub fn outstanding(&self) -> usize {
        self.commands.jobs.len() - self.commands.free.len() - self.commands.done.len()
    }

    /// Commands that may be outstanding.
    pub fn depth(&self) -> usize {
        self.commands.depth
    }

    /// Submits a command at `now`.
    ///
    /// *Errors:* [`QueueFull`] when as many commands are outstanding as the queue holds.
    pub fn submit(&mut self, now: Nanos, command: impl Into<Command>) -> Result<Tag, QueueFull> {
        self.take(now, command.into())
    }

    fn take(&mut self, now: Nanos, command: Command) -> Result<Tag, QueueFull> {
        assert!(!self.health.powered_off, "a drive without power takes no commands");
        self.handle_timeout(now);
        let command = command.on(self.commands.tagging);
        if self.outstanding() == self.commands.depth {
            return Err(QueueFull);
        }
        let found_idle = self.outstanding() == 0;
        let slot = match self.commands.free.pop() {
            Some(slot) => {
                self.commands.jobs[slot as usize] = Job::new(command, self.now, found_idle);
                slot
            }
            None => {
                self.commands.jobs.push(Job::new(command, self.now, found_idle));
                (self.commands.jobs.len() - 1) as u32
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
        match self.health.dies_at <= now {
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

    /// Handles everything due up to `now`, and then up to `until`, each event at its own time, until a command completes. Returns
    /// the time up to which everything is done: later commands do not change it.
    #[inline]
    pub(crate) fn run_to_completion(&mut self, now: Nanos, until: Nanos) -> Nanos {
        let mut reached = now;
        if self.health.dies_at != Nanos::MAX {
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
        let (slot, completed) = self.commands.done.pop_front()?;
        self.commands.free.push(slot);
        let job = &self.commands.jobs[slot as usize];
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
        !self.commands.done.is_empty()
    }

    /// When to call [`Device::handle_timeout`]; `None` while only a command can change anything.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let mut next = self.arm_event.min(self.port_event());
        if self.health.dies_at != Nanos::MAX {
            next = self.event_of_dying(next);
        }
        (next != Nanos::MAX).then_some(next)
    }

    fn job(&mut self, slot: u32) -> &mut Job {
        &mut self.commands.jobs[slot as usize]
    }

    /// Reports a command done at `at`.
    fn complete(&mut self, slot: u32, at: Nanos) {
        let job = &self.commands.jobs[slot as usize];
        assert_eq!(job.parts.total(), at - job.submitted, "the parts add up: {job:?}");
        match job.command.request.op {
            _ if job.outcome != Outcome::Done => {}
            Op::Read => self.activity.reads[job.cache.index()] += 1,
            Op::Write => self.activity.writes[job.cache.index()] += 1,
            Op::Flush => self.activity.flushes += 1,
        }
        self.commands.in_flight -= 1;
        self.commands.alone = self.commands.alone.filter(|alone| *alone != slot);
        self.commands.done.push_back((slot, at));
    }
}
