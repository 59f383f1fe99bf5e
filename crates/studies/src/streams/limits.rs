//! A disk with command duration limits: their effect on clients with a guarantee, while other clients read at random.
//!
//! *Source:* the disk's behaviour is calibrated to one published run (`today`); the load and the guarantees are assumptions.

use super::paced::Paced;
use super::play::{self, KIB, MIB};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{Instant, Nanos};
use headstack_sim::rig::shipped;
use headstack_sim::{Rig, StreamLayer};
use headstack_streams::streams::Guarantee;
use headstack_workload::{Closed, Load, Member, Mix, Pattern, Region, Shape};

const DRIVE: &str = "ultrastar-hc570";

const LIMITS: &str = "[{ guideline_ms = 50 }, { guideline_ms = 100 }, { guideline_ms = 200 }]";

/// Streams with a guarantee, and the rate of each in bytes per second.
const STREAMS: u32 = 10;
const RATE: f64 = 4e6;

/// The guaranteed response of a stream, and that of the random client.
const STREAM_RESPONSE: Nanos = Nanos(200_000_000);
const RANDOM_RESPONSE: Nanos = Nanos(100_000_000);

/// Random reads of 128 KiB outstanding, from clients without a guarantee.
const OTHERS: u32 = 32;

/// Keys of the node.
const CASES: [(&str, &[(&str, &str)]); 2] =
    [("without duration limits", &[("node.read_limits_ms", "[]")]), ("with duration limits", &[])];

/// Response times, ascending, of the streams and of the random client, and the reads of the others.
#[derive(Default)]
struct LimitedReads {
    streams_ms: Vec<f32>,
    random_ms: Vec<f32>,
    others_ms: Vec<f32>,
}

fn rig_with(keys: &[(&str, &str)]) -> Result<Rig, StudyError> {
    let mut rig = shipped::load(DRIVE)?;
    rig.set("node.memory_bytes", &(64 * MIB).to_string())?;
    rig.set("drive.queue.duration_limits.reads", LIMITS)?;
    keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
    Ok(rig)
}

/// Sources 0 to 9 are the streams, 10 is the random client with a guarantee, and 11 is all others.
fn members(sectors: u64) -> Result<Vec<Member>, StudyError> {
    let streams = Paced::new(play::shuffled_parts(sectors, STREAMS), RATE, (64 * KIB / 512) as u32);
    let random = |bytes: u64, depth, seed| -> Result<Box<dyn Load>, StudyError> {
        let region = Region::whole(sectors);
        let (pattern, sectors) = (Pattern::Random, (bytes / 512) as u32);
        let shape = Shape { region, pattern, sectors, alignment: 8, read_share: 1.0 };
        Ok(Box::new(Closed::new(shape, depth, u64::MAX, seed)?))
    };
    Ok(vec![
        Member { load: Box::new(streams), device: 0, sources: STREAMS },
        Member { load: random(4 * KIB, 1, 1)?, device: 0, sources: 1 },
        Member { load: random(128 * KIB, OTHERS, 2)?, device: 0, sources: 1 },
    ])
}

fn run(setting: &Setting<'_>, keys: &[(&str, &str)]) -> Result<LimitedReads, StudyError> {
    let secs = |full, quick| Instant::from_secs(setting.length.pick(full, quick));
    let (from, end) = (secs(20, 5), secs(300, 40));
    let rig = rig_with(keys)?;
    let mut engine = rig.build(1)?;
    for source in 0..STREAMS {
        engine
            .layer_mut::<StreamLayer>(0)
            .expect("the volume has a node")
            .set_guarantee(source, Guarantee { rate: RATE as u64, response: STREAM_RESPONSE });
    }
    engine
        .layer_mut::<StreamLayer>(0)
        .expect("the volume has a node")
        .set_guarantee(STREAMS, Guarantee { rate: 1_000_000, response: RANDOM_RESPONSE });
    let mut reads = LimitedReads::default();
    let members = members(rig.volumes()[0].sectors)?;
    engine.run(&mut Mix::new(members, u64::MAX, end)?, &mut |finished| {
        let completion = &finished.completion;
        if (from..end).contains(&completion.completed) {
            let kind = match finished.source {
                0..STREAMS => &mut reads.streams_ms,
                STREAMS => &mut reads.random_ms,
                _ => &mut reads.others_ms,
            };
            kind.push(completion.response().as_ms() as f32);
        }
    });
    let LimitedReads { streams_ms, random_ms, others_ms } = &mut reads;
    [streams_ms, random_ms, others_ms].into_iter().for_each(|times| times.sort_unstable_by(f32::total_cmp));
    Ok(reads)
}

/// The share of the responses within a time.
fn share_within(sorted_ms: &[f32], time: Nanos) -> f64 {
    let within = sorted_ms.partition_point(|ms| f64::from(*ms) <= time.as_ms());
    within as f64 / sorted_ms.len().max(1) as f64
}

pub(super) fn gain(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let runs = setting.map(&CASES, |(_, keys)| run(setting, keys))?;
    let columns = ["", "reads", "in time", "median ms", "p99 ms", "p99.9 ms", "longest ms"];
    let mut table = Table::new("Reads with a guarantee, and those of others", columns);
    for ((name, _), run) in CASES.iter().zip(&runs) {
        let rows = [
            ("streams of 4 MB/s within 200 ms", &run.streams_ms, Some(STREAM_RESPONSE)),
            ("random reads of 4 KiB within 100 ms", &run.random_ms, Some(RANDOM_RESPONSE)),
            ("others", &run.others_ms, None),
        ];
        for (kind, times, response) in rows {
            let share = response.map(|response| share_within(times, response));
            let quantiles = [0.5, 0.99, 0.999, 1.0].map(|share| Some(play::quantile(times, share)));
            let cells = [Some(times.len() as f64), share].into_iter().chain(quantiles);
            table.named_row([format!("{kind}, {name}")], cells);
        }
    }
    let [without, with] = &runs[..] else { unreachable!("there are two cases") };
    let p99 = |run: &LimitedReads| play::quantile(&run.random_ms, 0.99);
    let measured = vec![
        Measured::new("goal.limits.random.p99", p99(with) / p99(without)),
        Measured::new("goal.limits.random.in_time", share_within(&with.random_ms, RANDOM_RESPONSE)),
        Measured::new("goal.limits.streams.in_time", share_within(&with.streams_ms, STREAM_RESPONSE)),
        Measured::new(
            "goal.limits.others",
            with.others_ms.len() as f64 / without.others_ms.len().max(1) as f64,
        ),
    ];
    Ok(Findings::new(measured, [Section::new("Beyond the study: a disk with command duration limits")
            .with_text("The Ultrastar HC570 has limits of 50, 100 and 200 ms for reads, and may lose a fifth of its time by them. Ten streams of 4 MB/s have a guarantee of 200 ms, and a client that reads 4 KiB at random, one at a time, one of 100 ms. Others have 32 random reads of 128 KiB outstanding. The node sends the reads of the clients with a guarantee with the longest limit that fits, all others without; then all without.")
            .with_table(table)]))
}
