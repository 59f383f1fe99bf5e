//! The quantities of layers and devices that no other key, line or column of the results shows.

use super::Results;
use crate::numbers::{grouped, significant};
use headstack_model::QuantityReport;
use headstack_model::report::{QuantityUnit, QuantityValue, ReportedQuantity};

impl Results {
    /// What each volume and each device has counted, with its name and the group of what is in no group.
    fn reports(&self) -> impl Iterator<Item = (&str, &'static str, &QuantityReport)> {
        let volumes = self.volumes.iter().map(|volume| (volume.name.as_str(), "volume", &volume.report));
        let devices = self.devices.iter().map(|device| (device.name.as_str(), "device", &device.report));
        volumes.chain(devices)
    }

    /// A line for each quantity of each volume and device: its group and its text.
    pub fn reported_lines(&self) -> Vec<(String, String)> {
        let is_one = self.volumes.len() == 1 && self.devices.len() == 1;
        let mut lines = Vec::new();
        for (name, outside, report) in self.reports() {
            for (groups, quantity) in report.shown() {
                let group = groups.last().unwrap_or(&outside).replace('_', " ");
                let place = if is_one { String::new() } else { format!("{name}: ") };
                lines.push((group, format!("{place}{}: {}", quantity.help, words(quantity))));
            }
        }
        lines
    }

    /// Each quantity over all volumes and devices, with its groups in its name, added up by [`ReportedQuantity::merge`].
    pub fn reported(&self) -> Vec<(String, f64)> {
        let mut found: Vec<(String, ReportedQuantity)> = Vec::new();
        for (_, outside, report) in self.reports() {
            for (groups, quantity) in report.shown() {
                let groups = if groups.is_empty() { vec![outside] } else { groups };
                let name = [groups, vec![quantity.name]].concat().join("_");
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => known.merge(quantity),
                    None => found.push((name, quantity.clone())),
                }
            }
        }
        found.into_iter().filter_map(|(name, quantity)| Some((name, quantity.number()?))).collect()
    }
}

/// The value of a quantity with its unit.
fn words(quantity: &ReportedQuantity) -> String {
    let Some(number) = quantity.number() else {
        return if let QuantityValue::Text(text) = &quantity.value { text.clone() } else { "-".to_string() };
    };
    let figure = |value: f64| significant(value, 4);
    match (&quantity.value, quantity.unit) {
        (QuantityValue::Flag(is_set), _) => if *is_set { "yes" } else { "no" }.to_string(),
        (_, QuantityUnit::Share) => format!("{:.1} %", 100.0 * number),
        (_, QuantityUnit::Seconds) => format!("{} s", figure(number)),
        (_, QuantityUnit::Milliseconds) => format!("{} ms", figure(number)),
        (_, QuantityUnit::MegabytesPerSecond) => format!("{} MB/s", figure(number)),
        (_, QuantityUnit::Bytes) => format!("{} MB", figure(number / 1e6)),
        (QuantityValue::Whole(whole), QuantityUnit::One) => grouped(*whole),
        (_, QuantityUnit::One) => figure(number),
    }
}
