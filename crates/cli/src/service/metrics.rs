//! Quantities in Prometheus's text format.

use super::endpoint::OtherForm;
use headstack_model::QuantityReport;
use headstack_model::report::{
    QuantityKind, QuantityUnit, QuantityValue, ReportItem, ReportedQuantity, TimeCounts,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::fmt;

pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The form for clients that do not accept OpenMetrics by its name: Prometheus's text format.
pub(crate) const PLAIN: OtherForm =
    OtherForm { kind: "text/plain; version=0.0.4; charset=utf-8", convert: plain };

type Labels = Vec<(&'static str, String)>;

/// The metrics of a report: what it shows, and details with a name as metrics. All their names begin with `headstack`.
pub(crate) fn text(report: &QuantityReport) -> String {
    let mut build = QuantityReport::default();
    build.fact("version", env!("CARGO_PKG_VERSION")).label("version");
    build.gauge("build_info", 1u64, "The version of the program");
    let mut families = Families::default();
    families.add(&build, &[], &Vec::new());
    families.add(report, &[], &Vec::new());
    let mut registry = Registry::with_prefix("headstack");
    registry.register_collector(Box::new(families));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes all that is written to it");
    text
}

/// OpenMetrics as Prometheus's text format, in which a counter's help and type have its whole name, and which has no end mark.
fn plain(text: &str) -> String {
    let is_counter = |name: &str| text.contains(&format!("# TYPE {name} counter\n"));
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), ..) => String::new(),
            (Some("#"), Some(what), Some(name), Some(rest)) if is_counter(name) => {
                format!("# {what} {name}_total {rest}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

#[derive(Debug, Default)]
struct Families(Vec<Family>);

/// A metric, with its values and their labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    kind: MetricType,
    samples: Vec<(Labels, MetricSample)>,
}

#[derive(Debug)]
enum MetricSample {
    Number(f64),
    Times(TimeCounts),
}

impl Families {
    fn add(&mut self, report: &QuantityReport, groups: &[&str], outside: &Labels) {
        let labels = [&outside[..], &labels(report)].concat();
        for item in &report.items {
            match item {
                ReportItem::Quantity(quantity) => self.add_quantity(quantity, groups, labels.clone()),
                ReportItem::Group(_, group) if group.is_flat => self.add(group, groups, &labels),
                ReportItem::Group(name, group) => self.add(group, &[groups, &[name]].concat(), &labels),
                ReportItem::List(_, reports) => {
                    let labelled = reports.iter().filter(|report| !self::labels(report).is_empty());
                    labelled.for_each(|report| self.add(report, &[], &labels));
                }
            }
        }
    }

    fn add_quantity(&mut self, quantity: &ReportedQuantity, groups: &[&str], mut labels: Labels) {
        let Some((name, sample)) = name(groups, quantity).zip(sample(quantity)) else { return };
        labels.extend(quantity.quantile.map(|share| ("share", share.to_string())));
        let kind = match (&sample, quantity.kind) {
            (MetricSample::Times(_), _) => MetricType::Histogram,
            (_, QuantityKind::Counter) => MetricType::Counter,
            (_, QuantityKind::Gauge | QuantityKind::Fact) => MetricType::Gauge,
        };
        let at = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            let help = format!("{}.", quantity.help);
            self.0.push(Family { name, help, kind, samples: Vec::new() });
            self.0.len() - 1
        });
        self.0[at].samples.push((labels, sample));
    }
}

fn labels(report: &QuantityReport) -> Labels {
    let text = |quantity: &ReportedQuantity| match quantity.to_json() {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let label = |item: &ReportItem| match item {
        ReportItem::Quantity(quantity) => Some((quantity.label?, text(quantity))),
        _ => None,
    };
    report.items.iter().filter_map(label).collect()
}

/// The name of a quantity as a metric, with its base unit; none for a detail without one.
fn name(groups: &[&str], quantity: &ReportedQuantity) -> Option<String> {
    let made = || {
        let name = [groups, &[quantity.name]].concat().join("_");
        let unit = |suffix: &str, unit: &str| Some(name.strip_suffix(suffix)?.to_string() + unit);
        let in_base = match quantity.unit {
            QuantityUnit::Seconds => unit("_s", "_seconds"),
            QuantityUnit::Milliseconds => unit("_ms", "_seconds"),
            QuantityUnit::MegabytesPerSecond => unit("_mb_s", "_bytes_per_second"),
            _ => None,
        };
        in_base.unwrap_or(name)
    };
    quantity.metric.map(str::to_string).or_else(|| (!quantity.is_detail).then(made))
}

/// The value in seconds or bytes a second; none for a word and where there is none.
fn sample(quantity: &ReportedQuantity) -> Option<MetricSample> {
    if let QuantityValue::Times(times) = &quantity.value {
        return Some(MetricSample::Times(times.clone()));
    }
    let value = quantity.number()?;
    Some(MetricSample::Number(match quantity.unit {
        QuantityUnit::Milliseconds => value / 1e3,
        QuantityUnit::MegabytesPerSecond => value * 1e6,
        QuantityUnit::One | QuantityUnit::Share | QuantityUnit::Seconds | QuantityUnit::Bytes => value,
    }))
}

/// The number of times in each bucket, in the form that Prometheus's client library takes. The last bucket ends at infinity.
fn buckets(times: &TimeCounts) -> Vec<(f64, u64)> {
    let ends = || times.up_to_s.iter().copied().chain([(f64::INFINITY, times.count)]);
    let before = std::iter::once(0).chain(ends().map(|(_, up_to)| up_to));
    ends().zip(before).map(|((bound, up_to), before)| (bound, up_to.saturating_sub(before))).collect()
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, kind, samples } in &self.0 {
            let mut family = encoder.encode_descriptor(name, help, None, *kind)?;
            for (labels, sample) in samples {
                let mut metric = family.encode_family(labels)?;
                match (sample, kind) {
                    (MetricSample::Times(times), _) => metric.encode_histogram::<NoLabelSet>(
                        times.sum_s,
                        times.count,
                        &buckets(times),
                        None,
                    )?,
                    (MetricSample::Number(value), MetricType::Counter) => {
                        metric.encode_counter::<NoLabelSet, _, f64>(value, None)?;
                    }
                    (MetricSample::Number(value), _) => metric.encode_gauge(value)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Nanos;
    use headstack_sim::stats::TimeHistogram;

    #[test]
    fn reports_become_metrics_in_base_units() {
        let mut report = QuantityReport::default();
        report.fact("name", "one").label("disk");
        let group = report.group("throttle");
        group.counter("held", 3u64, "Requests held back");
        group.gauge("wait_ms", 2.5, "Longest wait").unit(QuantityUnit::Milliseconds);
        group.counter("passed", 4u64, "Requests that passed").detail();
        group.counter("hits", 5u64, "Requests of copies").detail().metric("copy_hits");
        let text = text(&report);
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
    fn plain_text_names_counters_in_full_and_has_no_end_mark() {
        let mut report = QuantityReport::default();
        report.counter("held", 3u64, "Requests held back");
        report.gauge("holders", 2u64, "Those that hold requests");
        let lines: Vec<String> =
            plain(&text(&report)).lines().skip(3).map(|line| line.replace("{}", "")).collect();
        let expected = [
            "# HELP headstack_held_total Requests held back.",
            "# TYPE headstack_held_total counter",
            "headstack_held_total 3.0",
            "# HELP headstack_holders Those that hold requests.",
            "# TYPE headstack_holders gauge",
            "headstack_holders 2",
        ];
        assert_eq!(
            lines.iter().map(|line| line.trim_end_matches(".0")).collect::<Vec<_>>()[3..],
            expected[3..]
        );
        assert_eq!(lines[..3], expected[..3]);
    }

    #[test]
    fn histogram_counts_the_times_up_to_each_bound() {
        let mut times = TimeHistogram::new();
        [0.05, 3.0, 4.0, 15_000.0].into_iter().for_each(|ms| times.record(Nanos::from_ms(ms)));
        let mut report = QuantityReport::default();
        report.fact("name", "one").label("disk");
        report.gauge("response_time_s", &times, "Response times").unit(QuantityUnit::Seconds);
        let text = text(&report);
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
