//! The settings that are tuned, in one list: the name that Linux has for each, the key of a rig, and the values that are tried.

use super::stripe;
use crate::error::Error;
use headstack_sim::rig::Rig;
use serde_json::Value;

/// What a setting belongs to, which determines how it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobOwner {
    /// Each disk: an attribute below `/sys/block/DISK`.
    Disk,
    /// The array, or the disk where there is none: an attribute below `/sys/block`. A file system reads ahead as its own device says.
    Volume,
    /// The array: an option of `mdadm`.
    Array,
    /// The partition table of the disk or the array.
    Partition,
    /// The storage node: a key of its node file.
    Node,
    /// Processes of the jobs whose figures do not count; not a key of the rig.
    OtherJobs,
}

/// A setting of a Linux system, of its array or of a storage node that is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name: in Linux that of the attribute.
    pub name: &'static str,
    /// The key of a rig; empty for what is set for processes.
    pub key: &'static str,
    /// The values that are tried, as the attribute, option or key takes them; `stripe` is the start of an array's stripe.
    pub values: &'static [&'static str],
    /// What it belongs to.
    pub owner: KnobOwner,
    /// The attribute below `/sys/block/DISK`, the option of `mdadm`, the field of a partition, the key below `[[disk]]` of a node
    /// file, or the key of a fio job.
    pub attribute: &'static str,
    /// The scheduler with which the setting has an effect, if it belongs to one.
    pub scheduler: Option<&'static str>,
    /// The value shown where the rig does not set the key; empty for the disk's own queue depth.
    default: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
}

/// Name of the knob that chooses the scheduler, on which other knobs depend.
pub(super) const SCHEDULER: &str = "scheduler";

/// Name of the knob for the I/O class of the jobs that do not count.
pub(super) const IONICE: &str = "ionice";

/// Name of the knob for the limits of those jobs' control group.
pub(super) const IO_MAX: &str = "io.max";

/// Name of that control group.
pub(super) const OTHERS: &str = "others";

/// The value of a partition's start that stands for the first stripe at or after 1 MiB, with the array's chunk.
pub(super) const STRIPE: &str = "stripe";

/// All settings that are tuned. The partition's start comes after the chunk, on which it may depend.
pub const KNOBS: [Knob; 16] = [
    Knob {
        name: SCHEDULER,
        key: "host.queue.elevator",
        values: &["none", "mq-deadline", "bfq", "kyber"],
        owner: KnobOwner::Disk,
        attribute: "queue/scheduler",
        scheduler: None,
        default: "none",
        summary: "the order in which the host sends requests",
    },
    Knob {
        name: "queue_depth",
        key: "host.queue.depth",
        values: &["1", "2", "4", "8", "16", "32"],
        owner: KnobOwner::Disk,
        attribute: "device/queue_depth",
        scheduler: None,
        default: "",
        summary: "commands at the disk at a time; 1 is without NCQ",
    },
    Knob {
        name: "nr_requests",
        key: "host.queue.nr_requests",
        values: &["32", "64", "128", "256", "512", "1024"],
        owner: KnobOwner::Disk,
        attribute: "queue/nr_requests",
        scheduler: None,
        default: "256",
        summary: "requests in the host's queue",
    },
    Knob {
        name: "read_ahead_kb",
        key: "host.page_cache.read_ahead_kb",
        values: &["0", "32", "128", "512", "1024", "4096"],
        owner: KnobOwner::Volume,
        attribute: "queue/read_ahead_kb",
        scheduler: None,
        default: "128",
        summary: "KiB that the page cache reads ahead",
    },
    Knob {
        name: "max_sectors_kb",
        key: "host.queue.max_sectors_kb",
        values: &["128", "512", "1280", "4096"],
        owner: KnobOwner::Disk,
        attribute: "queue/max_sectors_kb",
        scheduler: None,
        default: "1280",
        summary: "KiB of the largest command",
    },
    Knob {
        name: "fifo_batch",
        key: "host.queue.deadline.fifo_batch",
        values: &["1", "4", "16", "64"],
        owner: KnobOwner::Disk,
        attribute: "queue/iosched/fifo_batch",
        scheduler: Some("mq-deadline"),
        default: "16",
        summary: "requests that mq-deadline sends upward in a row",
    },
    Knob {
        name: "read_expire",
        key: "host.queue.deadline.read_expire",
        values: &["50", "150", "500", "1500"],
        owner: KnobOwner::Disk,
        attribute: "queue/iosched/read_expire",
        scheduler: Some("mq-deadline"),
        default: "500",
        summary: "ms after which mq-deadline serves a waiting read first",
    },
    Knob {
        name: "slice_idle",
        key: "host.queue.bfq.slice_idle",
        values: &["0", "4", "8"],
        owner: KnobOwner::Disk,
        attribute: "queue/iosched/slice_idle",
        scheduler: Some("bfq"),
        default: "8",
        summary: "ms for which bfq waits for a process's next request",
    },
    Knob {
        name: "chunk",
        key: "array.stripe_unit_sectors",
        values: &["16", "64", "128", "256", "512", "1024", "2048"],
        owner: KnobOwner::Array,
        attribute: "--chunk",
        scheduler: None,
        default: "",
        summary: "KiB of the array's stripe unit",
    },
    Knob {
        name: "partition_start",
        key: "host.partition_start",
        values: &["2048", STRIPE],
        owner: KnobOwner::Partition,
        attribute: "start",
        scheduler: None,
        default: "0",
        summary: "first sector of the partition, in units of 512 bytes",
    },
    Knob {
        name: "memory_bytes",
        key: "node.memory_bytes",
        values: &["8388608", "16777216", "33554432", "67108864", "134217728"],
        owner: KnobOwner::Node,
        attribute: "streams.memory_bytes",
        scheduler: None,
        default: "",
        summary: "M: bytes of a node's stream memory",
    },
    // Up to half of the smallest memory above, so that any two of the values fit together.
    Knob {
        name: "read_ahead_bytes",
        key: "node.read_ahead_bytes",
        values: &["65536", "262144", "524288", "1048576", "2097152", "4194304"],
        owner: KnobOwner::Node,
        attribute: "streams.read_ahead_bytes",
        scheduler: None,
        default: "chosen",
        summary: "R: bytes of a node's request to the disk",
    },
    Knob {
        name: "dispatch_set",
        key: "node.dispatch_set",
        values: &["1", "2", "4", "8"],
        owner: KnobOwner::Node,
        attribute: "streams.dispatch_set",
        scheduler: None,
        default: "chosen",
        summary: "D: streams that have a turn at the disk at the same time",
    },
    Knob {
        name: "requests_per_turn",
        key: "node.requests_per_turn",
        values: &["1", "2", "4", "8", "16"],
        owner: KnobOwner::Node,
        attribute: "streams.requests_per_turn",
        scheduler: None,
        default: "chosen",
        summary: "N: requests to the disk in one turn of a stream",
    },
    Knob {
        name: IONICE,
        key: "",
        values: &["idle"],
        owner: KnobOwner::OtherJobs,
        attribute: "prioclass",
        scheduler: None,
        default: "none",
        summary: "class of the other jobs; idle is served last",
    },
    Knob {
        name: IO_MAX,
        key: "",
        values: &[
            "262144",
            "524288",
            "1048576",
            "2097152",
            "4194304",
            "8388608",
            "16777216",
            "33554432",
            "67108864",
            "134217728",
        ],
        owner: KnobOwner::OtherJobs,
        attribute: "io.max",
        scheduler: None,
        default: "max",
        summary: "bytes a second that the other jobs may read, and write",
    },
];

/// Settings of Linux that no model here has, so that advice does not cover them.
pub const NOT_TUNED: [&str; 4] =
    ["wbt_lat_usec", "async_depth", "low_latency of bfq", "mkfs options on a single disk"];

/// The jobs of a load whose figures do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncountedJobs {
    /// All jobs count.
    None,
    /// They may lose all of their throughput.
    Unbounded,
    /// A limit says how much must be left of their throughput.
    Bounded,
}

/// Least gain for which a setting is advised, however certain a smaller gain is: half a percent, as a logarithm.
pub(super) const LEAST_GAIN: f64 = 0.005;

/// Least gain, as a logarithm, for which data are moved or copied: a tenth.
const LEAST_GAIN_OF_A_REBUILD: f64 = 0.095;

impl Knob {
    /// Whether the setting takes hours of copying: mdadm moves all data of an array, a new partition table loses them.
    pub fn is_rebuild(&self) -> bool {
        matches!(self.owner, KnobOwner::Array | KnobOwner::Partition)
    }

    /// Least gain for which it is advised, as a logarithm: what costs days has to bring more than what an `echo` sets.
    pub(super) fn least_gain(&self) -> f64 {
        if self.is_rebuild() { LEAST_GAIN_OF_A_REBUILD } else { LEAST_GAIN }
    }

    /// Another attribute, with its value, that must be set together with `value` so that the system does what was simulated.
    pub fn companion(&self, value: &str) -> Option<(&'static str, &'static str)> {
        // By default BFQ raises the weights of new processes, which the model does not, and waits for none of them meanwhile.
        (self.name == SCHEDULER && value == "bfq").then_some(("queue/iosched/low_latency", "0"))
    }

    /// The value in a rig, as the attribute shows it.
    pub fn value_in(&self, rig: &Rig) -> String {
        let keys = serde_json::to_value(rig.resolved()).expect("a rig is expressible in JSON");
        // Of several arrays the first counts: a path into them changes all.
        let part = |value: &'_ Value, key: &str| match value {
            Value::Array(parts) => parts.first().and_then(|first| first.get(key)).cloned(),
            value => value.get(key).cloned(),
        };
        let value = self.key.split('.').try_fold(keys, |value, key| part(&value, key));
        match value {
            Some(Value::Number(sectors)) if self.owner == KnobOwner::Array => {
                (sectors.as_u64().unwrap_or(0) * sector_bytes(rig) / KIB).to_string()
            }
            Some(Value::String(text)) => linux_name(&text).to_string(),
            Some(Value::Number(number)) => number.to_string().trim_end_matches(".0").to_string(),
            _ if self.default.is_empty() => rig.resolved().drive[0].spec.queue.depth.to_string(),
            _ => self.default.to_string(),
        }
    }

    /// A value as the key of a rig has it: a chunk in sectors, and `stripe` as a number where the rig has a stripe.
    pub fn key_value(&self, rig: &Rig, value: &str) -> String {
        if value == STRIPE {
            return stripe::partition_start(rig).map_or_else(|| value.to_string(), |start| start.to_string());
        }
        let kib = value.parse::<u64>().ok().filter(|_| self.owner == KnobOwner::Array);
        kib.map_or_else(|| value.to_string(), |kib| (kib * KIB / sector_bytes(rig)).to_string())
    }

    /// Sets the knob's key in a rig. Knobs of other jobs have no key and change nothing.
    ///
    /// *Errors:* the rig has no such part, or refuses the value.
    pub(super) fn set(&self, rig: &mut Rig, value: &str) -> Result<(), Error> {
        let Some(key) = self.rig_key() else { return Ok(()) };
        let value = self.key_value(rig, value);
        Ok(rig.set(key, &value)?)
    }

    /// The key of the rig that it sets; none for knobs of other jobs.
    pub(super) fn rig_key(&self) -> Option<&'static str> {
        (self.owner != KnobOwner::OtherJobs).then_some(self.key)
    }

    /// Whether the setting exists in this rig, or for the load's other jobs: without a page cache, for example, there is no read-ahead size.
    pub(super) fn is_in(&self, rig: &Rig, others: UncountedJobs) -> bool {
        let spec = &rig.resolved();
        match self.owner {
            KnobOwner::Array => spec.array.iter().any(|array| array.stripe_unit_sectors.is_some()),
            KnobOwner::Partition => spec.host.partition_start > 0,
            KnobOwner::Node => spec.node.is_some(),
            // Without a limit of what the other jobs lose, the best would be to stop them.
            KnobOwner::OtherJobs if self.name == IO_MAX => {
                others == UncountedJobs::Bounded && spec.host.cgroup.is_empty() && spec.node.is_none()
            }
            KnobOwner::OtherJobs => others != UncountedJobs::None && spec.host.queue.order.is_none(),
            KnobOwner::Volume => spec.host.page_cache.is_some(),
            KnobOwner::Disk => spec.host.queue.order.is_none(),
        }
    }
}

const KIB: u64 = 1024;

/// Bytes of a sector of the rig's drives, which those of an array have in common.
fn sector_bytes(rig: &Rig) -> u64 {
    rig.resolved().drive.first().map_or(512, |group| group.spec.sector_bytes.into())
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
    fn each_value_of_each_knob_fits_a_rig_that_has_it() {
        for knob in KNOBS.into_iter().filter(|knob| knob.owner != KnobOwner::OtherJobs) {
            let name = match knob.owner {
                KnobOwner::Disk | KnobOwner::Volume | KnobOwner::OtherJobs => "workstation",
                KnobOwner::Array | KnobOwner::Partition => "raid5",
                KnobOwner::Node => "stream-node",
            };
            let mut rig = load_rig(name, &NoFiles).expect("it ships");
            if knob.owner == KnobOwner::Partition {
                rig.set(knob.key, "63").expect("each disk has that sector");
            }
            assert!(knob.is_in(&rig, UncountedJobs::None), "{}", knob.name);
            for value in knob.values {
                let mut set = rig.clone();
                knob.set(&mut set, value).unwrap_or_else(|error| panic!("{}={value}: {error}", knob.name));
                let shown = if *value == STRIPE { "2048" } else { value };
                assert_eq!(knob.value_in(&set), shown, "{}", knob.name);
            }
        }
    }

    #[test]
    fn drive_alone_has_no_read_ahead_of_a_page_cache_and_the_scheduler_none() {
        let rig = load_rig("exos-x16", &NoFiles).expect("it ships");
        let here: Vec<&str> =
            KNOBS.iter().filter(|knob| knob.is_in(&rig, UncountedJobs::None)).map(|knob| knob.name).collect();
        assert!(here.contains(&"scheduler") && !here.contains(&"read_ahead_kb"), "{here:?}");
        assert_eq!(KNOBS[0].value_in(&rig), "none");
        assert!(!here.contains(&"chunk") && !here.contains(&"memory_bytes"), "{here:?}");
    }

    #[test]
    fn chunk_of_an_array_is_in_kib_and_a_node_chooses_what_its_keys_leave_open() {
        let named = |name: &str| KNOBS.into_iter().find(|knob| knob.name == name).expect("it is in the list");
        let raid = load_rig("raid5", &NoFiles).expect("it ships");
        assert_eq!(named("chunk").value_in(&raid), "64");
        let mut set = raid.clone();
        named("chunk").set(&mut set, "512").expect("the array takes it");
        assert_eq!(set.resolved().array[0].stripe_unit_sectors, Some(1024));
        let node = load_rig("stream-node", &NoFiles).expect("it ships");
        assert_eq!(named("memory_bytes").value_in(&node), "8388608");
        assert_eq!(named("read_ahead_bytes").value_in(&node), "chosen");
    }
}
