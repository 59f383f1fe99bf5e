//! Rearrangement under orders that know LBNs and orders that know rotation, on queues of constant length: do their gains add up?
//!
//! All measured requests come after the copies of the first period and before those of the second.

use super::loads::{LoadCase, RearrangedLoad};
use super::seeks::DISK;
use super::window::MeasuredWindow;
use super::{BLOCKS, Key};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{DriveSpec, Nanos};
use headstack_sim::Rig;

/// WSTF with the longest response of the study `scheduling`: max(4 s, 60 ms per request), which is 4 s here.
const QUEUE_ORDERS: [&str; 4] = ["fcfs", "c-look", "sptf", "wstf(4000)"];

/// Requests outstanding.
const QUEUES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The queue lengths of the short form.
const QUICK_QUEUES: [u32; 3] = [1, 8, 64];

/// The longest queue, at which the rows are judged.
const LONGEST: u32 = 64;

/// Copies in flight: enough that copying ends soon on a long queue, too.
const PARALLEL_COPIES: Key = ("rearrange.parallel_copies", "64");

/// Means of the measured requests.
#[derive(Clone, Copy, Debug)]
struct QueueTimes {
    /// Time from one completion to the next.
    io_ms: f64,
    seek_ms: f64,
    rotation_ms: f64,
    /// When the last of the requests that the analyzer counts completed.
    counted_s: f64,
}

/// An order on a queue.
type QueueCase = (&'static str, u32);

/// Runs a case; without a period, nothing is copied.
fn queue_times(
    (order, queue): QueueCase,
    period_s: Option<f64>,
    counted: u64,
) -> Result<QueueTimes, StudyError> {
    let mut rig = Rig::from_drive(DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?);
    rig.set("drive.queue.order", order)?;
    rig.set("rearrange.blocks", &BLOCKS.to_string())?;
    rig.set("rearrange.when", "at-once")?;
    rig.set(PARALLEL_COPIES.0, PARALLEL_COPIES.1)?;
    match period_s {
        Some(seconds) => rig.set("rearrange.period_s", &seconds.to_string())?,
        None => rig.set("rearrange.least_references", "1000000000")?,
    }
    let mut window = MeasuredWindow::new(counted);
    let (mut seek, mut rotation) = (Nanos::ZERO, Nanos::ZERO);
    let case = LoadCase::study(RearrangedLoad::Steady);
    let mut load = case.closed(&rig.volumes(), queue, window.to + u64::from(queue))?;
    rig.build(1)?.run(&mut load, &mut |finished| {
        let completion = &finished.completion;
        if window.note(completion.completed) {
            seek += completion.parts.seek;
            rotation += completion.parts.rotational_latency;
        }
    });
    Ok(QueueTimes {
        io_ms: window.io_ms(),
        seek_ms: window.mean_ms(seek),
        rotation_ms: window.mean_ms(rotation),
        counted_s: window.counted_s,
    })
}

/// A case without copies and with them.
struct QueueRuns {
    case: QueueCase,
    plain: QueueTimes,
    copied: QueueTimes,
}

impl QueueRuns {
    fn saved_ms(&self) -> f64 {
        self.plain.io_ms - self.copied.io_ms
    }
}

fn pair(case: QueueCase, counted: u64) -> Result<QueueRuns, StudyError> {
    let plain = queue_times(case, None, counted)?;
    // The period ends with the last counted request: until then both runs are the same.
    Ok(QueueRuns { case, plain, copied: queue_times(case, Some(plain.counted_s), counted)? })
}

/// The rows of a queue, from its runs in the order of [`QUEUE_ORDERS`].
fn rows(runs: &[&QueueRuns]) -> Vec<Measured> {
    let [fcfs, c_look, sptf, wstf] = runs else { unreachable!("each order has runs on each queue") };
    let kept = |run: &QueueRuns| 100.0 * run.saved_ms() / fcfs.saved_ms();
    let faster = |fast: f64, slow: f64| 100.0 * (1.0 - fast / slow);
    let gained = |fast: &QueueRuns, slow: &QueueRuns| {
        faster(fast.copied.io_ms, slow.copied.io_ms) - faster(fast.plain.io_ms, slow.plain.io_ms)
    };
    let alone = fcfs.saved_ms() + fcfs.plain.io_ms - sptf.plain.io_ms;
    vec![
        Measured::new("orders c-look kept", kept(c_look)),
        Measured::new("orders sptf kept", kept(sptf)),
        Measured::new("orders wstf kept", kept(wstf)),
        Measured::new("orders c-look over fcfs", gained(c_look, fcfs)),
        Measured::new("orders sptf over c-look", gained(sptf, c_look)),
        Measured::new("orders sum", 100.0 * (fcfs.plain.io_ms - sptf.copied.io_ms) / alone),
    ]
}

/// Runs all orders on all queues.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let queues = setting.length.pick(&QUEUES[..], &QUICK_QUEUES[..]);
    let cases: Vec<QueueCase> =
        QUEUE_ORDERS.iter().flat_map(|order| queues.iter().map(|queue| (*order, *queue))).collect();
    let counted = setting.length.pick(50_000, 20_000);
    let all = setting.map(&cases, |case| pair(*case, counted))?;
    let columns = [
        "order",
        "queue",
        "ms",
        "with copies",
        "saved ms",
        "saved %",
        "seek ms",
        "with copies",
        "rotation ms",
        "with copies",
    ];
    let mut table = Table::new("Time of a request by order and queue", columns);
    for QueueRuns { case: (order, queue), plain, copied } in &all {
        let saved_ms = plain.io_ms - copied.io_ms;
        let numbers = [
            f64::from(*queue),
            plain.io_ms,
            copied.io_ms,
            saved_ms,
            100.0 * saved_ms / plain.io_ms,
            plain.seek_ms,
            copied.seek_ms,
            plain.rotation_ms,
            copied.rotation_ms,
        ];
        table.named_row([*order], numbers);
    }
    let lines = QUEUE_ORDERS.iter().enumerate().map(|(hue, order)| {
        let runs = all.iter().filter(|run| run.case.0 == *order);
        Series::new(*order, hue, runs.map(|run| (f64::from(run.case.1), run.saved_ms())))
    });
    let chart = Chart::new(
        "Service time that copies save under each order",
        Axis::log("requests outstanding").with_ticks(QUEUES.map(f64::from)),
        Axis::linear("saved (ms a request)"),
        lines,
    );
    let longest: Vec<&QueueRuns> = all.iter().filter(|run| run.case.1 == LONGEST).collect();
    let text = "The blocks of the load steady, requested by as many clients as requests are outstanding. The drive orders all of them. Times are from one completion to the next.";
    let section =
        Section::new("Rearrangement under orders").with_text(text).with_chart(chart).with_table(table);
    Ok(Findings::new(rows(&longest), [section]))
}
