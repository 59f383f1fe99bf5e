//! Quantities, each defined once: where it is counted.
//!
//! A layer, a device or a node fills a [`QuantityReport`] with what it counts: the name, value, kind, unit and help text of each quantity. All
//! outputs walk the report: the JSON, text and page of a run, the columns of a sweep, the state of a node, and the metrics of a node and of
//! an emulator. A quantity that is added in one place is thus in all.

use crate::Nanos;
use serde_json::{Map, Value, json};

/// The value of a quantity.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum QuantityValue {
    Whole(u64),
    Real(f64),
    Time(Nanos),
    Flag(bool),
    Text(String),
    /// A distribution of times.
    Times(TimeCounts),
    /// There was nothing to measure.
    #[default]
    Absent,
}

/// A cumulative histogram of times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeCounts {
    /// Number of times.
    pub count: u64,
    /// Their sum in seconds.
    pub sum_s: f64,
    /// Bounds in seconds, each with the number of times that do not exceed it.
    pub up_to_s: Vec<(f64, u64)>,
}

/// How a quantity changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantityKind {
    /// It only grows; those of several devices add up.
    Counter,
    /// A state, which can also fall.
    Gauge,
    /// It describes what is counted, such as a name.
    #[default]
    Fact,
}

/// The unit of a quantity in JSON. A metric is in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum QuantityUnit {
    #[default]
    One,
    Share,
    Seconds,
    Milliseconds,
    Bytes,
    /// 10⁶ bytes a second; a metric is in bytes a second.
    MegabytesPerSecond,
}

/// A quantity with its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedQuantity {
    /// Its key in JSON.
    pub name: &'static str,
    /// The value.
    pub value: QuantityValue,
    /// How it changes.
    pub kind: QuantityKind,
    /// Its unit.
    pub unit: QuantityUnit,
    /// What it is, without a full stop.
    pub help: &'static str,
    /// Whether only JSON has it: neither text nor columns, nor metrics unless it has a name there.
    pub is_detail: bool,
    /// Whether it is a metric and nothing else.
    pub is_only_metric: bool,
    /// Its name as a metric, if that is not made of the names of its groups and its own.
    pub metric: Option<&'static str>,
    /// The quantile that it is of its metric.
    pub quantile: Option<&'static str>,
    /// The label with its value that all metrics of its report have.
    pub label: Option<&'static str>,
}

impl ReportedQuantity {
    /// In this unit.
    pub fn unit(&mut self, unit: QuantityUnit) -> &mut ReportedQuantity {
        self.unit = unit;
        self
    }

    /// Only in JSON.
    pub fn detail(&mut self) -> &mut ReportedQuantity {
        self.is_detail = true;
        self
    }

    /// With this name as a metric, also of a detail.
    pub fn metric(&mut self, name: &'static str) -> &mut ReportedQuantity {
        self.metric = Some(name);
        self
    }

    /// Only as a metric.
    pub fn only_metric(&mut self, name: &'static str) -> &mut ReportedQuantity {
        self.is_only_metric = true;
        self.detail().metric(name)
    }

    /// As this quantile of a metric.
    pub fn quantile(&mut self, metric: &'static str, quantile: &'static str) -> &mut ReportedQuantity {
        self.quantile = Some(quantile);
        self.metric(metric)
    }

    /// Its value labels the metrics of its report. Of a list, only reports with a label have metrics.
    pub fn label(&mut self, name: &'static str) {
        self.label = Some(name);
    }

    /// The value as a number in its unit; `None` for words, distributions and what is absent.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            QuantityValue::Whole(value) => Some(*value as f64),
            QuantityValue::Real(value) => Some(*value),
            QuantityValue::Time(time) if self.unit == QuantityUnit::Milliseconds => Some(time.as_ms()),
            QuantityValue::Time(time) => Some(time.as_secs()),
            QuantityValue::Flag(is_set) => Some(f64::from(u8::from(*is_set))),
            QuantityValue::Text(_) | QuantityValue::Times(_) | QuantityValue::Absent => None,
        }
    }

    /// Adds the same quantity of another layer or device: counters and sums add up, of other quantities the greater one stays.
    pub fn merge(&mut self, other: &ReportedQuantity) {
        let is_counter = self.kind == QuantityKind::Counter;
        match (&mut self.value, &other.value) {
            (QuantityValue::Whole(own), QuantityValue::Whole(other)) if is_counter => *own += other,
            (QuantityValue::Real(own), QuantityValue::Real(other)) if is_counter => *own += other,
            (QuantityValue::Time(own), QuantityValue::Time(other)) if is_counter => *own += *other,
            (QuantityValue::Whole(own), QuantityValue::Whole(other)) => *own = *other.max(own),
            (QuantityValue::Real(own), QuantityValue::Real(other)) => *own = other.max(*own),
            (QuantityValue::Time(own), QuantityValue::Time(other)) => *own = *other.max(own),
            (own @ QuantityValue::Absent, other) => *own = other.clone(),
            _ => {}
        }
    }

    /// The value in JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
            QuantityValue::Whole(value) => (*value).into(),
            QuantityValue::Flag(is_set) => (*is_set).into(),
            QuantityValue::Text(text) => text.as_str().into(),
            QuantityValue::Times(TimeCounts { count, sum_s, up_to_s }) => {
                json!({ "count": count, "sum_s": sum_s, "up_to_s": up_to_s })
            }
            QuantityValue::Real(_) | QuantityValue::Time(_) | QuantityValue::Absent => self.number().into(),
        }
    }
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportItem {
    /// A quantity.
    Quantity(ReportedQuantity),
    /// An object in JSON.
    Group(&'static str, QuantityReport),
    /// A list of objects in JSON.
    List(&'static str, Vec<QuantityReport>),
}

impl ReportItem {
    /// Its key in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            ReportItem::Quantity(quantity) => quantity.name,
            ReportItem::Group(name, _) | ReportItem::List(name, _) => name,
        }
    }
}

/// What was counted, in the order of JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuantityReport {
    /// The time in which it was counted.
    pub elapsed: Nanos,
    /// Its parts.
    pub items: Vec<ReportItem>,
    /// Whether the name of this group is no part of the names of its metrics.
    pub is_flat: bool,
}

impl QuantityReport {
    /// An empty report of what was counted in this time.
    pub fn new(elapsed: Nanos) -> QuantityReport {
        QuantityReport { elapsed, ..QuantityReport::default() }
    }

    /// Adds a count of what has happened, or a sum of times or bytes.
    pub fn counter(
        &mut self,
        name: &'static str,
        value: impl Into<QuantityValue>,
        help: &'static str,
    ) -> &mut ReportedQuantity {
        self.add(name, value.into(), QuantityKind::Counter, help)
    }

    /// Adds a state.
    pub fn gauge(
        &mut self,
        name: &'static str,
        value: impl Into<QuantityValue>,
        help: &'static str,
    ) -> &mut ReportedQuantity {
        self.add(name, value.into(), QuantityKind::Gauge, help)
    }

    /// Adds a share, 0 to 1.
    pub fn share(
        &mut self,
        name: &'static str,
        value: impl Into<QuantityValue>,
        help: &'static str,
    ) -> &mut ReportedQuantity {
        self.gauge(name, value, help).unit(QuantityUnit::Share)
    }

    /// Adds a time as a share of the time in which was counted.
    pub fn time_share(
        &mut self,
        name: &'static str,
        time: Nanos,
        help: &'static str,
    ) -> &mut ReportedQuantity {
        let elapsed = self.elapsed.as_secs();
        self.share(name, if elapsed > 0.0 { time.as_secs() / elapsed } else { 0.0 }, help)
    }

    /// Adds what describes the counts, such as a name.
    pub fn fact(&mut self, name: &'static str, value: impl Into<QuantityValue>) -> &mut ReportedQuantity {
        self.add(name, value.into(), QuantityKind::Fact, "").detail()
    }

    fn add(
        &mut self,
        name: &'static str,
        value: QuantityValue,
        kind: QuantityKind,
        help: &'static str,
    ) -> &mut ReportedQuantity {
        let unit = match value {
            QuantityValue::Time(_) if name.ends_with("_ms") => QuantityUnit::Milliseconds,
            QuantityValue::Time(_) => QuantityUnit::Seconds,
            _ => QuantityUnit::One,
        };
        let quantity = ReportedQuantity { name, value, kind, unit, help, ..ReportedQuantity::default() };
        self.items.push(ReportItem::Quantity(quantity));
        match self.items.last_mut() {
            Some(ReportItem::Quantity(quantity)) => quantity,
            _ => unreachable!("a quantity was added"),
        }
    }

    /// Adds a group.
    pub fn group(&mut self, name: &'static str) -> &mut QuantityReport {
        self.items.push(ReportItem::Group(name, QuantityReport::new(self.elapsed)));
        match self.items.last_mut() {
            Some(ReportItem::Group(_, group)) => group,
            _ => unreachable!("a group was added"),
        }
    }

    /// Adds a group whose name is no part of the names of its metrics.
    pub fn flat_group(&mut self, name: &'static str) -> &mut QuantityReport {
        let group = self.group(name);
        group.is_flat = true;
        group
    }

    /// Adds a group, or null in JSON where there is nothing to report.
    pub fn group_of<T>(
        &mut self,
        name: &'static str,
        found: Option<T>,
        fill: impl FnOnce(T, &mut QuantityReport),
    ) {
        match found {
            Some(found) => fill(found, self.group(name)),
            None => {
                self.fact(name, QuantityValue::Absent);
            }
        }
    }

    /// Adds a list with a report for each of these.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        all: impl IntoIterator<Item = T>,
        fill: impl Fn(T, &mut QuantityReport),
    ) {
        let one = |item| {
            let mut report = QuantityReport::new(self.elapsed);
            fill(item, &mut report);
            report
        };
        let reports = all.into_iter().map(one).collect();
        self.items.push(ReportItem::List(name, reports));
    }

    /// Leaves these quantities out of JSON; those that are metrics stay so.
    pub fn hide(&mut self, names: &[&str]) {
        for item in &mut self.items {
            if let ReportItem::Quantity(quantity) = item {
                quantity.is_only_metric |= names.contains(&quantity.name);
            }
        }
    }

    /// Adds another report of the same time, as [`ReportedQuantity::merge`] adds each quantity.
    pub fn merge(&mut self, other: QuantityReport) {
        for item in other.items {
            match (self.items.iter_mut().find(|own| own.name() == item.name()), item) {
                (None, item) => self.items.push(item),
                (Some(ReportItem::Quantity(own)), ReportItem::Quantity(other)) => own.merge(&other),
                (Some(ReportItem::Group(_, own)), ReportItem::Group(_, other)) => own.merge(other),
                (Some(ReportItem::List(_, own)), ReportItem::List(_, others)) => own.extend(others),
                (Some(own), other) => unreachable!("{own:?} and {other:?} have the same name"),
            }
        }
    }

    /// All quantities with the names of their groups; without those in lists.
    pub fn quantities(&self) -> Vec<(Vec<&'static str>, &ReportedQuantity)> {
        let mut found = Vec::new();
        for item in &self.items {
            match item {
                ReportItem::Quantity(quantity) => found.push((Vec::new(), quantity)),
                ReportItem::Group(name, group) => {
                    let inner = group.quantities().into_iter();
                    found.extend(inner.map(|(path, quantity)| ([vec![*name], path].concat(), quantity)));
                }
                ReportItem::List(..) => {}
            }
        }
        found
    }

    /// The quantities that are no details.
    pub fn shown(&self) -> impl Iterator<Item = (Vec<&'static str>, &ReportedQuantity)> {
        self.quantities().into_iter().filter(|(_, quantity)| !quantity.is_detail)
    }

    /// The report as an object.
    pub fn to_json(&self) -> Map<String, Value> {
        let value = |item: &ReportItem| match item {
            ReportItem::Quantity(quantity) if quantity.is_only_metric => None,
            ReportItem::Quantity(quantity) => Some(quantity.to_json()),
            ReportItem::Group(_, group) => Some(group.to_json().into()),
            ReportItem::List(_, reports) => Some(reports.iter().map(QuantityReport::to_json).collect()),
        };
        self.items.iter().filter_map(|item| Some((item.name().to_string(), value(item)?))).collect()
    }
}

impl From<u64> for QuantityValue {
    fn from(value: u64) -> QuantityValue {
        QuantityValue::Whole(value)
    }
}

impl From<u32> for QuantityValue {
    fn from(value: u32) -> QuantityValue {
        QuantityValue::Whole(value.into())
    }
}

impl From<usize> for QuantityValue {
    fn from(value: usize) -> QuantityValue {
        QuantityValue::Whole(value as u64)
    }
}

impl From<f64> for QuantityValue {
    fn from(value: f64) -> QuantityValue {
        QuantityValue::Real(value)
    }
}

impl From<Nanos> for QuantityValue {
    fn from(value: Nanos) -> QuantityValue {
        QuantityValue::Time(value)
    }
}

impl From<bool> for QuantityValue {
    fn from(value: bool) -> QuantityValue {
        QuantityValue::Flag(value)
    }
}

impl From<&str> for QuantityValue {
    fn from(value: &str) -> QuantityValue {
        QuantityValue::Text(value.to_string())
    }
}

impl<T: Into<QuantityValue>> From<Option<T>> for QuantityValue {
    fn from(value: Option<T>) -> QuantityValue {
        value.map_or(QuantityValue::Absent, T::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_quantities_in_order_and_in_their_units() {
        let mut report = QuantityReport::new(Nanos::from_secs(4));
        report.fact("name", "one");
        report.counter("held", 3u64, "Requests that were held back");
        report.counter("late", Nanos(2_500_000), "Time lost").unit(QuantityUnit::Milliseconds);
        report.time_share("busy", Nanos::from_secs(1), "Share of the time at work").detail();
        report.group_of("guard", None::<u64>, |_, _| {});
        report.list("parts", [true], |part, into| {
            into.fact("part", part);
        });
        let text = Value::Object(report.to_json()).to_string();
        let expected =
            r#"{"name":"one","held":3,"late":2.5,"busy":0.25,"guard":null,"parts":[{"part":true}]}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn reports_of_several_layers_add_up() {
        let report = |held: u64, wait: f64| {
            let mut report = QuantityReport::default();
            let queue = report.group("queue");
            queue.counter("held", held, "Held");
            queue.gauge("wait", wait, "Longest wait");
            report
        };
        let mut both = report(2, 4.0);
        both.merge(report(3, 1.0));
        assert_eq!(both, report(5, 4.0));
    }

    #[test]
    fn details_and_descriptions_are_not_shown() {
        let mut report = QuantityReport::default();
        report.fact("name", "one");
        report.counter("found", 1u64, "Found").detail();
        report.group("queue").counter("held", 2u64, "Held");
        let shown: Vec<_> = report.shown().collect();
        assert_eq!(shown.len(), 1);
        assert_eq!((&shown[0].0[..], shown[0].1.name), (&["queue"][..], "held"));
    }
}
