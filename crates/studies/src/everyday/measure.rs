//! Measures the figures of a condition.

use super::conditions::{Condition, Extent, Load};
use super::overrides::Overrides;
use super::{records, sheets};
use crate::runs;
use crate::study::{Length, StudyError};
use headstack::{NoFiles, Results, Simulation, Workload};
use headstack_model::Lbn;
use headstack_sim::rig::Rig;
use headstack_sim::stats::TimeHistogram;
use headstack_workload::Region;

const SEED: u64 = 1;

/// Random writes, and the same with a FLUSH after each.
const WRITES: &str = "rw=randwrite\nbs=4k\niodepth=1\nnorandommap\n";
const FLUSHED_WRITES: &str = "rw=randwrite\nbs=4k\niodepth=1\nfsync=1\nnorandommap\n";

/// Bytes in a MB of HD Tune, over 10⁶.
const MIB_OVER_MB: f64 = 1.048576;

/// The end of a figure's name, and its value.
pub(super) type Figure = (String, f64);

/// Quantiles that are reported of every run.
const PERCENTILES: [(&str, f64); 11] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p20", 0.2),
];

/// One measurement: its drive with the keys that are set over it, and the length of the runs.
pub(super) struct Measurement<'a> {
    pub(super) overrides: &'a Overrides,
    pub(super) length: Length,
}

fn figure(name: &str, value: f64) -> Figure {
    (name.to_string(), value)
}

impl Measurement<'_> {
    /// All figures of a condition.
    pub(super) fn figures(&self, condition: &Condition) -> Result<Vec<Figure>, StudyError> {
        let rig = self.rig(condition)?;
        let spec = &rig.resolved().drive[0].spec;
        Ok(match condition.load {
            Load::Job { keys, extent, .. } => figures_of(&self.run(&rig, keys, extent)?),
            Load::MeanOverDepths { keys, extent, .. } => {
                let depths = self.length.pick(&[1, 2, 4, 8, 16, 32, 64][..], &[1, 16, 64][..]);
                let rates = depths.iter().map(|depth| {
                    let keys = format!("{keys}iodepth={depth}\n");
                    Ok(self.run(&rig, &keys, extent)?.iops())
                });
                let rates = rates.collect::<Result<Vec<f64>, StudyError>>()?;
                vec![figure("iops", rates.iter().sum::<f64>() / rates.len() as f64)]
            }
            Load::Growth { above, below } => {
                let [above, below] = [above, below].map(|keys| self.run(&rig, keys, Extent::Count(20_000)));
                vec![figure("ratio", above?.iops() / below?.iops())]
            }
            Load::SyncedOffOverOn => {
                let mut off = rig.clone();
                off.set("drive.cache.write_cache", "none")?;
                let [off, on] = [(&off, WRITES), (&rig, FLUSHED_WRITES)]
                    .map(|(rig, keys)| self.written_a_second(rig, keys));
                vec![figure("ratio", off? / on?)]
            }
            Load::Scan => self.scan(&rig)?,
            Load::Flush { writes } => {
                vec![figure("flush_ms", runs::flush_ms(spec, writes, self.length.pick(200, 40))?)]
            }
            Load::DurationLimits => self.limits(&rig)?,
            Load::Records { mib } => {
                let [first, knee, later] = records::random_records(spec, mib)?;
                vec![figure("first_mib_s", first), figure("knee_gib", knee), figure("later_mib_s", later)]
            }
            Load::PacedRecords => {
                let stalls = records::paced_records(spec)?;
                let mean = stalls.iter().sum::<f64>() / stalls.len() as f64;
                let duration = Some(figure("stall_s", mean)).filter(|_| !stalls.is_empty());
                [figure("stalls", stalls.len() as f64)].into_iter().chain(duration).collect()
            }
            Load::OrderedRecords => vec![figure("mb_s", records::records_in_order(spec, 256, 500)?)],
        })
    }

    /// The drive behind its host.
    fn rig(&self, condition: &Condition) -> Result<Rig, StudyError> {
        let drive = condition.drive();
        let mut rig = Rig::from_drive(sheets::load(drive)?);
        if condition.name.ends_with("_off") {
            rig.set("drive.cache.write_cache", "none")?;
        }
        if let Load::Job { host, .. } | Load::MeanOverDepths { host, .. } = condition.load {
            for (key, value) in host {
                rig.set(&format!("host.{key}"), value)?;
            }
        }
        self.overrides.apply(drive, &mut rig)?;
        Ok(rig)
    }

    /// A job of a fio file.
    fn run(&self, rig: &Rig, keys: &str, extent: Extent) -> Result<Results, StudyError> {
        let extent = match extent {
            Extent::Count(count) => {
                format!("number_ios={}\nio_size=1p\n", self.length.pick(count, count / 4))
            }
            Extent::Seconds { skip, run } => format!("time_based\nramp_time={skip}\nruntime={run}\n"),
            Extent::Keys => String::new(),
        };
        let engine = if keys.contains("ioengine") { "" } else { "ioengine=libaio\n" };
        let job = format!("[job]\nfilename=/dev/sda\ndirect=1\n{engine}{keys}{extent}");
        let workload = Workload::fio_job(&job, "job", &NoFiles)?;
        Ok(Simulation::new(rig, workload, SEED)?.run()?)
    }

    fn written_a_second(&self, rig: &Rig, keys: &str) -> Result<f64, StudyError> {
        let results = self.run(rig, keys, Extent::Seconds { skip: 0, run: 60 })?;
        let writes = results.writes().map_or(0, |writes| writes.responses.count());
        Ok(writes as f64 / results.counted_s())
    }

    /// Rates in MB of 2^20 bytes at both ends and over the disk, and the time of a random access to a block.
    fn scan(&self, rig: &Rig) -> Result<Vec<Figure>, StudyError> {
        let spec = &rig.resolved().drive[0].spec;
        let stretch = runs::stretch(spec) / 4 / 2048 * 2048;
        let read = |regions: Vec<Region>| -> Result<f64, StudyError> {
            Ok(runs::sequential_mb_s(spec, 1.0, regions.into_iter())? / MIB_OVER_MB)
        };
        let inner = Region { first: Lbn(spec.capacity_sectors - stretch), sectors: stretch };
        let keys = "rw=randread\nbs=512\niodepth=1\nnorandommap\n";
        let access = self.run(rig, keys, Extent::Count(8_000))?;
        Ok(vec![
            figure("max_mib_s", read(vec![Region::whole(stretch)])?),
            figure("min_mib_s", read(vec![inner])?),
            figure("average_mib_s", read(runs::spread(spec, 32, stretch).collect())?),
            figure("access_ms", access.response().mean_ms()),
        ])
    }

    /// Both classes of reads of which a fifth has a guideline of 50 ms, 32 outstanding.
    fn limits(&self, rig: &Rig) -> Result<Vec<Figure>, StudyError> {
        let mut rig = rig.clone();
        rig.set("drive.queue.duration_limits.reads", "[{ guideline_ms = 50 }]")?;
        let keys = "rw=randread\nbs=128k\niodepth=32\nnorandommap\n\
                    cmdprio_percentage=20\ncmdprio_class=2\ncmdprio_hint=1\n";
        let results = self.run(&rig, keys, Extent::Count(40_000))?;
        let job = results.reported_jobs().next().expect("there is a job");
        let reads = job.kinds().next().expect("it reads").statistics;
        let mut figures = Vec::new();
        for (class, hint) in [("others", 0), ("limited", 1)] {
            let Some((_, times)) = reads.priorities().iter().find(|(priority, _)| priority.hint == hint)
            else {
                continue;
            };
            figures.push(figure(&format!("{class}_iops"), times.count() as f64 / results.counted_s()));
            figures.extend(quantiles(times, &format!("{class}_")));
        }
        Ok(figures)
    }
}

fn quantiles(times: &TimeHistogram, prefix: &str) -> Vec<Figure> {
    let name = |percentile: &str| format!("{prefix}{percentile}_ms");
    PERCENTILES.iter().map(|(percentile, share)| (name(percentile), times.quantile(*share).as_ms())).collect()
}

fn figures_of(results: &Results) -> Vec<Figure> {
    let response = results.response();
    let mut figures = vec![
        figure("iops", results.iops()),
        figure("mb_s", results.bandwidth_mb_s()),
        figure("mib_s", results.bandwidth_mb_s() / MIB_OVER_MB),
        figure("mean_ms", response.mean_ms()),
        figure("p99_over_mean", response.quantile(0.99).as_ms() / response.mean_ms()),
    ];
    figures.extend(quantiles(&response, ""));
    figures
}
