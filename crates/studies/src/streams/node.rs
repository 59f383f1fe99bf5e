//! Chapters 4 and 5: the study's node. Its parameters are the read-ahead (R), the number of streams that share the disk (D), the requests
//! per turn (N), and the memory (M).

use super::path::{Sweep, at, size};
use super::play::{self, KIB, MIB, Plan, STREAMS, StreamsRun};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Table};

/// Bandwidth of the study's controller, and of its disks together.
const CONTROLLER_MB_S: u64 = 450;

/// Random orders of starts over which Fig 5.1 is averaged: ten places in one order are too few for a mean.
const ORDERS: u64 = 4;

const AHEAD: [u64; 6] = [256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB];

/// Streams that begin in random order, because the study's clients connect in any order, whatever their places on the disk.
fn begun(setting: &Setting<'_>, streams: u32) -> Plan {
    Plan { order: Some(1), ..Plan::new(setting, streams) }
}

/// All streams share the disk, with memory for all of them: D is their number S, and M = S·R·N.
fn all(setting: &Setting<'_>, streams: u32, ahead: u64) -> Plan {
    begun(setting, streams).reported(ahead, streams, 1, u64::from(streams) * ahead)
}

/// As many streams share the disk as the memory holds: D = M/(R·N).
fn limited(setting: &Setting<'_>, streams: u32, ahead: u64, memory: u64) -> Plan {
    let set = (memory / ahead).clamp(1, u64::from(streams)) as u32;
    begun(setting, streams).reported(ahead, set, 1, memory)
}

/// The study's best setting: few streams share the disk, each for a long turn.
fn long_turns(setting: &Setting<'_>, streams: u32) -> Plan {
    begun(setting, streams).reported(512 * KIB, 1, 128, 64 * MIB).long(setting)
}

fn kib(bytes: u64) -> f64 {
    (bytes / KIB) as f64
}

fn streams(count: u32) -> String {
    if count == 1 { "1 stream".to_string() } else { format!("{count} streams") }
}

/// Fig 5.1: read-ahead, with memory for all streams.
pub(super) fn read_ahead(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let in_order = |ahead: u64| (kib(ahead), Plan { order: None, ..all(setting, 100, ahead) });
    let one_order = |order: u64| {
        let plan = |count: u32, ahead: u64| Plan { order: Some(order), ..all(setting, count, ahead) };
        let line = |count: u32| (streams(count), AHEAD.map(|ahead| (kib(ahead), plan(count, ahead))).into());
        let mut lines: Vec<_> = [1].into_iter().chain(STREAMS).map(line).collect();
        lines.push((
            "100 streams, begun in the order of their places".to_string(),
            AHEAD.map(in_order).into(),
        ));
        let x = Axis::log("read-ahead R (KiB)");
        Sweep { title: "Read-ahead, with memory for all streams (Fig 5.1)", x, lines }.run(setting)
    };
    let orders = setting.length.pick(ORDERS, 1);
    let figure = mean_of((1..=orders).map(one_order).collect::<Result<_, _>>()?);
    let mut measured = Vec::new();
    for (line, count) in STREAMS.into_iter().enumerate() {
        let gain = 100.0 * (at(&figure, line + 1, 8192.0) / at(&figure, line + 1, 2048.0) - 1.0);
        measured.push(Measured::new(format!("node.r.gain_2_to_8_mib.{count}"), gain));
        measured.push(Measured::new(format!("node.r.8_mib_mb_s.{count}"), at(&figure, line + 1, 8192.0)));
    }
    let one = &figure.series[0].points;
    let most = one.iter().map(|point| point.1).fold(0.0, f64::max);
    measured.push(Measured::new("node.r.1_stream_most_over_least", most / at_least(one)));
    // A host's elevator sorts the requests of the hundred streams by place, whatever order they began in.
    let without = begun(setting, 100).with("host.queue.order", "c-look").run()?.mb_s();
    measured.push(Measured::new("node.headline_100_streams", at(&figure, 4, 8192.0) / without));
    Ok(Findings::new(measured, [Section::new("How far to read ahead (Fig 5.1)")
            .with_text("All streams have the disk at a time, and turns go round. Streams begin in no order, so that each turn needs a seek over a third of the disk. The last line has streams that begin in the order of their places: their turns follow the disk, and cost less.")
            .with_chart(figure)]))
}

/// The means of figures that have the same lines and places.
fn mean_of(mut figures: Vec<Chart>) -> Chart {
    let count = figures.len() as f64;
    let mut mean = figures.remove(0);
    for (number, line) in mean.series.iter_mut().enumerate() {
        for (place, point) in line.points.iter_mut().enumerate() {
            let others: f64 = figures.iter().map(|figure| figure.series[number].points[place].1).sum();
            point.1 = (point.1 + others) / count;
        }
    }
    mean
}

fn at_least(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min)
}

/// Fig 5.2: memory.
pub(super) fn memory(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    const MEMORY: [u64; 5] = [8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB];
    let figure = |count: u32| {
        let line = |ahead: u64| {
            let plan = |memory: u64| ((memory / MIB) as f64, limited(setting, count, ahead, memory));
            let fits = MEMORY.into_iter().filter(|memory| *memory >= ahead);
            (format!("R {}", size(ahead)), fits.map(plan).collect())
        };
        let title = format!("Memory, {} (Fig 5.2)", streams(count));
        Sweep {
            title: &title,
            x: Axis::log("memory M (MiB)"),
            lines: [256 * KIB, MIB, 8 * MIB].map(line).into(),
        }
        .run(setting)
    };
    let figures = [10, 100].map(figure).into_iter().collect::<Result<Vec<Chart>, _>>()?;
    let measured = vec![
        Measured::new("node.m.16_mib_8_mib.10", at(&figures[0], 2, 16.0)),
        Measured::new("node.m.16_mib_8_mib.100", at(&figures[1], 2, 16.0)),
        Measured::new("node.m.8_mib_8_mib.100", at(&figures[1], 2, 8.0)),
        Measured::new("node.m.all_256_kib.100", all(setting, 100, 256 * KIB).run()?.mb_s()),
    ];
    Ok(Findings::new(measured, [Section::new("How much memory (Fig 5.2)")
            .with_text("As many streams at a time as there is memory for. Where memory is for one request alone, the disk waits until its bytes are fetched.")
            .with_charts(figures)]))
}

/// Figs 5.3 to 5.5: few streams at a time, and eight disks.
pub(super) fn dispatch(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let eight = |plan: Plan| {
        Plan { disks: 8, ..plan }.with("bus.mb_s", CONTROLLER_MB_S).with("bus.sharing", "interleaved")
    };
    let line = |name: &str, plan: &dyn Fn(u32) -> Plan| {
        (name.to_string(), STREAMS.map(|count| (f64::from(count), plan(count))).into())
    };
    let many = Sweep {
        title: "Eight disks on a controller of 450 MB/s (Figs 5.3, 5.4)",
        x: Axis::linear("streams a disk"),
        lines: vec![
            line("all at a time, R 512K", &|count| eight(all(setting, count, 512 * KIB))),
            line("all at a time, R 2M", &|count| eight(all(setting, count, 2 * MIB))),
            line("all at a time, R 8M", &|count| eight(all(setting, count, 8 * MIB))),
            line("one at a time, R 512K, N 128", &|count| eight(long_turns(setting, count))),
        ],
    }
    .run(setting)?;
    let one = Sweep {
        title: "One disk (Fig 5.5)",
        x: Axis::linear("streams"),
        lines: vec![
            line("all at a time, R 8M", &|count| all(setting, count, 8 * MIB)),
            line("one at a time, R 512K, N 128", &|count| long_turns(setting, count)),
        ],
    }
    .run(setting)?;
    let own = play::own_mb_s(100, setting.length)?;
    let all_best = [0, 1, 2].map(|ahead| at(&many, ahead, 100.0)).into_iter().fold(0.0, f64::max);
    let used = eight(long_turns(setting, 100)).run()?.memory_bytes as f64;
    let measured = vec![
        Measured::new("node.8_disks.all_best_share", 100.0 * all_best / CONTROLLER_MB_S as f64),
        Measured::new("node.8_disks.mb_s", at(&many, 3, 100.0)),
        Measured::new(
            "node.8_disks.share",
            100.0 * at(&many, 3, 100.0) / (8.0 * own).min(CONTROLLER_MB_S as f64),
        ),
        Measured::new("node.8_disks.memory_over_drn", used / (8 * 64 * MIB) as f64),
        Measured::new("node.1_disk.long_turns_over_all", at(&one, 1, 100.0) / at(&one, 0, 100.0)),
    ];
    Ok(Findings::new(measured, [Section::new("Few streams at a time (Figs 5.3 to 5.5)")
            .with_text("Eight disks fall behind in the study where all streams have their disks at a time, because its host has too many large buffers to handle. The model has no host's processor.")
            .with_chart(many)
            .with_chart(one)]))
}

/// Fig 5.6: response times.
pub(super) fn response(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let counts = [10, 100];
    let plans: Vec<(u32, u64, Plan)> = counts
        .into_iter()
        .flat_map(|count| AHEAD.map(|ahead| (count, ahead, all(setting, count, ahead))))
        .collect();
    let outcomes = setting.map(&plans, |(_, _, plan)| plan.run())?;
    let mut table = Table::new(
        "Response times of 64 KiB, all streams at a time",
        [
            "streams, R",
            "mean ms",
            "median ms",
            "p99 ms",
            "longest ms",
            "slowest stream over mean",
            "from memory",
        ],
    );
    for ((count, ahead, _), outcome) in plans.iter().zip(&outcomes) {
        table.named_row(
            [format!("{count}, {}", size(*ahead))],
            [
                outcome.mean_ms(),
                outcome.stream_ms(0.5),
                outcome.stream_ms(0.99),
                outcome.worst_ms(),
                outcome.slowest(),
                outcome.share_within(0.1),
            ],
        );
    }
    let last = AHEAD.len() - 1;
    let (near, far) = (&outcomes[AHEAD.len()], &outcomes[AHEAD.len() + last]);
    // A hit takes no time, and a miss at least a tenth of the longest response. A response in between belongs to neither class.
    let between = |run: &StreamsRun| run.share_within(run.worst_ms() as f32 / 10.0) - run.share_within(0.1);
    let between = outcomes.iter().map(between).fold(0.0, f64::max);
    let measured = vec![
        Measured::new("node.response.from_memory_share", far.share_within(0.1)),
        Measured::new("node.response.share_gain", far.share_within(0.1) / near.share_within(0.1)),
        Measured::new("node.response.between_classes", between),
        Measured::new("node.response.streams_spread", far.longest_over_shortest_mean()),
        Measured::new("node.response.8_mib_over_256_kib", far.mean_ms() / near.mean_ms()),
        Measured::new("node.response.100_over_10_streams", far.mean_ms() / outcomes[last].mean_ms()),
    ];
    Ok(Findings::new(measured, [Section::new("Response times (Fig 5.6)")
            .with_text("The study's values are lost. Its finding is here, too: the number of streams decides, and more read-ahead lowers the mean, because more requests meet their bytes in memory.")
            .with_table(table)]))
}
