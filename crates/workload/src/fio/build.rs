//! Builds a load from a job file and the volumes of a rig.

use std::io;

use headstack_model::{Instant, SpecError};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::error::{listed, nearest, show};
use super::extent::Extent;
use super::file::Pattern;
use super::job::{Job, JobFile};
use super::layout::{Clone, Fault, Layout, Target, Use};
use super::load::{FioJob, FioLoad, Gate, Member, Worker};
use super::logged::Logged;
use super::map::splitmix;
use super::process::{Limits, Process};
use super::settings::{READ, Settings, WRITE, ZoneMode, split_names};
use super::sizes::Sizes;
use super::value::Amount;
use super::zone_build::zones_of_file;
use super::zoned::ZonedVolumes;
use crate::VolumeInfo;
use crate::shape::generator;
use crate::trace::Trace;

const CLONES_MAX: u64 = 1 << 20;
const OUTSTANDING_MAX: u64 = 1 << 24;
const FILES_MAX: u64 = 1 << 20;
/// The most blocks that are marked one by one: half a gigabyte of bits.
const MARKED_MAX: u64 = 1 << 32;

/// Opens the logs that jobs replay.
pub type OpenLog<'a> = dyn FnMut(&str) -> io::Result<Box<dyn io::Read>> + 'a;

/// A clone whose files have places, but that is not yet part of the load.
struct Draft<'a> {
    job: &'a Job,
    work: Work,
    gate: Gate,
    info: FioJob,
    seed: u64,
}

enum Work {
    Made { uses: Vec<Use>, limits: Limits, pattern: Pattern },
    Logged { log: Trace<'static>, volume: Option<u32> },
}

impl JobFile {
    /// The load of these jobs on a rig with these volumes. The same seed gives the same load.
    ///
    /// *Errors:* the rig cannot provide what a job needs, in one line with the place of the key: no such volume, not enough room,
    /// requests that are not whole sectors, trims.
    pub fn build(&self, volumes: &[VolumeInfo], seed: u64) -> Result<FioLoad, SpecError> {
        self.build_reading(volumes, seed, &mut |_| Err(io::Error::other("there is nothing to read it with")))
    }

    /// As [`JobFile::build`], with `open` to open the logs that jobs replay (`read_iolog`), by the names in the file.
    ///
    /// *Errors:* also a log that cannot be opened. A fault within a log shows when it is read: [`FioLoad::error`].
    pub fn build_reading(
        &self,
        volumes: &[VolumeInfo],
        seed: u64,
        open: &mut OpenLog<'_>,
    ) -> Result<FioLoad, SpecError> {
        let mut layout = Layout::new(volumes);
        let mut drafts: Vec<Draft<'_>> = Vec::new();
        let (mut stage, mut group) = (0, 0);
        self.check_numbers()?;
        let jobs = in_bytes(&self.jobs, volumes)?;
        let exits = jobs.iter().any(|job| job.settings.group.exitall);
        for (index, job) in jobs.iter().enumerate() {
            // An empty group is as good as a new one.
            let grouping = &job.settings.group;
            let begins = grouping.stonewall || grouping.new_group;
            group += u32::from(begins && !drafts.is_empty());
            stage += u32::from(grouping.stonewall && !drafts.is_empty());
            let waits_for = self.waits_for(index)?;
            for clone in 0..grouping.clones {
                let source = drafts.len() as u64;
                let place = Position { index, clone, source, stage, group, waits_for, exits };
                let fault = |(key, message): Fault| job.error(key, message);
                drafts.push(draft(job, place, &mut layout, seed, open).map_err(fault)?);
            }
        }
        let longest = |(key, message): Fault| self.jobs[self.jobs.len() - 1].error(key, message);
        layout.assign_extents().map_err(longest)?;
        let files = layout.files();
        let mut zoned = ZonedVolumes::default();
        let (members, infos) = drafts
            .into_iter()
            .map(|draft| draft.finish(&layout, &mut zoned, volumes))
            .collect::<Result<Vec<_>, SpecError>>()?
            .into_iter()
            .unzip();
        let notes = capped_note(&self.jobs).into_iter().chain(layout.notes()).collect();
        Ok(FioLoad::new(members, infos, files, notes, zoned, layout.into_only_disk()))
    }

    /// Checks that there are no more clones, files and outstanding requests than a host has memory for.
    fn check_numbers(&self) -> Result<(), SpecError> {
        let (mut clones, mut files, mut outstanding) = (0u64, 0u64, 0u64);
        for job in &self.jobs {
            let number = job.settings.group.clones;
            clones += number;
            files += number * job.settings.files.count();
            outstanding += number * job.settings.queue.depth();
            for (key, what, found, most) in [
                ("numjobs", "clones", clones, CLONES_MAX),
                ("nrfiles", "files", files, FILES_MAX),
                ("iodepth", "requests outstanding", outstanding, OUTSTANDING_MAX),
            ] {
                if found > most {
                    let message = format!("{found} {what} in all, where at most {most} are allowed");
                    return Err(job.error(key, message));
                }
            }
        }
        Ok(())
    }

    fn waits_for(&self, index: usize) -> Result<Option<u32>, SpecError> {
        let job = &self.jobs[index];
        let Some(name) = &job.settings.group.wait_for else { return Ok(None) };
        let before = || self.jobs[..index].iter().map(Job::name);
        match before().position(|known| known == name) {
            Some(section) => Ok(Some(section as u32)),
            None => {
                let message = format!("`{name}` is no job before this one{}", nearest(name, before()));
                Err(job.error("wait_for", message))
            }
        }
    }
}

impl Job {
    fn name(&self) -> &str {
        self.settings.name.as_deref().unwrap_or(&self.section)
    }
}

#[derive(Clone, Copy)]
struct Position {
    index: usize,
    clone: u64,
    source: u64,
    stage: u32,
    group: u32,
    waits_for: Option<u32>,
    /// Whether any job has `exitall`, which is for all of them.
    exits: bool,
}

fn draft<'a>(
    job: &'a Job,
    at: Position,
    layout: &mut Layout<'_>,
    seed: u64,
    open: &mut OpenLog<'_>,
) -> Result<Draft<'a>, Fault> {
    let settings = &job.settings;
    if settings.direction().trims {
        return Err(("rw", "trims, where the volumes of the rig know reads, writes and flushes only".into()));
    }
    let seed = splitmix(splitmix(seed ^ settings.random.seed.map_or(0, splitmix)).wrapping_add(at.source));
    let mut random = generator(!seed);
    let work = match &settings.log.names {
        None => made(job, at, layout, &mut random)?,
        Some(logs) => logged(settings, logs, at, layout, open)?,
    };
    let (early, late) = settings.life.start_delay;
    let not_before = Instant(random.random_range(early.0..=late.0));
    let gate = Gate {
        stage: at.stage,
        waits_for: at.waits_for,
        not_before,
        ends: at.exits.then_some(settings.group.exit_what),
        flow: settings.group.flow,
        steady: settings.group.steady,
        direct: settings.is_direct(),
        advice: settings.read_advice(),
    };
    let info = FioJob {
        name: job.name().to_string(),
        description: settings.description.clone(),
        section: at.index as u32,
        clone: at.clone as u32,
        group: at.group,
        group_reporting: settings.group.reporting,
        depth: settings.queue.depth() as u32,
        direct: settings.is_direct(),
        cgroup: settings.group.cgroup.clone(),
        options: job.options.clone(),
    };
    Ok(Draft { job, work, gate, info, seed })
}

/// A clone that generates its requests, in files of its own or shared ones.
fn made(job: &Job, at: Position, layout: &mut Layout<'_>, random: &mut Pcg64Mcg) -> Result<Work, Fault> {
    let settings = &job.settings;
    let sizes = [READ, WRITE, 2].map(|direction| Sizes::new(&settings.blocks, direction));
    let least = sizes.iter().map(Sizes::least).min().expect("there are three directions");
    let clone = Clone { area: &settings.area, number: at.clone, least };
    let targets = targets(job, at.clone, layout)?;
    let (uses, size) = layout.use_files(&clone, &targets, random)?;
    if size < least {
        return Err(("size", format!("{size} bytes, where a request has at least {least}")));
    }
    let (pattern, limits) = shape(settings, size, targets.len());
    Ok(Work::Made { uses, limits, pattern })
}

fn targets(job: &Job, clone: u64, layout: &mut Layout<'_>) -> Result<Vec<Target>, Fault> {
    let settings = &job.settings;
    if settings.queue.engine.by_uri {
        return Ok(vec![layout.export(settings.files.uri.as_deref())?]);
    }
    let names = settings.files.names(&job.section, clone);
    if settings.area.fill && !settings.area.has_size() && settings.files.list.is_some() {
        names.iter().for_each(|name| layout.fill(name));
    }
    if settings.files.list.is_some() {
        return names.iter().map(|name| layout.named(name)).collect();
    }
    if settings.names_nothing()
        && let Some(target) = layout.only_volume(job.name())?
    {
        return Ok(vec![target]);
    }
    names.iter().map(|name| layout.target(name)).collect()
}

/// The jobs with bytes in place of zones.
///
/// *Errors:* there are no zones.
fn in_bytes(jobs: &[Job], volumes: &[VolumeInfo]) -> Result<Vec<Job>, SpecError> {
    let mut jobs = jobs.to_vec();
    for job in &mut jobs {
        let zone = zone_bytes(&job.settings, volumes);
        let (area, zones) = (&mut job.settings.area, &mut job.settings.zones);
        let keys = [
            ("size", &mut area.size),
            ("io_size", &mut area.io_size),
            ("offset", &mut area.offset),
            ("offset_increment", &mut area.offset_increment),
            ("zoneskip", &mut zones.skip),
        ];
        let mut without = None;
        for (key, amount) in keys {
            if let Amount::Zones(count) = *amount {
                without = without.or((zone == 0 && count > 0).then_some(key));
                *amount = Amount::Bytes(zone.saturating_mul(count));
            }
        }
        if let Some(key) = without {
            return Err(job.error(key, "is in zones, where neither the disk nor `zonesize` has any"));
        }
    }
    Ok(jobs)
}

/// Bytes of a zone: of the volume of a job, or else as `zonesize` says.
fn zone_bytes(settings: &Settings, volumes: &[VolumeInfo]) -> u64 {
    let names = settings.files.list.as_deref().map(split_names).unwrap_or_default();
    let is_named =
        |volume: &&VolumeInfo| names.iter().any(|name| name.trim_start_matches("/dev/") == volume.name);
    let volume = volumes.iter().find(is_named).or(volumes.first());
    let zones = volume.filter(|_| settings.zones.mode == ZoneMode::ByWritePointers).and_then(|volume| {
        volume.zones.as_ref().map(|zones| zones.layout.zone_sectors * u64::from(volume.sector_bytes))
    });
    zones.unwrap_or(settings.zones.size)
}

/// The note on jobs whose engine keeps fewer requests outstanding than `iodepth`.
fn capped_note(jobs: &[Job]) -> Option<String> {
    let capped: Vec<&Job> = jobs.iter().filter(|job| job.settings.queue.is_capped()).collect();
    let first = capped.first()?;
    let names: Vec<&str> = capped.iter().map(|job| job.name()).collect();
    Some(format!(
        "{}: queue depth capped at 1 and not {}, as in fio, because the engine {} is synchronous; ioengine=libaio is not",
        listed(&names),
        first.settings.queue.iodepth,
        first.settings.queue.engine.name
    ))
}

/// A clone that replays one of the logs, on the volume that `filename` names or on those that the log names.
fn logged(
    settings: &Settings,
    logs: &str,
    at: Position,
    layout: &mut Layout<'_>,
    open: &mut OpenLog<'_>,
) -> Result<Work, Fault> {
    let logs = split_names(logs);
    let log = logs.get(at.clone as usize % logs.len().max(1)).ok_or(("read_iolog", "needs a name".into()))?;
    let fault = |error: &dyn std::fmt::Display| ("read_iolog", format!("`{}`: {error}", show(log)));
    let input = open(log).map_err(|error| fault(&error))?;
    let trace = Trace::open(input, log, None).map_err(|error| fault(&error.fault))?;
    let volume = match settings.files.list.as_deref().map(split_names).unwrap_or_default().first() {
        None => None,
        Some(name) => match layout.named(name)? {
            Target::Volume(volume) => Some(volume as u32),
            Target::Region(_) => {
                let message = format!("`{}` is no volume, where a log needs one", show(name));
                return Err(("filename", message));
            }
        },
    };
    Ok(Work::Logged { log: trace, volume })
}

/// The requests of a clone and their number, if its files have `size` bytes in all.
fn shape(settings: &Settings, size: u64, files: usize) -> (Pattern, Limits) {
    let mut pattern = Pattern::new(settings);
    let io_size = settings.area.io_size.fixed();
    let (direction, life) = (settings.direction(), &settings.life);
    let mixed = direction.is_mixed();
    let overwrites = direction.writes && direction.random && settings.random.without_map;
    let continues = mixed && !direction.random || overwrites;
    pattern.wraps = life.is_endless() && files == 1 || mixed && io_size > size;
    let bytes = if io_size > 0 { io_size } else { size };
    let pass_bytes = if continues { size.max(io_size) } else { size };
    // What `verify` reads between the writes counts, too.
    let reads_between =
        direction.writes && settings.flushes.verify.has_method && settings.flushes.verify.backlog > 0;
    let backlog = if reads_between { size } else { 0 };
    let limits = Limits {
        bytes: bytes.saturating_mul(life.loops),
        pass_bytes: pass_bytes.saturating_add(backlog),
        requests: life.requests.saturating_mul(life.loops),
        loops: life.loops,
        beyond_files: io_size > 0,
    };
    (pattern, limits)
}

impl Draft<'_> {
    fn finish(
        self,
        layout: &Layout<'_>,
        zoned: &mut ZonedVolumes,
        volumes: &[VolumeInfo],
    ) -> Result<(Member, FioJob), SpecError> {
        let settings = &self.job.settings;
        let (uses, limits, pattern) = match self.work {
            Work::Made { uses, limits, pattern } => (uses, limits, pattern),
            Work::Logged { log, volume } => {
                let logged = Box::new(Logged::new(settings, log, volumes, volume));
                return Ok((Member { worker: Worker::Logged(logged), gate: self.gate }, self.info));
            }
        };
        let mut extents = Vec::with_capacity(uses.len());
        for at in &uses {
            let fault = |(key, message): Fault| self.job.error(key, message);
            let mut extent = layout.extent(at);
            let zones = zones_of_file(zoned, settings, &pattern, &mut extent, volumes).map_err(fault)?;
            check_sectors(settings, &pattern, &extent, volumes).map_err(fault)?;
            check_map(&pattern, &extent).map_err(fault)?;
            extents.push((extent, zones));
        }
        let process = Process::new(settings, pattern, extents, limits, self.seed);
        Ok((Member { worker: Worker::Made(process), gate: self.gate }, self.info))
    }
}

/// Checks that a job that bypasses the page cache requests whole sectors only.
fn check_sectors(
    settings: &Settings,
    pattern: &Pattern,
    extent: &Extent,
    volumes: &[VolumeInfo],
) -> Result<(), Fault> {
    let volume = &volumes[extent.volume as usize];
    let sector = u64::from(volume.sector_bytes);
    let check = |key: &'static str, bytes: u64| {
        if !settings.direct || bytes.is_multiple_of(sector) {
            return Ok(());
        }
        let name = &volume.name;
        Err((
            key,
            format!("{bytes} bytes are no whole sectors of `{name}` ({sector} bytes), as direct=1 needs"),
        ))
    };
    for at in [READ, WRITE].into_iter().filter(|at| pattern.uses(*at)) {
        pattern.sizes[at].steps().into_iter().try_for_each(|bytes| check("bs", bytes))?;
        check("ba", pattern.align[at])?;
    }
    check("offset", extent.start)?;
    let rw = settings.access.rw;
    if rw.direction.random { Ok(()) } else { check("rw", rw.modifier) }
}

/// Checks that the bits of a map fit into memory.
fn check_map(pattern: &Pattern, extent: &Extent) -> Result<(), Fault> {
    let blocks = extent.reach / pattern.least();
    if !pattern.marks() || blocks <= MARKED_MAX {
        return Ok(());
    }
    let message = format!(
        "requests of several sizes in {blocks} blocks that none may meet twice, where at most {MARKED_MAX} blocks are \
         allowed; say norandommap"
    );
    Err(("bssplit", message))
}
