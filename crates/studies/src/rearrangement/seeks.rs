//! A run with rearrangement, and its seek times.

use super::BLOCKS;
use super::loads::{LoadCase, WEEK_DRIVES};
use crate::study::{Length, StudyError};
use headstack_model::{DriveSpec, Instant, Nanos};
use headstack_sim::{RearrangeActivity, RearrangeLayer, Rig};
use headstack_streams::rearrange::{CounterReplacement, ReferenceAnalysis};

/// The study's disk.
pub(super) const DISK: &str = include_str!("../../studies/rearrangement/disk.toml");

/// Requests of a day that counts.
pub(super) const LEAST_REQUESTS: u64 = 500;

/// Sectors of a block of 8 KiB.
const BLOCK_SECTORS: u64 = 16;

/// Figures of the days after the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedSeeks {
    /// Mean seek per request.
    pub(super) seek_ms: f64,
    /// Share of the requests that copies served.
    pub(super) hits: f64,
    /// Mean response.
    pub(super) response_ms: f64,
    /// Share of the run in which the arm was busy with copies.
    pub(super) copying: f64,
    /// Mean number of requests waiting or in service.
    pub(super) mean_queue: f64,
    /// Mean share of the references of a day's hot list that go to blocks missing from the previous day's list.
    pub(super) drift: f64,
}

/// Seek time that one run saves against another, in percent.
pub(super) fn saved(of: &SavedSeeks, plain: &SavedSeeks) -> f64 {
    100.0 * (1.0 - of.seek_ms / plain.seek_ms)
}

/// Response times and references of the volume that is measured.
struct VolumeWatch {
    volume: u32,
    from: Instant,
    responses: u64,
    response_ms: f64,
    analysis: ReferenceAnalysis,
    drifts: Vec<f64>,
}

/// Runs a load on the rig with these keys set.
///
/// *Errors:* the rig or the load is invalid.
pub(super) fn measure(
    case: &LoadCase,
    trace: Option<&[u8]>,
    keys: &[(&str, &str)],
    length: Length,
) -> Result<SavedSeeks, StudyError> {
    let mut rig = Rig::from_drive(DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?);
    if case.load.is_trace() {
        rig.set("drive.count", &WEEK_DRIVES.to_string())?;
    }
    rig.set("rearrange.blocks", &BLOCKS.to_string())?;
    rig.set("rearrange.period_s", &case.day_s().to_string())?;
    // A loaded file server has no idle time, and the study made its copies at once at the end of a day.
    rig.set("rearrange.when", "at-once")?;
    keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
    let (mut engine, volumes) = (rig.build(1)?, rig.volumes());
    let mut requests = case.requests(trace, &volumes, length)?;
    let day = Nanos::from_ms(case.day_s() * 1e3);
    let analysis = ReferenceAnalysis::new(vec![BLOCKS as usize], day, CounterReplacement::FirstCome, 1);
    let mut watch = VolumeWatch {
        volume: 0,
        from: Instant::ZERO + day,
        responses: 0,
        response_ms: 0.0,
        analysis,
        drifts: Vec::new(),
    };
    engine.run(requests.as_mut(), &mut |finished| {
        if finished.volume == watch.volume {
            watch.observe(&finished.completion);
        }
    });
    let activity = engine.layer::<RearrangeLayer>(0).expect("the volume has a rearranger").activity();
    Ok(figures(&activity, watch, engine.now()))
}

impl VolumeWatch {
    fn observe(&mut self, completion: &headstack_sim::Completion) {
        let block = completion.request.lbn.0 / BLOCK_SECTORS;
        let ended = self.analysis.observe(completion.submitted, block);
        self.drifts.extend(ended.and_then(|period| period.drift).map(|drift| drift.by_reference));
        if completion.submitted >= self.from {
            self.responses += 1;
            self.response_ms += completion.response().as_ms();
        }
    }
}

fn figures(activity: &RearrangeActivity, watch: VolumeWatch, end: Instant) -> SavedSeeks {
    let from = watch.from;
    let counts = |period: &&headstack_sim::RearrangePeriod| {
        period.record.end > from && period.record.counters.requests >= LEAST_REQUESTS
    };
    let (mut requests, mut hits, mut seek_ms) = (0, 0, 0.0);
    for period in activity.periods.iter().filter(counts) {
        requests += period.record.counters.requests;
        hits += period.record.counters.hits;
        seek_ms += period.times.seek.as_ms();
    }
    let requests = requests.max(1) as f64;
    let mut drifts = watch.drifts;
    drifts.extend(watch.analysis.finish().and_then(|period| period.drift).map(|drift| drift.by_reference));
    SavedSeeks {
        seek_ms: seek_ms / requests,
        hits: hits as f64 / requests,
        response_ms: watch.response_ms / watch.responses.max(1) as f64,
        copying: activity.times.copy_arm.as_secs() / end.as_secs(),
        mean_queue: watch.response_ms / 1e3 / (end.since(watch.from)).as_secs(),
        drift: drifts.iter().sum::<f64>() / drifts.len().max(1) as f64,
    }
}

/// Spearman's rank correlation of pairs; `None` for fewer than two pairs.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let ranks = |pick: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let rank = |pair: &(f64, f64)| pairs.iter().filter(|other| pick(other) < pick(pair)).count() as f64;
        pairs.iter().map(rank).collect()
    };
    if pairs.len() < 2 {
        return None;
    }
    let (one, other) = (ranks(|pair| pair.0), ranks(|pair| pair.1));
    let squares: f64 = one.iter().zip(&other).map(|(a, b)| (a - b) * (a - b)).sum();
    let count = pairs.len() as f64;
    Some(1.0 - 6.0 * squares / (count * (count * count - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_correlation_is_one_for_equal_orders_and_minus_one_for_opposite_ones() {
        let rising = [(0.1, 5.0), (0.2, 7.0), (0.9, 70.0)];
        assert_eq!(correlation(&rising), Some(1.0));
        let falling = rising.map(|(drift, gain)| (drift, -gain));
        assert_eq!(correlation(&falling), Some(-1.0));
        assert_eq!(correlation(&rising[..1]), None);
    }
}
