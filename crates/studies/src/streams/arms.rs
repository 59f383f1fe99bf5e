//! A disk with two arms: a dispatch set for each arm, so that both work.

use super::play::{KIB, MIB, Plan, StreamsRun};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{Lbn, Nanos};
use headstack_sim::Rig;
use headstack_sim::rig::shipped;
use headstack_workload::{Load, Member, Mix, Region, StreamShape, Streams};

/// One unit of 18 TB: the lower and the upper half of its blocks have an arm each.
const RIG: &str = "exos-2x18-sata";

const MANY: u32 = 100;

/// Twice the 8 MiB for a disk with one arm.
const MEMORY: u64 = 16 * MIB;

/// Cases, each with the keys of its node.
const CASES: [(&str, &[(&str, &str)]); 3] = [
    ("without the scheduler", &[("node.scheduling", "false")]),
    ("with one dispatch set for the disk", &[("node.arms", "1")]),
    ("with a dispatch set for each arm", &[]),
];

fn rig_with(keys: &[(&str, &str)]) -> Result<Rig, StudyError> {
    let mut rig = shipped::load(RIG)?;
    rig.set("node.memory_bytes", &MEMORY.to_string())?;
    keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
    Ok(rig)
}

/// A run of readers, or of writers, on the disk. Their requests are of 256 KiB, one of each outstanding.
fn run(setting: &Setting<'_>, keys: &[(&str, &str)], writes: bool) -> Result<StreamsRun, StudyError> {
    let secs = |full, quick| Nanos::from_secs(setting.length.pick(full, quick));
    let plan = Plan { warm: secs(60, 6), counted: secs(120, 10), ..Plan::new(setting, MANY).of(256 * KIB) };
    let rig = rig_with(keys)?;
    let whole = Region::whole(rig.volumes()[0].sectors);
    let shape = StreamShape { alignment: 8, ..StreamShape::reads(whole, MANY, (plan.bytes / 512) as u32) };
    let op = if writes { headstack_model::Op::Write } else { shape.op };
    let load: Box<dyn Load> = Box::new(Streams::new(StreamShape { op, ..shape }, u64::MAX)?);
    let members = vec![Member { load, device: 0, sources: MANY }];
    plan.play(&rig, &mut Mix::new(members, u64::MAX, plan.counted_window().end)?)
}

/// The bandwidth of both arms together where the streams begin, each place measured alone.
fn own_mb_s(setting: &Setting<'_>) -> Result<f64, StudyError> {
    let rig = shipped::load(RIG)?;
    let sectors = rig.volumes()[0].sectors;
    let (large, requests) = (MIB / 512, setting.length.pick(64, 16));
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for place in 0..u64::from(MANY) {
        let first = Lbn(sectors / u64::from(MANY) * place / 8 * 8);
        let region = Region { first, sectors: requests * large };
        let (mut begun, mut ended) = (None, headstack_model::Instant::ZERO);
        let mut readers = Streams::new(StreamShape::reads(region, 1, large as u32), requests)?;
        rig.build(1)?.run(&mut readers, &mut |finished| {
            ended = finished.completion.completed;
            // The time before the end of the first request is positioning.
            begun.get_or_insert(ended);
        });
        bytes += ((requests - 1) * MIB) as f64;
        seconds += ended.since(begun.unwrap_or(ended)).as_secs();
    }
    Ok(2.0 * bytes / seconds / 1e6)
}

pub(super) fn both(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let runs: Vec<_> =
        [false, true].into_iter().flat_map(|writes| CASES.map(|case| (case, writes))).collect();
    let outcomes = setting.map(&runs, |((_, keys), writes)| run(setting, keys, *writes))?;
    let own = own_mb_s(setting)?;
    let mut table = Table::new(
        "A hundred streams of 256 KiB on a disk with two arms, 16 MiB of memory",
        ["", "MB/s", "% of what both arms give", "slowest over mean", "mean ms", "longest ms"],
    );
    for (((name, _), writes), outcome) in runs.iter().zip(&outcomes) {
        let (mb_s, kind) = (outcome.mb_s(), if *writes { "writers" } else { "readers" });
        table.named_row(
            [format!("{kind}, {name}")],
            [mb_s, 100.0 * mb_s / own, outcome.slowest(), outcome.mean_ms(), outcome.worst_ms()],
        );
    }
    let [_, readers_one, readers, _, writers_one, writers] = &outcomes[..] else {
        unreachable!("there are three cases, of readers and of writers")
    };
    let measured = vec![
        Measured::new("goal.two_arms.gain", readers.mb_s() / readers_one.mb_s()),
        Measured::new("goal.two_arms.share", readers.mb_s() / own),
        Measured::new("goal.two_arms.writers.gain", writers.mb_s() / writers_one.mb_s()),
    ];
    Ok(Findings::new(measured, [Section::new("Beyond the study: a disk with two arms")
            .with_text("The Exos 2X18 has an arm for each half of its blocks. With one dispatch set for the disk one arm works while the other waits for its turn. The bandwidth of the arms is that of one reader at the places where the streams begin, twice.")
            .with_table(table)]))
}
