//! Numbers in Prometheus's text format.

use headstack_model::report::{QuantityKind, QuantityUnit, ReportedQuantity};
use headstack_model::{Nanos, QuantityReport};
use headstack_sim::stats::TimeHistogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::AtomicU64;

pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) type Labels = Vec<(&'static str, String)>;

/// Values, each with its labels.
type Samples = Vec<(Labels, f64)>;

type Value = Gauge<f64, AtomicU64>;
type Sum = Counter<f64, AtomicU64>;

pub(crate) struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// Metrics that contain only the version so far. All their names begin with `headstack`.
    pub(crate) fn new() -> Metrics {
        let mut metrics = Metrics { registry: Registry::with_prefix("headstack") };
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_string())];
        metrics.gauges("build_info", "The version of the program", std::iter::once((version, 1.0)));
        metrics
    }

    pub(crate) fn gauges(&mut self, name: &str, help: &str, values: impl Iterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Value>::default();
        values.for_each(|(labels, value)| {
            family.get_or_create(&labels).set(value);
        });
        self.registry.register(name, help, family);
    }

    pub(crate) fn counters(&mut self, name: &str, help: &str, values: impl Iterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Sum>::default();
        values.for_each(|(labels, value)| {
            family.get_or_create(&labels).inc_by(value);
        });
        self.registry.register(name, help, family);
    }

    /// Histograms of times.
    pub(crate) fn histograms(&mut self, name: &str, help: &str, values: Vec<(Labels, TimeCounts)>) {
        let (name, help) = (name.to_string(), format!("{help}."));
        self.registry.register_collector(Box::new(Histograms { name, help, values }));
    }

    /// What reports show, and details with a name as metrics, each with the labels of its report.
    pub(crate) fn reports<'a>(&mut self, reports: impl Iterator<Item = (Labels, &'a QuantityReport)>) {
        let mut families: Vec<(String, &ReportedQuantity, Samples)> = Vec::new();
        for (labels, report) in reports {
            for (groups, quantity) in report.quantities() {
                let Some((name, value)) = name(&groups, quantity).zip(base_value(quantity)) else { continue };
                let measured = (labels.clone(), value);
                match families.iter_mut().find(|(known, ..)| *known == name) {
                    Some((.., values)) => values.push(measured),
                    None => families.push((name, quantity, vec![measured])),
                }
            }
        }
        for (name, quantity, values) in families {
            match quantity.kind {
                QuantityKind::Counter => self.counters(&name, quantity.help, values.into_iter()),
                QuantityKind::Gauge | QuantityKind::Fact => {
                    self.gauges(&name, quantity.help, values.into_iter());
                }
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a text takes all that is written to it");
        text
    }
}

/// The name of a quantity as a metric, with its base unit; none for a detail without one.
fn name(groups: &[&str], quantity: &ReportedQuantity) -> Option<String> {
    let made = || {
        let name = [groups, &[quantity.name]].concat().join("_");
        let unit = |suffix: &str, unit: &str| Some(name.strip_suffix(suffix)?.to_string() + unit);
        let in_base = match quantity.unit {
            QuantityUnit::Seconds => unit("_s", "_seconds"),
            QuantityUnit::Milliseconds => unit("_ms", "_seconds"),
            QuantityUnit::One | QuantityUnit::Share | QuantityUnit::Bytes => None,
        };
        in_base.unwrap_or(name)
    };
    quantity.metric.map(str::to_string).or_else(|| (!quantity.is_detail).then(made))
}

/// The value in seconds, not milliseconds; none without a number.
fn base_value(quantity: &ReportedQuantity) -> Option<f64> {
    let value = quantity.number()?;
    Some(match quantity.unit {
        QuantityUnit::Milliseconds => value / 1e3,
        QuantityUnit::One | QuantityUnit::Share | QuantityUnit::Seconds | QuantityUnit::Bytes => value,
    })
}

/// Upper bounds of the buckets of times in seconds. They extend from a cache hit to a disk that does not answer.
const TIME_BOUNDS_S: [f64; 15] =
    [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// A cumulative histogram of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeCounts {
    /// Number of times, and their sum in seconds.
    pub(crate) count: u64,
    pub(crate) sum_s: f64,
    /// Bounds in seconds, each with the number of times that do not exceed it.
    pub(crate) up_to_s: Vec<(f64, u64)>,
}

impl From<&TimeHistogram> for TimeCounts {
    fn from(times: &TimeHistogram) -> TimeCounts {
        let up_to = |bound: f64| (bound, times.count_up_to(Nanos::from_ms(bound * 1e3)));
        TimeCounts {
            count: times.count(),
            sum_s: times.mean_ms() / 1e3 * times.count() as f64,
            up_to_s: TIME_BOUNDS_S.map(up_to).to_vec(),
        }
    }
}

impl TimeCounts {
    /// The number of times in each bucket, in the form that Prometheus's client library takes. The last bucket ends at infinity.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let ends = || self.up_to_s.iter().copied().chain([(f64::INFINITY, self.count)]);
        let before = std::iter::once(0).chain(ends().map(|(_, up_to)| up_to));
        ends().zip(before).map(|((bound, up_to), before)| (bound, up_to.saturating_sub(before))).collect()
    }
}

#[derive(Debug)]
struct Histograms {
    name: String,
    help: String,
    values: Vec<(Labels, TimeCounts)>,
}

impl Collector for Histograms {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(&self.name, &self.help, None, MetricType::Histogram)?;
        for (labels, times) in &self.values {
            let mut metric = family.encode_family(labels)?;
            metric.encode_histogram::<NoLabelSet>(times.sum_s, times.count, &times.buckets(), None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_metrics_in_base_units() {
        let mut report = QuantityReport::default();
        let group = report.group("throttle");
        group.counter("held", 3u64, "Requests held back");
        group.gauge("wait_ms", 2.5, "Longest wait").unit(QuantityUnit::Milliseconds);
        group.counter("passed", 4u64, "Requests that passed").detail();
        group.counter("hits", 5u64, "Requests of copies").detail().metric("copy_hits");
        let mut metrics = Metrics::new();
        metrics.reports(std::iter::once((vec![("disk", "one".to_string())], &report)));
        let text = metrics.text();
        for line in [
            "# HELP headstack_throttle_held Requests held back.",
            "headstack_throttle_held_total{disk=\"one\"} 3.0",
            "headstack_throttle_wait_seconds{disk=\"one\"} 0.0025",
            "headstack_copy_hits_total{disk=\"one\"} 5.0",
        ] {
            assert!(text.lines().any(|met| met == line), "{line} in {text}");
        }
        assert!(!text.contains("passed"), "{text}");
    }

    #[test]
    fn histogram_counts_the_times_up_to_each_bound() {
        let mut times = TimeHistogram::new();
        [0.05, 3.0, 4.0, 15_000.0].into_iter().for_each(|ms| times.record(Nanos::from_ms(ms)));
        let mut metrics = Metrics::new();
        let labels = vec![("disk", "one".to_string())];
        metrics.histograms("response_time_seconds", "Response times", vec![(labels, (&times).into())]);
        let text = metrics.text();
        for line in [
            "headstack_response_time_seconds_bucket{le=\"0.0001\",disk=\"one\"} 1",
            "headstack_response_time_seconds_bucket{le=\"0.002\",disk=\"one\"} 1",
            "headstack_response_time_seconds_bucket{le=\"0.005\",disk=\"one\"} 3",
            "headstack_response_time_seconds_bucket{le=\"10.0\",disk=\"one\"} 3",
            "headstack_response_time_seconds_bucket{le=\"+Inf\",disk=\"one\"} 4",
            "headstack_response_time_seconds_count{disk=\"one\"} 4",
        ] {
            assert!(text.lines().any(|met| met == line), "{line} in {text}");
        }
    }
}
