//! A consumer drive of today: Seagate ST2000DM006, as one such drive was measured through a nearly full file system.
//!
//! Modelled: random reads over queue depth, the distribution of response times at depth 1, sequential rates over the
//! whole disk, random writes through the cache, FLUSH. Not modelled: the file system that the measurements went
//! through, and the rare responses beyond the 99th percentile.
//! *Source:* lumir-sliva/ublk-disksim, `docs/img/data` and `bench/expect/barracuda-2t.tsv`.

use crate::judge::Measured;
use crate::runs::{self, Responses};
use crate::study::{Findings, Setting, Study, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series};
use headstack_model::{DriveSpec, drives};

pub(crate) const STUDY: Study = Study {
    id: "st2000dm006",
    title: "Seagate ST2000DM006: a consumer drive of today",
    summary: "Random reads over queue depth, their distribution, sequential rates, random writes and FLUSH of one drive, compared with measurements.",
    expect: include_str!("../studies/st2000dm006/expect.tsv"),
    run,
};

/// Queue depths at which random reads were measured.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Quantiles of the response time at depth 1 that were published.
const PERCENTILES: [u32; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// Requests per run: enough that the first percentile of the response times is known to 1 % of its value.
const COUNT: u64 = 200_000;

/// Places over the disk, at each of which 1 GiB is read or written in order.
const PLACES: u64 = 32;

enum Part {
    Reads { depth: u32 },
    Sequential { name: &'static str, read_share: f64 },
    Writes,
    Flush { writes: u64 },
}

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drives::load("st2000dm006")?;
    let mut parts: Vec<Part> = DEPTHS.iter().map(|depth| Part::Reads { depth: *depth }).collect();
    parts.extend(
        [("read", 1.0), ("write", 0.0)].map(|(name, read_share)| Part::Sequential { name, read_share }),
    );
    parts.push(Part::Writes);
    parts.extend([8, 64].map(|writes| Part::Flush { writes }));
    let count = setting.length.pick(COUNT, COUNT / 10);
    let measured = setting.map(&parts, |part| part.measure(&spec, count))?.concat();
    let sections = vec![section(setting, &measured)];
    Ok(Findings { measured, sections })
}

impl Part {
    fn measure(&self, spec: &DriveSpec, count: u64) -> Result<Vec<Measured>, StudyError> {
        Ok(match *self {
            Part::Reads { depth } => random_reads(depth, &runs::random_reads(spec, depth, count)?),
            Part::Sequential { name, read_share } => {
                let places = runs::spread(spec, PLACES, runs::stretch(spec));
                let rate = runs::sequential_mb_s(spec, read_share, places)?;
                vec![Measured::new(format!("sequential_{name}_mb_s"), rate)]
            }
            Part::Writes => {
                vec![Measured::new("random_write_iops", runs::random_write_rate(spec, 1, 0, 30)?)]
            }
            Part::Flush { writes } => {
                vec![Measured::new(format!("flush_after_{writes}_ms"), runs::flush_ms(spec, writes, 100)?)]
            }
        })
    }
}

fn random_reads(depth: u32, responses: &Responses) -> Vec<Measured> {
    let mut all = vec![Measured::new(depth_metric(depth), responses.rate())];
    if depth == 1 {
        all.push(Measured::new("random_read_qd1_mean_ms", responses.mean_ms()));
        let quantile = |percent: u32| responses.quantile_ms(f64::from(percent) / 100.0);
        all.extend(PERCENTILES.map(|percent| Measured::new(quantile_metric(percent), quantile(percent))));
    }
    all
}

fn depth_metric(depth: u32) -> String {
    format!("random_read_qd{depth}_iops")
}

fn quantile_metric(percent: u32) -> String {
    format!("random_read_qd1_p{percent}_ms")
}

fn section(setting: &Setting<'_>, measured: &[Measured]) -> Section {
    let ours = |metric: &str| measured.iter().find(|found| found.metric == metric)?.value.clone().ok();
    let depth = |depth: u32, value: f64| (f64::from(depth), value);
    let quantile = |percent: u32, value: f64| (value, f64::from(percent));
    Section::new("Random reads")
        .with_text("Of 4 KiB over the whole disk, measured through a file system that was nearly full.")
        .with_chart(Chart::new(
            "Throughput over queue depth",
            Axis::log("queue depth (requests)").with_ticks(DEPTHS.map(f64::from)),
            Axis::linear("IOPS"),
            pair(&DEPTHS, depth_metric, depth, &|metric| setting.published(metric), &ours),
        ))
        .with_chart(Chart::new(
            "Response times at depth 1",
            Axis::linear("response time (ms)"),
            Axis::linear("requests (%)"),
            pair(&PERCENTILES, quantile_metric, quantile, &|metric| setting.published(metric), &ours),
        ))
}

type Values<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// The measured line and the simulated one.
fn pair(
    keys: &[u32],
    metric: fn(u32) -> String,
    point: fn(u32, f64) -> (f64, f64),
    published: Values<'_>,
    ours: Values<'_>,
) -> Vec<Series> {
    let line = |name: &str, look, family, values: Values<'_>| {
        let points = keys.iter().filter_map(|key| Some(point(*key, values(&metric(*key))?)));
        Series::new(name, family, points).with_draw(look)
    };
    vec![line("measured", Draw::Marks, 1, published), line("simulated", Draw::Points, 0, ours)]
}
