//! The order of requests: its gain by queue length, on a drive of 1985 and on one of 2020.
//!
//! Three parts: every order on the Fujitsu Eagle, compared with Gray's study, Seltzer, Chen and Ousterhout (USENIX 1990) and an
//! independent check of both; the same on an Exos X16; and what Worthington, Ganger and Patt (SIGMETRICS 1994) found about
//! knowledge of the mapping and of the cache, on the HP C2247A. Not modelled: writes and the host that holds the queue.
//! *Source:* each row of `studies/scheduling/expect.tsv` names its own.

mod eagle;
mod knowledge;
mod queue;
mod show;
mod zoned;

use crate::study::{Findings, Setting, Study, StudyError};

pub(crate) const STUDY: Study = Study {
    id: "scheduling",
    title: "The order of requests, from the Eagle to a zoned drive",
    summary: "Every order over queues of 1 to 1,000 on a Fujitsu Eagle and an Exos X16; what knowledge of mapping and cache is worth.",
    expect: include_str!("../../studies/scheduling/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    Ok(Findings::join([eagle::run(setting)?, zoned::run(setting)?, knowledge::run(setting)?]))
}
