//! What the study left open: R, D and N chosen by the node itself, in 8 MiB per disk; more disks, writers, a random reader together with
//! streams, slow readers.

use super::path::size;
use super::play::{self, KIB, MIB, Plan, StreamsRun};
use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::Nanos;
use headstack_workload::dist::Distribution;
use headstack_workload::process::{Processes, ThinkShape};
use headstack_workload::{Member, Mix, Pattern, Region, Shape};

/// Number of streams, and memory, in the project's goal.
const MANY: u32 = 100;
const MEMORY: u64 = 8 * MIB;

/// The plan with a scheduler in this much memory.
fn by_itself(plan: Plan, memory: u64) -> Plan {
    plan.with("node.memory_bytes", memory)
}

/// Adds a run to a table with [`COLUMNS`]; `own_mb_s` is the throughput that the disk gives one stream.
fn add_run(table: &mut Table, name: String, outcome: &StreamsRun, own_mb_s: f64) {
    let mib = outcome.memory_bytes as f64 / MIB as f64;
    let (mb_s, slowest) = (outcome.mb_s(), outcome.slowest());
    let share = 100.0 * mb_s / own_mb_s;
    table.named_row([name], [mb_s, share, slowest, outcome.mean_ms(), outcome.worst_ms(), mib]);
}

const COLUMNS: [&str; 7] =
    ["", "MB/s", "% of the disk's own", "slowest over mean", "mean ms", "longest ms", "memory MiB"];

/// R, D and N chosen by the node.
pub(super) fn chosen(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let counts: &[u32] = setting.length.pick(&[1, 2, 5, 10, 20, 30, 60, 100], &[10, 100]);
    let own = setting.map(counts, |count| play::own_mb_s(*count, setting.length))?;
    let plans: Vec<[Plan; 2]> = counts
        .iter()
        .map(|count| {
            let plain = Plan::new(setting, *count).long(setting);
            [plain.clone(), by_itself(plain, MEMORY)]
        })
        .collect();
    let outcomes = setting.map(&plans, |[plain, node]| Ok([plain.run()?, node.run()?]))?;
    let memories = [MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB];
    let by_memory = setting.map(&memories, |memory| by_itself(Plan::new(setting, MANY), *memory).run())?;
    let mut table =
        Table::new("Readers of 64 KiB, one request of each outstanding, 8 MiB of memory", COLUMNS);
    for ((count, [plain, node]), own) in counts.iter().zip(&outcomes).zip(&own) {
        add_run(&mut table, format!("{count}, without the scheduler"), plain, *own);
        add_run(&mut table, format!("{count}, with it"), node, *own);
    }
    let most = own.last().copied().unwrap_or(1.0);
    let mut memory = Table::new("A hundred readers, over memory", COLUMNS);
    for (bytes, outcome) in memories.iter().zip(&by_memory) {
        add_run(&mut memory, size(*bytes), outcome, most);
    }
    let points = |read: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        counts.iter().enumerate().map(|(index, count)| (f64::from(*count), read(index))).collect()
    };
    let line = |name: &str, family, read: &dyn Fn(usize) -> f64| Series::new(name, family, points(read));
    let figure = Chart::new(
        "What streams get together",
        Axis::linear("streams"),
        Axis::linear("MB/s"),
        [
            line("the disk's own", 0, &|index| own[index]),
            line("without the scheduler", 1, &|index| outcomes[index][0].mb_s()),
            line("with it, 8 MiB", 2, &|index| outcomes[index][1].mb_s()),
        ],
    );
    let [plain, node] = &outcomes[counts.len() - 1];
    let mut measured = vec![
        Measured::new("goal.100_streams.share", node.mb_s() / most),
        Measured::new("goal.100_streams.without_share", plain.mb_s() / most),
        Measured::new("goal.100_streams.memory", node.memory_bytes as f64 / MEMORY as f64),
    ];
    if setting.length == Length::Full {
        // In a run of one or two rounds, some streams have had one turn more than others.
        measured.push(Measured::new("goal.100_streams.slowest", node.slowest()));
    }
    Ok(Findings::new(measured, [Section::new("What was left undone: R, D and N by itself, in 8 MiB")
            .with_text("The node measures what the disk does and chooses by that. The disk's own bandwidth is that of one reader at the places where the streams begin.")
            .with_chart(figure)
            .with_table(table)
            .with_table(memory)]))
}

pub(super) fn disks(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let counts = [1, 2, 4, 8];
    let outcomes = setting
        .map(&counts, |disks| by_itself(Plan { disks: *disks, ..Plan::new(setting, MANY) }, MEMORY).run())?;
    let own = play::own_mb_s(MANY, setting.length)?;
    let mut table = Table::new("A hundred readers a disk", COLUMNS);
    for (disks, outcome) in counts.iter().zip(&outcomes) {
        add_run(&mut table, format!("{disks} disks"), outcome, own * f64::from(*disks));
    }
    let measured =
        vec![Measured::new("goal.8_disks_over_8", outcomes[3].mb_s() / (8.0 * outcomes[0].mb_s()))];
    Ok(Findings::new(
        measured,
        [Section::new("What was left undone: more disks")
            .with_text("Each disk has a scheduler with 8 MiB of its own.")
            .with_table(table)],
    ))
}

pub(super) fn writers(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let plan = |writers| Plan { writers, ..Plan::new(setting, 0) };
    let counts = [10, 30, MANY];
    let own = play::own_mb_s(MANY, setting.length)?;
    let mut table = Table::new("Writers of 64 KiB, one request of each outstanding", COLUMNS);
    let plans: Vec<(String, Plan)> = counts
        .into_iter()
        .flat_map(|count| {
            [
                (format!("{count}, without the scheduler"), plan(count)),
                (format!("{count}, gathered in 8 MiB"), by_itself(plan(count), MEMORY)),
                (format!("{count}, gathered in 32 MiB"), by_itself(plan(count), 4 * MEMORY)),
            ]
        })
        .collect();
    let outcomes = setting.map(&plans, |(_, plan)| plan.run())?;
    for ((name, _), outcome) in plans.iter().zip(&outcomes) {
        add_run(&mut table, name.clone(), outcome, own);
    }
    let gain = outcomes[7].mb_s() / outcomes[6].mb_s();
    Ok(Findings::new(vec![Measured::new("goal.100_writers.gain", gain)], [Section::new("What was left undone: writers")
            .with_text("Writes are answered once they are in the node's memory, and written in large runs. Held against the disk's own bandwidth of reads.")
            .with_table(table)]))
}

/// A random reader in addition to streams.
pub(super) fn random_reader(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let plan = |readers, random| Plan { random, ..Plan::new(setting, readers) };
    let plans = [
        ("alone", plan(0, true)),
        ("with 100 streams, without the scheduler", plan(MANY, true)),
        ("with 100 streams and the scheduler", by_itself(plan(MANY, true), MEMORY)),
        ("100 streams alone, with it", by_itself(plan(MANY, false), MEMORY)),
    ];
    let outcomes = setting.map(&plans, |(_, plan)| plan.run())?;
    let mut table = Table::new(
        "A random reader of 4 KiB, one request outstanding",
        ["", "its reads a second", "median ms", "p99 ms", "p99.9 ms", "streams MB/s"],
    );
    for ((name, plan), outcome) in plans.iter().zip(&outcomes) {
        let reads = plan.random.then_some(outcome.random_mb_s * 1e6 / (4 * KIB) as f64);
        let quantile = |share| plan.random.then(|| outcome.random_ms(share));
        table.named_row(
            [*name],
            [
                reads,
                quantile(0.5),
                quantile(0.99),
                quantile(0.999),
                (plan.readers > 0).then(|| outcome.mb_s()),
            ],
        );
    }
    let [alone, _, with, streams] = &outcomes[..] else { unreachable!("there are four") };
    let measured = vec![
        Measured::new("goal.random_beside.p99", with.random_ms(0.99) / alone.random_ms(0.99)),
        Measured::new("goal.random_beside.cost", 100.0 * (1.0 - with.mb_s() / streams.mb_s())),
    ];
    Ok(Findings::new(
        measured,
        [Section::new("What was left undone: a random reader together with streams")
            .with_text("Its requests bypass the streams. The table states what that costs the streams.")
            .with_table(table)],
    ))
}

/// Readers that consume their data slowly.
pub(super) fn slow(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    // Half of the streams issue a read of 64 KiB every 300 ms, which is less than their share of the disk.
    const PAUSE_MS: f64 = 300.0;
    const HALF: u32 = MANY / 2;
    let run = |scheduling: bool, memory: u64| {
        let plan = by_itself(Plan::new(setting, MANY), memory).with("node.scheduling", scheduling);
        let rig = plan.rig()?;
        let sectors = rig.volumes()[0].sectors;
        let halves = [(0, 0.0), (sectors / 2, PAUSE_MS)].map(|(first, pause)| {
            let region = Region { first: headstack_model::Lbn(first / 8 * 8), sectors: sectors / 2 / 8 * 8 };
            let request = (plan.bytes / 512) as u32;
            let shape = Shape {
                region,
                pattern: Pattern::Sequential,
                sectors: request,
                alignment: 8,
                read_share: 1.0,
            };
            let think = Distribution::Constant(Nanos::from_ms(pause));
            Processes::thinking(&ThinkShape { shape, processes: HALF, think }, u64::MAX, 1)
        });
        let mut members = Vec::new();
        for half in halves {
            members.push(Member { load: Box::new(half?), device: 0, sources: HALF });
        }
        let end = plan.counted_window().end;
        plan.play(&rig, &mut Mix::new(members, u64::MAX, end)?)
    };
    let cases = [(false, MEMORY), (true, MEMORY), (true, 8 * MEMORY), (true, 32 * MEMORY)];
    let outcomes = setting.map(&cases, |(scheduling, memory)| run(*scheduling, *memory))?;
    let mut table = Table::new(
        "Fifty readers without a pause and fifty that pause for 300 ms",
        [
            "",
            "quick MB/s",
            "slow MB/s",
            "slowest of the quick over their mean",
            "slowest of the slow over their mean",
        ],
    );
    let half = |outcome: &StreamsRun, slow: bool| {
        let (quick, rest) = outcome.streams_mb_s.split_at(HALF as usize);
        let these = if slow { rest } else { quick };
        let sum: f64 = these.iter().sum();
        (sum, these.iter().copied().fold(f64::INFINITY, f64::min) * these.len() as f64 / sum)
    };
    let names = ["without the scheduler", "with it, 8 MiB", "with it, 64 MiB", "with it, 256 MiB"];
    for (name, outcome) in names.iter().zip(&outcomes) {
        let ((quick, quick_least), (slow, slow_least)) = (half(outcome, false), half(outcome, true));
        table.named_row([*name], [quick, slow, quick_least, slow_least]);
    }
    // The most that the slow readers can request: one request per pause.
    let wanted = f64::from(HALF) * 65_536.0 / (PAUSE_MS * 1e3);
    let measured = vec![Measured::new("goal.slow_consumers.share", half(&outcomes[1], true).0 / wanted)];
    Ok(Findings::new(measured, [Section::new("What was left undone: slow consumers")
            .with_text(format!(
                "The slow ones ask for {wanted:.1} MB/s together at most. What is read ahead for them waits in memory for long, and must not take it from the others."
            ))
            .with_table(table)]))
}
