//! The settings that are tuned, in one list: the name that Linux has for each, the key of a rig, and the values that are tried.

use crate::error::Error;
use headstack_sim::rig::Rig;
use serde_json::Value;

/// A setting of a Linux system that is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The attribute's name in Linux.
    pub name: &'static str,
    /// The key of a rig.
    pub key: &'static str,
    /// The values that are tried, as the attribute takes them.
    pub values: &'static [&'static str],
    /// The attribute below `/sys/block/DISK`.
    pub attribute: &'static str,
    /// The scheduler with which the setting has an effect, if it belongs to one.
    pub scheduler: Option<&'static str>,
    /// Its value where the rig leaves it to the model; empty for the disk's own queue depth.
    default: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
}

/// The knob to which others belong.
pub(super) const SCHEDULER: &str = "scheduler";

/// All settings that are tuned.
pub const KNOBS: [Knob; 8] = [
    Knob {
        name: SCHEDULER,
        key: "host.queue.elevator",
        values: &["none", "mq-deadline", "bfq", "kyber"],
        attribute: "queue/scheduler",
        scheduler: None,
        default: "none",
        summary: "the order in which the host sends requests",
    },
    Knob {
        name: "queue_depth",
        key: "host.queue.depth",
        values: &["1", "2", "4", "8", "16", "32"],
        attribute: "device/queue_depth",
        scheduler: None,
        default: "",
        summary: "commands at the disk at a time; 1 is without NCQ",
    },
    Knob {
        name: "nr_requests",
        key: "host.queue.nr_requests",
        values: &["32", "64", "128", "256", "512", "1024"],
        attribute: "queue/nr_requests",
        scheduler: None,
        default: "256",
        summary: "requests in the host's queue",
    },
    Knob {
        name: "read_ahead_kb",
        key: "host.page_cache.read_ahead_kb",
        values: &["0", "32", "128", "512", "1024", "4096"],
        attribute: "queue/read_ahead_kb",
        scheduler: None,
        default: "128",
        summary: "KiB that the page cache reads ahead",
    },
    Knob {
        name: "max_sectors_kb",
        key: "host.queue.max_sectors_kb",
        values: &["128", "512", "1280", "4096"],
        attribute: "queue/max_sectors_kb",
        scheduler: None,
        default: "1280",
        summary: "KiB of the largest command",
    },
    Knob {
        name: "fifo_batch",
        key: "host.queue.deadline.fifo_batch",
        values: &["1", "4", "16", "64"],
        attribute: "queue/iosched/fifo_batch",
        scheduler: Some("mq-deadline"),
        default: "16",
        summary: "requests that mq-deadline sends upward in a row",
    },
    Knob {
        name: "read_expire",
        key: "host.queue.deadline.read_expire",
        values: &["50", "150", "500", "1500"],
        attribute: "queue/iosched/read_expire",
        scheduler: Some("mq-deadline"),
        default: "500",
        summary: "ms after which mq-deadline serves a waiting read first",
    },
    Knob {
        name: "slice_idle",
        key: "host.queue.bfq.slice_idle",
        values: &["0", "4", "8"],
        attribute: "queue/iosched/slice_idle",
        scheduler: Some("bfq"),
        default: "8",
        summary: "ms for which bfq waits for a process's next request",
    },
];

/// Settings of the same systems that no model here has: nothing is said about them.
pub const NOT_TUNED: [&str; 6] =
    ["wbt_lat_usec", "async_depth", "low_latency of bfq", "ionice classes", "io.max", "mkfs options"];

impl Knob {
    /// The value in a rig, as the attribute shows it.
    pub fn value_in(&self, rig: &Rig) -> String {
        let keys = serde_json::to_value(rig.resolved()).expect("a rig is expressible in JSON");
        let value = self.key.split('.').try_fold(&keys, |value, key| value.get(key));
        match value {
            Some(Value::String(text)) => linux_name(text).to_string(),
            Some(Value::Number(number)) => number.to_string().trim_end_matches(".0").to_string(),
            _ if self.default.is_empty() => rig.resolved().drive[0].spec.queue.depth.to_string(),
            _ => self.default.to_string(),
        }
    }

    /// Sets it in a rig.
    ///
    /// *Errors:* the rig has no such part, or refuses the value.
    pub(super) fn set(&self, rig: &mut Rig, value: &str) -> Result<(), Error> {
        Ok(rig.set(self.key, value)?)
    }

    /// Whether it can be set in this rig: a page cache that is not there cannot read ahead.
    pub(super) fn is_in(&self, rig: &Rig) -> bool {
        let spec = &rig.resolved().host;
        match self.key.strip_prefix("host.page_cache.") {
            Some(_) => spec.page_cache.is_some(),
            None => spec.queue.order.is_none(),
        }
    }
}

/// The name that current Linux has for an elevator.
fn linux_name(elevator: &str) -> &str {
    match elevator {
        "noop" => "none",
        "deadline" => "mq-deadline",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;
    use crate::rig::load_rig;

    #[test]
    fn each_value_of_each_knob_fits_a_workstation() {
        let rig = load_rig("workstation", &NoFiles).expect("it ships");
        for knob in KNOBS {
            assert!(knob.is_in(&rig), "{}", knob.name);
            for value in knob.values {
                let mut set = rig.clone();
                knob.set(&mut set, value).unwrap_or_else(|error| panic!("{}={value}: {error}", knob.name));
                assert_eq!(knob.value_in(&set), *value, "{}", knob.name);
            }
        }
    }

    #[test]
    fn drive_alone_has_no_read_ahead_of_a_page_cache_and_the_scheduler_none() {
        let rig = load_rig("exos-x16", &NoFiles).expect("it ships");
        let here: Vec<&str> = KNOBS.iter().filter(|knob| knob.is_in(&rig)).map(|knob| knob.name).collect();
        assert!(here.contains(&"scheduler") && !here.contains(&"read_ahead_kb"), "{here:?}");
        assert_eq!(KNOBS[0].value_in(&rig), "none");
    }
}
