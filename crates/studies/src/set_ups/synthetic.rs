//! DiskSim's synthetic set-ups: its own parameter files with its own kind of load, imported.
//!
//! The parameter files are not part of Headstack. DiskSim generates these loads from its own random numbers, so only means can agree.
//! DiskSim prints the mean of one run; here a set-up is run with several seeds.

use crate::study::StudyError;
use headstack_disksim::rig::import;
use headstack_model::{Instant, Nanos, drives};
use headstack_personalities::LoadFile;
use headstack_sim::rig::Rig;
use headstack_sim::{Completion, Finished, Observer};

/// The requests over which DiskSim prints a mean response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeanOf {
    /// The load's requests.
    Requests,
    /// The commands that the driver of an array sends to its disks.
    Commands,
}

/// A parameter file, and the result that DiskSim prints for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticSetUp {
    /// Name of the parameter file, without `.parv`.
    pub file: &'static str,
    /// What the set-up is.
    pub title: &'static str,
    /// What the mean is of.
    pub mean_of: MeanOf,
    /// Number of runs; their seeds are 0, 1, 2 and so on.
    pub seeds: u64,
    /// DiskSim's mean response time in ms.
    pub disksim_ms: f64,
}

/// The set-ups with a synthetic load. All but `synthmixed` agree within 3 %. The runs of `synthmixed` differ widely, and DiskSim's is one
/// of them.
pub const SYNTHETIC: [SyntheticSetUp; 10] = [
    requests("synthclosed", "five processes that wait for everything", 87.819),
    requests("synthopen", "processes that wait for nothing", 10.937),
    requests("3disks", "the same with other names and stripe units", 10.937),
    requests("3disks2", "the same with other names and stripe units", 10.937),
    requests("synthsimpledisk", "five processes of every kind, a disk whose accesses all take 10 ms", 13.712),
    SyntheticSetUp { seeds: 30, ..requests("synthmixed", "the same on a C3323A", 22.087) },
    requests("synthcachemem", "the same behind a controller with 4 MiB, write-back", 24.651),
    requests(
        "synthcachedev",
        "the same behind a controller with a second disk for a cache, both on one bus",
        28.939,
    ),
    SyntheticSetUp {
        mean_of: MeanOf::Commands,
        ..requests("synthraid5", "the same on nine disks as RAID-5, commands to the disks", 22.861)
    },
    requests("syntharrays", "four arrays of four disks, requests to the arrays", 34.272),
];

const fn requests(file: &'static str, title: &'static str, disksim_ms: f64) -> SyntheticSetUp {
    SyntheticSetUp { file, title, mean_of: MeanOf::Requests, seeds: 10, disksim_ms }
}

/// Mean response times of the runs of a set-up.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedMeans {
    /// Of each run, in ms, ascending.
    pub runs_ms: Vec<f64>,
    /// Of all requests of all runs, in ms.
    pub mean_ms: f64,
}

impl SeedMeans {
    /// Median of the runs' means in ms.
    pub fn median_ms(&self) -> f64 {
        let count = self.runs_ms.len();
        (self.runs_ms[(count - 1) / 2] + self.runs_ms[count / 2]) / 2.0
    }
}

/// Sums response times.
struct ResponseSum {
    mean_of: MeanOf,
    count: u64,
    total: Nanos,
}

impl ResponseSum {
    fn new(mean_of: MeanOf) -> ResponseSum {
        ResponseSum { mean_of, count: 0, total: Nanos::ZERO }
    }

    fn add(&mut self, response: Nanos) {
        self.count += 1;
        self.total += response;
    }

    fn mean_ms(&self) -> f64 {
        self.total.as_ms() / self.count as f64
    }
}

impl Observer for ResponseSum {
    fn finished(&mut self, finished: &Finished) {
        if self.mean_of == MeanOf::Requests {
            self.add(finished.completion.response());
        }
    }

    fn sees_parts(&self) -> bool {
        self.mean_of == MeanOf::Commands
    }

    fn part(&mut self, _device: u32, issued: Instant, part: &Completion) {
        self.add(part.completed - issued);
    }
}

/// Runs a set-up. `read` returns the text of a file by its path in DiskSim's folder (`rigs/synthopen.parv`); `change` may change the imported load
/// file.
///
/// *Errors:* a file cannot be read or is malformed; the changed load does not fit on the rig.
pub fn run(
    set_up: &SyntheticSetUp,
    read: &dyn Fn(&str) -> Result<String, String>,
    change: impl Fn(&str) -> String,
) -> Result<SeedMeans, StudyError> {
    let input = |error: &dyn ToString| StudyError::Input(format!("{}: {}", set_up.file, error.to_string()));
    let text = read(&format!("rigs/{}.parv", set_up.file)).map_err(|error| input(&error))?;
    let imported = import(&text, set_up.file, |name| read(&format!("specs/{name}")));
    let imported = imported.map_err(|error| input(&error))?;
    let rig = Rig::parse(&imported.rig, set_up.file, &mut |name| drives::load(name));
    let rig = rig.map_err(|error| input(&error))?;
    let load = change(&imported.load.ok_or_else(|| input(&"the parameter file has no synthetic load"))?);
    let mut all = ResponseSum::new(set_up.mean_of);
    let mut runs_ms = Vec::new();
    for seed in 0..set_up.seeds {
        let file = LoadFile::parse(&load, set_up.file).map_err(|error| input(&error))?;
        let mut load = file.build(&rig.volumes(), seed).map_err(|error| input(&error))?;
        let mut run = ResponseSum::new(set_up.mean_of);
        let mut engine = rig.build(seed).map_err(|error| input(&error))?;
        engine.run_observed(load.as_mut(), &mut run);
        runs_ms.push(run.mean_ms());
        (all.count, all.total) = (all.count + run.count, all.total + run.total);
    }
    runs_ms.sort_by(f64::total_cmp);
    Ok(SeedMeans { runs_ms, mean_ms: all.mean_ms() })
}
