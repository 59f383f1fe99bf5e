//! What advice costs: the jobs, and the figures, that it makes much worse.

use super::goal::{TuneFigures, TuneJob, TuneMetric};
use super::search::TuneOutcome;
use crate::numbers::significant;
use serde_json::{Value, json};

/// A job that has less than this share of its rate, or a response longer by its inverse, is a loss that comes first.
const MUCH_WORSE: f64 = 0.5;

/// A job's reads, writes or flushes as the system is set now, and with all that is advised.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneJobChange<'a> {
    /// Now.
    pub now: &'a TuneJob,
    /// With the advice; zeros where none of its requests completes.
    pub advised: TuneJob,
}

impl TuneJobChange<'_> {
    /// Whether it gets less than half of its rate, or waits more than twice as long.
    pub fn is_loss(&self) -> bool {
        self.has_lost_rate() || self.waits_longer()
    }

    fn has_lost_rate(&self) -> bool {
        self.advised.iops < MUCH_WORSE * self.now.iops
    }

    /// Whether it completes nothing with the advice.
    pub fn is_starved(&self) -> bool {
        self.now.iops > 0.0 && self.advised.iops == 0.0
    }

    fn waits_longer(&self) -> bool {
        !self.now.is_flushed && self.advised.p99_ms * MUCH_WORSE > self.now.p99_ms
    }

    pub(super) fn to_json(&self) -> Value {
        let figures = |job: &TuneJob| json!({"iops": job.iops, "mb_s": job.mb_s, "mean_ms": job.mean_ms, "p99_ms": job.p99_ms});
        json!({
            "job": self.now.name,
            "now": figures(self.now),
            "advised": figures(&self.advised),
            "is_loss": self.is_loss(),
        })
    }

    fn loss(&self) -> Option<String> {
        let (now, advised) = (self.now, &self.advised);
        if self.is_starved() {
            return Some(format!(
                "{} is starved: it completes nothing, now {} IOPS",
                now.name,
                significant(now.iops, 4)
            ));
        }
        let four = |value: f64| significant(value, 4);
        let rate = self
            .has_lost_rate()
            .then(|| format!("falls from {} to {} IOPS", four(now.iops), four(advised.iops)));
        let wait = self
            .waits_longer()
            .then(|| format!("waits longer: p99 {} ms, now {} ms", four(advised.p99_ms), four(now.p99_ms)));
        let both: Vec<String> = rate.into_iter().chain(wait).collect();
        (!both.is_empty()).then(|| format!("{} {}", now.name, both.join(" and ")))
    }
}

/// Each job's reads, writes and flushes, if there are several.
pub(super) fn job_changes(outcome: &TuneOutcome) -> impl Iterator<Item = TuneJobChange<'_>> {
    let all = if outcome.before.jobs.len() > 1 { &outcome.before.jobs[..] } else { &[] };
    all.iter().map(|now| {
        let advised = outcome.after.jobs.iter().find(|job| job.name == now.name);
        TuneJobChange { now, advised: advised.cloned().unwrap_or_else(|| now.starved()) }
    })
}

/// What the advice costs, each in a sentence without its end.
pub(super) fn losses(outcome: &TuneOutcome) -> Vec<String> {
    if outcome.advised.is_empty() {
        return Vec::new();
    }
    let worse = |metric| worse(metric, &outcome.before, &outcome.after);
    let figures = outcome.by_metric.iter().filter_map(|(metric, _)| worse(*metric));
    figures.chain(job_changes(outcome).filter_map(|change| change.loss())).collect()
}

fn worse(metric: TuneMetric, now: &TuneFigures, advised: &TuneFigures) -> Option<String> {
    let (now, advised) = (now.get(metric), advised.get(metric));
    let is_worse = if metric.grows() { advised < MUCH_WORSE * now } else { advised * MUCH_WORSE > now };
    let (name, unit) = (metric.name(), metric.unit());
    let verb = if metric.grows() { "falls" } else { "grows" };
    is_worse
        .then(|| format!("{name} {verb} from {} to {} {unit}", significant(now, 4), significant(advised, 4)))
}

#[cfg(test)]
mod tests {
    use super::super::search::{AdvisedSetting, Gain, SettingChoice};
    use super::*;

    fn job(name: &str, iops: f64, p99_ms: f64) -> TuneJob {
        TuneJob {
            name: name.to_string(),
            iops,
            mb_s: iops / 10.0,
            mean_ms: p99_ms / 2.0,
            p99_ms,
            is_flushed: name.ends_with("write"),
        }
    }

    fn outcome(now: Vec<TuneJob>, advised: Vec<TuneJob>, p99_ms: [f64; 2]) -> TuneOutcome {
        let gain = Gain { log: 0.2, half_width: 0.01 };
        let figures = |p99_ms, jobs| {
            let mut figures = TuneFigures::for_test(100.0, p99_ms);
            figures.jobs = jobs;
            figures
        };
        TuneOutcome {
            advised: vec![AdvisedSetting { choice: SettingChoice { knob: 0, value: 0 }, gain }],
            whole: gain,
            by_metric: vec![(TuneMetric::Iops, gain), (TuneMetric::P99, gain)],
            before: figures(p99_ms[0], now),
            after: figures(p99_ms[1], advised),
            runs: 0,
            whole_runs: 0.0,
            combinations: 1.0,
        }
    }

    #[test]
    fn job_that_starves_is_named_in_words() {
        let now =
            vec![job("log flush", 10.0, 50.0), job("batch read", 100.0, 500.0), job("scan read", 5.0, 100.0)];
        let advised = vec![job("log flush", 30.0, 20.0), job("batch read", 7.0, 5000.0)];
        let found = outcome(now, advised, [50.0, 20.0]).losses();
        let batch = "batch read falls from 100.0 to 7.000 IOPS and waits longer: p99 5000 ms, now 500.0 ms";
        assert_eq!(found, [batch, "scan read is starved: it completes nothing, now 5.000 IOPS"]);
    }

    #[test]
    fn figure_that_becomes_ten_times_worse_is_named_and_a_cached_write_is_not() {
        let now = vec![job("log write", 10.0, 0.1), job("log flush", 10.0, 50.0)];
        let advised = vec![job("log write", 30.0, 9.0), job("log flush", 30.0, 20.0)];
        let found = outcome(now, advised, [134.0, 1344.0]).losses();
        assert_eq!(found, ["p99 grows from 134.0 to 1344 ms"]);
    }
}
