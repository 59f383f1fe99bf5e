//! *What should be set?* Searches among a Linux system's settings for those that serve a workload best.

mod advice;
mod array_layout;
mod climb;
mod commands;
mod goal;
mod judge;
mod knobs;
mod losses;
mod search;
mod stripe;
mod verification;

pub use advice::{change_to_json, evidence, knob_named};
pub use array_layout::ArrayLayout;
pub use commands::{RebuildCommand, TuneDevices};
pub use goal::{TuneBound, TuneFigures, TuneGoal, TuneJob, TuneMetric};
use knobs::{IO_MAX, IONICE, OTHERS};
pub use knobs::{KNOBS, Knob, KnobOwner, NOT_TUNED, UncountedJobs};
pub use losses::TuneJobChange;
pub use search::{AdvisedSetting, Gain, RunTuneTrials, SettingChoice, TuneOutcome, TuneTrial, search};
pub use verification::FioVerification;

use crate::error::Error;
use crate::load::Workload;
use crate::results::Results;
use crate::simulation::{RunProgress, Simulation};
use headstack_model::Nanos;
use headstack_sim::rig::Rig;

/// The values of each knob that the rig accepts and does not have now.
pub fn candidates(rig: &Rig, others: UncountedJobs) -> Vec<SettingChoice> {
    let mut all = Vec::new();
    for (knob, one) in KNOBS.iter().enumerate().filter(|(_, knob)| knob.is_in(rig, others)) {
        let mut known = vec![one.key_value(rig, &one.value_in(rig))];
        for (value, text) in one.values.iter().enumerate() {
            let key_value = one.key_value(rig, text);
            if one.set(&mut rig.clone(), text).is_ok() && !known.contains(&key_value) {
                known.push(key_value);
                all.push(SettingChoice { knob, value });
            }
        }
    }
    all
}

/// The rig with other settings.
///
/// *Errors:* the rig refuses one of them.
pub fn with_choices(rig: &Rig, choices: &[SettingChoice]) -> Result<Rig, Error> {
    let mut keys: Vec<(&str, String)> = Vec::new();
    let mut with = rig.clone();
    for choice in choices {
        let knob = &KNOBS[choice.knob];
        // A chunk determines where a partition that is aligned to it starts.
        keys.extend(knob.rig_key().map(|key| (key, knob.key_value(&with, choice.text()))));
        let mut next = rig.clone();
        if next.set_all(keys.iter().map(|(key, value)| (*key, value.as_str()))).is_ok() {
            with = next;
        }
    }
    let mut all = rig.clone();
    all.set_all(keys.iter().map(|(key, value)| (*key, value.as_str())))?;
    Ok(all)
}

/// The candidates among the named knobs, or all without a name.
///
/// *Errors:* none is left: the rig has none of these settings, or no other value of them.
pub fn candidates_of(
    rig: &Rig,
    knobs: &[usize],
    others: UncountedJobs,
) -> Result<Vec<SettingChoice>, String> {
    let is_tried = |choice: &SettingChoice| knobs.is_empty() || knobs.contains(&choice.knob);
    let found: Vec<SettingChoice> = candidates(rig, others).into_iter().filter(is_tried).collect();
    if found.is_empty() {
        return Err("has none of the settings that are tuned; read_ahead_kb needs [host.page_cache], chunk an [array] with a stripe unit, partition_start that key in [host], ionice the name of a job that counts and other jobs, io.max also a limit of others, the node's [node], the others a queue without host.queue.order".to_string());
    }
    Ok(found)
}

/// Seconds that a run simulates at least after the warm-up, however short it is: requests that a page cache answers end before a drive has
/// settled, and programs that wait for their first read-ahead complete nothing.
const LEAST_S: u64 = 10;

/// Within this time jobs begin at random.
const STARTS: Nanos = Nanos(100_000_000);

/// As many times the requests of a run end it, however short its time is.
const MOST_TIMES: u64 = 8;

/// Runs until the workload ends, `requests` requests have completed since the warm-up in at least `least`, or `stops`, which is called every few
/// completions, returns true; returns the results.
///
/// *Errors:* those of [`Simulation`].
pub fn measure(
    rig: &Rig,
    workload: Workload<'_>,
    seed: u64,
    requests: u64,
    least: Nanos,
    stops: &dyn Fn() -> bool,
) -> Result<Results, Error> {
    let mut simulation = Simulation::new(rig, workload, seed)?;
    while simulation.progress().completed == 0 && simulation.step() {}
    simulation.run_until(simulation.warm_up_end());
    let begun = simulation.progress();
    let ends = begun.now + least;
    let last = begun.completed.saturating_add(requests);
    let most = begun.completed.saturating_add(requests.saturating_mul(MOST_TIMES));
    let is_over = |progress: &RunProgress| {
        progress.completed >= most || (progress.completed >= last && progress.now >= ends)
    };
    // A completion takes a few steps, so the count is looked at seldom.
    const STEPS: u32 = 64;
    while !is_over(&simulation.progress()) && !stops() {
        if !(0..STEPS).all(|_| simulation.step()) {
            break;
        }
    }
    simulation.finish()
}

/// The figures of a trial, of one job or the whole load; `None` if no request counted. `whole` is the number of requests of a whole run. Once
/// `stops` has returned true, the figures cover only a part of the run, and the caller discards them.
///
/// *Errors:* those of [`with_choices`] and [`measure`].
pub fn run_trial(
    rig: &Rig,
    workload: Workload<'_>,
    trial: &TuneTrial,
    whole: u64,
    job: Option<&str>,
    stops: &dyn Fn() -> bool,
) -> Result<Option<TuneFigures>, Error> {
    let mut rig = with_choices(rig, &trial.choices)?;
    let mut workload = workload;
    for choice in &trial.choices {
        // Candidates for other jobs are tried only where one counts.
        match (KNOBS[choice.knob].name, job) {
            (IONICE, Some(job)) => workload = workload.with_idle_others(job),
            (IO_MAX, Some(job)) => {
                let rate = choice.text();
                let group = format!("[{{ name = \"{OTHERS}\", rbps = {rate}, wbps = {rate} }}]");
                rig.set("host.cgroup", &group)?;
                workload = workload.with_cgroup_of_others(job, OTHERS);
            }
            _ => {}
        }
    }
    let requests = whole * trial.parts / TuneTrial::WHOLE;
    let least = Nanos::from_secs(LEAST_S);
    let results = measure(&rig, workload.with_drawn_starts(STARTS), trial.seed, requests, least, stops)?;
    let figures = match job {
        Some(job) => TuneFigures::of_job(&results, job),
        None => Some(TuneFigures::from_results(&results)),
    };
    Ok(figures.filter(|figures| figures.get(TuneMetric::Iops) > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;
    use crate::rig::load_rig;

    #[test]
    fn candidates_leave_out_what_the_rig_has_already() {
        let rig = load_rig("workstation", &NoFiles).expect("it ships");
        let of = |name: &str| {
            let all = candidates(&rig, UncountedJobs::None)
                .into_iter()
                .filter(|choice| KNOBS[choice.knob].name == name);
            all.map(|choice| choice.text()).collect::<Vec<_>>()
        };
        assert_eq!(of("scheduler"), ["none", "bfq", "kyber"]);
        assert_eq!(of("read_ahead_kb"), ["0", "32", "512", "1024", "4096"]);
    }

    #[test]
    fn start_of_a_partition_is_a_candidate_where_the_rig_has_one_and_once() {
        let starts = |rig: &str, sets: &[(&str, &str)]| {
            let mut rig = load_rig(rig, &NoFiles).expect("it ships");
            sets.iter().for_each(|(key, value)| rig.set(key, value).expect("the rig takes it"));
            let of_knob = |choice: &SettingChoice| KNOBS[choice.knob].name == "partition_start";
            let all = candidates(&rig, UncountedJobs::None).into_iter().filter(of_knob);
            all.map(|choice| KNOBS[choice.knob].key_value(&rig, choice.text())).collect::<Vec<_>>()
        };
        let start = ("host.partition_start", "63");
        assert_eq!(starts("workstation", &[]), [""; 0]);
        assert_eq!(starts("workstation", &[start]), ["2048"]);
        assert_eq!(starts("workstation", &[("host.partition_start", "2048")]), [""; 0]);
        // Stripes of 256 KiB begin at 2048, those of 2 MiB do not.
        assert_eq!(starts("raid5", &[start]), ["2048"]);
        assert_eq!(starts("raid5", &[start, ("array.stripe_unit_sectors", "1024")]), ["2048", "4096"]);
    }

    #[test]
    fn measured_run_ends_at_its_requests_and_repeats_with_its_seed() {
        let rig = load_rig("st2000dm006", &NoFiles).expect("it ships");
        let job = "[reads]\nrw=randread\nbs=4k\nsize=8g\nioengine=libaio\niodepth=8\nnumber_ios=100000";
        let run = |seed| {
            let workload = Workload::fio_job(job, "reads.fio", &NoFiles).expect("it is well formed");
            let results =
                measure(&rig, workload, seed, 500, Nanos::ZERO, &|| false).expect("it fits on the drive");
            TuneFigures::from_results(&results)
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
