//! `[host]` of a rig: a field here is the key in the file, its doc comment the key's documentation.

use super::cgroup::{self, CgroupSpec};
use super::host_fault;
use super::interface::InterfaceSpec;
use super::page_cache_spec::PageCacheSpec;
use super::processor::{ClientsSpec, ProcessorSpec};
use headstack_model::Nanos;
use headstack_model::spec::{Fault, KeyRules};
use headstack_policy::Queue;
use headstack_policy::elevator::{
    self, AnticipatorySpec, BfqSpec, CfqSpec, DeadlineSpec, InsertionSpec, KyberSpec, Tuning,
};
use headstack_policy::order::{self, Knowledge};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// `[host]`: the page cache and the queues between the load and the drives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// First sector of the partition that the load addresses, in units of 512 bytes (Linux: `/sys/block/DISK/PARTITION/start`): block 0 of
    /// each volume is there, below its page cache. The partition ends with the volume. Default: 0, the whole volume.
    #[serde(skip_serializing_if = "is_default")]
    pub partition_start: u64,
    /// Whether the host uses FUA on disks with SATA or IDE (Linux: `libata.fua`, which is off by default). Without it, a write with
    /// FUA (`O_SYNC`, `RWF_DSYNC`, fio's `sync`) is a write and then a FLUSH. Disks with SCSI commands (SCSI, SAS, FC) always get FUA. A
    /// disk without a volatile write cache gets neither FUA nor FLUSH.
    #[serde(skip_serializing_if = "is_default")]
    pub fua: bool,
    /// The page cache of each volume. Without this table, requests go directly to the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheSpec>,
    /// The queue in front of each drive.
    pub queue: HostQueueSpec,
    /// How data reach memory. Without this table, transfers have no limit and cost the processor nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceSpec>,
    /// The processor and the time of its work. Without this table and `interface`, work takes no time, except copies of the page
    /// cache, each of which runs on its own processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorSpec>,
    /// The network to the load's clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsSpec>,
    /// Control groups of processes with limits. A fio job joins one with `cgroup`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cgroup: Vec<CgroupSpec>,
}

/// Which waiting requests are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// No requests are merged.
    None,
    /// Requests that follow each other without a gap are merged, as in Linux.
    Adjacent,
    /// Requests that share blocks are merged, too.
    Overlapping,
}

/// The host's knowledge of a drive's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Knows {
    /// Block numbers.
    Lbn,
    /// Cylinders, from an exact map of the drive's tracks.
    Cylinder,
    /// Positions, and the seek time and rotational latency to each. Exact while the drive has one command at a time (`depth = 1`)
    /// and its cache does not answer.
    Position,
}

impl Knows {
    fn knowledge(self) -> Knowledge {
        match self {
            Knows::Lbn => Knowledge::Lbn,
            Knows::Cylinder => Knowledge::Cylinder,
            Knows::Position => Knowledge::Position,
        }
    }
}

/// The rule by which new commands are held back while others overtake an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardKind {
    /// Hold back once a command was overtaken more than `guard_threshold` times, until it completes.
    Counting,
    /// Hold back by age and number of overtakings. The guard sets both limits as low as `guard_cost` of the throughput allows.
    Adaptive,
}

/// `[host.queue]`: the host's queue in front of each drive. Without any key, requests that the drive cannot accept wait in order
/// of arrival, and nothing is merged or split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostQueueSpec {
    /// Name of the elevator, which merges and orders requests. One of noop, deadline, anticipatory, cfq, bfq, kyber and insertion (that
    /// of Linux 2.0 and 2.2); `none` is noop and `mq-deadline` is deadline, the names in current Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elevator: Option<String>,
    /// Whether a disk with several arms (a concatenation in a rig) has one queue in front of all arms, as Linux has for a disk
    /// with one logical unit. By default each arm has its own queue.
    #[serde(skip_serializing_if = "is_default")]
    pub whole_disk: bool,
    /// Name of an order, in place of an elevator. It uses what the host `knows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The host's knowledge of the drive's layout; an order that needs more is refused. Default: block numbers; an order that
    /// needs cylinders or times then gets block numbers and their distances in their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knows: Option<Knows>,
    /// Whether urgent requests go before others. The order then applies among the urgent ones, and among the others while no
    /// urgent one waits. An elevator has its own rule for urgent requests.
    #[serde(skip_serializing_if = "is_default")]
    pub urgent_first: bool,
    /// Largest number of outstanding commands at a drive. Default: as many as the drive accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Queue::COMMANDS_MAX), extend("x-unit" = "commands"))]
    pub depth: Option<u32>,
    /// Which waiting requests are merged. Default: `adjacent` with an elevator (as Linux), else `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Largest command: longer requests are split, and merging stops there. Default: 1280 with an elevator
    /// (Linux since 4.5), else no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_sectors_kb: Option<u32>,
    /// Largest number of requests in the queue. More wait in front of it, in order of arrival, and can only be merged. Default:
    /// 256 with an elevator (Linux, `blk-mq` with a scheduler), else no limit. An order considers at most 1,024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub nr_requests: Option<u32>,
    /// Number of requests to an idle drive that are collected before the first is sent, so that they can be merged. Requests of
    /// the same moment are always collected. Default: 4 where `unplug_delay` is given (Linux 2.6, `unplug_thresh`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub unplug_thresh: Option<u32>,
    /// Time after which collected requests are sent although they are few. Default: 0, no request waits for others (Linux
    /// since 2.6.39; before, 3 ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6), extend("x-unit" = "ms"))]
    pub unplug_delay: Option<f64>,
    /// Starvation guard in front of the drive's queue: it holds new commands back while others overtake an old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardKind>,
    /// Number of later commands that may complete before one, with `guard = "counting"`. Default: 64 (assumption: two full queues
    /// of NCQ).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_threshold: Option<u32>,
    /// Share of the throughput that the guard may cost, with `guard = "adaptive"`. Default: 0.05 (assumption).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 0.5))]
    pub guard_cost: Option<f64>,
    /// Parameters of the elevator `deadline`.
    #[serde(skip_serializing_if = "is_default")]
    pub deadline: DeadlineSpec,
    /// Parameters of the elevator `anticipatory`.
    #[serde(skip_serializing_if = "is_default")]
    pub anticipatory: AnticipatorySpec,
    /// Parameters of the elevator `cfq`.
    #[serde(skip_serializing_if = "is_default")]
    pub cfq: CfqSpec,
    /// Parameters of the elevator `bfq`.
    #[serde(skip_serializing_if = "is_default")]
    pub bfq: BfqSpec,
    /// Parameters of the elevator `kyber`.
    #[serde(skip_serializing_if = "is_default")]
    pub kyber: KyberSpec,
    /// Parameters of the elevator `insertion`.
    #[serde(skip_serializing_if = "is_default")]
    pub insertion: InsertionSpec,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<HostSpec>);

impl HostSpec {
    /// Checks all keys.
    ///
    /// *Errors:* the first invalid key.
    pub fn check(&self) -> Result<(), Fault> {
        RULES.check(self, "host.")?;
        self.page_cache.iter().try_for_each(PageCacheSpec::check)?;
        self.interface.iter().try_for_each(|interface| interface.check(self.processor.as_ref()))?;
        cgroup::check(&self.cgroup)?;
        self.queue.check()
    }
}

impl HostQueueSpec {
    /// Linux's `BLK_DEF_MAX_SECTORS`.
    const MAX_SECTORS_KB: u32 = 1280;
    /// Linux's `2 * BLKDEV_DEFAULT_RQ`.
    const NR_REQUESTS: u32 = 256;
    /// Linux 2.6's `unplug_thresh`.
    const UNPLUG_THRESH: u32 = 4;

    /// The queue of a single drive or arm: without any key where a disk with several arms has one queue.
    pub(crate) fn of_arm(&self) -> HostQueueSpec {
        if self.whole_disk { HostQueueSpec::default() } else { self.clone() }
    }

    /// Whether the host only holds requests in order of arrival.
    pub(crate) fn is_plain(&self) -> bool {
        let HostQueueSpec { depth, guard, guard_threshold, guard_cost, .. } = *self;
        let HostQueueSpec { deadline, anticipatory, cfq, bfq, kyber, insertion, .. } = self.clone();
        let limits = HostQueueSpec { depth, guard, guard_threshold, guard_cost, ..HostQueueSpec::default() };
        let plain = HostQueueSpec { deadline, anticipatory, cfq, bfq, kyber, insertion, ..limits };
        HostQueueSpec { merge: self.merge.filter(|merge| *merge != Merge::None), ..self.clone() } == plain
    }

    /// The parameters of the elevators, for a disk with these first blocks of its arms.
    pub(crate) fn tuning(&self, arm_firsts: &[u64]) -> Tuning {
        let HostQueueSpec { deadline, anticipatory, cfq, bfq, kyber, insertion, .. } = self;
        Tuning {
            deadline: *deadline,
            anticipatory: *anticipatory,
            cfq: *cfq,
            bfq: bfq.clone(),
            kyber: *kyber,
            insertion: *insertion,
            arm_firsts: arm_firsts.to_vec(),
        }
    }

    pub(crate) fn merge(&self) -> Merge {
        let usual = if self.elevator.is_some() { Merge::Adjacent } else { Merge::None };
        self.merge.unwrap_or(usual)
    }

    /// Largest command in blocks, for a drive with blocks of this size.
    pub(crate) fn sectors_max(&self, sector_bytes: u32) -> u32 {
        let usual = self.elevator.is_some().then_some(HostQueueSpec::MAX_SECTORS_KB);
        match self.max_sectors_kb.or(usual) {
            Some(kb) => (u64::from(kb) * 1024 / u64::from(sector_bytes)).clamp(1, u64::from(u32::MAX)) as u32,
            None => u32::MAX,
        }
    }

    pub(crate) fn requests_max(&self) -> usize {
        let usual = self.elevator.is_some().then_some(HostQueueSpec::NR_REQUESTS);
        self.nr_requests.or(usual).map_or(usize::MAX, |most| most as usize)
    }

    pub(crate) fn has_map(&self) -> bool {
        matches!(self.knows, Some(Knows::Cylinder | Knows::Position))
    }

    pub(crate) fn guard_threshold(&self) -> u32 {
        self.guard_threshold.unwrap_or(64)
    }

    pub(crate) fn guard_cost(&self) -> f64 {
        self.guard_cost.unwrap_or(0.05)
    }

    pub(crate) fn plug(&self) -> (usize, Nanos) {
        let delay = Nanos::from_ms(self.unplug_delay.unwrap_or(0.0));
        (self.unplug_thresh.unwrap_or(HostQueueSpec::UNPLUG_THRESH) as usize, delay)
    }

    fn check(&self) -> Result<(), Fault> {
        if let Some(name) = &self.elevator {
            elevator::find(name).map_err(|error| host_fault("queue.elevator", error))?;
            if self.order.is_some() {
                return Err(host_fault("queue.order", "an elevator is named too; give one of the two"));
            }
        }
        if self.whole_disk && self.elevator.is_none() {
            return Err(host_fault("queue.whole_disk", "needs an elevator; `bfq` is one"));
        }
        self.check_order()?;
        if self.urgent_first && self.order.is_none() {
            let message = "needs an order; `fcfs` is one";
            return Err(host_fault("queue.urgent_first", message));
        }
        self.check_guard()
    }

    /// Checks that the order exists and needs no more than the host knows.
    fn check_order(&self) -> Result<(), Fault> {
        let Some(name) = &self.order else {
            return match self.knows {
                Some(_) => Err(host_fault("queue.knows", "is for an `order`, and there is none")),
                None => Ok(()),
            };
        };
        let at = |error| host_fault("queue.order", error);
        order::built_in(name).map_err(at)?;
        let (needed, allowed) = (order::knowledge(name).map_err(at)?, self.knows.map(Knows::knowledge));
        match allowed {
            Some(allowed) if needed > allowed => {
                let message = format!(
                    "`{name}` needs to know {}, and the host knows {} at most",
                    needed.name(),
                    allowed.name()
                );
                Err(host_fault("queue.knows", message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that each number of the guard belongs to its kind.
    fn check_guard(&self) -> Result<(), Fault> {
        let numbers = [
            ("queue.guard_threshold", self.guard_threshold.is_some(), GuardKind::Counting, "counting"),
            ("queue.guard_cost", self.guard_cost.is_some(), GuardKind::Adaptive, "adaptive"),
        ];
        for (key, is_given, kind, name) in numbers {
            if is_given && self.guard != Some(kind) {
                return Err(host_fault(key, format!("is for `guard = \"{name}\"`")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let spec: HostSpec = toml::from_str(text).expect("the keys are known");
        spec.check().expect_err("it is wrong").to_string()
    }

    #[test]
    fn every_invalid_value_is_rejected_with_key_and_allowed_values() {
        let cases = [
            (
                "queue.order = \"c-lok\"",
                "host.queue.order: no order is called `c-lok`; the nearest is `c-look`",
            ),
            (
                "queue.elevator = \"nop\"",
                "host.queue.elevator: no elevator is called `nop`; the nearest is `noop`",
            ),
            (
                "queue = { elevator = \"noop\", order = \"fcfs\" }",
                "host.queue.order: an elevator is named too; give one of the two",
            ),
            ("queue.urgent_first = true", "host.queue.urgent_first: needs an order; `fcfs` is one"),
            ("queue.depth = 0", "host.queue.depth: 0 is outside 1 to 1024 commands"),
            ("queue.depth = 1025", "host.queue.depth: 1025 is outside 1 to 1024 commands"),
            ("queue.nr_requests = 0", "host.queue.nr_requests: 0 is outside 1 and more"),
            ("queue.unplug_delay = -1.0", "host.queue.unplug_delay: -1 is outside 0 to 1000000 ms"),
            ("page_cache.memory_mb = 0", "host.page_cache.memory_mb: 0 is outside 1 to 4194304 MiB"),
            ("page_cache.dirty_ratio = 95", "host.page_cache.dirty_ratio: 95 is outside 1 to 90 %"),
            ("clients.round_trip_us = inf", "host.clients.round_trip_us: inf is outside 0 to 1000000 µs"),
            ("queue.cfq.quantum = 0", "host.queue.cfq.quantum: 0 is outside 1 to 1000000"),
            (
                "queue.kyber.write_lat_nsec = 0",
                "host.queue.kyber.write_lat_nsec: 0 is outside 1 to 1000000000000 ns",
            ),
            ("queue.bfq.weights = [100, 0]", "host.queue.bfq.weights: 0 is outside 1 to 1000"),
            (
                "queue.deadline.read_expire = -3",
                "host.queue.deadline.read_expire: -3 is outside 0 to 1000000 ms",
            ),
            (
                "queue = { order = \"sptf\", knows = \"cylinder\" }",
                "host.queue.knows: `sptf` needs to know position, and the host knows cylinder at most",
            ),
            (
                "queue = { order = \"sstf\", knows = \"lbn\" }",
                "host.queue.knows: `sstf` needs to know cylinder, and the host knows LBN at most",
            ),
            (
                "queue = { order = \"spctf\", knows = \"position\" }",
                "host.queue.knows: `spctf` needs to know position and cache, and the host knows position at most",
            ),
            ("queue.knows = \"lbn\"", "host.queue.knows: is for an `order`, and there is none"),
            ("queue.guard_threshold = 3", "host.queue.guard_threshold: is for `guard = \"counting\"`"),
            (
                "queue = { guard = \"counting\", guard_cost = 0.1 }",
                "host.queue.guard_cost: is for `guard = \"adaptive\"`",
            ),
            (
                "queue = { guard = \"adaptive\", guard_cost = 0.6 }",
                "host.queue.guard_cost: 0.6 is outside 0 to 0.5",
            ),
            ("queue.unplug_delay = nan", "host.queue.unplug_delay: NaN is outside 0 to 1000000 ms"),
        ];
        for (text, expected) in cases {
            assert_eq!(fault(text), expected);
        }
    }

    #[test]
    fn host_queue_stays_plain_without_order_or_elevator() {
        let spec: HostSpec = toml::from_str("").expect("nothing is needed");
        assert!(spec.queue.is_plain() && spec.check().is_ok());
        let deep: HostSpec = toml::from_str("queue.depth = 4").expect("a known key");
        assert!(deep.queue.is_plain());
        let guarded: HostSpec = toml::from_str("queue.guard = \"counting\"").expect("a known key");
        assert!(guarded.queue.is_plain() && guarded.check().is_ok());
        let linux: HostSpec = toml::from_str("queue.elevator = \"noop\"").expect("a known key");
        assert!(!linux.queue.is_plain() && linux.queue.merge() == Merge::Adjacent);
        assert_eq!((linux.queue.sectors_max(512), linux.queue.requests_max()), (2560, 256));
        assert_eq!(toml::to_string(&spec).expect("it is TOML"), "[queue]\n");
    }
}
