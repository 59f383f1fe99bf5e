//! The drive with its queue, cache and bus: a state machine without a clock, in which every call has the time.
//!
//! Call [`Device::submit`] and [`Device::handle_timeout`] with the time, take completions from [`Device::poll_completion`], and
//! call again at [`Device::poll_timeout`]. An operation starts when its resource was free and its command had arrived, whenever
//! the call came: late calls change no times.
//!
//! Modelled: one arm and one port (electronics and bus) that work in parallel; command overheads; read-ahead that continues until
//! another command needs the arm; tagged queueing as on SCSI and SATA; write-through, immediate reporting and write-back with
//! destaging; FLUSH and FUA; a log on the media for writes that must be safe; drive-managed shingled bands; zones that the
//! host writes in sequence; command duration limits; revolutions lost to retries. Not modelled: power states.
//! A disk with two arms is two devices behind one queue (`rigs/exos-2x18-sata.toml`), each of which the engine notifies of the other's
//! seeks. The engine passes in the links that a drive shares with others on its way to the host.

mod activity;
mod arm;
mod arm_log;
mod buffered_access;
mod chance;
mod command;
mod commands;
mod config;
mod cost;
mod destage;
mod disk;
mod drive;
mod faults;
mod host_zones;
mod interference;
mod job;
mod limits;
mod media;
mod media_cache;
mod options;
mod pass;
mod persistent_cache;
mod port;
mod read_ahead;
mod record;
mod serving;
mod shingled;
mod slow;
mod spares;
mod split;
mod stream;
mod unbuffered;
mod view;
mod waiting;

pub use activity::{Activity, ArmTime, CacheUse, SeekDistances, ShingleActivity, SlowedAccesses, Travel};
pub use arm_log::ArmRecord;
pub use command::{Command, Completion, Outcome, QueueFull, Tag, TaskAttribute};
pub use drive::{Drive, DriveShape, DriveSource, NewDrives};
pub use faults::{Fault, FaultError};
pub(crate) use interference::Interference;
pub(crate) use media::Arm;
pub use options::{DeviceError, DeviceOptions};
pub use record::MediaWrite;
pub use split::TimeSplit;
pub use view::{ArmWork, DeviceView, OutstandingCommand, ShingleView};

use crate::link::HostLink;
use chance::Chance;
use commands::{Commands, LastCommand};
use config::{BusRules, Config};
use destage::Destage;
use disk::{DiskArm, Work};
use faults::Health;
use headstack_model::cache::{Cache, Segment, SegmentState};
use headstack_model::spec::Tagging;
use headstack_model::zones::{ZoneRefusal, Zones};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Request};
use headstack_policy::order::{self, Order};
use host_zones::HostZones;
use job::Job;
use media_cache::MediaCache;
use persistent_cache::PersistentCache;
use port::Port;
use rand::RngExt;
use read_ahead::ReadAheadControl;
use std::ops::Range;
use std::sync::Arc;
use stream::StreamHold;
use unbuffered::PassingAccess;
use waiting::Waiting;

/// A rotating disk: its port, arm, cache and queues.
#[derive(Debug)]
pub struct Device {
    config: Config,
    disk: DiskArm,
    cache: Cache,
    now: Instant,
    commands: Commands,
    port: Port,
    ahead: ReadAheadControl,
    last: LastCommand,
    stream: StreamHold,
    destage: Destage,
    /// The access that waits for the bus, of a drive without a buffer.
    passing: Option<PassingAccess>,
    media_cache: Option<Box<MediaCache>>,
    zones: Option<Box<HostZones>>,
    health: Health,
}

impl Device {
    /// A device of the drive that `spec` describes, idle at time 0 with the arm over cylinder 0.
    ///
    /// *Errors:* an invalid spec, an unknown order policy, a queue depth outside 1 to 1,024.
    pub fn new(spec: &DriveSpec, options: &DeviceOptions) -> Result<Device, DeviceError> {
        Device::with_drive(NewDrives.drive(spec)?, spec, options)
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
        let mut chance = Chance::new(spec, options.seed);
        let depth = depth as usize;
        let cache = Cache::new(spec, chance.random.random());
        let waiting = Waiting::new(spec, order::built_in(order_name)?.into(), depth)?;
        let bus = BusRules::new(spec);
        Ok(Device {
            config: Config::new(spec),
            media_cache: MediaCache::of(spec, &drive)?,
            disk: DiskArm::new(drive, spec, chance, options.seed, PersistentCache::new(spec)?),
            cache,
            now: Instant::ZERO,
            commands: Commands::new(depth, spec.tagging(), waiting),
            ahead: ReadAheadControl::new(spec, depth, bus.read_sector),
            port: Port::new(bus, depth),
            last: LastCommand::NONE,
            stream: StreamHold::new(spec),
            destage: Destage::new(spec)?,
            passing: None,
            zones: HostZones::from_spec(spec),
            health: Health::default(),
        })
    }

    /// The device with a program's own order in the place of the drive's: it chooses among the same commands, those of the drive's
    /// window (`examples/own_order.rs`). [`Engine::set_host_order`](crate::Engine::set_host_order) does so for the host's queue.
    pub fn with_order(mut self, order: Box<dyn Order>) -> Device {
        self.set_order(order);
        self
    }

    /// As [`Device::with_order`], for a device in use: the new order chooses among the waiting commands from now on.
    pub fn set_order(&mut self, order: Box<dyn Order>) {
        self.commands.waiting.set_order(order);
    }

    /// Blocks the host can address.
    pub fn sectors(&self) -> u64 {
        self.disk.sectors
    }

    /// Bytes in a block.
    pub fn sector_bytes(&self) -> u32 {
        self.port.bus.sector_bytes
    }

    pub(crate) fn cylinders(&self) -> u32 {
        self.disk.cylinders
    }

    /// Usual time from the submission of a read and of a write until an idle arm starts to move for it.
    pub(crate) fn usual_overheads(&self) -> (Nanos, Nanos) {
        let usual = self.config.overheads(false, false);
        (usual.read_miss, usual.write)
    }

    /// Geometry and mechanics.
    pub fn drive(&self) -> &Arc<Drive> {
        &self.disk.drive
    }

    /// Whether it manages bands of shingled tracks itself.
    pub fn is_shingled(&self) -> bool {
        self.disk.shingled.is_some()
    }

    /// Its persistent cache, if it manages bands of shingled tracks itself.
    pub fn shingles(&self) -> Option<ShingleView> {
        self.disk.shingled.as_ref().map(|shingles| shingles.view())
    }

    /// The zones that its host writes in sequence; none if it has none.
    pub fn zones(&self) -> Option<&Zones> {
        self.zones.as_ref().map(|host| &host.zones)
    }

    /// Sets the number of written blocks of each zone, as after a restart. Panics if the number of zones differs.
    pub fn restore_zones(&mut self, written: &[u64]) {
        self.zones.as_mut().expect("a disk without zones has no write pointers").restore(written);
    }

    /// Makes it one of several arms of a disk, if it has a buffer. A drive without one requests its port for the end of an undisturbed seek.
    pub(crate) fn interfere(&mut self, ratio: f64) {
        if self.config.is_buffered {
            self.disk.interfere(Interference::new(ratio));
        }
    }

    pub(crate) fn interference(&mut self) -> Option<&mut Interference> {
        self.disk.interference.as_deref_mut()
    }

    /// The command duration limits of its reads that abort no command, by number, each with the time in which the command should end.
    pub fn reads_without_abort(&self) -> &[(u8, Nanos)] {
        self.commands.waiting.reads_without_abort()
    }

    /// The number of requests that the zones did not allow, and the first of them with the reason; none if there was none.
    pub fn refused_by_zones(&self) -> Option<(u64, Request, ZoneRefusal)> {
        let host = self.zones.as_ref()?;
        host.first_refused.map(|(request, refusal)| (host.refused, request, refusal))
    }

    /// Its counters.
    pub fn activity(&self) -> &Activity {
        &self.disk.activity
    }

    /// Commands outstanding.
    pub fn outstanding(&self) -> usize {
        self.commands.outstanding()
    }

    /// Commands that may be outstanding.
    pub fn depth(&self) -> usize {
        self.commands.depth
    }

    /// Cylinders from the arm's cylinder, or the destination of its seek, to a block's. Panics if there is no such block.
    pub fn cylinders_to(&self, lbn: Lbn) -> u32 {
        self.disk.arm.place.cylinder.abs_diff(self.disk.drive.geometry.extent_at(lbn).cylinder)
    }

    /// Its visible state now. The arm's position under read-ahead is updated only when that is evaluated: until then it is where it began.
    pub fn view(&self) -> DeviceView {
        DeviceView {
            cylinder: self.disk.arm.place.cylinder,
            head: self.disk.arm.place.head,
            lbn: self.disk.last_lbn,
            work: self.disk.work.kind(),
            queued: self.outstanding(),
            depth: self.commands.depth,
            dirty_sectors: self.destage.dirty_sectors(),
        }
    }

    /// The commands that it has, those that the arm or the port works for included, in no order of time.
    pub fn outstanding_commands(&self) -> Vec<OutstandingCommand> {
        self.commands.listed()
    }

    /// The segments of its cache that hold data. Those of read-ahead in progress are behind [`Device::read_ahead`].
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let all = (0..self.cache.count()).map(|index| self.cache.segment(index));
        all.filter(|segment| segment.state != SegmentState::Empty)
    }

    /// The blocks that the read-ahead in progress has read by `now`; `None` without one.
    pub fn read_ahead(&self, now: Instant) -> Option<Range<Lbn>> {
        self.ahead.visible(&self.disk, now)
    }

    /// Logs the arm's accesses from now on, for [`Device::poll_arm_record`].
    pub fn log_arm(&mut self) {
        self.disk.log_arm();
    }

    /// The next access of the arm that was planned, in order, with its end; nothing without the log. A caller that does not keep up
    /// loses the oldest ([`Device::dropped_arm_records`]).
    pub fn poll_arm_record(&mut self) -> Option<ArmRecord> {
        self.disk.arm_log.as_mut()?.poll()
    }

    /// Accesses that were dropped from the log, because they were not polled in time.
    pub fn dropped_arm_records(&self) -> u64 {
        self.disk.arm_log.as_ref().map_or(0, |log| log.dropped)
    }

    /// Submits a command at `now`.
    ///
    /// *Errors:* [`QueueFull`] when as many commands are outstanding as the queue holds.
    pub fn submit(&mut self, now: Instant, command: impl Into<Command>) -> Result<Tag, QueueFull> {
        self.submit_over(&mut HostLink::default(), now, command.into())
    }

    /// As [`Device::submit`], for a device that may share links.
    pub(crate) fn submit_over(
        &mut self,
        link: &mut HostLink<'_>,
        now: Instant,
        command: Command,
    ) -> Result<Tag, QueueFull> {
        assert!(!self.health.powered_off, "a drive without power takes no commands");
        self.advance(link, now);
        let slot = self.commands.submit(command, self.now)?;
        if self.health.is_dead {
            faults::fail_dead(self, slot);
            faults::handle_death(self, link, now);
        } else {
            self.receive_or_queue(link, slot);
        }
        Ok(Tag(slot))
    }

    /// Carries out all that is due up to `now`, each event at its own time.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(&mut HostLink::default(), now);
    }

    /// As [`Device::handle_timeout`], for a device that may share links.
    #[inline(always)]
    pub(crate) fn advance(&mut self, link: &mut HostLink<'_>, now: Instant) {
        if self.health.dies_at <= now {
            return faults::handle_death(self, link, now);
        }
        if self.disk.event.min(self.port.event()) <= now {
            self.handle_due(link, now);
        }
        self.now = self.now.max(now);
    }

    /// Carries out all that is due up to `now`, for a disk that does not die until then.
    #[inline(never)]
    fn handle_due(&mut self, link: &mut HostLink<'_>, now: Instant) {
        loop {
            let (arm, port) = (self.disk.event, self.port.event());
            if arm.min(port) > now || arm.min(port) == Instant::MAX {
                return;
            }
            self.handle_first(link, arm, port);
        }
    }

    /// Carries out the first event that is due: at the arm, or at the port.
    #[inline]
    fn handle_first(&mut self, link: &mut HostLink<'_>, arm: Instant, port: Instant) {
        self.now = self.now.max(arm.min(port));
        if port <= arm {
            self.handle_port(link);
        } else {
            self.handle_arm();
        }
    }

    /// Handles everything due up to `now`, and then up to `until`, each event at its own time, until a command completes. Returns
    /// the time up to which everything is done: later commands do not change it. The device shares no links. Each access that
    /// cleans a band takes a call, so that the engine can end a run before it.
    #[inline]
    pub(crate) fn run_to_completion(&mut self, now: Instant, until: Instant) -> Instant {
        let mut reached = now;
        if self.health.dies() {
            self.handle_timeout(now);
            return now;
        }
        let link = &mut HostLink::default();
        loop {
            let (arm, port) = (self.disk.event, self.port.event());
            let next = arm.min(port);
            if next > reached {
                if next > until || self.has_completions() || self.has_only_cleaning() {
                    break;
                }
                reached = next;
            }
            self.handle_first(link, arm, port);
        }
        self.now = self.now.max(reached);
        reached
    }

    /// The next completed command. Its tag is free from now on.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.commands.poll(|completion| completion)
    }

    /// As [`Device::poll_completion`], but writes the completion to `ended`; returns whether there was one.
    #[inline]
    pub(crate) fn poll_into(&mut self, ended: &mut Completion) -> bool {
        self.commands.poll(|completion| *ended = completion).is_some()
    }

    /// Whether [`Device::poll_completion`] has something.
    #[inline]
    pub fn has_completions(&self) -> bool {
        self.commands.has_completions()
    }

    /// When to call [`Device::handle_timeout`]; `None` if only a new command can change anything.
    #[inline(always)]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut next = self.disk.event.min(self.port.event());
        if self.health.dies() {
            next = self.health.next_event(next, self.outstanding() == 0);
        }
        (next != Instant::MAX).then_some(next)
    }

    /// Whether it is a shingled disk that has nothing to do, or only bands to clean, whose data are on the media.
    #[inline]
    pub(crate) fn has_only_cleaning(&self) -> bool {
        self.disk.shingled.is_some()
            && matches!(self.disk.work, Work::Idle | Work::Emptying)
            && self.outstanding() == 0
            && self.destage.is_clean()
            && self.port.event() == Instant::MAX
    }

    fn job(&mut self, slot: u32) -> &mut Job {
        &mut self.commands.jobs[slot as usize]
    }

    /// Completes a command at `at`.
    fn complete(&mut self, slot: u32, at: Instant) {
        if let Some(shingles) = &mut self.disk.shingled {
            shingles.note_command(at);
        }
        self.commands.complete(slot, at, &mut self.disk.activity);
    }

    /// Enables the media-write log, for [`Device::poll_media_write`] and [`Device::cut_power`]. Call it before the first command.
    pub fn track_media(&mut self) {
        assert!(self.commands.jobs.is_empty(), "nothing has been written yet");
        self.disk.record = Some(Box::default());
        self.zones.iter_mut().for_each(|zones| zones.track_media());
    }

    /// The next blocks written to the media, in order. If the log is enabled, the caller must read all of it, before the
    /// completions, so that everything that a flush guarantees has been reported when the flush completes.
    pub fn poll_media_write(&mut self) -> Option<MediaWrite> {
        self.disk.record.as_mut()?.written.pop_front()
    }

    /// With the media-write log: reports each zone whose write pointer a power cut would move, with its blocks on the media, until all are
    /// there. `has_settled`: since the last call a write reached the media or a command ended; otherwise only a reset is reported.
    pub fn report_zones(&mut self, has_settled: bool, report: &mut dyn FnMut(u32, u64)) {
        if let (Some(zones), Some(record)) = (&mut self.zones, &self.disk.record) {
            zones.report(has_settled, record, &self.commands, report);
        }
    }

    /// Cuts the power: handles everything due up to `now`, reports the finished part of a write in progress, and does nothing
    /// after that. No command completes later; a caller must not submit one. The write pointers of zones go back to what is
    /// on the media, if the media-write log is enabled.
    pub fn cut_power(&mut self, now: Instant) {
        self.handle_timeout(now);
        self.stop();
        self.health.powered_off = true;
        if let (Some(zones), Some(record)) = (&mut self.zones, &self.disk.record) {
            zones.lose_power(record, &self.commands);
        }
    }

    /// Stops everything permanently.
    fn stop(&mut self) {
        self.disk.stop(self.now);
        self.port.clear();
    }

    /// Injects a fault into the disk, from its next access on.
    ///
    /// *Errors:* blocks or a head that it does not have, revolutions outside 1 to [`Fault::TURNS_MAX`], a value of a slow period, of
    /// stalls or of a pattern outside its range.
    pub fn inject(&mut self, fault: Fault) -> Result<(), FaultError> {
        fault.check_slow(self.disk.heads, self.disk.sectors)?;
        if let Fault::Dead { from, timeout } = fault {
            self.health.die_at(from.max(self.now), timeout);
        }
        self.disk.inject(fault)
    }

    /// Whether it has died by `now`.
    pub(crate) fn has_died(&self, now: Instant) -> bool {
        self.health.dies_at <= now
    }
}
