//! Streams at a fixed rate: how many a disk carries, how long small reads wait together with long ones, and what a guarantee achieves.

use super::paced::Paced;
use super::play::{self, KIB, MIB, Plan};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{Instant, Nanos};
use headstack_policy::admission::{Ability, Admission, Guarantee};
use headstack_sim::{Engine, Rig, StreamLayer};
use headstack_streams::streams;
use headstack_workload::{Member, Mix, StreamShape, Streams};
use std::ops::ControlFlow;

/// The rate of a stream in the study's own example. *Source:* the thesis, chapter 1: streams of 1 MB/s on a disk of 50 MB/s.
const RATE: f64 = 1e6;

/// Maximum lateness of a stream's request; the disk carries a number of streams if none is later. It stands for a player's buffer.
/// *Source:* assumption; over the length of a run it distinguishes 98 % of the rate from the full rate.
const LATE: Nanos = Nanos(5_000_000_000);

/// Sectors of a request of a stream: 64 KiB.
const SECTORS: u32 = 128;

fn run_end(setting: &Setting<'_>) -> Instant {
    Instant::from_secs(setting.length.pick(300, 60))
}

/// Whether every request of this number of streams of [`RATE`] is at most [`LATE`] late.
fn carries(setting: &Setting<'_>, plan: &Plan, streams: u32) -> Result<bool, StudyError> {
    let rig = plan.rig()?;
    let mut load = Paced::new(play::shuffled_parts(rig.volumes()[0].sectors, streams), RATE, SECTORS);
    let due = load.clone();
    let (end, mut is_late) = (run_end(setting), false);
    rig.build(1)?.run_while(&mut load, &mut |finished| {
        let completed = finished.completion.completed;
        is_late = completed > due.due_of(finished.id) + LATE;
        if is_late || completed > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok(!is_late)
}

/// The most streams of [`RATE`] that a rig carries, by bisection, which assumes that a rig that carries a number carries every smaller one.
fn most_carried(setting: &Setting<'_>, plan: &Plan, own_mb_s: f64) -> Result<f64, StudyError> {
    // At the disk's own bandwidth no time would be left to move the arm.
    let (mut carried, mut too_many) = (0, own_mb_s.ceil() as u32 + 1);
    while too_many - carried > 1 {
        let streams = (carried + too_many) / 2;
        if carries(setting, plan, streams)? { carried = streams } else { too_many = streams }
    }
    Ok(f64::from(carried))
}

/// The introduction's example: streams of 1 MB/s.
pub(super) fn carried(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let own = play::own_mb_s(100, setting.length)?;
    let alone = Plan::new(setting, 0).with("host.queue.order", "c-look");
    let node = |memory: u64| Plan::new(setting, 0).with("node.memory_bytes", memory);
    let plans = [
        ("without the node".to_string(), alone),
        ("the node, 8 MiB".to_string(), node(8 * MIB)),
        ("the node, 64 MiB".to_string(), node(64 * MIB)),
        ("the node, 256 MiB".to_string(), node(256 * MIB)),
    ];
    let most = setting.map(&plans, |(_, plan)| most_carried(setting, plan, own))?;
    let mut table =
        Table::new("Streams of 1 MB/s that one disk carries", ["", "streams", "% of its own bandwidth"]);
    for ((name, _), streams) in plans.iter().zip(&most) {
        table.named_row([name.clone()], [*streams, 100.0 * streams / own]);
    }
    let measured = vec![
        Measured::new("rate.carried_without", most[0]),
        Measured::new("goal.rate.carried_8_mib_over_without", most[1] / most[0]),
        Measured::new("goal.rate.carried_64_mib", most[2]),
        Measured::new("goal.rate.carried_256_mib", most[3]),
    ];
    Ok(Findings::new(measured, [Section::new("Streams at a fixed rate (chapter 1)")
            .with_text("Each stream requests 64 KiB when they are due, one request outstanding, and catches up after a delay. A stream is carried if none of its requests is five seconds late in five minutes. Streams begin in no order; without the node a host's elevator sorts their requests.")
            .with_table(table)]))
}

/// A reader of 4 KiB together with readers of long requests.
pub(super) fn small_reads(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    const READERS: u32 = 10;
    let together =
        |readers, bytes| Plan { random: true, order: Some(1), ..Plan::new(setting, readers).of(bytes) };
    let node = |plan: Plan| plan.with("node.memory_bytes", 8 * MIB);
    let mut plans = vec![("alone".to_string(), together(0, MIB))];
    for bytes in [64 * KIB, 256 * KIB, MIB] {
        let size = super::path::size(bytes);
        plans.push((format!("with one reader of {size}"), together(1, bytes)));
        plans.push((format!("with ten readers of {size}"), together(READERS, bytes)));
    }
    plans.push(("with ten readers of 1M and the node".to_string(), node(together(READERS, MIB))));
    let outcomes = setting.map(&plans, |(_, plan)| plan.run())?;
    let columns = ["", "mean ms", "median ms", "p99 ms", "readers MB/s"];
    let mut table = Table::new("A random reader of 4 KiB, one request outstanding", columns);
    for ((name, plan), outcome) in plans.iter().zip(&outcomes) {
        let rate = (plan.readers > 0).then(|| outcome.mb_s());
        let quantile = |share| Some(outcome.random_ms(share));
        table
            .named_row([name.clone()], [Some(outcome.random_mean_ms()), quantile(0.5), quantile(0.99), rate]);
    }
    let [with_node, ten, one] = [1, 2, 3].map(|back| &outcomes[outcomes.len() - back]);
    let measured = vec![
        Measured::new("small.wait_with_1_mib_ms", one.random_mean_ms() - outcomes[0].random_mean_ms()),
        Measured::new("goal.small.node_over_without", with_node.random_ms(0.99) / ten.random_ms(0.99)),
    ];
    Ok(Findings::new(measured, [Section::new("Small reads together with long ones")
            .with_text("A command that has begun cannot be interrupted, so that a small synchronous read waits for the rest of a long one, and behind several readers for all of them.")
            .with_table(table)]))
}

/// Readers without a guarantee.
const OTHERS: u32 = 50;

/// The guaranteed response.
const RESPONSE: Nanos = Nanos(2_000_000_000);

/// The longest positioning time. *Source:* the drive file: a full stroke of 21 ms, a turn of 8.3 ms, 0.3 ms of overhead.
const POSITIONING: Nanos = Nanos(29_633_333);

/// The service that clients with a guarantee, and the others, received.
#[derive(Default)]
struct GuaranteedRun {
    requests: u64,
    in_time: u64,
    bytes: Vec<u64>,
    others: u64,
}

/// Streams with a guarantee, as many as admission accepts, together with readers without one.
pub(super) fn guaranteed(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    const MEMORY: u64 = 64 * MIB;
    let bandwidth = (play::innermost_mb_s(setting.length)? * 1e6) as u64;
    let ability = Ability { bandwidth, positioning: POSITIONING, memory: MEMORY, share: 0.8 };
    let mut admission = Admission::new(ability);
    let wanted = Guarantee { rate_bytes_per_s: RATE as u64, response_ms: RESPONSE.as_ms() };
    let held: Vec<_> = std::iter::from_fn(|| admission.admit(wanted).ok()).collect();
    let admitted = held.len() as u32;
    let rig = Plan::new(setting, 0).with("node.memory_bytes", MEMORY).rig()?;
    let mut engine: Engine = rig.build(1)?;
    for source in 0..admitted {
        let guarantee = streams::Guarantee { rate: RATE as u64, response: RESPONSE };
        engine.layer_mut::<StreamLayer>(0).expect("the volume has a node").set_guarantee(source, guarantee);
    }
    let kept = run_with_others(setting, &mut engine, &rig, admitted)?;
    let (from, end) = (Instant::from_secs(20), run_end(setting));
    let seconds = (end - from).as_secs();
    let least = kept.bytes.iter().copied().min().unwrap_or(0) as f64 / seconds / RATE;
    let (others, own) = (kept.others as f64 / seconds / 1e6, play::own_mb_s(100, setting.length)?);
    let within = kept.in_time as f64 / kept.requests.max(1) as f64;
    let columns = ["", "streams", "slowest, of 1 MB/s", "requests in time", "MB/s"];
    let mut table =
        Table::new("Streams of 1 MB/s within 2 s, together with fifty readers without a guarantee", columns);
    let sum = kept.bytes.iter().sum::<u64>() as f64 / seconds / 1e6;
    table.named_row(["guaranteed"], [Some(f64::from(admitted)), Some(least), Some(within), Some(sum)]);
    table.named_row(["others"], [Some(f64::from(OTHERS)), None, None, Some(others)]);
    let measured = vec![
        Measured::new("goal.guarantee.admitted", f64::from(admitted)),
        Measured::new("goal.guarantee.in_time", within),
        Measured::new("goal.guarantee.slowest", least),
        Measured::new("goal.guarantee.others", others / own),
    ];
    Ok(Findings::new(measured, [Section::new("What was left undone: guarantees")
            .with_text("Admission accepts streams of 1 MB/s and 2 s as long as the worst case of all turns fits in four fifths of the disk's time and 64 MiB, at the bandwidth of its innermost tracks. The accepted ones then run together with fifty readers that request without a pause.")
            .with_table(table)]))
}

fn run_with_others(
    setting: &Setting<'_>,
    engine: &mut Engine,
    rig: &Rig,
    admitted: u32,
) -> Result<GuaranteedRun, StudyError> {
    let (from, end) = (Instant::from_secs(20), run_end(setting));
    let mut regions = play::shuffled_parts(rig.volumes()[0].sectors, admitted + OTHERS);
    let others = regions.split_off(admitted as usize);
    let paced = Paced::new(regions, RATE, SECTORS);
    let mut members = vec![Member { load: Box::new(paced), device: 0, sources: admitted }];
    for region in others {
        let load = Box::new(Streams::new(StreamShape::reads(region, 1, SECTORS), u64::MAX)?);
        members.push(Member { load, device: 0, sources: 1 });
    }
    let mut kept = GuaranteedRun { bytes: vec![0; admitted as usize], ..GuaranteedRun::default() };
    engine.run(&mut Mix::new(members, u64::MAX, end)?, &mut |finished| {
        let completion = &finished.completion;
        if !(from..end).contains(&completion.completed) {
            return;
        }
        let bytes = u64::from(completion.request.sectors) * 512;
        match kept.bytes.get_mut(finished.source as usize) {
            Some(own) => {
                *own += bytes;
                kept.requests += 1;
                kept.in_time += u64::from(completion.response() <= RESPONSE);
            }
            None => kept.others += bytes,
        }
    });
    Ok(kept)
}
