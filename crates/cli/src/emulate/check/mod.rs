//! `headstack emulate --check`: runs the same jobs in virtual and in real time, to measure whether real time is accurate on a machine.
//!
//! Both run the same requests. In real time, a client within the process submits each request to a running disk when an earlier one is
//! answered. So the difference is due to the emulator alone: the lateness of its wake-ups, and the model's reaction to that. A client's path
//! to the disk (a socket, the kernel) is not included.

mod job;
mod real;
mod simulated;
mod table;
mod verdict;

use super::EmulateTarget;
use super::plan;
use crate::failure::Failure;
use crate::service::machine::ProcessorTime;
use headstack_host::{Clock, Lateness};
use headstack_model::{Instant, Nanos};
use headstack_sim::rig::Rig;
use headstack_sim::stats::demerit;
use headstack_workload::VolumeInfo;
use indicatif::ProgressBar;
use job::Job;
use simulated::Client;
use std::io::Write;
use std::time::Duration;
use verdict::Verdict;

#[derive(clap::Args)]
pub(super) struct CheckArgs {
    /// Compare the drive in real time with the simulator, and print how accurate real time is on this machine. Exit code 1
    /// if it is not accurate enough.
    #[arg(long, conflicts_with_all = ["data", "nbd", "mount", "fault", "duration", "stats", "metrics", "command"])]
    check: bool,
    /// Run each job for one second instead of eight.
    #[arg(long, requires = "check")]
    quick: bool,
    /// Print the comparison as JSON.
    #[arg(long, requires = "check")]
    json: bool,
}

/// A job and its sorted response times.
struct Compared {
    job: &'static Job,
    simulated: Vec<Nanos>,
    real: Vec<Nanos>,
    /// Rms distance between the two distributions as a share of the simulated mean.
    demerit: f64,
    /// The same distance between two simulated runs whose clients submit at slightly different times.
    by_chance: f64,
    lateness: Lateness,
}

struct Comparison {
    drive: String,
    seconds: u64,
    speed: f64,
    is_real_time: bool,
    jobs: Vec<Compared>,
    stolen: Option<f64>,
}

impl CheckArgs {
    /// *Errors:* an option of the check without it.
    pub(super) fn is_wanted(&self) -> Result<bool, Failure> {
        match (self.quick, self.json) {
            (true, _) if !self.check => Err(Failure::Input("--quick: needs --check".to_string())),
            (_, true) if !self.check => Err(Failure::Input("--json: needs --check".to_string())),
            _ => Ok(self.check),
        }
    }

    pub(super) fn run(&self, target: &EmulateTarget, speed: f64, out: &mut dyn Write) -> Result<(), Failure> {
        let plans = plan::plans(target)?;
        let ([plan], [info]) = (&plans[..], &plans[0].volumes[..]) else {
            let volumes = plans.iter().flat_map(|plan| &plan.volumes);
            let names: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
            let (count, names) = (names.len(), names.join(", "));
            return Err(Failure::Input(format!("--check: takes one disk, and these are {count} ({names})")));
        };
        let Some(rig) = &plan.rig else {
            return Err(Failure::Input("--check: the disk `null` takes no time".to_string()));
        };
        let seconds = if self.quick { 1 } else { 8 };
        let bench = Bench { rig, info, seed: target.rig.seed, seconds, speed };
        let comparison = bench.compare(plan.title.clone())?;
        let verdict = Verdict::judge(&comparison);
        if self.json {
            writeln!(out, "{}", table::json(&comparison, &verdict))?
        } else {
            table::print(&comparison, &verdict, out)?
        }
        if verdict.is_trusted() {
            Ok(())
        } else {
            Err(Failure::Check("this machine cannot be trusted with this disk now".to_string()))
        }
    }
}

struct Bench<'a> {
    rig: &'a Rig,
    info: &'a VolumeInfo,
    seed: u64,
    /// Real seconds per job.
    seconds: u64,
    speed: f64,
}

impl Bench<'_> {
    fn compare(&self, drive: String) -> Result<Comparison, Failure> {
        let bar = ProgressBar::new(job::ALL.len() as u64 * self.seconds);
        bar.set_style(crate::progress::style("{bar:30} {pos}/{len} s  {msg}"));
        let (began, mut jobs, mut is_real_time) = (ProcessorTime::now(), Vec::new(), true);
        for job in &job::ALL {
            bar.set_message(job.name);
            let (compared, first) = self.job(job, &bar)?;
            jobs.push(compared);
            is_real_time &= first;
        }
        bar.finish_and_clear();
        let stolen = began.and_then(ProcessorTime::stolen_share);
        Ok(Comparison { drive, seconds: self.seconds, speed: self.speed, is_real_time, jobs, stolen })
    }

    /// Runs a job in virtual and in real time. Also returns whether the disk's thread had real-time priority.
    fn job(&self, job: &'static Job, bar: &ProgressBar) -> Result<(Compared, bool), Failure> {
        let clock = Clock::new(self.speed).map_err(Failure::Input)?;
        let end = Instant((self.seconds as f64 * self.speed * 1e9) as u64);
        let disk_time = |real: Duration| Nanos((real.as_nanos() as f64 * self.speed) as u64);
        let [begins, late] = OTHER_CLIENT.map(disk_time);
        let begins = Instant::ZERO + begins;
        let ran = self.run(job, end, clock, bar)?;
        let simulated = job.counted(self.simulate(job, end, Client::default())?);
        let again = job.counted(self.simulate(job, end, Client { begins, late })?);
        let real = job.counted(ran.times);
        let mean_ms = mean_ms(&simulated);
        let share = |other: &[Nanos]| match demerit::exact_ms(other, &simulated) {
            Some(distance) => Ok(distance / mean_ms),
            None => {
                Err(Failure::Input(format!("{}: too few requests came back in {} s", job.name, self.seconds)))
            }
        };
        let (demerit, by_chance) = (share(&real)?, share(&again)?);
        let compared = Compared { job, simulated, real, demerit, by_chance, lateness: ran.lateness };
        Ok((compared, ran.is_real_time))
    }
}

/// Start of the client of the second simulated run, and its lateness for each request. This run measures the effect of chance, because a real
/// client starts at an arbitrary angle of the platter and always needs some time.
const OTHER_CLIENT: [Duration; 2] = [Duration::from_micros(3100), Duration::from_micros(10)];

fn mean_ms(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.as_ms()).sum::<f64>() / times.len().max(1) as f64
}
