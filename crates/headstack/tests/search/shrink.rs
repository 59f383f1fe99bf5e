//! Makes a failing case smaller as long as its relation stays broken.

use crate::bench::{Bench, Machine};
use crate::job_text::{JobKeys, bytes};
use crate::relations::{Case, Relation, Verdict, Violation};

/// Keys of a job that may be left out, most telling last.
const OPTIONAL: [&str; 12] = [
    "thinktime",
    "rate_iops",
    "fsync",
    "fdatasync",
    "sync",
    "zonemode",
    "norandommap",
    "offset",
    "size",
    "iodepth",
    "fadvise_hint",
    "bs",
];

/// The smallest failing form that at most this number of judgements finds, with what the relation says of it.
pub(crate) fn smallest(
    bench: &mut Bench,
    relation: &Relation,
    case: Case,
    violation: Violation,
    mut judgements: u32,
) -> (Case, Violation) {
    // A form that hardly breaks the relation any more would hide what the case shows.
    let least = 1.0 + (violation.severity - 1.0) / 2.0;
    let mut found = (case, violation);
    'smaller: loop {
        for candidate in candidates(&found.0) {
            if judgements == 0 {
                return found;
            }
            judgements -= 1;
            match (relation.judge)(bench, &candidate) {
                Ok(Verdict::Broken(violation)) if violation.severity >= least => {
                    found = (candidate, violation);
                    continue 'smaller;
                }
                _ => {}
            }
        }
        return found;
    }
}

/// Smaller forms, the most thorough first.
fn candidates(case: &Case) -> Vec<Case> {
    let jobs = &case.load.jobs;
    let with_load = |load| Case { load, ..case.clone() };
    let mut all = Vec::new();
    if jobs.len() > 1 {
        all.extend((0..jobs.len()).map(|left_out| with_load(case.load.only(|job| job != left_out))));
    }
    for index in 0..case.machine.settings.len() {
        let mut settings = case.machine.settings.clone();
        settings.remove(index);
        all.push(Case { machine: Machine { settings, ..case.machine.clone() }, ..case.clone() });
    }
    for (index, job) in jobs.iter().enumerate() {
        // A job without runtime ends by its size.
        let is_timed = case.load.shared_number("runtime").is_some();
        let ends = |job: &JobKeys| is_timed || job.text("size").is_some();
        for smaller in smaller_jobs(job).into_iter().filter(ends) {
            let mut load = case.load.clone();
            load.jobs[index] = smaller;
            all.push(with_load(load));
        }
    }
    all
}

fn smaller_jobs(job: &JobKeys) -> Vec<JobKeys> {
    let present = OPTIONAL.iter().filter(|key| job.text(key).is_some());
    let mut all: Vec<JobKeys> = present.map(|key| job.clone().without(key)).collect();
    if job.rw() == "rw" || job.rw() == "randrw" {
        let mixed = if job.is_sequential() { ["read", "write"] } else { ["randread", "randwrite"] };
        all.extend(mixed.map(|rw| job.clone().with("rw", rw)));
    }
    if job.depth() > 2 {
        all.push(job.clone().with("iodepth", 2));
        all.push(job.clone().with("iodepth", job.depth() / 2));
    }
    if job.block_bytes() > 4096 {
        all.push(job.clone().with("bs", bytes(job.block_bytes() / 2)));
    }
    all
}
