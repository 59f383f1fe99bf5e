//! New (old) problems of disks: what a host's order gains that knows the tracks, what is left of an elevator before a drive
//! that reorders by itself, who starves there, and what a guard at the host can do about it.
//!
//! Modelled: ordering by LBN and by true position on four drives, elevators with the drive's queue off and on under the
//! study's two loads, response times over queue depth, the counting guard of the study and the adaptive one of ours. Not
//! modelled: the study's trace, which is not to be had, and the file system below which it was taken.
//! *Source:* H. Y. Yeom, "New (old) problems in HDDs: how to cope with them?" (slides).

mod delay;
mod guard;
mod layout;
mod redundant;

use crate::judge::Measured;
use crate::report::Section;
use crate::runs::Responses;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack_model::spec::{Interface, Tagging};
use headstack_model::{DriveSpec, Lbn, Nanos, drives};
use headstack_sim::{Completion, Engine, Finished, Observer, Rig};
use headstack_workload::{Closed, Load, Pattern, Region, Shape, ShapeError};

/// The study.
pub(crate) const STUDY: Study = Study {
    id: "ncq",
    title: "New (old) problems of disks: layout, two schedulers in a row, starvation",
    summary: "Ordering by LBN and by true position on four drives, elevators before a drive that reorders, delays over queue depth, and what a guard against starvation costs.",
    expect: include_str!("../../../../studies/ncq/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let parts = [layout::run(setting)?, redundant::run(setting)?, delay::run(setting)?, guard::run(setting)?];
    let mut findings = Findings::default();
    for (measured, section) in parts {
        findings.measured.extend(measured);
        findings.sections.push(section);
    }
    Ok(findings)
}

/// What a part of the study adds.
type Part = (Vec<Measured>, Section);

/// Blocks of a read of 4 KiB.
const SMALL: u32 = 8;

/// The study's own disk as the sibling with SATA and NCQ, the HD400LJ, would be: the same mechanics behind 32 tags, and
/// firmware that takes the shortest positioning first.
fn with_ncq() -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load("samsung-hd400ld")?;
    spec.queue.depth = Tagging::NCQ_TAGS;
    spec.bus.interface = Some(Interface::Sata);
    spec.queue.order = "sptf".to_string();
    Ok(spec)
}

/// A drive as a rig, with keys set.
fn rig(spec: &DriveSpec, keys: &[(&str, &str)]) -> Result<Rig, StudyError> {
    let mut rig = Rig::from_drive(spec.clone());
    keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
    Ok(rig)
}

/// Random reads of one size over a region, so many outstanding.
fn random(region: Region, sectors: u32, depth: u32, count: u64, seed: u64) -> Result<Closed, ShapeError> {
    let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: sectors, read_share: 1.0 };
    Closed::new(shape, depth, count, seed)
}

/// The first `share` of a disk.
fn first(spec: &DriveSpec, share: f64) -> Region {
    Region { first: Lbn(0), sectors: (spec.capacity_sectors as f64 * share) as u64 }
}

/// What came of a run.
struct HostRun {
    responses: Responses,
    bytes: u64,
    /// Cylinders that the arm went over.
    cylinders: u64,
    /// The most often that the guard saw a command overtaken.
    worst_overtaken: Option<u32>,
}

/// Watches a run.
#[derive(Default)]
struct Watch {
    responses: Vec<Nanos>,
    sectors: u64,
    cylinders: u64,
}

impl Observer for Watch {
    fn finished(&mut self, finished: &Finished) {
        self.responses.push(finished.completion.response());
        self.sectors += u64::from(finished.completion.request.sectors);
    }

    fn served(&mut self, _device: u32, command: &Completion) {
        let way = command.travel.map_or(0, |travel| travel.from.abs_diff(travel.to));
        self.cylinders += u64::from(way);
    }
}

/// Runs a load on a rig of one drive, idle at the start.
fn play(rig: &Rig, load: &mut dyn Load) -> Result<HostRun, StudyError> {
    let mut engine: Engine = rig.build(1)?;
    let mut watch = Watch::default();
    engine.run_observed(load, &mut watch);
    Ok(HostRun {
        responses: Responses::new(watch.responses, engine.now().as_secs()),
        bytes: watch.sectors * u64::from(engine.device(0).sector_bytes()),
        cylinders: watch.cylinders,
        worst_overtaken: engine.guard(0).map(|guard| guard.worst_overtaken()),
    })
}
