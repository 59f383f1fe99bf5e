//! Command duration limits: what a guideline gains for the limited reads, and what it costs the others.
//!
//! Modelled: random reads of 128 KiB on the Ultrastar HC570, 32 outstanding, a fifth of them with a guideline, policy complete-earliest,
//! performance against duration 20 %.
//! *Source:* westerndigitalcorporation/cdl-tools, benchmark/README.md, for 50 ms.

use super::SEED;
use crate::judge::Measured;
use crate::study::{Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack::{NoFiles, Results, Simulation, Workload};
use headstack_sim::rig::shipped;
use headstack_sim::stats::TimeHistogram;

const DRIVE: &str = "ultrastar-hc570";
const COUNT: u64 = 60_000;

/// The guideline of the published run, in milliseconds.
const PUBLISHED: u32 = 50;
const GUIDELINES: [u32; 6] = [30, 50, 75, 100, 150, 200];
const QUANTILES: [(&str, f64); 4] = [("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// A run's reads a second, and the response times of the reads without a limit and of those with it.
struct LimitedRun {
    iops: f64,
    classes: [TimeHistogram; 2],
}

/// A run with a guideline of this many milliseconds; `None` runs without limits.
fn run(guideline_ms: Option<u32>, count: u64) -> Result<LimitedRun, StudyError> {
    let hint = u8::from(guideline_ms.is_some());
    let job = format!(
        "[reads]\nrw=randread\nbs=128k\nioengine=libaio\niodepth=32\nnumber_ios={count}\n\
         cmdprio_percentage=20\ncmdprio_class=2\ncmdprio_hint={hint}\n"
    );
    let mut rig = shipped::load(DRIVE)?;
    if let Some(ms) = guideline_ms {
        rig.set("drive.queue.duration_limits.reads", &format!("[{{ guideline_ms = {ms} }}]"))?;
    }
    let results = Simulation::new(&rig, Workload::fio_job(&job, "job", &NoFiles)?, SEED)?.run()?;
    Ok(LimitedRun { iops: results.iops(), classes: classes(&results) })
}

fn classes(results: &Results) -> [TimeHistogram; 2] {
    let job = results.reported_jobs().next().expect("there is a job");
    let reads = job.kinds().next().expect("it reads").statistics;
    let of = |limit: u8| reads.priorities().iter().find(|(priority, _)| priority.hint == limit);
    [0, 1].map(|limit| of(limit).map_or(reads.responses.clone(), |(_, times)| times.clone()))
}

/// The rows of the published run, and a section with other guidelines.
pub(super) fn measure(setting: &Setting<'_>) -> Result<(Vec<Measured>, Section), StudyError> {
    let count = setting.length.pick(COUNT, COUNT / 5);
    let guidelines = setting.length.pick(&GUIDELINES[..], &[PUBLISHED][..]);
    let guidelines: Vec<_> = [None].into_iter().chain(guidelines.iter().map(|ms| Some(*ms))).collect();
    let runs = setting.map(&guidelines, |guideline| run(*guideline, count))?;
    let published = guidelines.iter().position(|ms| *ms == Some(PUBLISHED)).expect("it is one of them");
    let classes = ["others", "limited"].into_iter().zip(&runs[published].classes);
    let measured = classes.flat_map(|(name, times)| {
        QUANTILES.map(|(quantile, share)| {
            Measured::new(format!("{DRIVE}.{name}_{quantile}_ms"), times.quantile(share).as_ms())
        })
    });
    Ok((measured.collect(), section(&guidelines, &runs)))
}

fn section(guidelines: &[Option<u32>], runs: &[LimitedRun]) -> Section {
    let columns = ["guideline", "IOPS", "limited p50 ms", "limited p99 ms", "others p50 ms", "others p99 ms"];
    let mut table = Table::new("Random reads of 128 KiB, 32 outstanding, a fifth of them limited", columns);
    let of = |run: &LimitedRun, class: usize, share: f64| run.classes[class].quantile(share).as_ms();
    for (guideline, run) in guidelines.iter().zip(runs) {
        let name = guideline.map_or("none".to_string(), |ms| format!("{ms} ms"));
        let times = [(1, 0.5), (1, 0.99), (0, 0.5), (0, 0.99)].map(|(class, share)| of(run, class, share));
        table.named_row([name], [run.iops].into_iter().chain(times));
    }
    let limited = || guidelines.iter().zip(runs).filter_map(|(ms, run)| ms.map(|ms| (f64::from(ms), run)));
    let lines = [("limited reads, p99", 1, 0.99), ("limited reads, p50", 1, 0.5), ("others, p99", 0, 0.99)];
    let series = lines.into_iter().enumerate().map(|(hue, (name, class, share))| {
        Series::new(name, hue, limited().map(|(ms, run)| (ms, of(run, class, share))))
    });
    let chart = Chart::new(
        "Response time by guideline",
        Axis::linear("guideline (ms)").with_ticks(GUIDELINES.map(f64::from)),
        Axis::log("response time (ms)"),
        series,
    );
    Section::new(format!("What a duration limit buys: {DRIVE}"))
        .with_text(
            "A fifth of the reads has a guideline. The shorter it is, the earlier the drive prefers these reads; it then seeks and turns for \
             longer, and the others wait longer. A guideline is no promise: a read beyond it goes next, after the present access.",
        )
        .with_chart(chart)
        .with_table(table)
}
