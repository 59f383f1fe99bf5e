//! A run: a workload on a rig in virtual time.

use crate::cgroups::limit_groups;
use crate::error::Error;
use crate::load::{BuiltLoad, Workload, WorkloadInfo};
use crate::recorder::Recorder;
use crate::results::{DeviceResult, EarlyStop, GuardUse, PhaseWatch, Results, RigInfo, VolumeResult};
use crate::setup::RunSetup;
use headstack_model::{DriveSpec, Instant, Lbn, QuantityReport, Request};
use headstack_sim::os::DriveSafety;
use headstack_sim::rig::Rig;
use headstack_sim::stats::{Collector, SortedTimes};
use headstack_sim::{
    ArrayLayer, Device, DeviceOptions, DriveSource, Engine, HostSpec, NewDrives, Observer, RearrangeLayer,
};
use headstack_workload::{Load, VolumeInfo, VolumeZones};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Steps between two progress reports: less than a millisecond of work on most rigs.
const STEPS_PER_REPORT: u32 = 1 << 12;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunProgress {
    /// The virtual time.
    pub now: Instant,
    /// Completed requests, including those of the warm-up.
    pub completed: u64,
    /// Share of the workload that is done, 0 to 1; none if its size is unknown.
    pub share: Option<f64>,
}

struct RigNames {
    rig: RigInfo,
    setup: RunSetup,
    volumes: Vec<VolumeInfo>,
    volume_devices: Vec<Vec<usize>>,
    devices: Vec<String>,
}

/// A workload on a rig. It runs [as a whole](Simulation::run), [while a callback permits](Simulation::run_while), [until a
/// time](Simulation::run_until) or [step by step](Simulation::step); the results are the same.
pub struct Simulation<'a> {
    engine: Engine,
    names: RigNames,
    load: BuiltLoad<'a>,
    info: WorkloadInfo,
    recorder: Recorder<'a>,
    /// None for a load without phases.
    phases: Option<PhaseWatch>,
    seed: u64,
    has_started: bool,
    is_done: bool,
    /// Why the run ended before its workload.
    stop_reason: Option<String>,
}

impl<'a> Simulation<'a> {
    /// A workload on a rig whose drives are idle at time 0. All random numbers come from `seed`: the same seed gives the same
    /// results on every machine.
    ///
    /// *Errors:* a part of the rig cannot be built; the workload does not fit on the rig, with the line and key of its file.
    pub fn new(rig: &Rig, workload: Workload<'a>, seed: u64) -> Result<Simulation<'a>, Error> {
        Simulation::with_drives(rig, workload, seed, &NewDrives)
    }

    /// As [`Simulation::new`], with the fixed parts of the drives from `source`: many runs on drives of one kind can share them,
    /// because for a large drive they take longer to build than a short run. The results are the same.
    ///
    /// *Errors:* as [`Simulation::new`].
    pub fn with_drives(
        rig: &Rig,
        workload: Workload<'a>,
        seed: u64,
        source: &dyn DriveSource,
    ) -> Result<Simulation<'a>, Error> {
        let keys = serde_json::to_value(rig.resolved()).expect("a rig is expressible in JSON");
        let names = RigNames {
            rig: RigInfo { name: rig.origin().to_string(), title: rig.title(), keys },
            setup: RunSetup::of_rig(rig),
            volumes: rig.volumes(),
            volume_devices: rig.volume_drives(),
            devices: rig.resolved().drives().map(|drive| drive.name).collect(),
        };
        let mut engine = rig.build_with(seed, source)?;
        let (load, mut info) = workload.build(&engine, &names.volumes, rig.trace_devices(), seed)?;
        limit_groups(&mut engine, &rig.resolved().host.cgroup, &mut info);
        Ok(Simulation::start(engine, names, (load, info), seed))
    }

    /// A workload on a single drive, whose random numbers come from the seed in `options`. `seed` is that of the workload.
    ///
    /// *Errors:* the drive cannot be built with these options; the workload does not fit on it.
    pub fn on_drive(
        drive: &DriveSpec,
        options: &DeviceOptions,
        workload: Workload<'a>,
        seed: u64,
    ) -> Result<Simulation<'a>, Error> {
        let device = Device::new(drive, options)?;
        let (name, sectors) = (drive.name.clone(), device.sectors());
        let volume = VolumeInfo {
            name,
            sectors,
            sector_bytes: drive.sector_bytes,
            zones: VolumeZones::from_spec(drive),
        };
        let mut engine = Engine::new(vec![device]);
        engine.keep_durable(&[DriveSafety::of(drive, &HostSpec::default())]);
        let mut simulation = Simulation::with_engine(engine, vec![volume], workload, seed)?;
        simulation.names.setup = RunSetup::of_drive(drive, options);
        Ok(simulation)
    }

    /// A workload on an engine that the program has built, with its own device options and layers. `volumes` are the engine's,
    /// with the names used in job and load files; the seed is that of the workload alone.
    ///
    /// *Errors:* the workload does not fit on the volumes, with the line and key of its file.
    pub fn with_engine(
        engine: Engine,
        volumes: Vec<VolumeInfo>,
        workload: Workload<'a>,
        seed: u64,
    ) -> Result<Simulation<'a>, Error> {
        let devices = engine.devices();
        let is_bare = devices == volumes.len();
        let own_devices = |volume: usize| if is_bare { vec![volume] } else { Vec::new() };
        let names = RigNames {
            rig: RigInfo::default(),
            setup: RunSetup::default(),
            volume_devices: (0..volumes.len()).map(own_devices).collect(),
            devices: if is_bare {
                volumes.iter().map(|volume| volume.name.clone()).collect()
            } else {
                (0..devices).map(|number| format!("device{number}")).collect()
            },
            volumes,
        };
        let built = workload.build(&engine, &names.volumes, None, seed)?;
        Ok(Simulation::start(engine, names, built, seed))
    }

    fn start(
        engine: Engine,
        names: RigNames,
        (load, info): (BuiltLoad<'a>, WorkloadInfo),
        seed: u64,
    ) -> Simulation<'a> {
        let statistics = Collector::with_jobs(&names.volumes, &info.job_of, &info.section_of);
        let recorder = Recorder::new(statistics, info.job_of.len(), names.volumes.len(), engine.devices());
        let phases = (!load.phases().is_empty()).then(PhaseWatch::default);
        Simulation {
            engine,
            names,
            load,
            info,
            recorder,
            phases,
            seed,
            has_started: false,
            is_done: false,
            stop_reason: None,
        }
    }

    /// Reports each request and the devices' commands to `observer`. The run ends when [`Observer::stops`] returns true.
    pub fn observe(mut self, observer: &'a mut dyn Observer) -> Simulation<'a> {
        self.recorder.observer = Some(observer);
        self
    }

    /// Keeps every response time, including those of the warm-up, for [`Results::response_times`]: 8 bytes per request.
    pub fn keep_response_times(mut self) -> Simulation<'a> {
        self.recorder.response_times = Some(Vec::new());
        self
    }

    /// Keeps a row for every completed request, including those of the warm-up, for [`Results::requests`]: some 90 bytes per request.
    pub fn keep_requests(mut self) -> Simulation<'a> {
        self.recorder.requests = Some(Box::default());
        self
    }

    /// Description of the workload.
    pub fn workload(&self) -> &WorkloadInfo {
        &self.info
    }

    /// Files that the workload includes.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.info.inputs
    }

    /// The devices and layers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The devices and layers, to insert layers, orders or faults of the program before the run.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Progress of the run.
    pub fn progress(&self) -> RunProgress {
        let now = self.engine.now();
        let completed = self.recorder.statistics.completed();
        RunProgress { now, completed, share: self.load.progress(now) }
    }

    /// When the warm-up ends; zero before the first request.
    pub(crate) fn warm_up_end(&self) -> Instant {
        self.recorder.statistics.first_counted()
    }

    /// Moves to the next event; `false` once the workload is done and all its requests have completed. A request takes a few
    /// steps.
    pub fn step(&mut self) -> bool {
        self.step_until(Instant::MAX)
    }

    fn step_until(&mut self, time: Instant) -> bool {
        if self.is_done || self.stop_reason.is_some() {
            return false;
        }
        if !self.has_started {
            self.has_started = true;
            self.engine.start(&mut self.load, &mut self.recorder);
        }
        if self.recorder.stops() {
            self.stop_reason = Some("observer".to_string());
            return false;
        }
        let has_more = self.engine.step(time, &mut self.load, &mut self.recorder);
        if let Some(phases) = &mut self.phases {
            let usage = || self.engine.processor_usage().map(|usage| usage.busy());
            phases.observe(self.load.phases(), usage);
        }
        self.is_done = !has_more && self.engine.is_over();
        has_more
    }

    /// Processes all events up to and at `time`, or until `report` breaks with a reason, as in [`Simulation::run_while`]; returns
    /// whether any remain.
    pub fn run_until_while(
        &mut self,
        time: Instant,
        report: &mut dyn FnMut(&RunProgress) -> ControlFlow<String>,
    ) -> bool {
        let mut steps = 0;
        while self.step_until(time) {
            steps += 1;
            if steps == STEPS_PER_REPORT {
                steps = 0;
                if let ControlFlow::Break(reason) = report(&self.progress()) {
                    self.stop_reason = Some(reason);
                }
            }
        }
        !self.is_done && self.stop_reason.is_none()
    }

    /// Processes all events up to and at `time`; returns whether any remain.
    pub fn run_until(&mut self, time: Instant) -> bool {
        self.run_until_while(time, &mut |_| ControlFlow::Continue(()))
    }

    /// Runs until the workload is done, or until `report` breaks with a reason; it is called with the progress every few thousand
    /// steps. The results then say how much is missing.
    pub fn run_while(&mut self, report: &mut dyn FnMut(&RunProgress) -> ControlFlow<String>) {
        self.run_until_while(Instant::MAX, report);
    }

    /// Runs until the workload is done.
    ///
    /// *Errors:* what ended the workload early: a malformed trace, or one that does not fit on the volumes; a host-managed disk that
    /// refused writes.
    pub fn run(mut self) -> Result<Results, Error> {
        while self.step() {}
        self.finish()
    }

    /// The results up to now.
    ///
    /// *Errors:* what ended the workload early, as in [`Simulation::run`].
    pub fn finish(mut self) -> Result<Results, Error> {
        if self.is_done {
            self.info.remarks.extend(self.load.finish()?);
        }
        self.check_zones()?;
        Ok(self.into_results())
    }

    /// Checks that no host-managed disk refused a write, as [`Simulation::finish`] does.
    ///
    /// *Errors:* one did.
    pub fn check_zones(&self) -> Result<(), Error> {
        for (index, device) in self.names.devices.iter().enumerate() {
            let Some((count, request, reason)) = self.engine.device(index).refused_by_zones() else {
                continue;
            };
            let Request { sectors, lbn: Lbn(lbn), .. } = request;
            return Err(Error::Zones { device: device.clone(), count, sectors, lbn, reason });
        }
        Ok(())
    }

    fn into_results(mut self) -> Results {
        self.info.remarks.extend(self.recorder.remark_on_failures());
        let early_stop = (!self.is_done).then(|| EarlyStop {
            reason: self.stop_reason.clone().unwrap_or_else(|| "program".to_string()),
            share: self.progress().share,
            outstanding: self.recorder.outstanding(),
        });
        let (volumes, devices) = (self.volumes(), self.devices());
        Results {
            seed: self.seed,
            rig: self.names.rig,
            setup: self.names.setup,
            workload: self.info,
            volumes,
            devices,
            links: self.engine.link_usage(),
            processor: self.engine.processor_usage(),
            phases: self.phases.map(|phases| phases.results(self.load.phases())).unwrap_or_default(),
            statistics: self.recorder.statistics,
            response_times: self.recorder.response_times.map(SortedTimes::from),
            requests: self.recorder.requests,
            end: self.engine.now(),
            cpu_s: None,
            early_stop,
        }
    }

    fn volumes(&self) -> Vec<VolumeResult> {
        let volume = |((index, devices), report): ((usize, &Vec<usize>), QuantityReport)| {
            let (done, all) = self.engine.layer(index).map_or((0, 0), ArrayLayer::rebuilt);
            let rebuilt = (all > 0).then(|| done as f64 / all as f64);
            let (name, devices) = (self.names.volumes[index].name.clone(), devices.clone());
            let first = devices.first().map(|first| self.engine.device(*first));
            let watch = &self.recorder.streams[index];
            let stream = first.and_then(|first| watch.stream(first, devices.len() > 1));
            VolumeResult {
                name,
                devices,
                rebuilt,
                stream,
                rearrange: self.engine.layer(index).map(RearrangeLayer::activity),
                report,
            }
        };
        self.names.volume_devices.iter().enumerate().zip(self.engine.reports()).map(volume).collect()
    }

    fn devices(&self) -> Vec<DeviceResult> {
        let device = |(index, name): (usize, &String)| {
            let (activity, guard) = (*self.engine.device(index).activity(), self.engine.guard(index));
            let longest_command = self.recorder.longest_command[index];
            let mut report = QuantityReport::new(self.engine.now().since_start());
            report.fact("name", name.as_str());
            activity.report(guard, Some(longest_command), &mut report);
            let guard = guard
                .map(|guard| GuardUse { holds: guard.holds(), worst_overtaken: guard.worst_overtaken() });
            DeviceResult { name: name.clone(), activity, longest_command, guard, report }
        };
        self.names.devices.iter().enumerate().map(device).collect()
    }
}
