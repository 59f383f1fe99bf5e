//! The study "New (old) problems in HDDs": what a host gains if its order knows the tracks, what an elevator still gains before a drive
//! that reorders its queue, which requests such a drive starves, and what a guard at the host does about it.
//!
//! Modelled: ordering by LBN and by true position on four drives; elevators with the drive's queue off and on under the study's two loads;
//! response times by queue depth; the study's counting guard and our adaptive one; and predicted times after a probe. Not modelled: the
//! study's trace, which cannot be obtained, and the file system through which it was recorded.
//! *Source:* H. Y. Yeom, "New (old) problems in HDDs: how to cope with them?" (slides).

mod delay;
mod guard;
mod layout;
mod predict;
mod redundant;

use crate::runs::Responses;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack::{Simulation, Workload};
use headstack_model::spec::{Interface, Tagging};
use headstack_model::{DriveSpec, Lbn, drives};
use headstack_sim::{Completion, Finished, Observer, Rig};
use headstack_workload::{Closed, Load, Pattern, Region, Shape, ShapeError};

pub(crate) const STUDY: Study = Study {
    id: "ncq",
    title: "New (old) problems of disks: layout, two schedulers in a row, starvation",
    summary: "Ordering by LBN and by true position on four drives, elevators before a drive that reorders, delays over queue depth, and what a guard against starvation costs.",
    expect: include_str!("../../studies/ncq/expect.tsv"),
    run,
};

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    Ok(Findings::join([
        layout::run(setting)?,
        redundant::run(setting)?,
        delay::run(setting)?,
        guard::run(setting)?,
        predict::run(setting)?,
    ]))
}

/// Blocks of a read of 4 KiB.
const SMALL: u32 = 8;

/// The study's own disk as the HD400LJ, its sibling with SATA and NCQ, would be: the same mechanics with 32 tags, and firmware that orders
/// by SPTF.
fn with_ncq() -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load("samsung-hd400ld")?;
    spec.queue.depth = Tagging::NCQ_TAGS;
    spec.bus.interface = Some(Interface::Sata);
    spec.queue.order = "sptf".to_string();
    Ok(spec)
}

/// A rig of one drive, with keys set.
fn rig(spec: &DriveSpec, keys: &[(&str, &str)]) -> Result<Rig, StudyError> {
    let mut rig = Rig::from_drive(spec.clone());
    keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
    Ok(rig)
}

/// Random reads of one size in a region, `depth` of them outstanding.
fn random(region: Region, sectors: u32, depth: u32, count: u64, seed: u64) -> Result<Closed, ShapeError> {
    let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: sectors, read_share: 1.0 };
    Closed::new(shape, depth, count, seed)
}

fn first(spec: &DriveSpec, share: f64) -> Region {
    Region { first: Lbn(0), sectors: (spec.capacity_sectors as f64 * share) as u64 }
}

struct HostRun {
    responses: Responses,
    bytes: u64,
    /// Cylinders that the arm crossed.
    cylinders: u64,
    /// The highest number of times that the guard saw one command overtaken.
    worst_overtaken: Option<u32>,
}

#[derive(Default)]
struct Watch {
    sectors: u64,
    cylinders: u64,
}

impl Observer for Watch {
    fn finished(&mut self, finished: &Finished) {
        self.sectors += u64::from(finished.completion.request.sectors);
    }

    fn served(&mut self, _device: u32, command: &Completion) {
        let way = command.travel.map_or(0, |travel| travel.from.abs_diff(travel.to));
        self.cylinders += u64::from(way);
    }
}

/// Runs a load on a rig of one drive that is idle at the start.
fn play(rig: &Rig, load: &mut dyn Load) -> Result<HostRun, StudyError> {
    let mut watch = Watch::default();
    let simulation = Simulation::new(rig, Workload::from_load("load", load), 1)?;
    let results = simulation.observe(&mut watch).keep_response_times().run()?;
    let worst_overtaken = results.devices[0].guard.map(|guard| guard.worst_overtaken);
    let bytes = watch.sectors * u64::from(rig.volumes()[0].sector_bytes);
    Ok(HostRun {
        responses: Responses::from_results(results),
        bytes,
        cylinders: watch.cylinders,
        worst_overtaken,
    })
}
