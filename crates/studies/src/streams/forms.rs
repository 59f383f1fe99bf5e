//! The classifier in both forms: with regions at fixed places, and, as in the study, with regions around requests.

use super::play::{KIB, MIB, Plan};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_workload::{Closed, Member, Mix, Pattern, Region, Shape};

const FORMS: [&str; 2] = ["fixed", "around"];

/// The area of the random reads, in MiB, and how many are outstanding.
const AREA_MIB: u64 = 10;
const DEPTH: u32 = 4;

/// Compares the two forms. For streams they hardly differ; random reads in a small area may be taken for a stream by one and not by the
/// other.
pub(super) fn compared(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let with =
        |plan: Plan, form: &str| plan.with("node.memory_bytes", 8 * MIB).with("node.classifier.form", form);
    let published = |form: &str| {
        let plan = Plan { order: Some(1), ..Plan::new(setting, 100) };
        let plan = plan.reported(512 * KIB, 1, 128, 64 * MIB).long(setting);
        plan.with("node.classifier.form", form)
    };
    let streams = setting
        .map(&FORMS, |form| Ok([with(Plan::new(setting, 100), form).run()?, published(form).run()?]))?;
    let area = setting.map(&FORMS, |form| small_area(&with(Plan::new(setting, 1), form)))?;
    let mut table = Table::new(
        "The two forms of the classifier",
        [
            "regions",
            "100 streams, the node chooses in 8 MiB: MB/s",
            "100 streams, R 512K, D 1, N 128: MB/s",
            "random reads of 64 KiB over 10 MiB, 4 outstanding: MB/s",
        ],
    );
    for ((form, [chosen, reported]), area) in FORMS.iter().zip(&streams).zip(&area) {
        table.named_row([*form], [chosen.mb_s(), reported.mb_s(), *area]);
    }
    let ratio = |which: usize| streams[1][which].mb_s() / streams[0][which].mb_s();
    let measured = vec![
        Measured::new("goal.classifier.around_over_fixed", ratio(0)),
        Measured::new("goal.classifier.around_over_fixed_reported", ratio(1)),
        Measured::new("goal.classifier.small_area_around_over_fixed", area[1] / area[0]),
    ];
    Ok(Findings::new(measured, [Section::new("Beyond the study: its own form of the classifier")
            .with_text("The study's classifier allocates a bitmap around a request that no other covers, and ignores the order of requests. The node's own has regions at fixed places, and asks for requests in order where it chooses R, D and N by itself.")
            .with_table(table)]))
}

/// Throughput of random reads within a small area.
fn small_area(plan: &Plan) -> Result<f64, StudyError> {
    let rig = plan.rig()?;
    let region = Region { first: headstack_model::Lbn(1 << 20), sectors: AREA_MIB * MIB / 512 };
    let shape = Shape { region, pattern: Pattern::Random, sectors: 128, alignment: 8, read_share: 1.0 };
    let load = Box::new(Closed::new(shape, DEPTH, u64::MAX, 1)?);
    let members = vec![Member { load, device: 0, sources: 1 }];
    let end = plan.counted_window().end;
    Ok(plan.play(&rig, &mut Mix::new(members, u64::MAX, end)?)?.mb_s())
}
