//! Drives of today that differ from one arm over plain tracks.
//!
//! Modelled: disks with two arms, as two logical units or as one unit with one tag space; command duration limits; shingled disks,
//! host-managed (the host writes zones in sequence) and drive-managed; disks that fail slowly. Not modelled: the effect of one arm's
//! movement on the other.
//! *Source:* each row of `studies/today/expect.tsv` names its own.

mod fail_slow;
mod limits;
mod shingled;
mod two_arms;
mod zoned;

use crate::runs::Responses;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack::{NoFiles, Simulation, Workload};
use headstack_sim::rig::shipped;

pub(crate) const STUDY: Study = Study {
    id: "today",
    title: "Drives of today: two arms, duration limits, shingled tracks, slow disks",
    summary: "Rates of disks with two arms over queue depth, compared with the makers' sheets, and what a second arm gains where the load \
              lies; response times under command duration limits, compared with a published run; rates of a host-managed disk; random \
              writes to a drive-managed disk over time; what one slow disk does to a RAID-5.",
    expect: include_str!("../../studies/today/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let (mut measured, arms) = two_arms::measure(setting)?;
    let (of_limits, limits) = limits::measure(setting)?;
    let (of_bands, writes) = shingled::measure(setting)?;
    measured.extend(of_limits);
    measured.extend(zoned::measure(setting)?);
    measured.extend(of_bands);
    let (of_slow, slow) = fail_slow::measure(setting)?;
    measured.extend(of_slow);
    Ok(Findings { measured, sections: vec![arms, limits, writes, slow] })
}

const SEED: u64 = 1;

/// A run of a fio job on a shipped rig or drive.
fn run_job(rig: &str, job: &str) -> Result<Responses, StudyError> {
    let workload = Workload::fio_job(job, "job", &NoFiles)?;
    let simulation = Simulation::new(&shipped::load(rig)?, workload, SEED)?;
    Ok(Responses::from_results(simulation.keep_response_times().run()?))
}
