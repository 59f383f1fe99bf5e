//! Numbers in Prometheus's text format.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) type Labels = Vec<(&'static str, String)>;

type Value = Gauge<f64, AtomicU64>;
type Sum = Counter<f64, AtomicU64>;

pub(crate) struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// Contains only the version; all names begin with the project's.
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

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a text takes all that is written to it");
        text
    }
}
