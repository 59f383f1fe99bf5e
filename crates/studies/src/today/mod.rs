//! Drives of today that are more than one arm over plain tracks and one order.
//!
//! Modelled: disks with two arms, as two logical units or as one unit with one tag space; command duration limits. Not modelled: what
//! one arm's movement does to the other's.
//! *Source:* each row of `studies/today/expect.tsv` names its own.

mod limits;
mod two_arms;

use crate::study::{Findings, Setting, Study, StudyError};

pub(crate) const STUDY: Study = Study {
    id: "today",
    title: "Drives of today: two arms, duration limits",
    summary: "Rates of disks with two arms over queue depth, compared with the makers' sheets, and what a second arm gains where the load lies; response times under command duration limits, compared with a published run.",
    expect: include_str!("../../../../studies/today/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let (mut measured, arms) = two_arms::measure(setting)?;
    let (of_limits, limits) = limits::measure(setting)?;
    measured.extend(of_limits);
    Ok(Findings { measured, sections: vec![arms, limits] })
}
