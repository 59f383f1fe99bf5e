//! A job file, read.

use std::io;

use headstack_model::{Nanos, SpecError};

use super::error::Place;
use super::ini::{self, Entry, Section};
use super::options::{Role, find, unknown};
use super::own;
use super::settings::{JobPriority, Settings, Spread, ZoneMode, ZoneResets};
use super::value::{Amount, Given};
use super::variables::{Variables, expand};

/// A job file that was read and checked.
#[derive(Clone, Debug)]
pub struct JobFile {
    pub(super) jobs: Vec<Job>,
    global: Vec<(String, String)>,
    ignored: Vec<IgnoredKey>,
    variables: Vec<(String, String)>,
}

/// A key that controls fio itself and makes no difference here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IgnoredKey {
    /// The key as fio's table names it.
    pub key: &'static str,
    pub summary: &'static str,
    pub origin: String,
    pub line: usize,
}

/// The keys of a section with their values, but for those that only Headstack reads.
fn as_written(section: &Section) -> Vec<(String, String)> {
    let fios = section.entries.iter().filter(|entry| !entry.own);
    fios.map(|entry| (entry.key.clone(), entry.value.clone().unwrap_or_default())).collect()
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) section: String,
    pub(super) place: Place,
    pub(super) settings: Settings,
    /// Where each of its keys was set last, its own or a default.
    pub(super) places: Vec<(&'static str, Place)>,
    /// Its own keys, as written.
    pub(super) options: Vec<(String, String)>,
}

impl Job {
    /// An error about one of its keys, at the line that set it or else at the section.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> SpecError {
        let set = self.places.iter().rev().find(|(name, _)| *name == key);
        set.map_or(&self.place, |(_, place)| place).error(key, message)
    }
}

impl JobFile {
    /// Parses a job file. `include` reads included files, by the name as written and then by the name in the folder of the file
    /// that names them. `variables` gives the values of `${NAME}` and fio's own keywords.
    ///
    /// *Errors:* the first fault, in one line with its place: bad syntax, an unknown key with the nearest known one, a value that
    /// is not allowed, a key whose effect is not available, no job at all.
    pub fn parse(
        text: &str,
        name: &str,
        include: &mut dyn FnMut(&str) -> io::Result<String>,
        variables: &Variables<'_>,
    ) -> Result<JobFile, SpecError> {
        let mut sections = ini::split(text, name, include)?;
        let mut file =
            JobFile { jobs: Vec::new(), global: Vec::new(), ignored: Vec::new(), variables: Vec::new() };
        for entry in sections.iter_mut().flat_map(|section| &mut section.entries) {
            file.fill_in(entry, variables)?;
        }
        let mut defaults = (Settings::default(), Vec::new());
        for section in &sections {
            if section.is_global() {
                file.apply(section, &mut defaults.0, &mut defaults.1)?;
                file.global.extend(as_written(section));
            } else {
                let job = file.job(section, defaults.clone())?;
                file.jobs.push(job);
            }
        }
        if file.jobs.is_empty() {
            let place = Place { file: name.into(), line: 0 };
            return Err(place.error("", "holds no job, which is a section `[name]` other than [global]"));
        }
        Ok(file)
    }

    /// The names of its jobs, in their order.
    pub fn job_names(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|job| job.section.as_str())
    }

    /// Gives all jobs but those of this name the idle class, as with `prioclass=3`.
    pub fn set_idle_others(&mut self, name: &str) {
        for job in self.jobs.iter_mut().filter(|job| job.section != name) {
            job.settings.priority.class_of_job = JobPriority::IDLE;
        }
    }

    /// Lets each of several clones that begins at once begin at random within `most`, as with `startdelay=0-…`. Clones that begin together move in
    /// step for as long as they run, and each seed would find the same.
    pub fn draw_starts(&mut self, most: Nanos) {
        if self.jobs.iter().map(|job| job.settings.group.clones).sum::<u64>() < 2 {
            return;
        }
        for life in self.jobs.iter_mut().map(|job| &mut job.settings.life) {
            if life.start_delay == (Nanos::ZERO, Nanos::ZERO) {
                life.start_delay.1 = most;
            }
        }
    }

    /// Puts all jobs but those of this name into a control group, as with `cgroup`.
    pub fn set_cgroup_of_others(&mut self, name: &str, group: &str) {
        for job in self.jobs.iter_mut().filter(|job| job.section != name) {
            job.settings.group.cgroup = Some(group.to_string());
        }
    }

    /// The keys of its `[global]` sections with their values, as written.
    pub fn global_options(&self) -> &[(String, String)] {
        &self.global
    }

    /// The keys of the file that make no difference.
    pub fn ignored(&self) -> &[IgnoredKey] {
        &self.ignored
    }

    /// The expanded variables, as written, with their values.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Expands the variables of a value. One that is not set stays in values that have no effect.
    fn fill_in(&mut self, entry: &mut Entry, variables: &Variables<'_>) -> Result<(), SpecError> {
        let Some(value) = &entry.value else { return Ok(()) };
        let is_idle = !entry.own && find(&entry.key).is_some_and(|option| option.is_idle());
        match expand(value, variables) {
            Err(_) if is_idle => {}
            Err(message) => return Err(entry.place.error(&entry.key, message)),
            Ok(None) => {}
            Ok(Some(filled)) => {
                entry.value = Some(filled.text);
                for pair in filled.variables {
                    if !self.variables.contains(&pair) {
                        self.variables.push(pair);
                    }
                }
            }
        }
        Ok(())
    }

    fn job(
        &mut self,
        section: &Section,
        (mut settings, mut places): (Settings, Vec<(&'static str, Place)>),
    ) -> Result<Job, SpecError> {
        self.apply(section, &mut settings, &mut places)?;
        let options = as_written(section);
        let (place, section) = (section.place.clone(), section.name.clone());
        let job = Job { section, place, settings, places, options };
        check(&job)?;
        Ok(job)
    }

    /// Applies the keys of a section to settings. The meaning of suffixes comes first, wherever the key is.
    fn apply(
        &mut self,
        section: &Section,
        settings: &mut Settings,
        places: &mut Vec<(&'static str, Place)>,
    ) -> Result<(), SpecError> {
        let (first, rest): (Vec<&Entry>, Vec<&Entry>) =
            section.entries.iter().partition(|entry| entry.key == "kb_base");
        for entry in first.into_iter().chain(rest) {
            self.set(entry, settings, places)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        entry: &Entry,
        settings: &mut Settings,
        places: &mut Vec<(&'static str, Place)>,
    ) -> Result<(), SpecError> {
        let at = &entry.place;
        let value = entry.value.as_deref();
        if entry.own {
            let given = Given::new(value, settings.kb_base());
            let set = own::set(&mut settings.own, &entry.key, &given);
            let name = set.map_err(|message| at.error(&entry.key, message))?;
            places.push((name, at.clone()));
            return Ok(());
        }
        let Some(option) = find(&entry.key) else {
            return Err(at.error(&entry.key, unknown(&entry.key)));
        };
        match option.role {
            Role::Ignored => {
                let (key, summary) = (option.name, option.summary);
                self.ignored.push(IgnoredKey { key, summary, origin: at.file.to_string(), line: at.line });
            }
            Role::Refused { harmless, .. } if value.is_some_and(|value| harmless.contains(&value)) => {}
            Role::Refused { reason, .. } => return Err(at.error(option.name, reason)),
            Role::Honoured(setter) => {
                let given = Given::new(value, settings.kb_base());
                (setter.0)(settings, &given).map_err(|message| at.error(option.name, message))?;
                places.push((option.name, at.clone()));
            }
        }
        Ok(())
    }
}

/// Checks for keys of a job that contradict each other.
fn check(job: &Job) -> Result<(), SpecError> {
    let settings = &job.settings;
    if settings.rate.contradict() {
        return Err(job.error("rate_iops", "stands beside `rate`, where one of the two is allowed"));
    }
    if settings.priority.contradict() {
        return Err(job.error("cmdprio_bssplit", "is for a job without `cmdprio_percentage`"));
    }
    check_zones(job)?;
    let own = &settings.own;
    if own.sequential + own.local > 1.0 {
        return Err(job.error("local", "with `sequential` is more than all requests"));
    }
    for (key, share) in [("sequential", own.sequential), ("local", own.local)] {
        if share > 0.0 && !settings.direction().random {
            return Err(job.error(key, "is about random requests, where `rw` is sequential"));
        }
    }
    Ok(())
}

/// Checks for keys of zones that do not apply in the job's zone mode.
fn check_zones(job: &Job) -> Result<(), SpecError> {
    let (zones, random) = (&job.settings.zones, &job.settings.random);
    let is_reset = zones.resets != ZoneResets::default();
    match zones.mode {
        ZoneMode::None if zones.size > 0 => {
            Err(job.error("zonesize", "needs zonemode=strided or zonemode=zbd"))
        }
        ZoneMode::Strided if zones.size == 0 => {
            Err(job.error("zonemode", "`strided` needs a `zonesize`: the bytes to transfer in a zone"))
        }
        ZoneMode::Strided if random.spread != Spread::Uniform => Err(job.error(
            "random_distribution",
            "is for all of a file, where zonemode=strided has a part of it at a time",
        )),
        ZoneMode::ByWritePointers if zones.skip != Amount::default() => {
            Err(job.error("zoneskip", "is for zonemode=strided"))
        }
        ZoneMode::None | ZoneMode::Strided if is_reset => {
            Err(job.error("zone_reset_frequency", "needs zonemode=zbd: only there are zones reset"))
        }
        _ => Ok(()),
    }
}
