//! Chapters 1 and 3: streams on simulated disks and controllers, without a node.

use super::play::{CHAPTER_3, KIB, MIB, Plan, STREAMS};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series};
use headstack_model::Nanos;

/// A line of a figure: its name, and its runs with their x values.
pub(super) type Runs = (String, Vec<(f64, Plan)>);

/// A figure whose points are runs.
pub(super) struct Sweep<'a> {
    pub(super) title: &'a str,
    pub(super) x: Axis,
    pub(super) lines: Vec<Runs>,
}

impl Sweep<'_> {
    /// Runs all plans; returns the figure of their throughput.
    pub(super) fn run(self, setting: &Setting<'_>) -> Result<Chart, StudyError> {
        self.run_for(setting, "MB/s", |outcome| outcome.mb_s())
    }

    /// Runs all plans; returns the figure of a value that `read` takes from each run.
    pub(super) fn run_for(
        self,
        setting: &Setting<'_>,
        y: &str,
        read: impl Fn(&super::play::StreamsRun) -> f64 + Sync,
    ) -> Result<Chart, StudyError> {
        let plans: Vec<&Plan> =
            self.lines.iter().flat_map(|(_, line)| line.iter().map(|(_, plan)| plan)).collect();
        let mut found = setting.map(&plans, |plan| Ok(read(&plan.run()?)))?.into_iter();
        let line = |(family, (name, line)): (usize, &Runs)| {
            Series::new(name.clone(), family, line.iter().map(|(x, _)| *x).zip(&mut found))
        };
        let lines: Vec<Series> = self.lines.iter().enumerate().map(line).collect();
        Ok(Chart::new(self.title, self.x, Axis::linear(y), lines))
    }
}

pub(super) fn at(figure: &Chart, line: usize, x: f64) -> f64 {
    let point = figure.series[line].points.iter().find(|(place, _)| *place == x);
    point.expect("the figure has the place").1
}

/// Bytes as `64K` or `2M`.
pub(super) fn size(bytes: u64) -> String {
    if bytes < MIB { format!("{}K", bytes / KIB) } else { format!("{}M", bytes / MIB) }
}

/// Size of the requests of Fig 3.6, which the thesis does not state. *Source:* with 128 KiB, ten streams without read-ahead come closest to
/// the 10 MB/s of that figure: 8.2 MB/s. With 64 KiB they reach 6.0 and with 256 KiB 15.1.
const REQUEST: u64 = 128 * KIB;

/// Fig 1.1: more disks, more streams on each.
pub(super) fn scale(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    const SIZES: [u64; 3] = [64 * KIB, REQUEST, 256 * KIB];
    let counts: &[u32] = setting.length.pick(&[1, 2, 5, 10, 20, 50, 100], &[1, 10, 100]);
    let figure = |title, controllers, disks| {
        let plan = |readers: u32, bytes| {
            let plan = Plan::new(setting, readers).of(bytes);
            (
                f64::from(readers),
                Plan {
                    drive: CHAPTER_3,
                    disks,
                    controllers,
                    warm: Nanos(plan.warm.0 / 2),
                    counted: Nanos(plan.counted.0 / 4),
                    ..plan
                },
            )
        };
        let line = |bytes| (size(bytes), counts.iter().map(|readers| plan(*readers, bytes)).collect());
        let x = Axis::linear("streams a disk");
        Sweep { title, x, lines: SIZES.map(line).into() }.run(setting)
    };
    let few = figure("2 controllers, 8 disks", 2, 8)?;
    let many = figure("15 controllers, 60 disks", 15, 60)?;
    let falls = |figure: &Chart| [0, 1, 2].map(|size| at(figure, size, 1.0) / at(figure, size, 100.0));
    let mut measured = Vec::new();
    for (disks, figure) in [(8, &few), (60, &many)] {
        let [large, middle, small] = falls(figure);
        let (least, most) = (large.min(middle).min(small), large.max(middle).max(small));
        measured.push(Measured::new(format!("scale.{disks}_disks.fall_least"), least));
        measured.push(Measured::new(format!("scale.{disks}_disks.fall_most"), most));
    }
    measured.push(Measured::new("scale.60_over_8_disks", at(&many, 1, 10.0) / at(&few, 1, 10.0)));
    let section = Section::new("More disks and more streams (Fig 1.1)")
        .with_text("Requests of three sizes; four disks a controller, whose queue is served in one sweep after the other.")
        .with_chart(few)
        .with_chart(many);
    Ok(Findings::new(measured, [section]))
}

/// Fig 3.2: the number of commands that the controller holds.
pub(super) fn queue(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    // More segments than streams, and fewer.
    const CASES: [(u32, u64); 2] = [(20, 32), (30, 16)];
    let depths = [1, 2, 5, 10, 12, 14, 16, 18, 19, 20, 21, 25, 29, 30, 31, 40];
    let line = |(streams, segments): (u32, u64)| {
        let plan = |depth: u32| {
            let plan = swept(setting, streams).with_segments(segments, 8 * MIB / segments);
            // In DiskSim, a stream's next request is already in the queue when the controller chooses.
            let plan = plan.with("controller.late_choice", true);
            (f64::from(depth), plan.with("controller.queue_depth", depth))
        };
        (format!("{streams} streams, {segments} segments"), depths.map(plan).into())
    };
    let figure = Sweep {
        title: "Queue of the controller",
        x: Axis::linear("commands that it holds"),
        lines: CASES.map(line).into(),
    }
    .run(setting)?;
    let ratio = |line, over, under| at(&figure, line, over) / at(&figure, line, under);
    let measured = vec![
        Measured::new("queue.more_segments.flat", ratio(0, 19.0, 5.0)),
        Measured::new("queue.more_segments.rise", ratio(0, 25.0, 19.0)),
        Measured::new("queue.fewer_segments.early_rise", ratio(1, 29.0, 12.0)),
        Measured::new("queue.fewer_segments.rise", ratio(1, 40.0, 29.0)),
    ];
    let section = Section::new("The controller's queue (Fig 3.2)")
        .with_text("One disk with 8 MiB of cache, 64 KiB a read. The controller chooses as DiskSim's does: after all that happens at the same time, so that the next request of the stream just served is in its queue if there is room. The curves of the study are lost; where they rise is not.")
        .with_chart(figure);
    Ok(Findings::new(measured, [section]))
}

/// One disk behind a controller that sweeps.
fn swept(setting: &Setting<'_>, readers: u32) -> Plan {
    Plan { drive: CHAPTER_3, controllers: 1, ..Plan::new(setting, readers) }
}

/// Memory of the simulated disk's cache.
const CACHE: u64 = 8 * MIB;

/// Readers whose requests are as large as the cache's segments, so that nothing is read ahead.
fn bare(setting: &Setting<'_>, readers: u32, bytes: u64) -> Plan {
    let plan = swept(setting, readers).of(bytes).with_segments(CACHE / bytes, bytes);
    plan.with("drive.cache.read_ahead", "none")
}

/// Figs 3.3 to 3.5: the drive's cache.
pub(super) fn segments(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let sizes =
        |from: u64, to: u64| (0..).map(move |power| from << power).take_while(move |size| *size <= to);
    let kib = |bytes: u64| (bytes / KIB) as f64;
    let x = |label: &str| Axis::log(label);
    // Requests as large as segments, nothing read ahead.
    let request = |streams: u32| {
        let plan = |bytes| (kib(bytes), bare(setting, streams, bytes));
        (format!("{streams} streams"), sizes(8 * KIB, MIB).map(plan).collect())
    };
    let requests = Sweep {
        title: "Size of requests, nothing read ahead, 8 MiB of cache (Fig 3.3)",
        x: x("request (KiB)"),
        lines: [1, 10, 30, 60, 100].map(request).into(),
    };
    let growing = Sweep {
        title: "Size of segments, 32 of them, 30 streams (Fig 3.4)",
        x: x("segment (KiB)"),
        lines: vec![(
            "64K requests".to_string(),
            sizes(32 * KIB, 2 * MIB)
                .map(|bytes| (kib(bytes), swept(setting, 30).with_segments(32, bytes)))
                .collect(),
        )],
    };
    let fixed = |streams: u32| {
        let plan = |bytes| (kib(bytes), swept(setting, streams).with_segments(CACHE / bytes, bytes));
        (format!("{streams} streams"), sizes(64 * KIB, 2 * MIB).map(plan).collect())
    };
    let fixed = Sweep {
        title: "Size of segments, 8 MiB of cache (Fig 3.5)",
        x: x("segment (KiB)"),
        lines: STREAMS.map(fixed).into(),
    };
    let (requests, growing) = (requests.run(setting)?, growing.run(setting)?);
    let fixed = fixed.run(setting)?;
    let none = swept(setting, 60).with("drive.cache.read_ahead", "none").run()?.mb_s();
    let sixty = |kib| at(&requests, 3, kib);
    let best = [8, 16, 32, 64, 128, 256, 512, 1024].map(|kib| sixty(f64::from(kib)));
    let measured = vec![
        Measured::new("requests.60_streams.growth", sixty(128.0) / sixty(8.0)),
        Measured::new("requests.60_streams.collapse", sixty(1024.0) / best.into_iter().fold(0.0, f64::max)),
        Measured::new("segments.32_kib.mb_s", at(&growing, 0, 32.0)),
        Measured::new("segments.2_mib.mb_s", at(&growing, 0, 2048.0)),
        // 64 segments for 60 streams, then 32.
        Measured::new("fixed.enough_over_none", at(&fixed, 2, 128.0) / none),
        Measured::new("fixed.too_few_over_none", at(&fixed, 2, 256.0) / none),
    ];
    let section = Section::new("The drive's cache (Figs 3.3 to 3.5)")
        .with_text("Each segment is read ahead to its end, whatever waits. Beyond as many streams as there are segments, what was read ahead is evicted before it is requested.")
        .with_chart(requests)
        .with_chart(growing)
        .with_chart(fixed);
    Ok(Findings::new(measured, [section]))
}

/// Sectors that the drive of Fig 3.7 reads ahead after a miss, even while requests wait. *Source:* inferred from the figure's small
/// requests; section 2.1.1 of the thesis names such a minimum read-ahead without a value.
const LEAST_AHEAD_SECTORS: u32 = 64;

/// Fig 3.7: the node's disk, accessed without a node.
pub(super) fn xdd(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let xdd = |bytes: u64| {
        let plan = |streams: u32| {
            let plan = Plan::new(setting, streams).of(bytes);
            let plan = plan.with("drive.cache.read_ahead_min_sectors", LEAST_AHEAD_SECTORS);
            (f64::from(streams), Plan { apart: Some(1 << 30), ..plan })
        };
        (size(bytes), [1, 2, 5, 10, 20, 30, 40, 50].map(plan).into())
    };
    let xdd = Sweep {
        title: "The node's drive, 32 KiB read ahead after each miss, streams 1 GiB apart (Fig 3.7)",
        x: Axis::linear("streams"),
        lines: [8 * KIB, 32 * KIB, 64 * KIB, 256 * KIB].map(xdd).into(),
    };
    let xdd = xdd.run(setting)?;
    let simulated = bare(setting, 10, 8 * KIB).run()?.mb_s();
    let measured = vec![
        Measured::new("xdd.64_kib.fall", at(&xdd, 2, 1.0) / at(&xdd, 2, 50.0)),
        Measured::new("xdd.8_kib.over_simulated", at(&xdd, 0, 10.0) / simulated),
        Measured::new("xdd.8_kib.fall", at(&xdd, 0, 10.0) / at(&xdd, 0, 50.0)),
    ];
    let section = Section::new("A real drive without a node (Fig 3.7)")
        .with_text("The drive reads 32 KiB ahead after a miss before it serves another command; with as many streams as it has segments this is evicted before it is requested.")
        .with_chart(xdd);
    Ok(Findings::new(measured, [section]))
}

/// Fig 3.6: the controller reads ahead.
pub(super) fn controller(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    // FCFS, because in a sweep a stream that is read ahead keeps the disk and starves the others.
    // About ten times a drive's cache.
    const MEMORY: u64 = 80 * MIB;
    const COUNTS: [u32; 4] = [1, 10, 60, 100];
    let sizes = [0, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB];
    let line = |streams: u32| {
        let plan = |ahead: u64| {
            let plan = swept(setting, streams)
                .of(REQUEST)
                .with("controller.order", "fcfs")
                .with("controller.cache.sectors", MEMORY / 512)
                .with("controller.cache.line_sectors", 128)
                .with("controller.cache.read_ahead_sectors", ahead / 512)
                .with("controller.cache.read_ahead_evicts", true);
            ((ahead / KIB) as f64, plan)
        };
        (
            if streams == 1 { "1 stream".to_string() } else { format!("{streams} streams") },
            sizes.map(plan).into(),
        )
    };
    let figure = Sweep {
        title: "Read-ahead of the controller, 80 MiB of memory",
        x: Axis::linear("read ahead (KiB)"),
        lines: COUNTS.map(line).into(),
    }
    .run(setting)?;
    let one = &figure.series[0].points;
    let most = one.iter().map(|point| point.1).fold(0.0, f64::max);
    let least = one.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let best = figure.series[2].points.iter().map(|point| point.1).fold(0.0, f64::max);
    let measured = vec![
        Measured::new("controller.1_stream.mb_s", at(&figure, 0, 512.0)),
        Measured::new("controller.1_stream.most_over_least", most / least),
        Measured::new("controller.10_streams.none_mb_s", at(&figure, 1, 0.0)),
        Measured::new("controller.10_streams.4_mib_mb_s", at(&figure, 1, 4096.0)),
        Measured::new("controller.60_streams.1_mib_share", at(&figure, 2, 1024.0) / best),
        Measured::new("controller.60_streams.4_mib_share", at(&figure, 2, 4096.0) / best),
        Measured::new("controller.100_streams.4_mib_share", at(&figure, 3, 4096.0) / best),
    ];
    let section = Section::new("Read-ahead of the controller (Fig 3.6)")
        .with_text("128 KiB a read. What is read ahead is fetched with the read that misses, and takes room as the read does. The study's memory is not stated: its controllers have about ten times a drive's.")
        .with_chart(figure);
    Ok(Findings::new(measured, [section]))
}
